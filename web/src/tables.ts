// Sorting and filtering of tables, and arrow keys for their rows.
import { report } from "./document.js";
import { drawSoon } from "./view.js";

export function setUpSorting(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("table.sortable")) {
    const headings = [...table.querySelectorAll<HTMLElement>("thead th")];
    headings.forEach((heading, column) => {
      const title = heading.querySelector(".sort");
      if (title === null) return;
      heading.setAttribute("aria-sort", "none");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title.textContent;
      button.addEventListener("click", () => sortBy(table, headings, column));
      title.replaceChildren(button);
    });
  }
}

type Key = string | number | null;

function keyOf(row: HTMLTableRowElement, column: number): Key {
  const cell = row.children[column] as HTMLElement | undefined;
  if (cell === undefined) return null;
  const isText = column === 0 || cell.dataset["label"] === "because" || cell.dataset["label"] === "what";
  if (isText) return cell.textContent;
  const sort = cell.dataset["sort"];
  return sort === undefined ? null : Number(sort);
}

function compare(a: Key, b: Key, sign: number): number {
  // Rows without a figure come last in either order.
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return typeof a === "string" || typeof b === "string"
    ? sign * String(a).localeCompare(String(b), "en", { numeric: true })
    : sign * (a - b);
}

function sortBy(table: HTMLTableElement, headings: HTMLElement[], column: number): void {
  const before = headings[column]?.getAttribute("aria-sort") ?? "none";
  // Names are first sorted from the front of the alphabet, figures from the largest.
  const first = column === 0 ? "ascending" : "descending";
  const order = before === "none" ? first : before === "ascending" ? "descending" : "ascending";
  for (const heading of headings) {
    if (heading.hasAttribute("aria-sort")) heading.setAttribute("aria-sort", "none");
  }
  headings[column]?.setAttribute("aria-sort", order);
  const body = table.tBodies[0];
  if (body === undefined) return;
  const rows = [...body.rows].map((row) => ({ row, key: keyOf(row, column) }));
  rows.sort((a, b) => compare(a.key, b.key, order === "ascending" ? 1 : -1));
  body.append(...rows.map(({ row }) => row));
}

export function setUpFilter(): void {
  const filter = document.getElementById("filter");
  const text = document.querySelector<HTMLInputElement>("#filter-text");
  const shown = document.getElementById("filter-count");
  if (filter === null || text === null || shown === null) return;
  filter.hidden = false;
  text.addEventListener("input", () => {
    const wanted = text.value.toLowerCase();
    const matches = report.intervals.map((i) => i.name.toLowerCase().includes(wanted));
    for (const node of document.querySelectorAll<HTMLElement>("[data-interval]")) {
      node.hidden = matches[Number(node.dataset["interval"])] !== true;
    }
    shown.textContent = `${matches.filter(Boolean).length} of ${matches.length}`;
    drawSoon();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    text.value = "";
    text.dispatchEvent(new Event("input"));
    text.blur();
  });
}

/** Sets up the keys of rows: Up and Down change the row, Enter shows its distribution. */
export function setUpRows(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("table.sortable")) {
    table.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const row = (event.target as HTMLElement).closest("tbody tr");
      if (step === undefined || row === null) return;
      const links = [...table.querySelectorAll<HTMLElement>("tbody tr:not([hidden]) a.name")];
      const here = links.findIndex((link) => row.contains(link));
      const next = links[here + step];
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
    });
  }
}
