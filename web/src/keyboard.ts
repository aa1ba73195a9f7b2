// Keys for the whole page.
import { nextTheme } from "./theme.js";

export function setUpKeys(): void {
  const help = document.querySelector<HTMLDialogElement>("#keys");
  const button = document.getElementById("help");
  const toggle = (): void => {
    if (help === null) return;
    if (help.open) help.close();
    else help.showModal();
  };
  if (button !== null) {
    button.hidden = false;
    button.addEventListener("click", toggle);
  }
  help?.querySelector("button")?.addEventListener("click", toggle);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") toggle();
    else if (event.key === "t") nextTheme();
    else if (event.key === "/") focusFilter(event);
  });
}

function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLInputElement>("#filter-text");
  if (filter === null) return;
  event.preventDefault();
  filter.focus();
}

/** Sets up the buttons that copy the command beside them. */
export function setUpCopying(): void {
  for (const button of document.querySelectorAll<HTMLElement>("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => void copy(button));
  }
}

/** Longest time to wait for the browser's clipboard, ms: some never answer. */
const PATIENCE_MS = 1000;

async function copy(button: HTMLElement): Promise<void> {
  const source = document.getElementById(button.dataset["copy"] ?? "");
  if (source === null) return;
  try {
    const silence = new Promise<never>((_, refuse) => {
      setTimeout(() => refuse(new Error("the clipboard does not answer")), PATIENCE_MS);
    });
    await Promise.race([navigator.clipboard.writeText(source.textContent ?? ""), silence]);
    button.textContent = "Copied";
  } catch {
    // Without permission the command is selected instead, so that a key copies it.
    getSelection()?.selectAllChildren(source);
    button.textContent = "Selected";
  }
}
