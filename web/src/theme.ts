// Dark, light, or as the system has it; paper is seen to where things are drawn (`view`).

const changed = new Set<() => void>();

/** Colours are asked for when something is drawn: the theme may have changed. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Is called when colours have changed. */
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
