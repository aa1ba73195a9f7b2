// Tests of the report page in a browser. The expected values are read from the documents in the
// file, not by the page's code.
//
//   UNDERTICK_PAGES  folder of the pages that `cargo test -p undertick-report` makes
//   UNDERTICK_REAL   page of a recorded trace, with its `report --json` beside it (.json)
//   UNDERTICK_SLOW_FRAMES_MS  delays every frame's drawing so long, as a busy machine's browser does
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { embedded, installed, launch, open } from "./browser.mjs";

const PAGES = process.env.UNDERTICK_PAGES ?? "";
const REAL = process.env.UNDERTICK_REAL ?? "";
const invented = (name) => join(PAGES, name);
const ALL = [
  ...["one", "six", "many", "none", "modes", "nasty", "hostile", "second", "deep"].map((name) => invented(`${name}.html`)),
  REAL,
];
const skip = installed() === undefined ? "no chromium here" : false;
// A limit for what hangs; a busy machine takes many times as long as an idle one.
const test_ = (name, body) => test(name, { skip, timeout: 900_000 }, body);

// Polling does not depend on frames, which a busy machine's browser may not draw for long.
const POLLED = { polling: 100 };

let browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(async () => browser?.close());

/** Runs `body` with the page of a file, and then checks that the page reported no errors. */
async function on(file, options, body) {
  const { page, wrong, close } = await open(browser, file, options);
  try {
    await body(page);
    assert.deepEqual(wrong, [], file);
  } finally {
    await close();
  }
}

/** Waits for the frames in which the page draws what was asked of it before, scrolling included. */
const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

const texts = (page, selector) => page.locator(selector).evaluateAll((nodes) => nodes.map((n) => n.textContent));

test_("nothing is asked of a network, nothing goes wrong, nothing is too wide", async () => {
  for (const file of [...ALL, invented("changes.html")]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [400, 900, 1600]) {
        await on(file, { viewport: { width, height: 900 }, colorScheme }, async (page) => {
          await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight / 2));
          await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
          await settled(page);
          const { content, seen } = await page.evaluate(() => ({
            content: document.documentElement.scrollWidth,
            seen: document.documentElement.clientWidth,
          }));
          assert.ok(content <= seen, `${file} at ${width}: ${content} > ${seen}`);
        });
      }
    }
  }
});

test_("distributions of states lie below one another on one axis, whatever the width", async () => {
  for (const width of [400, 1600]) {
    await on(invented("six.html"), { viewport: { width, height: 900 } }, async (page) => {
      await page.locator("#states > summary").click();
      const tables = await page.locator("#states table").evaluateAll((all) =>
        all.map((table) => {
          const boxes = [...table.querySelectorAll("td.bars svg")].map((svg) => svg.getBoundingClientRect());
          const ends = [...table.querySelectorAll("thead .bars span, td .ends > span")].filter((end) => end.checkVisibility());
          return {
            boxes: boxes.map(({ left, width, height }) => ({ left, width, height })),
            ends: ends.map((end) => end.textContent),
          };
        }),
      );
      assert.deepEqual(tables.map(({ boxes }) => boxes.length), [3, 2]);
      for (const { boxes, ends } of tables) {
        for (const box of boxes) {
          assert.deepEqual(box, boxes[0]);
          assert.ok(box.width > width / 2.5 && box.height > 30, `${width}: ${box.width} by ${box.height}`);
        }
        // In the heading, or below each where there is none.
        const times = width > 1000 ? 1 : boxes.length;
        assert.deepEqual(ends, Array(times).fill(["20.0\u00a0ns", "39.9\u00a0µs"]).flat());
      }
    });
  }
});

test_("the table has every interval of the document, with its mean", async () => {
  for (const name of ["one", "six", "many"]) {
    const file = invented(`${name}.html`);
    const { intervals } = embedded(file, "report");
    await on(file, {}, async (page) => {
      const rows = page.locator("#intervals tbody tr");
      assert.equal(await rows.count(), intervals.length);
      assert.deepEqual(await texts(page, "#intervals tbody a.name"), intervals.map((i) => i.name));
      const means = await page.locator("#intervals td[data-label=mean]").evaluateAll((cells) => cells.map((c) => c.dataset.sort));
      assert.deepEqual(means.map((m) => (m === undefined ? null : Number(m))), intervals.map((i) => i.mean?.value ?? null));
      const bars = await page.locator("#intervals td.bars rect.mean").count();
      assert.equal(bars, intervals.filter((i) => i.mean !== null && i.mean.value > 0).length);
    });
  }
});

