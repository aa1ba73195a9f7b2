// Draws only what comes into view: hundreds of charts would delay the page.

interface Drawing {
  key: () => string;
  draw: () => void;
}

const drawings = new Map<Element, Drawing>();
const drawn = new Map<Element, string>();

/** Registers a box that `draw` fills; `draw` is called again when `key` has changed. */
export function drawInView(box: Element, key: () => string, draw: () => void): void {
  drawings.set(box, { key, draw });
}

function ensureDrawn(box: Element, { key, draw }: Drawing): void {
  const now = `${box.clientWidth} ${key()}`;
  if (box.clientWidth === 0 || drawn.get(box) === now) return;
  drawn.set(box, now);
  draw();
}

export function drawVisible(): void {
  const margin = window.innerHeight;
  for (const [box, drawing] of drawings) {
    const { top, bottom } = box.getBoundingClientRect();
    if (bottom > -margin && top < window.innerHeight + margin) ensureDrawn(box, drawing);
  }
}

let waiting = false;

export function drawSoon(): void {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawVisible();
  });
}

/** Draws everything that is in view again. */
export function redraw(): void {
  drawn.clear();
  drawSoon();
}

let theme: string | undefined;

/** Draws everything at once and in the light theme, before the page is printed. */
function drawForPaper(): void {
  theme = document.documentElement.dataset["theme"];
  document.documentElement.dataset["theme"] = "light";
  drawn.clear();
  for (const [box, drawing] of drawings) ensureDrawn(box, drawing);
}

function fromPaper(): void {
  if (theme === undefined) delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  redraw();
}

export function setUpView(): void {
  window.addEventListener("scroll", drawSoon, { passive: true });
  window.addEventListener("resize", drawSoon);
  window.addEventListener("beforeprint", drawForPaper);
  window.addEventListener("afterprint", fromPaper);
}
