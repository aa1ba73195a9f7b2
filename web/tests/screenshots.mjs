// Makes the pictures of the docs from a page of a recorded trace:
//
//   cargo run --release -- demo --html page.html
//   npm run screenshots -- $PWD/page.html
import { mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open } from "./browser.mjs";

const docs = join(dirname(fileURLToPath(import.meta.url)), "../../docs");
const file = process.argv[2];
if (file === undefined) {
  console.error("usage: npm run screenshots -- PAGE.html");
  process.exit(2);
}
const into = join(docs, "page");
mkdirSync(into, { recursive: true });
const browser = await launch();

/** Takes a picture: width, height, theme, id of the element to show (without one, the top). */
async function shot(path, width, height, colorScheme, at) {
  const { page, wrong, close } = await open(browser, resolve(file), { viewport: { width, height }, colorScheme });
  if (at !== undefined) await page.evaluate((id) => document.getElementById(id)?.scrollIntoView(), at);
  await page.waitForTimeout(300);
  await page.screenshot({ path });
  if (wrong.length > 0) console.error(wrong.join("\n"));
  await close();
}

await shot(join(docs, "report-page.png"), 1600, 1100, "light");
for (const colorScheme of ["light", "dark"]) {
  for (const width of [400, 900, 1600]) {
    await shot(join(into, `${width}-${colorScheme}.png`), width, 900, colorScheme, width === 400 ? undefined : "distributions");
  }
}
await shot(join(into, "timeline.png"), 1600, 620, "light", "timeline-section");
await browser.close();