test_("a heading sorts, and says so", async () => {
  const file = invented("many.html");
  const { intervals } = embedded(file, "report");
  await on(file, {}, async (page) => {
    const heading = page.locator("#intervals thead th", { hasText: "median" });
    await heading.locator("button").focus();
    await page.keyboard.press("Enter");
    assert.equal(await heading.getAttribute("aria-sort"), "descending");
    const values = intervals.map((i) => i.median?.value).filter((v) => v !== undefined);
    values.sort((a, b) => b - a);
    const read = () =>
      page.locator("#intervals tbody td[data-label=median]").evaluateAll((cells) => cells.map((c) => c.dataset.sort ?? null));
    const none = Array(intervals.length - values.length).fill(null);
    assert.deepEqual(await read(), [...values.map(String), ...none]);
    await heading.locator("button").click();
    assert.equal(await heading.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await read(), [...values.reverse().map(String), ...none]);
    assert.equal(await page.locator("#intervals th[aria-sort=none]").count(), 6);
    // These values sort differently as text, with and without regard to digits.
    const odd = [12.5, 12.45, 1e-7, -3, 1.5e21, 9];
    const ascending = [-3, 1e-7, 9, 12.45, 12.5, 1.5e21];
    await page.locator("#intervals tbody td[data-label=median]").evaluateAll((cells, odd) => {
      odd.forEach((value, i) => (cells[i].dataset.sort = String(value)));
      cells.slice(odd.length).forEach((cell) => delete cell.dataset.sort);
    }, odd);
    await heading.locator("button").click();
    assert.deepEqual((await read()).slice(0, odd.length).map(Number), [...ascending].reverse());
    await heading.locator("button").click();
    assert.deepEqual((await read()).slice(0, odd.length).map(Number), ascending);
  });
});

test_("the filter shows the intervals whose name holds the text", async () => {
  const file = invented("many.html");
  const names = embedded(file, "report").intervals.map((i) => i.name);
  const wanted = names.filter((name) => name.includes("parser::flush"));
  assert.ok(wanted.length > 3 && wanted.length < names.length);
  await on(file, {}, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("Parser::Flush");
    assert.deepEqual(await texts(page, "#intervals tbody tr:visible a.name"), wanted);
    assert.equal(await page.locator("article.panel:visible").count(), wanted.length);
    assert.equal(await page.locator("#filter-count").textContent(), `${wanted.length} of ${names.length}`);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#intervals tbody tr:visible").count(), names.length);
  });
});

/** Returns the number of samples in the file's bins between two edges. */
function held(histogram, from, to) {
  let n = 0;
  histogram.counts.forEach((count, i) => {
    if (histogram.edges[i] >= from * (1 - 1e-12) && histogram.edges[i + 1] <= to * (1 + 1e-12)) n += count;
  });
  return n;
}

const figure = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u00a0");

