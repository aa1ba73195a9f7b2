// One distribution: bins, marks, modes, the bins before samples were dropped, and a brush that
// counts.
import uPlot from "uplot";
import { type Bin, type Drawn, binsOf, fromZero, prepare } from "./bins.js";
import { addBrush } from "./brush.js";
import type { Estimate, Histogram, Interval } from "./document.js";
import { report } from "./document.js";
import { count, duration, perCent } from "./figures.js";
import { colour } from "./theme.js";
import { linearTicks, logTicks } from "./ticks.js";

export type ScaleKind = "log" | "linear";

export interface Scales {
  x: ScaleKind;
  y: ScaleKind;
  /** Whether to draw outlines of the distribution before samples were dropped or costs
   * subtracted. */
  before: boolean;
}

const HEIGHT = 210;
const LEFT = 46;
const BELOW = 34;

/** The heights of bins: a share of the samples per unit length of the axis, `per`. */
interface Heights {
  of: (bin: Bin) => number;
  least: number;
  most: number;
  per: string;
}

export function drawHistogram(box: HTMLElement, scales: Scales): void {
  const interval = report.intervals[Number(box.dataset["chart"])];
  box.replaceChildren();
  if (interval === undefined) return;
  const data = prepare(interval.histogram, scales.x === "log");
  if (data === null) {
    box.style.minHeight = "0";
    box.append(line("p", "beyond", "No samples, so no distribution."));
    return;
  }
  const width = Math.max(220, Math.floor(box.clientWidth));
  const range = rangeOf(data);
  const wanted = Math.max(2, Math.floor((width - LEFT) / 80));
  const ticks = data.isLog ? logTicks(...range, wanted) : linearTicks(...range, wanted);
  const heights = heightsOf(data, ticks, range, scales.y);
  const chart = new uPlot(
    options(width, interval, data, range, ticks, heights, scales),
    [range, [heights.least, heights.most], [null, null], [null, null]],
    box,
  );
  chart.root.setAttribute("role", "img");
  chart.root.setAttribute("tabindex", "0");
  chart.root.setAttribute("aria-label", label(interval, data.total));
  chart.root.title = `height: share of the samples per ${heights.per}`;
  addBrush(box, chart, data.bins, data.total);
  box.append(line("p", "beyond", remarks(interval, data, scales)));
}

function rangeOf({ bins }: Drawn): [number, number] {
  const [first, last] = [bins[0], bins[bins.length - 1]];
  return first === undefined || last === undefined ? [0, 1] : [first.lo, last.hi];
}

/** Areas are shares: heights are shares per 10 % of duration, or per tenth of a tick distance. */
function heightsOf(data: Drawn, ticks: number[], range: [number, number], kind: ScaleKind): Heights {
  const step = ticks.length > 1 ? (ticks[1] ?? 0) - (ticks[0] ?? 0) : range[1] - range[0];
  const per = data.isLog ? Math.log2(1.1) : step / 10;
  const length = (bin: Bin): number => (data.isLog ? Math.log2(bin.hi / bin.lo) : bin.hi - bin.lo);
  const of = (bin: Bin): number => ((bin.n / data.total) * per) / length(bin);
  const heights = data.bins.map(of).filter((height) => height > 0);
  const most = Math.max(...heights);
  return {
    of,
    least: kind === "log" ? Math.min(...heights) / 2 : 0,
    most: most * (kind === "log" ? 1.5 : 1.08),
    per: data.isLog ? "10\u00a0% of duration" : duration(per),
  };
}

function options(
  width: number,
  interval: Interval,
  data: Drawn,
  range: [number, number],
  ticks: number[],
  heights: Heights,
  scales: Scales,
): uPlot.Options {
  const axis = { stroke: () => colour("quiet"), font: "11px sans-serif", labelFont: "11px sans-serif" };
  const inks = { stroke: () => colour("line"), width: 1 };
  const before = scales.before ? interval.before_culling.histogram : undefined;
  const bare = scales.before ? asRead(interval) : undefined;
  return {
    width,
    height: HEIGHT,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    scales: {
      x: { time: false, distr: data.isLog ? 3 : 1, range: () => range },
      y: { distr: scales.y === "log" ? 3 : 1, range: () => [heights.least, heights.most] },
    },
    axes: [
      {
        ...axis,
        size: BELOW,
        grid: { show: false },
        ticks: { ...inks, size: 4 },
        splits: () => ticks,
        filter: (_, splits) => splits,
        values: (_, splits) => splits.map(duration),
      },
      {
        ...axis,
        size: LEFT,
        grid: { ...inks, stroke: () => colour("faint") },
        ticks: { show: false },
        splits: () =>
          scales.y === "log"
            ? logTicks(heights.least, heights.most, 4)
            : linearTicks(0, heights.most, 4).filter((tick) => tick > 0),
        filter: (_, splits) => splits,
        values: (_, splits) => splits.map(perCent),
      },
    ],
    series: [
      {},
      {
        fill: () => colour("fill"),
        width: 0,
        points: { show: false },
        paths: (u) => closed(u, data.bins, heights),
      },
      outlineSeries(before, data, heights, "mean", [3, 3]),
      outlineSeries(bare, data, heights, "p99", []),
    ],
    hooks: { draw: [(u) => drawMarks(u, interval, range)] },
  };
}

/** Returns the uncompensated distribution: its own bins, or those of the figures plus the mean
 * cost. */
function asRead({ compensation, histogram, uncompensated }: Interval): Histogram | undefined {
  if (uncompensated.histogram !== undefined) return uncompensated.histogram;
  const cost = compensation.cost?.value;
  if (cost === undefined) return undefined;
  return { counts: histogram.counts, edges: histogram.edges.map((edge) => edge + cost) };
}

