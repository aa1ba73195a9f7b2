// What the report page does beyond standing there: draws the distributions from
// the document inside the page, sorts and filters tables, switches the theme.
// It computes no figure. Text from the document reaches the page only as
// textContent, never as markup.
"use strict";

(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const scales = { x: "log", y: "linear" };
  const SVG = "http://www.w3.org/2000/svg";
  const CHART_HEIGHT = 210;
  const MARGIN = { left: 46, right: 12, top: 8, bottom: 34 };
  // A logarithmic axis is used where this share of the samples is above zero.
  const LOG_SHARE = 0.95;
  // A linear axis ends where this share of the samples is drawn; the rest is counted.
  const LINEAR_SHARE = 0.995;

  // ---- figures as text ----

  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

  /** The largest unit that the duration fills. */
  function unitOf(ns) {
    return UNITS.find(([size]) => Math.abs(ns) >= size) ?? UNITS[3];
  }

  /** Three digits and a unit. */
  function duration(ns) {
    if (ns === 0) return "0";
    const [size, unit] = unitOf(ns * 1.0005);
    return `${Number((ns / size).toPrecision(3))}\u00a0${unit}`;
  }

  function count(n) {
    return String(n).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
  }

  function perCent(share) {
    const value = share * 100;
    if (value === 0 || value >= 10) return `${Math.round(value)}\u00a0%`;
    return value < 0.01 ? "<0.01\u00a0%" : `${Number(value.toPrecision(2))}\u00a0%`;
  }

  // ---- axes ----

  /** About `wanted` round numbers (1, 2 or 5 times a power of ten) in a range. */
  function linearTicks(lo, hi, wanted) {
    const rough = (hi - lo) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const ticks = [];
    for (let i = Math.ceil(lo / step); i * step <= hi * (1 + 1e-12); i++) ticks.push(i * step);
    return ticks;
  }

  /** Powers of ten, with 2 and 5 between them where the range is short. */
  function logTicks(lo, hi, wanted) {
    const decades = Math.log10(hi / lo);
    if (decades < 0.7) return linearTicks(lo, hi, wanted);
    const between = decades < wanted / 3 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / wanted));
    const ticks = [];
    for (let d = Math.floor(Math.log10(lo)); d <= Math.ceil(Math.log10(hi)); d++) {
      if (d % every !== 0) continue;
      for (const m of between) {
        const tick = m * 10 ** d;
        if (tick >= lo && tick <= hi) ticks.push(tick);
      }
    }
    return ticks;
  }

  function axis(kind, lo, hi, from, to) {
    const map = kind === "log" ? Math.log2 : (v) => v;
    const [a, b] = [map(lo), map(hi)];
    return {
      kind, lo, hi, from, to,
      at: (v) => from + ((map(v) - a) / (b - a || 1)) * (to - from),
      length: (v, w) => map(w) - map(v),
      ticks: (wanted) => (kind === "log" ? logTicks : linearTicks)(lo, hi, wanted),
    };
  }

  // ---- one distribution ----

  /** Bins as they will be drawn, the range of the axis, and what is not drawn. */
  function prepare(histogram) {
    const all = histogram.counts.map((n, i) => ({
      lo: histogram.edges[i], hi: histogram.edges[i + 1], n,
    }));
    const isFull = (bin) => bin.n > 0;
    const bins = all.slice(Math.max(0, all.findIndex(isFull)), all.findLastIndex(isFull) + 1);
    const total = bins.reduce((sum, bin) => sum + bin.n, 0);
    if (total === 0) return null;
    const positive = bins.filter((bin) => bin.hi > 0);
    const above = positive.reduce((sum, bin) => sum + bin.n, 0);
    const isLog = scales.x === "log" && above >= LOG_SHARE * total;
    let shown = isLog ? positive : bins;
    if (isLog && shown[0].lo <= 0) {
      // The bin that holds zero has no lower end on this axis.
      shown = [{ ...shown[0], lo: shown[0].hi / 2 }, ...shown.slice(1)];
    }
    let beyond = 0;
    if (!isLog) {
      let sum = 0;
      let last = bins.findIndex((bin) => (sum += bin.n) >= LINEAR_SHARE * total) + 1;
      // Cut only where it buys something: a tail longer than the rest.
      const whole = bins[bins.length - 1].hi - bins[0].lo;
      if (bins[last - 1].hi - bins[0].lo > whole / 2) last = bins.length;
      beyond = bins.slice(last).reduce((rest, bin) => rest + bin.n, 0);
      shown = bins.slice(0, last);
    }
    const below = isLog ? total - above : 0;
    return { shown, total, isLog, beyond, below };
  }

  function element(name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function draw(box) {
    const interval = report.intervals[Number(box.dataset.chart)];
    const data = prepare(interval.histogram);
    box.replaceChildren();
    if (data === null) {
      box.style.minHeight = "0";
      box.append(line("p", "beyond", "No samples, so no distribution."));
      return;
    }
    const width = Math.max(220, Math.round(box.clientWidth));
    const { shown, total, isLog } = data;
    const x = axis(isLog ? "log" : "linear", shown[0].lo, shown[shown.length - 1].hi,
      MARGIN.left, width - MARGIN.right);
    // Areas are shares: heights are shares per 10 % of duration, or per tenth of a tick's distance.
    const ticks = x.ticks(Math.max(3, Math.floor(width / 90)));
    const per = isLog ? Math.log2(1.1) : (ticks.length > 1 ? ticks[1] - ticks[0] : x.hi - x.lo) / 10;
    for (const bin of shown) bin.height = ((bin.n / total) * per) / x.length(bin.lo, bin.hi);
    const heights = shown.map((bin) => bin.height).filter((h) => h > 0);
    const most = Math.max(...heights);
    const least = scales.y === "log" ? Math.min(...heights) / 2 : 0;
    const y = axis(scales.y, least, most * (scales.y === "log" ? 1.3 : 1.05),
      CHART_HEIGHT - MARGIN.bottom, MARGIN.top);

    const svg = element("svg", {
      viewBox: `0 0 ${width} ${CHART_HEIGHT}`, role: "img", tabindex: "0",
      "aria-label": label(interval, data),
    });
    drawAxes(svg, x, y, ticks, per, isLog, width);
    svg.append(element("path", { class: "area", d: outline(shown, x, y) }));
    const inside = (v) => v !== null && v !== undefined && v >= x.lo && v <= x.hi;
    for (const [kind, estimate] of marks(interval)) drawMark(svg, x, y, kind, estimate, inside);
    for (const mode of several(interval)) drawMode(svg, x, y, mode, inside);
    const cursor = element("rect", { class: "cursor", y: MARGIN.top, width: 0, height: 0 });
    svg.append(cursor);
    box.append(svg);
    addReadout(box, svg, cursor, x, shown, total);
    box.append(line("p", "beyond", notDrawn(interval, data)));
  }

  function drawAxes(svg, x, y, ticks, per, isLog, width) {
    const base = CHART_HEIGHT - MARGIN.bottom;
    for (const tick of y.ticks(4)) {
      if (tick <= 0 && scales.y === "linear") continue;
      const at = y.at(tick);
      svg.append(element("line", { class: "rule", x1: MARGIN.left, x2: x.to, y1: at, y2: at }));
      svg.append(element("text", { x: MARGIN.left - 4, y: at + 4, "text-anchor": "end" }, perCent(tick)));
    }
    svg.append(element("path", { class: "axis", d: `M${MARGIN.left} ${base}H${x.to}` }));
    for (const tick of ticks) {
      const at = x.at(tick);
      svg.append(element("path", { class: "axis", d: `M${at} ${base}v4` }));
      const anchor = at > width - 30 ? "end" : "middle";
      svg.append(element("text", { x: at, y: base + 16, "text-anchor": anchor }, duration(tick)));
    }
    const what = isLog ? "10\u00a0% of duration" : duration(per);
    svg.append(element("text", { x: MARGIN.left, y: CHART_HEIGHT - 4 },
      `height: share of the samples per ${what}`));
  }

  /** The bins as one outline, so that neighbours leave no seam. */
  function outline(shown, x, y) {
    const base = y.from;
    const parts = [`M${x.at(shown[0].lo).toFixed(1)} ${base}`];
    for (const bin of shown) {
      const top = bin.n === 0 ? base : Math.min(base - 0.5, y.at(bin.height));
      parts.push(`V${top.toFixed(1)}H${x.at(bin.hi).toFixed(1)}`);
    }
    return `${parts.join("")}V${base}Z`;
  }

  function marks(interval) {
    return [["p99", interval.quantiles["0.99"]], ["mean", interval.mean], ["median", interval.median]]
      .filter(([, estimate]) => estimate);
  }

  function drawMark(svg, x, y, kind, estimate, inside) {
    const [lo, hi] = estimate.interval;
    if (kind !== "p99" && inside(lo) && inside(hi)) {
      svg.append(element("rect", {
        class: `band ${kind}`, x: x.at(lo), width: Math.max(0.5, x.at(hi) - x.at(lo)),
        y: y.to, height: y.from - y.to,
      }));
    }
    if (inside(estimate.value)) {
      const at = x.at(estimate.value).toFixed(1);
      svg.append(element("path", { class: `mark ${kind}`, d: `M${at} ${y.from}V${y.to}` }));
    }
  }

  /** The modes of an interval, if it has more than one. */
  function several(interval) {
    return interval.modes.length > 1 ? interval.modes : [];
  }

  function drawMode(svg, x, y, mode, inside) {
    if (!inside(mode.at)) return;
    const at = x.at(mode.at);
    svg.append(element("path", {
      class: "mode", d: `M${at.toFixed(1)} ${y.to + 8}l-5 -8h10Z`,
    }));
    const anchor = at > x.to - 40 ? "end" : "start";
    const beside = anchor === "end" ? at - 8 : at + 8;
    svg.append(element("text", { x: beside, y: y.to + 8, "text-anchor": anchor }, perCent(mode.share)));
  }

  /** What a reader who does not see the drawing hears. */
  function label(interval, { total }) {
    const estimates = marks(interval).reverse()
      .map(([kind, estimate]) => `${kind} ${duration(estimate.value)}`);
    const modes = several(interval).map((mode) => `mode ${duration(mode.at)} (${perCent(mode.share)})`);
    const parts = [...estimates, ...modes].join(", ");
    return `Distribution of ${interval.name}: ${count(total)} samples, ${parts}. ` +
      "Arrow keys read single bins.";
  }

  function notDrawn(interval, { isLog, beyond, below, total }) {
    const parts = [];
    if (scales.x === "log" && !isLog) {
      parts.push("linear axis, because many samples are at or below zero");
    }
    if (beyond > 0) {
      parts.push(`${count(beyond)} samples (${perCent(beyond / total)}) lie beyond the axis, ` +
        `up to ${duration(interval.max)}`);
    }
    if (below > 0) {
      parts.push(`${count(below)} samples (${perCent(below / total)}) below zero are not on this axis`);
    }
    return parts.map((part) => part[0].toUpperCase() + part.slice(1) + ".").join(" ");
  }

  function line(tag, className, text) {
    const node = document.createElement(tag);
    node.className = className;
    node.textContent = text;
    return node;
  }

  /** Pointer and arrow keys move over the bins; what a bin holds is written below. */
  function addReadout(box, svg, cursor, x, shown, total) {
    const readout = line("output", "", "");
    box.append(readout);
    let current = -1;
    const show = (index) => {
      current = index;
      const bin = shown[index];
      if (bin === undefined) {
        cursor.setAttribute("width", 0);
        readout.textContent = "";
        return;
      }
      const [from, to] = [x.at(bin.lo), x.at(bin.hi)];
      cursor.setAttribute("x", from);
      cursor.setAttribute("width", Math.max(1, to - from));
      cursor.setAttribute("height", CHART_HEIGHT - MARGIN.bottom - MARGIN.top);
      readout.textContent =
        `${duration(bin.lo)} to ${duration(bin.hi)}: ${count(bin.n)} samples (${perCent(bin.n / total)})`;
    };
    svg.addEventListener("pointermove", (event) => {
      const bounds = svg.getBoundingClientRect();
      const at = ((event.clientX - bounds.left) / bounds.width) * svg.viewBox.baseVal.width;
      show(shown.findIndex((bin) => at >= x.at(bin.lo) && at < x.at(bin.hi)));
    });
    svg.addEventListener("pointerleave", () => show(-1));
    svg.addEventListener("blur", () => show(-1));
    svg.addEventListener("keydown", (event) => {
      const last = shown.length - 1;
      const highest = shown.reduce((best, bin, i) => (bin.height > shown[best].height ? i : best), 0);
      const target = {
        ArrowRight: current < 0 ? highest : Math.min(last, current + 1),
        ArrowLeft: current < 0 ? highest : Math.max(0, current - 1),
        Home: 0,
        End: last,
      }[event.key];
      if (target === undefined) return;
      event.preventDefault();
      show(target);
    });
  }

  // ---- the page ----

  const charts = [...document.querySelectorAll("[data-chart]")];
  const drawn = new Map();

  function ensureDrawn(box) {
    const key = `${scales.x} ${scales.y} ${box.clientWidth}`;
    if (box.clientWidth > 0 && drawn.get(box) !== key) {
      drawn.set(box, key);
      draw(box);
    }
  }

  /** With hundreds of intervals, only what comes into view is drawn. */
  function drawVisible() {
    const margin = window.innerHeight;
    for (const box of charts) {
      const { top, bottom } = box.getBoundingClientRect();
      if (bottom > -margin && top < window.innerHeight + margin) ensureDrawn(box);
    }
  }

  let waiting = false;
  function drawSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawVisible();
    });
  }

  function setUpScales() {
    const controls = document.getElementById("scales");
    if (controls === null) return;
    controls.hidden = false;
    controls.addEventListener("change", (event) => {
      scales[event.target.name] = event.target.value;
      drawSoon();
    });
  }

  function setUpSorting() {
    for (const table of document.querySelectorAll("table.sortable")) {
      const headings = [...table.querySelectorAll("thead th")];
      headings.forEach((heading, column) => {
        const title = heading.querySelector(".sort");
        if (title === null) return;
        const button = line("button", "", title.textContent);
        button.type = "button";
        button.addEventListener("click", () => sortBy(table, headings, column));
        title.replaceChildren(button);
      });
    }
  }

  function sortBy(table, headings, column) {
    const before = headings[column].getAttribute("aria-sort");
    const isText = column === 0;
    // Names start at the front of the alphabet, figures with the largest.
    const order = before === null ? (isText ? "ascending" : "descending")
      : before === "ascending" ? "descending" : "ascending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = (row) => {
      const cell = row.children[column];
      if (isText || cell.dataset.label === "because") return cell.textContent;
      return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
    };
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: key(row) }));
    rows.sort((a, b) => {
      // What has no figure comes last, whichever way round.
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return typeof a.key === "string"
        ? sign * a.key.localeCompare(b.key, "en", { numeric: true })
        : sign * (a.key - b.key);
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  function setUpFilter() {
    const filter = document.getElementById("filter");
    if (filter === null) return;
    filter.hidden = false;
    const text = document.getElementById("filter-text");
    const shown = document.getElementById("filter-count");
    text.addEventListener("input", () => {
      const wanted = text.value.toLowerCase();
      const matches = report.intervals.map((i) => i.name.toLowerCase().includes(wanted));
      for (const node of document.querySelectorAll("[data-interval]")) {
        node.hidden = !matches[Number(node.dataset.interval)];
      }
      shown.textContent = `${matches.filter(Boolean).length} of ${matches.length}`;
      drawSoon();
    });
  }

  function setUpTheme() {
    const button = document.getElementById("theme");
    const themes = ["automatic", "dark", "light"];
    let current = 0;
    button.hidden = false;
    button.addEventListener("click", () => {
      current = (current + 1) % themes.length;
      if (current === 0) delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = themes[current];
      button.textContent = `Theme: ${themes[current]}`;
    });
  }

  setUpScales();
  setUpSorting();
  setUpFilter();
  setUpTheme();
  drawVisible();
  window.addEventListener("scroll", drawSoon, { passive: true });
  window.addEventListener("resize", drawSoon);
  window.addEventListener("beforeprint", () => charts.forEach(ensureDrawn));
})();