for (const [whose, file] of [["an invented", invented("one.html")], ["a recorded", REAL]]) {
  test_(`a brush counts the samples of the document's bins, on ${whose} page`, async (t) => {
    // A recorded program may have samples below 0, and then its axis is not logarithmic.
    const { intervals } = embedded(file, "report");
    const least = ({ edges, counts }) => edges[counts.findIndex((n) => n > 0)];
    const place = intervals.findIndex(({ histogram }) => least(histogram) > 0);
    if (file === REAL && place < 0) return t.skip("the page has no logarithmic axis");
    assert.ok(place >= 0);
    const { histogram } = intervals[place];
    const total = histogram.counts.reduce((a, b) => a + b, 0);
    const last = histogram.counts.findLastIndex((n) => n > 0);
    const [lo, hi] = [least(histogram), histogram.edges[last + 1]];
    await on(file, {}, async (page) => {
      const chart = page.locator(`[data-chart='${place}']`);
      await chart.scrollIntoViewIfNeeded();
      await settled(page);
      const over = await chart.locator(".u-over").boundingBox();
      // The drag goes from the first bin, which holds samples, to a place before the last bin,
      // which also does.
      const [a, b] = [0.005, 0.55];
      await page.mouse.move(over.x + a * over.width, over.y + 40);
      await page.mouse.down();
      await page.mouse.move(over.x + b * over.width, over.y + 60, { steps: 6 });
      await page.mouse.up();
      const readout = chart.locator("output");
      const [from, to] = [Number(await readout.getAttribute("data-from")), Number(await readout.getAttribute("data-to"))];
      // The axis is logarithmic from the first to the last bin; the selection is the whole bins
      // around the drag.
      const at = (share) => lo * (hi / lo) ** share;
      const edges = histogram.edges;
      const begin = edges.findLast((edge) => edge <= at(a) * 1.02);
      const end = edges.find((edge) => edge >= at(b) * 0.98);
      assert.ok(edges.includes(from) && edges.includes(to), `${from} and ${to} are edges`);
      assert.ok(edges.indexOf(from) >= edges.indexOf(begin) - 1 && from <= at(a) * 1.02, `${from} for ${at(a)}`);
      assert.ok(edges.indexOf(to) <= edges.indexOf(end) + 1 && to >= at(b) * 0.98, `${to} for ${at(b)}`);
      const text = await readout.textContent();
      const n = held(histogram, from, to);
      assert.ok(n > 0 && n < total);
      assert.ok(text.includes(`: ${figure(n)} samples (`), `${text} should say ${n}`);
      const share = Number(text.match(/\(<?([\d.]+)/)[1]);
      assert.ok(Math.abs(share - (100 * n) / total) <= 0.5 + 0.06 * share, `${text}: ${n} of ${total}`);
      await page.mouse.click(over.x + 3, over.y + 10);
    });
  });
}

test_("keys go from bin to bin and select", async () => {
  const file = invented("one.html");
  const { histogram } = embedded(file, "report").intervals[0];
  const most = histogram.counts.indexOf(Math.max(...histogram.counts));
  await on(file, {}, async (page) => {
    await page.locator("[data-chart='0']").scrollIntoViewIfNeeded();
    const chart = page.locator("[data-chart='0'] .uplot");
    await chart.focus();
    const said = () => page.locator("[data-chart='0'] output").textContent();
    await page.keyboard.press("ArrowRight");
    assert.ok((await said()).includes(`: ${figure(histogram.counts[most])} samples`));
    await page.keyboard.press("Shift+ArrowRight");
    const two = histogram.counts[most] + histogram.counts[most + 1];
    assert.ok((await said()).includes(`: ${figure(two)} samples`), await said());
    await page.keyboard.press("Escape");
    assert.equal(await said(), "");
  });
});

/** Returns the pixels of a chart as text. */
const pixels = (page, selector) => page.locator(selector).first().evaluate((canvas) => canvas.toDataURL());

test_("scales switch between logarithmic and linear, and outlines come", async () => {
  await on(invented("one.html"), {}, async (page) => {
    const canvas = "[data-chart='0'] canvas";
    await page.locator("[data-chart='0']").scrollIntoViewIfNeeded();
    await settled(page);
    const seen = [await pixels(page, canvas)];
    for (const choice of ["input[name=x][value=linear]", "input[name=y][value=log]", "input[name=before]"]) {
      await page.locator(choice).check();
      await settled(page);
      seen.push(await pixels(page, canvas));
    }
    assert.equal(new Set(seen).size, 4, "every switch changes the drawing");
    // On a linear axis the tail is not drawn, but counted.
    const { histogram } = embedded(invented("one.html"), "report").intervals[0];
    const beyond = await page.locator("[data-chart='0'] .beyond").textContent();
    const n = Number(beyond.match(/^([\d\u00a0]+) samples/)[1].replaceAll("\u00a0", ""));
    const tails = histogram.counts.map((_, i) => histogram.counts.slice(i).reduce((a, b) => a + b, 0));
    assert.ok(tails.includes(n), `${n} is the end of the distribution`);
    assert.ok(n <= 0.005 * tails[0]);
  });
});

test_("modes are marked where there are several", async () => {
  await on(invented("modes.html"), {}, async (page) => {
    await page.locator("[data-chart='0']").scrollIntoViewIfNeeded();
    const chart = page.locator("[data-chart='0'] .uplot");
    const label = await chart.getAttribute("aria-label");
    for (const mode of embedded(invented("modes.html"), "report").intervals[0].modes) {
      assert.ok(label.includes(`(${Math.round(100 * mode.share)}\u00a0%)`), label);
    }
  });
});

test_("the theme goes round by key and button, and drawings follow", async () => {
  await on(invented("one.html"), { colorScheme: "light" }, async (page) => {
    await page.locator("[data-chart='0']").scrollIntoViewIfNeeded();
    await settled(page);
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const canvas = "[data-chart='0'] canvas";
    const [light, drawn] = [await paper(), await pixels(page, canvas)];
    await page.keyboard.press("t");
    await settled(page);
    assert.equal(await page.locator("#theme").textContent(), "Theme: dark");
    assert.notEqual(await paper(), light);
    assert.notEqual(await pixels(page, canvas), drawn);
    await page.locator("#theme").click();
    await page.locator("#theme").click();
    await settled(page);
    assert.equal(await page.locator("#theme").textContent(), "Theme: automatic");
    // The button is far from it, and what is out of view is drawn when it is looked at.
    await page.locator("[data-chart='0']").scrollIntoViewIfNeeded();
    await settled(page);
    assert.equal(await pixels(page, canvas), drawn);
  });
});

test_("keys: help, rows, distributions", async () => {
  const file = invented("six.html");
  const { intervals } = embedded(file, "report");
  await on(file, {}, async (page) => {
    await page.keyboard.press("?");
    assert.ok(await page.locator("#keys").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!(await page.locator("#keys").isVisible()));
    await page.locator("#intervals tbody a.name").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    assert.equal(await focused(), intervals[1].name);
    await page.keyboard.press("Enter");
    assert.ok(page.url().endsWith("#i1"));
  });
});

const pathTotal = (path) => Math.max(0, path.total?.value ?? 0);

/** Returns the bars of the call tree: path, place, and whether it is in the row below the one around it. */
// In one step: between a locator's finding and reading them, a redraw may replace all bars.
const bars = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("#icicle .bars button")].map((button) => {
      const { left, width, top } = button.getBoundingClientRect();
      return { path: Number(button.dataset.path), left, width, top, text: button.textContent };
    }),
  );

