// The timeline of one second: a lane for each thread with its spans by depth, lanes of the kernel,
// and losses; the columns of the overview, and single spans where they are known.
import uPlot from "uplot";
import { type Lane, type Span, type Timeline, timeline } from "./document.js";
import { count, duration, perCent, time } from "./figures.js";
import { colour, hue, onTheme } from "./theme.js";
import { linearTicks } from "./ticks.js";
import { drawInView, redraw } from "./view.js";

const ROW = 15;
const LANE_GAP = 8;
const LABEL = 13;
const AXIS = 30;
// Rows from this one on hold points and time off the CPU instead of spans.
const POINTS = 900;
// A column wider than this, pixels, is drawn faint, so that spans show through.
const WIDE_COLUMN = 14;
/**
 * Largest difference of the same time computed in two ways, ns. A document's times are tenths of a
 * nanosecond, each rounded by itself, and a view's ends are their sums and differences.
 */
const ROUNDING_NS = 0.2;

/** A lane's row and its position in the drawing. */
interface Place {
  lane: number;
  row: number;
  top: number;
}

interface Layout {
  places: Place[];
  labels: { top: number; text: string }[];
  laneTops: number[];
  height: number;
}

function layoutOf(lanes: Lane[]): Layout {
  const places: Place[] = [];
  const labels: { top: number; text: string }[] = [];
  const laneTops: number[] = [];
  let top = 4;
  lanes.forEach((lane, index) => {
    laneTops.push(top);
    labels.push({ top, text: lane.label });
    top += LABEL;
    for (const { row } of lane.rows) {
      places.push({ lane: index, row, top });
      top += ROW;
    }
    top += LANE_GAP;
  });
  return { places, labels, laneTops, height: top };
}

class Drawing {
  readonly places = new Map<string, number>();
  readonly layout: Layout;
  view: [number, number];
  chart: uPlot | null = null;
  /** Colours of names in the current theme. */
  private inks: string[] = [];

  constructor(
    readonly box: HTMLElement,
    readonly data: Timeline,
  ) {
    this.layout = layoutOf(data.lanes);
    for (const { lane, row, top } of this.layout.places) this.places.set(`${lane} ${row}`, top);
    this.view = [0, data.length_ns];
  }

  /** Returns the detail's spans if the whole view lies in it, otherwise those of the overview. */
  spans(): { spans: Span[]; whole: boolean } {
    const { detail } = this.data;
    const [from, to] = this.view;
    const end = detail === null ? 0 : detail.from_ns + detail.length_ns;
    if (detail !== null && from >= detail.from_ns - ROUNDING_NS && to <= end + ROUNDING_NS) {
      return { spans: detail.spans, whole: true };
    }
    return { spans: this.data.spans, whole: false };
  }