/** Draws the bins of another treatment of the same samples, as shares of all samples. */
function outlineSeries(
  histogram: Histogram | undefined,
  data: Drawn,
  heights: Heights,
  ink: string,
  dash: number[],
): uPlot.Series {
  const all = histogram === undefined ? [] : binsOf(histogram);
  const total = all.reduce((n, bin) => n + bin.n, 0);
  const bins = data.isLog ? fromZero(all.filter((bin) => bin.hi > 0)) : all;
  const scaled = bins.map((bin) => ({ ...bin, n: total > 0 ? (bin.n * data.total) / total : 0 }));
  return {
    show: scaled.length > 0,
    stroke: () => colour(ink),
    width: 1.2,
    dash,
    points: { show: false },
    paths: (u) => {
      const stroke = new Path2D();
      steps(u, stroke, scaled, heights);
      return { stroke, flags: 0 };
    },
  };
}

/** Draws the bins as one outline, so that neighbours leave no seam. */
function steps(u: uPlot, path: Path2D, bins: Bin[], heights: Heights): void {
  const base = u.valToPos(heights.least, "y", true);
  bins.forEach((bin, i) => {
    const height = heights.of(bin);
    const seen = height > heights.least ? u.valToPos(Math.min(height, heights.most), "y", true) : base;
    const top = bin.n > 0 ? Math.min(base - uPlot.pxRatio, seen) : base;
    const [from, to] = [u.valToPos(bin.lo, "x", true), u.valToPos(bin.hi, "x", true)];
    if (i === 0) path.moveTo(from, base);
    path.lineTo(from, top);
    path.lineTo(to, top);
    if (i === bins.length - 1) path.lineTo(to, base);
  });
}

function closed(u: uPlot, bins: Bin[], heights: Heights): uPlot.Series.Paths {
  const fill = new Path2D();
  steps(u, fill, bins, heights);
  fill.closePath();
  return { fill, flags: 0 };
}

function marks(interval: Interval): [string, Estimate][] {
  const all: [string, Estimate | null | undefined][] = [
    ["p99", interval.quantiles["0.99"]],
    ["mean", interval.mean],
    ["median", interval.median],
  ];
  return all.filter((mark): mark is [string, Estimate] => mark[1] !== null && mark[1] !== undefined);
}

const DASHES: Record<string, number[]> = { median: [], mean: [5, 3], p99: [2, 3] };

function drawMarks(u: uPlot, interval: Interval, [lo, hi]: [number, number]): void {
  const { ctx, bbox } = u;
  const inside = (v: number | null): v is number => v !== null && v >= lo && v <= hi;
  const at = (v: number): number => u.valToPos(v, "x", true);
  ctx.save();
  for (const [kind, { value, interval: within }] of marks(interval)) {
    const ink = colour(kind);
    const [from, to] = within;
    if (kind !== "p99" && inside(from) && inside(to)) {
      ctx.globalAlpha = 0.3;
      ctx.fillStyle = ink;
      ctx.fillRect(at(from), bbox.top, Math.max(0.5, at(to) - at(from)), bbox.height);
      ctx.globalAlpha = 1;
    }
    if (!inside(value)) continue;
    ctx.strokeStyle = ink;
    ctx.lineWidth = 2 * uPlot.pxRatio;
    ctx.setLineDash((DASHES[kind] ?? []).map((n) => n * uPlot.pxRatio));
    ctx.beginPath();
    ctx.moveTo(at(value), bbox.top);
    ctx.lineTo(at(value), bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  for (const mode of several(interval)) if (inside(mode.at)) drawMode(u, at(mode.at));
  ctx.restore();
}

/** Returns the modes of an interval, if it has more than one. */
function several(interval: Interval): Interval["modes"] {
  return interval.modes.length > 1 ? interval.modes : [];
}

/** Draws a triangle. Its share is in the text below: labels of close modes would overlap. */
function drawMode({ ctx, bbox }: uPlot, x: number): void {
  const r = uPlot.pxRatio;
  ctx.fillStyle = colour("mean");
  ctx.beginPath();
  ctx.moveTo(x, bbox.top + 6 * r);
  ctx.lineTo(x - 5 * r, bbox.top - 3 * r);
  ctx.lineTo(x + 5 * r, bbox.top - 3 * r);
  ctx.fill();
}

/** Returns the description for readers who do not see the drawing. */
function label(interval: Interval, total: number): string {
  const estimates = marks(interval)
    .reverse()
    .map(([kind, estimate]) => `${kind} ${duration(estimate.value)}`);
  const modes = several(interval).map((mode) => `mode ${duration(mode.at)} (${perCent(mode.share)})`);
  const parts = [...estimates, ...modes].join(", ");
  return (
    `Distribution of ${interval.name}: ${count(total)} samples, ${parts}. ` +
    "Arrow keys read single bins, with Shift they select."
  );
}

function remarks(interval: Interval, data: Drawn, scales: Scales): string {
  const parts: string[] = [];
  const { total } = data;
  if (scales.x === "log" && !data.isLog) {
    parts.push("linear axis, because many samples are at or below zero");
  }
  if (data.beyond > 0) {
    const most = interval.max === null ? "" : `, up to ${duration(interval.max)}`;
    parts.push(`${count(data.beyond)} samples (${perCent(data.beyond / total)}) lie beyond the axis${most}`);
  }
  if (data.below > 0) {
    parts.push(`${count(data.below)} samples (${perCent(data.below / total)}) below zero are not on this axis`);
  }
  return parts.map((part) => `${part.charAt(0).toUpperCase()}${part.slice(1)}.`).join(" ");
}

export function line(tag: string, className: string, text: string): HTMLElement {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}
