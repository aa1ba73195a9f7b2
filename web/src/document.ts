// The parts of the page's documents that the script reads. `document`, `document::timeline` and
// `report::compare`, which write them, describe their meaning.

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

/** A path through the call tree; `parent` is the index of the path around it, which comes before. */
export interface Path {
  name: string;
  /** Of a role, the number of its threads. */
  threads?: number;
  parent: number | null;
  calls: number;
  /** Its points were off at times. */
  is_switched?: boolean;
  total: Estimate | null;
  self_ns: number | null;
  off_cpu_ns: number | null;
  share: number | null;
  median_ns: number | null;
  p99_ns: number | null;
}

/** A path on one side of a comparison. */
export interface PathSide {
  calls: number;
  total_ns: number | null;
  self_ns: number | null;
  call_ns: number | null;
}

/** A path of either side of a comparison; `ratio` is that of the time of a call. */
export interface PathChange {
  name: string;
  parent: number | null;
  a: PathSide | null;
  b: PathSide | null;
  ratio: Estimate | null;
  verdict: "faster" | "slower" | "less" | "more" | "alike" | "cannot_tell";
  words: string;
}

export interface Comparison {
  paths?: PathChange[];
}

/** A function with one way to it; `caller` is the index of its caller, which comes before. */
export interface StackNode {
  caller?: number;
  function: number;
  on_cpu: number;
  waited_ns: number;
}

/** Samples of which the span of a path was the innermost. */
export interface PathStacks {
  path?: number;
  still_open?: string[];
  on_cpu: number;
  waited_ns: number;
  nodes: StackNode[];
}

export interface Stacks {
  every_ns: number;
  functions: { name: string; file: string }[];
  paths: PathStacks[];
}

export interface Report {
  intervals: Interval[];
  paths?: Path[];
  stacks?: Stacks;
}

/** Flat list of cells: column, name, share in thousandths, number of begins. */
export interface Row {
  row: number;
  cells: number[];
}

export interface Lane {
  kind: "thread" | "cpu" | "interrupts";
  label: string;
  spans: number;
  rows: Row[];
  /** Time and number of events of each loss in this lane. */
  losses: [number, number][];
}

/** Lane, row, start and length in ns, name, reason why it is in no figure (0: none). */
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
  /** Time and state of each switch of points off or on. */
  switches: [number, number][];
}

function element<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text === undefined || text === null || text === "" ? null : (JSON.parse(text) as T);
}

export const report: Report = element<Report>("report") ?? { intervals: [] };

/** Returns the comparison, in its page. */
export function comparison(): Comparison | null {
  return element<Comparison>("comparison");
}

/** Returns the timeline. It is parsed only when it is drawn, because it may be large. */
export function timeline(): Timeline | null {
  return element<Timeline>("timeline");
}
