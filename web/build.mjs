// Bundles the page's script into the given file: one classic script with the licence notice of the
// library that it contains. `npm run types` checks the types.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (out === undefined) {
  console.error("usage: node build.mjs FILE");
  process.exit(2);
}
const library = JSON.parse(readFileSync(join(here, "node_modules/uplot/package.json"), "utf8"));
const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
await build({
  entryPoints: [join(here, "src/main.ts")],
  outfile: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  charset: "ascii",
  legalComments: "none",
  loader: { ".css": "text" },
  // An end tag in a string would end the script in the page.
  supported: { "inline-script": false },
  banner: { js: `/* The charts: uPlot ${library.version}\n${licence}\n*/` },
  logLevel: "warning",
});