test_("each path has a bar as wide as its total, inside that of the path around it", async () => {
  for (const file of [invented("one.html"), invented("six.html"), invented("many.html"), invented("deep.html"), REAL]) {
    const { paths } = embedded(file, "report");
    await on(file, {}, async (page) => {
      await page.locator("#icicle").scrollIntoViewIfNeeded();
      await settled(page);
      const found = new Map((await bars(page)).map((bar) => [bar.path, bar]));
      const width = await page.locator("#icicle .bars").evaluate((box) => box.clientWidth);
      const all = paths.filter((path) => path.parent === null).reduce((sum, path) => sum + pathTotal(path), 0);
      let compared = 0;
      paths.forEach((path, i) => {
        const bar = found.get(i);
        const around = path.parent === null ? undefined : found.get(path.parent);
        if (path.parent !== null && around === undefined) return assert.equal(bar, undefined);
        const whole = around ?? { left: null, width, top: null };
        const siblings = paths.filter((other) => other.parent === path.parent);
        const inside = siblings.reduce((sum, other) => sum + pathTotal(other), 0);
        const of = path.parent === null ? all : Math.max(inside, pathTotal(paths[path.parent]));
        const expected = (whole.width * pathTotal(path)) / of;
        if (bar === undefined) return assert.ok(expected < 2.05, `${file}: ${path.name} of ${expected} pixels`);
        compared++;
        assert.ok(Math.abs(bar.width - expected) < 0.1, `${file}: ${path.name}, ${bar.width} for ${expected}`);
        if (around === undefined) return;
        assert.equal(bar.top - around.top, 22);
        assert.ok(bar.left >= around.left - 0.1 && bar.left + bar.width <= around.left + around.width + 0.1);
      });
      assert.equal(compared, found.size);
      assert.ok(compared > 0);
    });
  }
});

test_("a click on a bar zooms, keys go from bar to bar, Escape shows all", async () => {
  const file = invented("many.html");
  const { paths } = embedded(file, "report");
  await on(file, {}, async (page) => {
    await page.locator("#icicle").scrollIntoViewIfNeeded();
    await settled(page);
    const width = await page.locator("#icicle .bars").evaluate((box) => box.clientWidth);
    const focused = () => page.evaluate(() => Number(document.activeElement?.dataset?.path ?? -1));
    const widest = async () => (await bars(page)).filter((bar) => Math.abs(bar.width - width) < 0.1).map((bar) => bar.path);
    const before = await bars(page);
    const inner = paths.findIndex((path) => path.depth === 2);
    await page.locator(`#icicle [data-path="${inner}"]`).click();
    // The path and those around it.
    assert.deepEqual((await widest()).sort((a, b) => a - b), [0, paths[inner].parent, inner]);
    assert.equal(await focused(), inner);
    await page.keyboard.press("ArrowDown");
    assert.equal(paths[await focused()].parent, inner);
    await page.keyboard.press("ArrowRight");
    assert.equal(paths[await focused()].parent, inner);
    await page.keyboard.press("ArrowUp");
    assert.equal(await focused(), inner);
    await page.keyboard.press("Escape");
    assert.deepEqual(await bars(page), before);
    assert.equal(await focused(), inner);
    // Of all bars, Tab reaches one.
    assert.equal(await page.locator("#icicle .bars button[tabindex='0']").count(), 1);
    await page.keyboard.press("Enter");
    assert.equal((await widest()).length, 3);
    await page.locator(`#icicle [data-path="${inner}"]`).click();
    assert.equal((await widest()).length, 2);
    await page.locator("#icicle button[data-act=whole]").click();
    assert.deepEqual(await bars(page), before);
  });
});

