// Runs the tests by hand: npm test -- FOLDER PAGE.html
import { spawnSync } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [pages, real] = process.argv.slice(2);
if (pages === undefined || real === undefined) {
  console.error("usage: npm test -- FOLDER PAGE.html   (FOLDER: target/tmp; beside the page PAGE.html.json)");
  process.exit(2);
}
const tests = join(dirname(fileURLToPath(import.meta.url)), "page.test.mjs");
const env = { ...process.env, UNDERTICK_PAGES: resolve(pages), UNDERTICK_REAL: resolve(real) };
const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", tests], { stdio: "inherit", env });
process.exit(status ?? 1);
