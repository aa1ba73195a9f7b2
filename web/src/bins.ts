// A distribution as drawn: its bins, the range of its axis, and the samples that are not on it.
import type { Histogram } from "./document.js";

export interface Bin {
  lo: number;
  hi: number;
  n: number;
}

export interface Drawn {
  bins: Bin[];
  /** Number of samples in all bins, drawn or not. */
  total: number;
  isLog: boolean;
  /** Number of samples beyond the end of a linear axis. */
  beyond: number;
  /** Number of samples at or below zero, which a logarithmic axis cannot show. */
  below: number;
}

// A logarithmic axis is used if at least this share of the samples is above zero.
const LOG_SHARE = 0.95;
// A linear axis ends where this share of the samples is drawn; the others are counted.
const LINEAR_SHARE = 0.995;

export function sum(bins: Bin[]): number {
  return bins.reduce((all, bin) => all + bin.n, 0);
}

/** Returns the bins from the first to the last one with a sample. */
export function binsOf(histogram: Histogram): Bin[] {
  const all = histogram.counts.map((n, i) => ({
    lo: histogram.edges[i] ?? NaN,
    hi: histogram.edges[i + 1] ?? NaN,
    n,
  }));
  const isFull = (bin: Bin): boolean => bin.n > 0;
  const first = all.findIndex(isFull);
  return first < 0 ? [] : all.slice(first, all.findLastIndex(isFull) + 1);
}

/** Returns what is drawn of a distribution, or `null` without samples. */
export function prepare(histogram: Histogram, wantsLog: boolean): Drawn | null {
  const bins = binsOf(histogram);
  const total = sum(bins);
  if (total === 0) return null;
  const positive = bins.filter((bin) => bin.hi > 0);
  const above = sum(positive);
  if (wantsLog && above >= LOG_SHARE * total) {
    return { bins: fromZero(positive), total, isLog: true, beyond: 0, below: total - above };
  }
  const shown = withoutTail(bins, total);
  return { bins: shown, total, isLog: false, beyond: total - sum(shown), below: 0 };
}

/** Gives the bin with zero a lower end, which it lacks on a logarithmic axis. */
export function fromZero(bins: Bin[]): Bin[] {
  const first = bins[0];
  if (first === undefined || first.lo > 0) return bins;
  return [{ ...first, lo: first.hi / 2 }, ...bins.slice(1)];
}

/** Cuts the tail only if it is longer than the rest. */
function withoutTail(bins: Bin[], total: number): Bin[] {
  let seen = 0;
  const last = bins.findIndex((bin) => (seen += bin.n) >= LINEAR_SHARE * total);
  const [first, end, whole] = [bins[0], bins[last], bins[bins.length - 1]];
  if (first === undefined || end === undefined || whole === undefined) return bins;
  return end.hi - first.lo > (whole.hi - first.lo) / 2 ? bins : bins.slice(0, last + 1);
}