test_("what is under the pointer is said with its figures, and names are found", async () => {
  const file = invented("six.html");
  const { paths } = embedded(file, "report");
  await on(file, {}, async (page) => {
    await page.locator("#icicle").scrollIntoViewIfNeeded();
    await settled(page);
    const at = paths.findIndex((path) => path.parent !== null);
    await page.locator(`#icicle [data-path="${at}"]`).hover();
    const said = await page.locator("#icicle .readout").textContent();
    assert.ok(said.startsWith(`${paths[paths[at].parent].name} / ${paths[at].name}: ${figure(paths[at].calls)} calls`), said);
    await page.locator("#icicle-find").fill(paths[at].name.toUpperCase());
    const hit = paths.filter((path) => path.name.includes(paths[at].name)).length;
    assert.equal(await page.locator("#icicle-found").textContent(), `${hit} of ${paths.length} paths`);
    await page.waitForFunction(() => document.querySelector("#icicle .other") !== null, undefined, POLLED);
    const plain = await page.locator("#icicle .bars button:not(.other)").evaluateAll((all) => all.map((b) => Number(b.dataset.path)));
    assert.deepEqual(plain, plain.filter((i) => paths[i].name.includes(paths[at].name)));
    assert.ok(plain.includes(at));
  });
});

/** Samples on a CPU of each span, by the functions in it and by the spans inside it, and of those without a path. */
const samplesOf = ({ paths, stacks }) => {
  const of = paths.map(() => 0);
  const others = [];
  for (const { path, on_cpu } of stacks.paths) {
    if (path === undefined) others.push(on_cpu);
    else for (let at = path; at !== null && at !== undefined; at = paths[at].parent) of[at] += on_cpu;
  }
  return { of, others };
};

test_("spans and their functions have bars as wide as their samples, and what is waited can be chosen", async () => {
  for (const file of [invented("one.html"), invented("six.html"), invented("many.html")]) {
    const report = embedded(file, "report");
    const { of, others } = samplesOf(report);
    await on(file, {}, async (page) => {
      await page.locator("#functions-tree").scrollIntoViewIfNeeded();
      await settled(page);
      const drawn = () =>
        page.evaluate(() =>
          [...document.querySelectorAll("#functions-tree .bars button")].map((button) => ({
            path: Number(button.dataset.path),
            width: button.getBoundingClientRect().width,
            isSpan: button.classList.contains("span"),
            text: button.textContent,
          })),
        );
      const width = await page.locator("#functions-tree .bars").evaluate((box) => box.clientWidth);
      const outermost = report.paths.reduce((sum, path, at) => sum + (path.parent === null ? of[at] : 0), 0);
      const all = outermost + others.reduce((sum, samples) => sum + samples, 0);
      const found = await drawn();
      for (const [at, samples] of of.entries()) {
        const bar = found.find(({ path }) => path === at);
        const wanted = (width * samples) / all;
        if (wanted < 2.05) continue;
        assert.ok(Math.abs(bar.width - wanted) < 0.1, `${file}: ${at} ${bar.width} for ${wanted}`);
        assert.ok(bar.isSpan);
      }
      // main and run have everything in each span: run stays.
      const functions = found.filter(({ isSpan }) => !isSpan).map(({ text }) => text);
      assert.ok(functions.some((text) => text.includes("function_1")), functions.join());
      assert.ok(!functions.some((text) => text.includes("function_0")), functions.join());
      assert.ok(found.some(({ text, isSpan }) => isSpan && text.includes("still open")), file);
      await page.locator("#functions-widths").selectOption("waited");
      await page.waitForFunction(
        (before) => document.querySelectorAll("#functions-tree .bars button").length !== before,
        found.length,
        POLLED,
      );
      const waiting = (await drawn()).filter(({ isSpan }) => !isSpan);
      assert.ok(!waiting.some(({ text }) => text.includes("function_2")), "it never waits");
      assert.ok(waiting.some(({ text }) => text.includes("function_3")));
    });
  }
});

