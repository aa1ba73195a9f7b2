// Measures how long a page takes to open: from navigation to loaded, with its first charts drawn.
//
//   npm run opening -- PAGE.html [TIMES]
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { launch, open } from "./browser.mjs";

const file = resolve(process.argv[2] ?? "");
const times = Number(process.argv[3] ?? 5);
const browser = await launch();
const took = [];
for (let i = 0; i < times; i++) {
  const { page, close } = await open(browser, file, { viewport: { width: 1600, height: 2400 } });
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  // The charts in view are on the screen two frames later.
  took.push(await page.evaluate(() =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))));
  await close();
}
await browser.close();
took.sort((a, b) => a - b);
console.log(`${(statSync(file).size / 1e6).toFixed(2)} MB; opened and drawn in ms: ${took.map(Math.round).join(", ")}`);
