// The functions that were sampled, as bars below the spans that they were sampled in.
import { type PathStacks, report, type Stacks } from "./document.js";
import { count, duration, perCent } from "./figures.js";
import { setUpIcicle, type Tree } from "./icicle.js";
import { hue } from "./theme.js";
import { redraw } from "./view.js";

/** Share of a span's samples from which on an outer function says nothing of them. */
const ALL = 0.98;

/** A bar: a span, or a function. */
interface Bar {
  name: string;
  parent: number | null;
  /** Path of a function's file; null: a span. */
  file: string | null;
  /** Samples on a CPU, and time waited, ns: by itself, then with what is below it. */
  own: [number, number];
  all: [number, number];
}

/** Returns the bars: each after that above it. */
function barsOf(stacks: Stacks): Bar[] {
  const bars: Bar[] = [];
  const add = (name: string, parent: number | null, file: string | null, own: [number, number]): number => {
    bars.push({ name, parent, file, own, all: [...own] });
    return bars.length - 1;
  };
  for (const { name, parent } of report.paths ?? []) add(name, parent, null, [0, 0]);
  for (const of of stacks.paths) {
    const name = (of.still_open ?? []).length > 0 ? `${of.still_open?.join("/")} (still open)` : "outside of spans";
    const span = of.path ?? add(name, null, null, [0, 0]);
    addFunctions(stacks, of, span, add, (bar, more) => {
      const own = bars[bar]?.own ?? [0, 0];
      own[0] += more[0];
      own[1] += more[1];
    });
  }
  for (const bar of bars) bar.all = [...bar.own];
  for (let at = bars.length - 1; at >= 0; at--) {
    const bar = bars[at];
    const above = bar === undefined || bar.parent === null ? undefined : bars[bar.parent];
    if (bar === undefined || above === undefined) continue;
    above.all[0] += bar.all[0];
    above.all[1] += bar.all[1];
  }
  return bars;
}

function addFunctions(
  stacks: Stacks,
  of: PathStacks,
  span: number,
  add: (name: string, parent: number, file: string, own: [number, number]) => number,
  addOwn: (bar: number, more: [number, number]) => void,
): void {
  const all = of.nodes.map((node): [number, number] => [node.on_cpu, node.waited_ns]);
  for (let at = of.nodes.length - 1; at >= 0; at--) {
    const caller = of.nodes[at]?.caller;
    const [above, below] = [caller === undefined ? undefined : all[caller], all[at]];
    if (above === undefined || below === undefined) continue;
    above[0] += below[0];
    above[1] += below[1];
  }
  // Outer functions with one function below them that has nearly everything: the innermost of these stays.
  const whole: [number, number] = [0, 0];
  for (const { on_cpu, waited_ns } of of.nodes) {
    whole[0] += on_cpu;
    whole[1] += waited_ns;
  }
  // Samples without a function, and those in functions that the document leaves out.
  addOwn(span, [Math.max(0, of.on_cpu - whole[0]), Math.max(0, of.waited_ns - whole[1])]);
  const covers = ([onCpu, waited]: [number, number]): boolean => onCpu >= ALL * whole[0] && waited >= ALL * whole[1];
  const below = new Map<number, number>();
  of.nodes.forEach(({ caller }, at) => {
    if (caller !== undefined && covers(all[at] ?? [0, 0])) below.set(caller, at);
  });
  const places: number[] = [];
  of.nodes.forEach((node, at) => {
    const parent = node.caller === undefined ? span : (places[node.caller] ?? span);
    if (below.has(at)) {
      places.push(span);
      addOwn(span, [node.on_cpu, node.waited_ns]);
      return;
    }
    const { name, file } = stacks.functions[node.function] ?? { name: "?", file: "" };
    places.push(add(name, parent, file, [node.on_cpu, node.waited_ns]));
  });
}

type Widths = "on_cpu" | "waited";

function ofStacks(stacks: Stacks, widths: () => Widths): Tree {
  const paths = barsOf(stacks);
  const spans = (report.paths ?? []).length;
  const hues = new Map<string, number>();
  for (const { name } of paths) if (!hues.has(name)) hues.set(name, hue(hues.size));
  const outermost = paths.filter(({ parent }) => parent === null);
  const whole = outermost.reduce((sum, { all }) => sum + all[0], 0);
  return {
    noun: "spans and functions",
    paths,
    total: (at) => paths[at]?.all[widths() === "waited" ? 1 : 0] ?? 0,
    paint: (bar, at) => {
      const path = paths[at];
      bar.classList.toggle("span", path?.file === null);
      bar.style.setProperty("--hue", String(hues.get(path?.name ?? "") ?? 0));
    },
    described: (at) => {
      const path = paths[at];
      if (path === undefined) return "";
      const parts = [
        path.file === null ? (at < spans ? "span" : "samples in no path of the report") : path.file === "" ? "code made by the program" : path.file,
        `${count(path.all[0])} samples on a CPU (${perCent(path.all[0] / Math.max(1, whole))} of all)`,
        `self ${count(path.own[0])}`,
      ];
      if (path.all[1] > 0) parts.push(`waited ${duration(path.all[1])}`);
      return parts.join(", ");
    },
  };
}

export function setUpFunctions(): void {
  const { stacks } = report;
  if (stacks === undefined) return;
  const choice = document.querySelector<HTMLSelectElement>("#functions-widths");
  setUpIcicle("functions-tree", ofStacks(stacks, () => (choice?.value ?? "on_cpu") as Widths));
  choice?.addEventListener("change", redraw);
}