  draw(): void {
    const canvas = this.box.querySelector(".canvas");
    if (canvas === null) return;
    canvas.replaceChildren();
    const width = Math.max(220, Math.floor(canvas.clientWidth));
    const [from, to] = this.view;
    const wanted = Math.max(2, Math.floor(width / 130));
    this.chart = new uPlot(
      {
        width,
        height: this.layout.height + AXIS,
        padding: [0, 16, 0, 8],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false, range: () => this.view }, y: { range: () => [0, 1] } },
        axes: [
          {
            size: AXIS,
            stroke: () => colour("quiet"),
            font: "11px sans-serif",
            grid: { stroke: () => colour("line"), width: 1 },
            ticks: { show: false },
            splits: () => linearTicks(from, to, wanted),
            filter: (_, splits) => splits,
            values: (_, splits) => {
              const step = (splits[1] ?? to) - (splits[0] ?? from);
              return splits.map((at) => time(at, step));
            },
          },
          { show: false },
        ],
        series: [{}, { show: false }],
        hooks: { draw: [(u) => this.paint(u)], setSelect: [(u) => this.zoomTo(u)] },
      },
      [
        [from, to],
        [0, 0],
      ],
      canvas as HTMLElement,
    );
    this.chart.over.addEventListener("pointermove", (event) => this.readAt(event));
    this.chart.over.addEventListener("pointerleave", () => this.tell());
    this.tell();
  }

  paint(u: uPlot): void {
    const { ctx, bbox } = u;
    const light = colour("timeline-light");
    this.inks = this.data.names.map((name, i) => ink(name, i, light));
    ctx.save();
    ctx.textAlign = "left";
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const isDetailed = this.spans().whole;
    this.paintCells(u, isDetailed);
    this.paintSpans(u, isDetailed);
    this.paintLosses(u);
    this.paintSwitches(u);
    this.paintLabels(u);
    ctx.restore();
  }

  private hue(name: number): string {
    return this.inks[name] ?? "gray";
  }

  /** Draws the columns. Where every span is known, only those of the kernel are drawn. */
  private paintCells(u: uPlot, isDetailed: boolean): void {
    const { ctx, bbox } = u;
    const { columns, length_ns, lanes } = this.data;
    const width = length_ns / columns;
    const wide = u.valToPos(width, "x", true) - u.valToPos(0, "x", true);
    const faint = wide > WIDE_COLUMN * uPlot.pxRatio ? 0.25 : 1;
    lanes.forEach((lane, index) => {
      for (const { row, cells } of lane.rows) {
        if (isDetailed && lane.kind === "thread" && row < POINTS) continue;
        const top = (this.places.get(`${index} ${row}`) ?? 0) * uPlot.pxRatio + bbox.top;
        for (let i = 0; i + 3 < cells.length; i += 4) {
          const from = (cells[i] ?? 0) * width;
          if (from + width < this.view[0] || from > this.view[1]) continue;
          const x = u.valToPos(from, "x", true);
          ctx.fillStyle = this.hue(cells[i + 1] ?? 0);
          ctx.globalAlpha = faint * (0.25 + 0.75 * Math.min(1, (cells[i + 2] ?? 0) / 1000));
          ctx.fillRect(x, top, Math.max(uPlot.pxRatio, wide), (ROW - 2) * uPlot.pxRatio);
        }
      }
    });
    ctx.globalAlpha = 1;
  }

  private paintSpans(u: uPlot, withNames: boolean): void {
    const { ctx, bbox } = u;
    const r = uPlot.pxRatio;
    ctx.font = `${10 * r}px sans-serif`;
    ctx.textBaseline = "middle";
    const writing = colour("timeline-ink");
    for (const [lane, row, start, length, name, dropped] of this.spans().spans) {
      if (start + length < this.view[0] || start > this.view[1]) continue;
      const place = this.places.get(`${lane} ${row}`);
      if (place === undefined) continue;
      const x = Math.max(bbox.left, u.valToPos(start, "x", true));
      const end = Math.min(bbox.left + bbox.width, u.valToPos(start + length, "x", true));
      if (!withNames && end - x < 1.5 * r) continue; // the column shows it
      const [top, high] = [place * r + bbox.top, (ROW - 2) * r];
      ctx.fillStyle = this.hue(name);
      ctx.fillRect(x, top, Math.max(r, end - x), high);
      if (dropped > 0 && end - x > 6 * r) hatch(ctx, x, top, Math.max(r, end - x), high);
      if (end - x > 40 * r) {
        ctx.fillStyle = writing;
        ctx.fillText(fitted(ctx, this.data.names[name] ?? "", end - x - 6 * r), x + 3 * r, top + high / 2);
      }
    }
  }

  private paintLosses(u: uPlot): void {
    const r = uPlot.pxRatio;
    u.ctx.fillStyle = colour("alert");
    this.data.lanes.forEach((lane, index) => {
      const top = (this.layout.laneTops[index] ?? 0) * r + u.bbox.top;
      const high = (LABEL + lane.rows.length * ROW) * r;
      for (const [at] of lane.losses) u.ctx.fillRect(u.valToPos(at, "x", true) - r, top, 2 * r, high);
    });
  }

  private paintSwitches(u: uPlot): void {
    const { ctx, bbox } = u;
    this.data.switches.forEach(([at, state], i) => {
      if (state !== 2) return;
      const end = this.data.switches[i + 1]?.[0] ?? this.data.length_ns;
      const x = u.valToPos(at, "x", true);
      ctx.globalAlpha = 0.12;
      ctx.fillStyle = colour("ink");
      ctx.fillRect(x, bbox.top, u.valToPos(end, "x", true) - x, bbox.height);
      ctx.globalAlpha = 1;
    });
  }

  private paintLabels(u: uPlot): void {
    const r = uPlot.pxRatio;
    u.ctx.font = `${11 * r}px sans-serif`;
    u.ctx.textBaseline = "middle";
    u.ctx.fillStyle = colour("quiet");
    for (const { top, text } of this.layout.labels) {
      u.ctx.fillText(fitted(u.ctx, text, u.bbox.width - 6 * r), u.bbox.left + 2 * r, u.bbox.top + (top + LABEL / 2) * r);
    }
  }

  private zoomTo(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 3) return;
    this.show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
  }

  /** Shows the time from `from` to `to`, at least 100 ns and at most the whole second. */
  show(from: number, to: number): void {
    const length = Math.min(this.data.length_ns, Math.max(100, to - from));
    const start = Math.min(Math.max(0, from), this.data.length_ns - length);
    this.view = [start, start + length];
    this.draw();
  }

  zoom(factor: number): void {
    const [from, to] = this.view;
    const half = ((to - from) / 2) * factor;
    this.show((from + to) / 2 - half, (from + to) / 2 + half);
  }

  move(share: number): void {
    const by = (this.view[1] - this.view[0]) * share;
    this.show(this.view[0] + by, this.view[1] + by);
  }

  detail(): void {
    const { detail } = this.data;
    if (detail !== null) this.show(detail.from_ns, detail.from_ns + detail.length_ns);
  }

  private tell(text = ""): void {
    const [from, to] = this.view;
    const readout = this.box.querySelector<HTMLOutputElement>("output");
    if (readout === null) return;
    readout.dataset["from"] = String(from);
    readout.dataset["to"] = String(to);
    const step = (to - from) / 1000;
    const seen = `${time(from, step)} to ${time(to, step)} (${duration(to - from)})`;
    const how = this.spans().whole ? "every span" : `columns of ${duration(this.data.length_ns / this.data.columns)}`;
    readout.textContent = text === "" ? `Shown: ${seen}, ${how}.` : text;
  }

  /** Describes the item under the pointer. */
  private readAt(event: PointerEvent): void {
    const chart = this.chart;
    if (chart === null) return;
    const bounds = chart.over.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const place = this.layout.places.find(({ top }) => y >= top && y < top + ROW);
    this.tell(place === undefined ? "" : this.described(place, chart.posToVal(x, "x")));
  }

  private described(place: Place, at: number): string {
    const lane = this.data.lanes[place.lane];
    if (lane === undefined) return "";
    const slack = (this.view[1] - this.view[0]) / 2000;
    const span = this.spans().spans.find(
      ([l, row, start, length]) =>
        l === place.lane && row === place.row && at >= start - slack && at <= start + length + slack,
    );
    if (span !== undefined) {
      const why = this.data.dropped[span[5]] ?? "";
      const dropped = why === "" ? "" : `; dropped from the figures: ${why}`;
      return `${lane.label}: ${this.data.names[span[4]] ?? ""}, ${duration(span[3])}${dropped}`;
    }
    const column = Math.floor((at / this.data.length_ns) * this.data.columns);
    const cells = lane.rows.find(({ row }) => row === place.row)?.cells ?? [];
    for (let i = 0; i + 3 < cells.length; i += 4) {
      if (cells[i] !== column) continue;
      const name = this.data.names[cells[i + 1] ?? 0] ?? "";
      return `${lane.label}: mostly ${name}; busy ${perCent((cells[i + 2] ?? 0) / 1000)} of ${duration(this.data.length_ns / this.data.columns)}, ${count(cells[i + 3] ?? 0)} began`;
    }
    return "";
  }
}

