// A browser without network access that reports all errors of a page.
import { existsSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const OPTIONS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Returns the path of the installed browser, if there is one. */
export function installed() {
  return process.env.UNDERTICK_CHROMIUM ?? PLACES.find((place) => existsSync(place));
}

export function launch() {
  return chromium.launch({ executablePath: installed(), headless: true, args: OPTIONS });
}

/** Returns a document inside a page's file, read without the page's script. */
export function embedded(file, id) {
  const text = readFileSync(file, "utf8");
  const begin = `<script type="application/json" id="${id}">`;
  const at = text.indexOf(begin);
  if (at < 0) return null;
  return JSON.parse(text.slice(at + begin.length, text.indexOf("</script>", at)));
}

const SLOW_FRAMES_MS = Number(process.env.UNDERTICK_SLOW_FRAMES_MS ?? 0);

/** Opens a page from disk. `wrong` collects errors, and requests for anything but the file. */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(90_000); // a busy machine is not an error
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.route("**/*", (route) => {
    const url = route.request().url();
    if (url === `file://${file}`) return route.continue();
    wrong.push(`request: ${url}`);
    return route.abort();
  });
  if (SLOW_FRAMES_MS > 0) {
    await page.addInitScript((ms) => {
      const frame = window.requestAnimationFrame.bind(window);
      window.requestAnimationFrame = (then) => frame((at) => setTimeout(then, ms, at));
    }, SLOW_FRAMES_MS);
  }
  await page.goto(`file://${file}`);
  return { page, wrong, close: () => context.close() };
}
