// A call tree as nested bars, one for each path: as wide as its total, below the bar of the path
// around it. What no bar below covers is self time. The bars are buttons: arrows go from one to the
// next, Enter zooms, Escape shows all.
import { count } from "./figures.js";
import { drawInView, redraw } from "./view.js";

/** Height of a row and least width of a bar that is drawn, pixels. */
const ROW = 22;
const NARROWEST = 2;
/** Bars of at least this many pixels have their name written in them. */
const WITH_NAME = 30;

/** A bar's path, row, and place as shares of the drawing's width. */
interface Bar {
  path: number;
  row: number;
  from: number;
  width: number;
}

/** A call tree. A path is known by its place; `parent` is that of the path around it, which comes before. */
export interface Tree {
  /** What its paths are called. */
  noun: string;
  paths: { name: string; parent: number | null }[];
  /** Time of a path, or another measure of its width. */
  total(path: number): number;
  /** What the bar of a path says after its name. */
  described(path: number): string;
  /** Gives the bar of a path its colours. */
  paint(bar: HTMLElement, path: number): void;
}

class Icicle {
  /** Paths inside each path; the last entry has the outermost ones. */
  private readonly inside: number[][];
  /** The path that fills the drawing; null: all do. */
  private zoomed: number | null = null;
  /** The bar that Tab goes to. */
  private current = 0;
  private bars: Bar[] = [];
  private wanted = "";

  constructor(
    private readonly box: HTMLElement,
    private readonly tree: Tree,
  ) {
    const { paths } = tree;
    this.inside = Array.from({ length: paths.length + 1 }, () => []);
    paths.forEach((path, i) => this.inside[path.parent ?? paths.length]?.push(i));
  }

  private get paths(): Tree["paths"] {
    return this.tree.paths;
  }

  private total(path: number): number {
    return path < this.paths.length ? Math.max(0, this.tree.total(path)) : 0;
  }

  /** Returns the path and those around it, outermost first. */
  private around(path: number): number[] {
    const found: number[] = [];
    for (let at: number | null = path; at !== null; at = this.paths[at]?.parent ?? null) found.unshift(at);
    return found;
  }

  private layout(width: number): Bar[] {
    const bars: Bar[] = [];
    const around = this.zoomed === null ? [] : this.around(this.zoomed);
    around.forEach((path, row) => bars.push({ path, row, from: 0, width: 1 }));
    const open: Bar[] = [{ path: this.zoomed ?? this.paths.length, row: around.length - 1, from: 0, width: 1 }];
    for (let bar = open.pop(); bar !== undefined; bar = open.pop()) {
      const inside = this.inside[bar.path] ?? [];
      const sum = inside.reduce((all, path) => all + this.total(path), 0);
      // What was subtracted for recording may leave a path less than those inside it.
      const scale = bar.width / Math.max(sum, this.total(bar.path), Number.MIN_VALUE);
      let from = bar.from;
      for (const path of inside) {
        const next = { path, row: bar.row + 1, from, width: this.total(path) * scale };
        from += next.width;
        if (next.width * width < NARROWEST) continue;
        bars.push(next);
        open.push(next);
      }
    }
    return bars;
  }

  draw(): void {
    const canvas = this.box.querySelector<HTMLElement>(".bars");
    if (canvas === null) return;
    const hadFocus = canvas.contains(document.activeElement);
    const width = canvas.clientWidth;
    const bars = this.layout(width);
    this.bars = bars;
    if (!bars.some(({ path }) => path === this.current)) this.current = this.zoomed ?? bars[0]?.path ?? 0;
    const rows = bars.reduce((most, { row }) => Math.max(most, row + 1), 1);
    canvas.style.height = `${rows * ROW}px`;
    canvas.replaceChildren(...bars.map((bar) => this.button(bar, width)));
    const whole = this.box.querySelector<HTMLButtonElement>("button[data-act=whole]");
    if (whole !== null) whole.disabled = this.zoomed === null;
    if (hadFocus) this.focus(this.current);
    else this.tell(null);
  }

  private button({ path, row, from, width }: Bar, pixels: number): HTMLElement {
    const button = document.createElement("button");
    const name = this.paths[path]?.name ?? "";
    button.type = "button";
    button.dataset["path"] = String(path);
    button.tabIndex = path === this.current ? 0 : -1;
    button.style.left = `${from * 100}%`;
    button.style.width = `${width * 100}%`;
    button.style.top = `${row * ROW}px`;
    button.style.height = `${ROW - 1}px`;
    this.tree.paint(button, path);
    button.classList.toggle("other", this.wanted !== "" && !this.isFound(path));
    button.setAttribute("aria-label", this.described(path));
    if (width * pixels >= WITH_NAME) button.textContent = name;
    return button;
  }

