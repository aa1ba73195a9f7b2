// Figures as text, in the form of the tables.

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
  [1, "ns"],
];

/** Returns the largest unit that the duration reaches, and its size in ns. */
function unitOf(ns: number): [number, string] {
  return UNITS.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
}

/** Returns a duration with three digits and a unit. */
export function duration(ns: number): string {
  if (ns === 0) return "0";
  const [size, unit] = unitOf(ns * 1.0005);
  return `${Number((ns / size).toPrecision(3))}\u00a0${unit}`;
}

/** Returns a time on an axis, with the digits that distinguish ticks at this distance. */
export function time(ns: number, step: number): string {
  if (ns === 0) return "0";
  const [size, unit] = unitOf(ns);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(Math.min(digits, 9))}\u00a0${unit}`;
}

export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

export function perCent(share: number): string {
  const value = share * 100;
  if (value === 0 || value >= 10) return `${Math.round(value)}\u00a0%`;
  return value < 0.01 ? "<0.01\u00a0%" : `${Number(value.toPrecision(2))}\u00a0%`;
}