/** Returns a name's colour. Time off the CPU has the colours of text, so that no span looks like
 * it. */
function ink(name: string, place: number, light: string): string {
  if (name === "off the CPU: waits") return colour("line");
  if (name.startsWith("off the CPU")) return colour("alert");
  return `hsl(${hue(place)} 55% ${light})`;
}

/** Draws lines across a span that counts in no figure. */
function hatch(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.strokeStyle = colour("alert");
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    ctx.moveTo(at, y + height);
    ctx.lineTo(at + height, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** Returns the text, shortened to the room there is. */
function fitted(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  const share = width / ctx.measureText(text).width;
  const kept = text.slice(0, Math.max(0, Math.floor(text.length * share) - 1));
  return kept === "" ? "" : `${kept}\u2026`;
}

export function setUpTimeline(): void {
  const box = document.getElementById("timeline-drawing");
  if (box === null) return;
  let drawing: Drawing | null = null;
  const ready = (): Drawing | null => {
    const data = drawing === null ? timeline() : null;
    if (data !== null) drawing = new Drawing(box, data);
    return drawing;
  };
  box.hidden = false;
  drawInView(box, () => "", () => ready()?.draw());
  onTheme(redraw);
  const acts: Record<string, (d: Drawing) => void> = {
    in: (d) => d.zoom(0.5),
    out: (d) => d.zoom(2),
    left: (d) => d.move(-0.25),
    right: (d) => d.move(0.25),
    whole: (d) => d.show(0, d.data.length_ns),
    detail: (d) => d.detail(),
  };
  const act = (name: string | undefined): boolean => {
    const found = name === undefined ? undefined : acts[name];
    const d = found === undefined ? null : ready();
    if (found === undefined || d === null) return false;
    found(d);
    return true;
  };
  for (const button of box.querySelectorAll<HTMLElement>("button[data-act]")) {
    button.addEventListener("click", () => act(button.dataset["act"]));
  }
  const keys: Record<string, string> = {
    "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "whole", Enter: "detail",
  };
  box.querySelector(".canvas")?.addEventListener("keydown", (event) => {
    if (act(keys[(event as KeyboardEvent).key])) event.preventDefault();
  });
}