  private isFound(path: number): boolean {
    return (this.paths[path]?.name ?? "").toLowerCase().includes(this.wanted);
  }

  /** What the bar of a path says, beginning with its name. */
  private described(path: number): string {
    return `${this.paths[path]?.name ?? ""}: ${this.tree.described(path)}`;
  }

  private tell(path: number | null): void {
    const readout = this.box.querySelector<HTMLOutputElement>("output.readout");
    if (readout === null) return;
    const others = this.zoomed === null ? `narrower than ${NARROWEST} pixels` : "narrower, or not in this one";
    const [drawn, all] = [this.bars.length, this.paths.length];
    const shown = drawn === all ? `${count(all)} ${this.tree.noun}.` : `${count(drawn)} of ${count(all)} ${this.tree.noun}; the others are ${others}.`;
    const around = path === null ? [] : this.around(path).slice(0, -1);
    const names = around.map((at) => `${this.paths[at]?.name ?? ""} / `).join("");
    readout.textContent = path === null ? shown : names + this.described(path);
  }

  private focus(path: number): void {
    const buttons = this.box.querySelectorAll<HTMLElement>(".bars button");
    for (const button of buttons) {
      const isIt = button.dataset["path"] === String(path);
      button.tabIndex = isIt ? 0 : -1;
      if (isIt) button.focus();
    }
    this.current = path;
    this.tell(path);
  }

  private zoom(path: number | null): void {
    this.zoomed = path;
    if (path !== null) this.current = path;
    this.draw();
  }

  private press(key: string): boolean {
    const at = this.bars.findIndex(({ path }) => path === this.current);
    const bar = this.bars[at];
    if (bar === undefined) return false;
    const inRow = this.bars.filter(({ row }) => row === bar.row).sort((a, b) => a.from - b.from);
    const place = inRow.indexOf(bar);
    const inside = this.bars.filter(({ path }) => this.paths[path]?.parent === bar.path).sort((a, b) => a.from - b.from);
    const parent = this.paths[bar.path]?.parent ?? null;
    const next: Record<string, number | null | undefined> = {
      ArrowLeft: inRow[place - 1]?.path,
      ArrowRight: inRow[place + 1]?.path,
      ArrowUp: parent,
      ArrowDown: inside[0]?.path,
      Home: inRow[0]?.path,
      End: inRow.at(-1)?.path,
    };
    if (key === "Escape" && this.zoomed !== null) this.zoom(null);
    else if (key in next) {
      const to = next[key] ?? null;
      if (to !== null) this.focus(to);
    } else return false;
    return true;
  }

  private find(text: string): void {
    this.wanted = text.trim().toLowerCase();
    const found = this.box.querySelector<HTMLOutputElement>(`#${this.box.id}-found`);
    if (found !== null) {
      const paths = this.paths.filter((_, at) => this.isFound(at)).length;
      found.textContent = this.wanted === "" ? "" : `${count(paths)} of ${count(this.paths.length)} ${this.tree.noun}`;
    }
    redraw();
  }

  setUp(): void {
    const canvas = this.box.querySelector<HTMLElement>(".bars");
    if (canvas === null) return;
    const pathAt = (event: Event): number | null => {
      const button = (event.target as HTMLElement).closest<HTMLElement>("button[data-path]");
      return button === null ? null : Number(button.dataset["path"]);
    };
    canvas.addEventListener("click", (event) => {
      const path = pathAt(event);
      if (path === null) return;
      // A second click on the bar that fills the drawing goes one path out.
      this.zoom(path === this.zoomed ? (this.paths[path]?.parent ?? null) : path);
    });
    canvas.addEventListener("pointerover", (event) => this.tell(pathAt(event)));
    canvas.addEventListener("pointerleave", () => this.tell(null));
    canvas.addEventListener("focusin", (event) => this.tell(pathAt(event)));
    canvas.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.press(event.key)) event.preventDefault();
    });
    this.box.querySelector("button[data-act=whole]")?.addEventListener("click", () => this.zoom(null));
    this.box.querySelector<HTMLInputElement>(`#${this.box.id}-find`)?.addEventListener("input", (event) => {
      this.find((event.target as HTMLInputElement).value);
    });
    this.box.hidden = false;
    drawInView(this.box, () => this.wanted, () => this.draw());
  }
}

/** Draws a tree in the page's box of that name, if there is one. */
export function setUpIcicle(name: string, tree: Tree): void {
  const box = document.getElementById(name);
  if (box !== null && tree.paths.length > 0) new Icicle(box, tree).setUp();
}
