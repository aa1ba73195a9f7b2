// The call trees that are drawn as nested bars: that of a report, and those of a comparison as one.
import { comparison, type PathChange, type PathSide, report } from "./document.js";
import { count, duration, perCent } from "./figures.js";
import { setUpIcicle, type Tree } from "./icicle.js";
import { setUpFunctions } from "./functions.js";
import { hue } from "./theme.js";
import { redraw } from "./view.js";

/** Ratio of two times from which on a colour is no stronger. */
const STRONGEST = 2;

/** The call tree of the report: a colour for each name. */
function ofReport(): Tree {
  const paths = report.paths ?? [];
  const hues = new Map<string, number>();
  for (const { name } of paths) if (!hues.has(name)) hues.set(name, hue(hues.size));
  return {
    noun: "paths",
    paths,
    total: (at) => paths[at]?.total?.value ?? 0,
    paint: (bar, at) => bar.style.setProperty("--hue", String(hues.get(paths[at]?.name ?? "") ?? 0)),
    described: (at) => {
      const path = paths[at];
      if (path === undefined) return "";
      const { threads } = path;
      const parts = [threads === undefined ? `${count(path.calls)} calls` : `${count(threads)} ${threads === 1 ? "thread" : "threads"}`];
      if (path.total !== null) {
        const share = path.share === null ? "" : ` (${perCent(path.share)} of all spans)`;
        parts.push(`total ${duration(path.total.value)}${share}`);
      }
      const figures: [string, number | null][] = [
        ["self", path.self_ns], ["off CPU", path.off_cpu_ns], ["median", path.median_ns], ["p99", path.p99_ns],
      ];
      for (const [name, ns] of figures) if (ns !== null) parts.push(`${name} ${duration(ns)}`);
      if (path.is_switched) parts.push("its points were off at times: it was called more often");
      return parts.join(", ");
    },
  };
}

type Widths = "both" | "a" | "b";

function classOf(path: PathChange): string {
  if (path.a === null || path.b === null) return "single";
  return path.verdict === "slower" || path.verdict === "faster" ? path.verdict : "alike";
}

function both(from: (side: PathSide) => string, { a, b }: PathChange): string {
  return a !== null && b !== null ? `${from(a)} \u2192 ${from(b)}` : from((a ?? b) as PathSide);
}

/** The call trees of a comparison as one: a colour for what changed. */
function ofComparison(paths: PathChange[], widths: () => Widths): Tree {
  return {
    noun: "paths",
    paths,
    total: (at) => {
      const [a, b] = [paths[at]?.a?.total_ns ?? 0, paths[at]?.b?.total_ns ?? 0];
      return { both: a + b, a, b }[widths()];
    },
    paint: (bar, at) => {
      const path = paths[at];
      if (path === undefined) return;
      const ratio = path.ratio?.value ?? STRONGEST;
      const strength = Math.min(1, Math.abs(Math.log(ratio)) / Math.log(STRONGEST));
      bar.classList.add("change", classOf(path));
      bar.style.setProperty("--strength", String(Math.round(30 + 60 * strength)));
    },
    described: (at) => {
      const path = paths[at];
      if (path === undefined) return "";
      const known = (ns: number | null): string => (ns === null ? "unknown" : duration(ns));
      return [
        path.words,
        `time of a call ${both((side) => known(side.call_ns), path)}`,
        `calls ${both((side) => count(Math.round(side.calls)), path)}`,
        `total ${both((side) => known(side.total_ns), path)}`,
        `self ${both((side) => known(side.self_ns), path)}`,
      ].join(", ");
    },
  };
}

export function setUpTrees(): void {
  const paths = comparison()?.paths;
  if (paths === undefined) {
    setUpIcicle("icicle", ofReport());
    return setUpFunctions();
  }
  const choice = document.querySelector<HTMLSelectElement>("#icicle-widths");
  setUpIcicle("icicle", ofComparison(paths, () => (choice?.value ?? "both") as Widths));
  choice?.addEventListener("change", redraw);
}
