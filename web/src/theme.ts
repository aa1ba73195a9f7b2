// The theme: dark, light, or that of the system. `view` handles printing.

const changed = new Set<() => void>();

/** Returns a colour, which is read at each drawing because the theme may have changed. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Step between the hues of successive names, degrees: neighbours are far apart, too. */
const GOLDEN = 137.508;

/** Returns the hue of the name at a place, degrees. */
export function hue(place: number): number {
  return (place * GOLDEN) % 360;
}

/** Registers a function that is called when colours have changed. */
export function onTheme(redraw: () => void): void {
  changed.add(redraw);
}

function tell(): void {
  for (const redraw of changed) redraw();
}

export function nextTheme(): void {
  const root = document.documentElement;
  const themes = ["automatic", "dark", "light"];
  const at = themes.indexOf(root.dataset["theme"] ?? "automatic");
  const next = themes[(at + 1) % themes.length] ?? "automatic";
  if (next === "automatic") delete root.dataset["theme"];
  else root.dataset["theme"] = next;
  const button = document.getElementById("theme");
  if (button !== null) button.textContent = `Theme: ${next}`;
  tell();
}

export function setUpTheme(): void {
  const button = document.getElementById("theme");
  if (button !== null) {
    button.hidden = false;
    button.addEventListener("click", nextTheme);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
}