test_("a comparison's bars are as wide as the chosen totals, and coloured by the verdict", async () => {
  const file = invented("changes.html");
  const { paths } = embedded(file, "comparison");
  await on(file, {}, async (page) => {
    await page.locator("#icicle").scrollIntoViewIfNeeded();
    await settled(page);
    const width = await page.locator("#icicle .bars").evaluate((box) => box.clientWidth);
    const totals = {
      both: (path) => (path.a?.total_ns ?? 0) + (path.b?.total_ns ?? 0),
      a: (path) => path.a?.total_ns ?? 0,
      b: (path) => path.b?.total_ns ?? 0,
    };
    for (const [choice, total] of Object.entries(totals)) {
      await page.locator("#icicle-widths").selectOption(choice);
      await settled(page);
      const all = paths.filter((path) => path.parent === null).reduce((sum, path) => sum + total(path), 0);
      for (const bar of await bars(page)) {
        const path = paths[bar.path];
        const siblings = paths.filter((other) => other.parent === path.parent);
        const inside = siblings.reduce((sum, other) => sum + total(other), 0);
        const whole = path.parent === null ? all : Math.max(inside, total(paths[path.parent]));
        const around = path.parent === null ? width : (width * total(paths[path.parent])) / all;
        const wanted = (around * total(path)) / whole;
        assert.ok(Math.abs(bar.width - wanted) < 0.1, `${choice}: ${bar.path}, ${bar.width} for ${wanted}`);
      }
    }
    await page.locator("#icicle-widths").selectOption("both");
    await settled(page);
    const classes = new Map(
      await page.locator("#icicle .bars button").evaluateAll((all) => all.map((b) => [Number(b.dataset.path), b.className])),
    );
    assert.equal(classes.size, paths.length);
    paths.forEach((path, at) => {
      const inBoth = path.a !== null && path.b !== null;
      const known = ["slower", "faster"].includes(path.verdict) ? path.verdict : "alike";
      assert.equal(classes.get(at), `change ${inBoth ? known : "single"}`);
    });
    await page.locator('#icicle [data-path="2"]').hover();
    const said = await page.locator("#icicle .readout").textContent();
    assert.ok(said.includes(paths[2].words.slice(0, 9)) && said.includes("calls 10 \u2192 10"), said);
  });
});

test_("axe finds nothing serious, in either theme, wide or narrow", async () => {
  const axe = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "../node_modules/axe-core/axe.min.js"), "utf8");
  // A page of hundreds of panels takes half a minute, and repeats what the others show.
  const files = [...ALL.filter((file) => !file.endsWith("many.html")), invented("slowest.html"), invented("changes.html")];
  for (const file of files) {
    const part = file.endsWith("deep.html") ? "#tree" : "body";
    for (const [colorScheme, width] of [["light", 1200], ["dark", 400]]) {
      await on(file, { viewport: { width, height: 900 }, colorScheme, bypassCSP: true }, async (page) => {
        await page.evaluate(() => document.getElementById("icicle")?.scrollIntoView());
        await settled(page);
        await page.evaluate(axe);
        const found = await page.evaluate(async (part) => {
          const { violations } = await globalThis.axe.run(part);
          return violations
            .filter(({ impact }) => ["serious", "critical"].includes(impact))
            .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
        }, part);
        assert.deepEqual(found, [], `${file}, ${colorScheme}`);
      });
    }
  }
});

test_("before and after, perturbation, losses, warnings are those of the document", async () => {
  const file = invented("six.html");
  const { intervals, warnings, trace } = embedded(file, "report");
  await on(file, {}, async (page) => {
    const row = page.locator("#taken-out tbody tr", { hasText: "prepare" });
    const prepare = intervals.find((i) => i.name === "prepare");
    const sort = async (label) => Number(await row.locator(`td[data-label="${label}"]`).getAttribute("data-sort"));
    assert.equal(await sort("median, all"), prepare.before_culling.median.value);
    assert.equal(await sort("median, as read"), prepare.uncompensated.median.value);
    assert.equal(await sort("median"), prepare.median.value);
    assert.equal(await sort("mean, all"), prepare.before_culling.mean.value);
    const slowed = intervals.filter((i) => i.slowed);
    assert.equal(await page.locator("#perturbation tbody tr").count(), slowed.length);
    const losses = await page.locator("#losses").textContent();
    assert.ok(losses.includes(figure(trace.lost)), losses);
    const said = await texts(page, "ul.warnings li");
    assert.equal(said.length, warnings.length);
    warnings.forEach((warning, i) => assert.ok(said[i].includes(warning.text.trim())));
    const link = page.locator("ul.warnings li", { hasText: "lost_events" }).locator("a");
    assert.match(await link.getAttribute("href"), /\/docs\/book\/reading-the-page\.md$/);
  });
});

