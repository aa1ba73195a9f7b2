// A selection of bins, by pointer or by keys; its samples are counted below the chart.
import type uPlot from "uplot";
import { type Bin, sum } from "./bins.js";
import { count, duration, perCent } from "./figures.js";

/** First and last selected bin. */
type Selected = [number, number];

export function addBrush(box: HTMLElement, chart: uPlot, bins: Bin[], total: number): void {
  const readout = document.createElement("output");
  box.append(readout);
  let selected: Selected | null = null;

  const show = (bin: Selected | null): void => {
    const [first, last] = bin === null ? [undefined, undefined] : [bins[bin[0]], bins[bin[1]]];
    if (bin === null || first === undefined || last === undefined) {
      readout.textContent = "";
      delete readout.dataset["from"];
      delete readout.dataset["to"];
      return;
    }
    const held = sum(bins.slice(bin[0], bin[1] + 1));
    readout.dataset["from"] = String(first.lo);
    readout.dataset["to"] = String(last.hi);
    readout.textContent = `${duration(first.lo)} to ${duration(last.hi)}: ${count(held)} samples (${perCent(held / total)})`;
  };

  const select = (bin: Selected | null): void => {
    selected = bin;
    const [first, last] = bin === null ? [undefined, undefined] : [bins[bin[0]], bins[bin[1]]];
    const left = first === undefined ? 0 : chart.valToPos(first.lo, "x");
    const right = last === undefined ? 0 : chart.valToPos(last.hi, "x");
    // `false` because this call answers a selection and must not start another one.
    chart.setSelect({ left, top: 0, width: Math.max(0, right - left), height: chart.over.clientHeight }, false);
    show(bin);
  };

  const at = (position: number): number => {
    const value = chart.posToVal(position, "x");
    const found = bins.findIndex((bin) => value < bin.hi);
    return found < 0 ? bins.length - 1 : found;
  };

  (chart.hooks.setSelect ??= []).push((u) => {
    if (u.select.width < 2) return select(null);
    select([at(u.select.left), at(u.select.left + u.select.width)]);
  });
  chart.over.addEventListener("pointermove", () => {
    const { left } = chart.cursor;
    if (selected === null && left !== undefined && left !== null && left >= 0) show([at(left), at(left)]);
  });
  chart.over.addEventListener("pointerleave", () => show(selected));
  chart.over.addEventListener("click", () => {
    if (chart.select.width < 2) select(null);
  });
  chart.root.addEventListener("blur", () => show(selected));
  addKeys(chart, bins, () => selected, select);
}

/** Arrow keys move from bin to bin, Shift and an arrow widen the selection, Escape ends it. */
function addKeys(
  chart: uPlot,
  bins: Bin[],
  selected: () => Selected | null,
  select: (bin: Selected | null) => void,
): void {
  const last = bins.length - 1;
  let [anchor, head] = [0, 0];
  chart.root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return select(null);
    const highest = bins.reduce((best, bin, i) => (bin.n > (bins[best]?.n ?? 0) ? i : best), 0);
    const from = selected() === null ? null : head;
    const targets: Record<string, number> = {
      ArrowRight: from === null ? highest : Math.min(last, from + 1),
      ArrowLeft: from === null ? highest : Math.max(0, from - 1),
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    if (!event.shiftKey || from === null) anchor = target;
    head = target;
    select([Math.min(anchor, head), Math.max(anchor, head)]);
  });
}
