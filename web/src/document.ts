// The parts of the two documents in the page that the script reads. Their meaning is
// told where they are made: `report::document` and `report::timeline`.

export interface Estimate {
  value: number;
  interval: [number | null, number | null];
}

export interface Histogram {
  edges: number[];
  counts: number[];
}

export interface Alternative {
  count: number;
  histogram?: Histogram;
}

export interface Mode {
  at: number;
  share: number;
}

export interface Interval {
  name: string;
  count: number;
  max: number | null;
  mean: Estimate | null;
  median: Estimate | null;
  quantiles: Record<string, Estimate>;
  histogram: Histogram;
  modes: Mode[];
  before_culling: Alternative;
  uncompensated: Alternative;
  compensation: { cost: Estimate | null };
}

export interface Report {
  intervals: Interval[];
}

/** Column, name, share in thousandths, number; one after the other. */
export interface Row {
  row: number;
  cells: number[];
}

export interface Lane {
  kind: "thread" | "cpu" | "interrupts";
  label: string;
  spans: number;
  rows: Row[];
  /** Time and number of events lost there. */
  losses: [number, number][];
}

/** Lane, row, start and length in ns, name, why it is in no figure (0: it is). */
export type Span = [number, number, number, number, number, number];

export interface Detail {
  from_ns: number;
  length_ns: number;
  spans: Span[];
}

export interface Timeline {
  from_ns: number;
  length_ns: number;
  columns: number;
  names: string[];
  dropped: string[];
  lanes: Lane[];
  spans: Span[];
  detail: Detail | null;
  /** Time and state of points switched off and on. */
  switches: [number, number][];
}

function element<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text === undefined || text === null || text === "" ? null : (JSON.parse(text) as T);
}

export const report: Report = element<Report>("report") ?? { intervals: [] };

/** Read when it is to be drawn: it may be large. */
export function timeline(): Timeline | null {
  return element<Timeline>("timeline");
}