test_("the timeline zooms, moves and shows the slowest span", async () => {
  for (const file of [invented("second.html"), REAL]) {
    const { length_ns, detail } = embedded(file, "timeline");
    await on(file, {}, async (page) => {
      const drawing = page.locator("#timeline-drawing");
      await drawing.scrollIntoViewIfNeeded();
      const output = drawing.locator("output");
      const view = async () => [Number(await output.getAttribute("data-from")), Number(await output.getAttribute("data-to"))];
      await page.waitForFunction(() => document.querySelector("#timeline-drawing canvas") !== null, undefined, POLLED);
      assert.deepEqual(await view(), [0, length_ns]);
      const whole = await pixels(page, "#timeline-drawing canvas");
      await drawing.getByRole("button", { name: "Zoom in" }).click();
      const is = async (...wanted) => {
        const seen = await view();
        // Times are sums of fractions, and are equal to a hundredth of a nanosecond.
        wanted.forEach((at, i) => assert.ok(Math.abs(at - seen[i]) < 0.01, `${seen} for ${wanted}`));
      };
      await is(length_ns / 4, (3 * length_ns) / 4);
      assert.notEqual(await pixels(page, "#timeline-drawing canvas"), whole);
      await drawing.locator(".canvas").focus();
      await page.keyboard.press("ArrowRight");
      await is((3 * length_ns) / 8, (7 * length_ns) / 8);
      await page.keyboard.press("Enter");
      const [from, to] = await view();
      assert.ok(Math.abs(from - detail.from_ns) < 1 && Math.abs(to - from - Math.max(100, detail.length_ns)) < 1);
      assert.match(await output.textContent(), /every span/);
      await page.keyboard.press("0");
      assert.deepEqual(await view(), [0, length_ns]);
      assert.equal(await pixels(page, "#timeline-drawing canvas"), whole);
      const over = await drawing.locator(".u-over").boundingBox();
      await page.mouse.move(over.x + 0.2 * over.width, over.y + 20);
      await page.mouse.down();
      await page.mouse.move(over.x + 0.4 * over.width, over.y + 24, { steps: 5 });
      await page.mouse.up();
      const dragged = await view();
      assert.ok(Math.abs(dragged[0] / length_ns - 0.2) < 0.01 && Math.abs(dragged[1] / length_ns - 0.4) < 0.01, `${dragged}`);
    });
  }
});

test_("the slowest span's surroundings may reach to the end, whatever the fractions", async () => {
  const file = invented("second.html");
  const timeline = embedded(file, "timeline");
  // Times in documents have tenths of a nanosecond: computed in two ways, a time differs in its
  // last digits.
  timeline.length_ns = 519512.3;
  const tenths = Array.from({ length: 1000 }, (_, i) => (1e6 + i) / 10);
  const detail = (length) => ({ from_ns: Math.round(10 * (timeline.length_ns - length)) / 10, length_ns: length });
  const comes_short = ({ from_ns, length_ns }) => timeline.length_ns - (from_ns + length_ns - from_ns) < from_ns;
  const found = tenths.map(detail).find(comes_short);
  assert.notEqual(found, undefined);
  // The length of the whole is rounded, and that of the surroundings is not.
  const beyond = { from_ns: timeline.length_ns - 1000, length_ns: 1000.09 };
  for (const surroundings of [found, beyond]) await shows_every_span(file, timeline, surroundings);
});

async function shows_every_span(file, timeline, surroundings) {
  Object.assign(timeline.detail, surroundings);
  const json = JSON.stringify(timeline).replaceAll("<", "\\u003c");
  const begin = '<script type="application/json" id="timeline">';
  const [head, tail] = readFileSync(file, "utf8").split(begin);
  const moved = join(mkdtempSync(join(tmpdir(), "undertick-page-")), "moved.html");
  writeFileSync(moved, head + begin + json + tail.slice(tail.indexOf("</script>")));
  await on(moved, {}, async (page) => {
    const drawing = page.locator("#timeline-drawing");
    await drawing.scrollIntoViewIfNeeded();
    await settled(page);
    await drawing.locator(".canvas").focus();
    await page.keyboard.press("Enter");
    assert.match(await drawing.locator("output").textContent(), /every span/);
  });
  rmSync(dirname(moved), { recursive: true });
}

test_("the timeline says what is under the pointer", async () => {
  const file = invented("second.html");
  const { lanes, spans, names, length_ns } = embedded(file, "timeline");
  const [lane, row, start, length, name] = spans.reduce((a, b) => (b[3] > a[3] ? b : a));
  assert.deepEqual([lane, row], [0, 0], "the longest span is drawn in the first row");
  await on(file, {}, async (page) => {
    const drawing = page.locator("#timeline-drawing");
    await drawing.scrollIntoViewIfNeeded();
    await settled(page);
    const over = await drawing.locator(".u-over").boundingBox();
    await page.mouse.move(over.x + ((start + length / 2) / length_ns) * over.width, over.y + 4 + 13 + 6);
    const said = await drawing.locator("output").textContent();
    assert.ok(said.startsWith(`${lanes[lane].label}: ${names[name]}, `), said);
  });
});

test_("commands for the whole trace can be copied", async () => {
  await on(REAL, {}, async (page) => {
    // The real clipboard belongs to the machine, and may not answer for long.
    await page.evaluate(() => {
      const kept = { writeText: async (text) => void (window.copied = text) };
      Object.defineProperty(navigator, "clipboard", { value: kept });
    });
    const command = await page.locator("#export-command").textContent();
    assert.match(command, /^undertick export .+\.ut --to perfetto .+\.pftrace$/);
    const button = page.locator("button[data-copy=export-command]");
    await button.click();
    // The clipboard has answered when the click is over, and what follows needs no timer.
    assert.equal(await button.textContent(), "Copied");
    assert.equal(await page.evaluate(() => window.copied), command);
    assert.equal(await page.locator("#elsewhere a").getAttribute("href"), "https://ui.perfetto.dev");
  });
});

test_("a clipboard that never answers: the command is selected instead", async () => {
  await on(REAL, {}, async (page) => {
    await page.evaluate(() => {
      const silent = { writeText: () => new Promise(() => {}) };
      Object.defineProperty(navigator, "clipboard", { value: silent });
    });
    // A busy machine's browser may not run timers for long: the page's are ours.
    await page.clock.install();
    const command = await page.locator("#export-command").textContent();
    const button = page.locator("button[data-copy=export-command]");
    await button.click();
    await page.clock.runFor(2000);
    assert.equal(await button.textContent(), "Selected");
    assert.equal(await page.evaluate(() => String(getSelection()).trim()), command.trim());
  });
});

test_("the page of a recorded trace holds what report --json says", async () => {
  const json = JSON.parse(readFileSync(`${REAL}.json`, "utf8"));
  assert.deepEqual(embedded(REAL, "report"), json);
  await on(REAL, {}, async (page) => {
    assert.deepEqual(await texts(page, "#intervals tbody a.name"), json.intervals.map((i) => i.name));
  });
});

test_("on paper: light, everything drawn, no buttons", async () => {
  // The viewport is as wide as A4 between its margins.
  await on(invented("six.html"), { colorScheme: "dark", viewport: { width: 718, height: 1000 } }, async (page) => {
    const charts = await page.locator("[data-chart]").count();
    assert.ok((await page.locator("[data-chart] canvas").count()) < charts, "not all are drawn before");
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    const empty = embedded(invented("six.html"), "report").intervals.filter((i) => i.count === 0).length;
    assert.equal(await page.locator("[data-chart] canvas").count(), charts - empty);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(background, "rgb(255, 255, 255)");
    const cut = await page.locator(".wide").evaluateAll((all) => all.filter((w) => w.scrollWidth > w.clientWidth + 1).length);
    assert.equal(cut, 0, "tables that paper cuts off");
    assert.equal(await page.locator("button:visible:not(.bars button)").count(), (await page.locator("thead button").count()));
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.ok((await page.pdf({ format: "A4" })).length > 20_000);
  });
});

test_("without a script the text stands", async () => {
  const file = invented("six.html");
  await on(file, { javaScriptEnabled: false }, async (page) => {
    const text = await page.locator("noscript pre").first().textContent();
    for (const { name } of embedded(file, "report").intervals) assert.ok(text.includes(name), name);
    assert.equal(await page.locator("#intervals tbody tr").count(), embedded(file, "report").intervals.length);
  });
});

test_("three hundred charts are drawn when they are looked at", async () => {
  const file = invented("many.html");
  await on(file, {}, async (page) => {
    const drawn = () => page.locator("[data-chart] canvas").count();
    assert.ok((await drawn()) < 30, `${await drawn()} at once`);
    const last = embedded(file, "report").intervals.findLastIndex((i) => i.count > 0);
    await page.locator(`[data-chart="${last}"]`).scrollIntoViewIfNeeded();
    await page.waitForFunction((n) => document.querySelector(`[data-chart="${n}"] canvas`) !== null, last, POLLED);
  });
});
