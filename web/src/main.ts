// The script of the report page: draws the call tree, distributions and the timeline from the documents inside the
// page, sorts and filters tables, switches the theme. It computes no figure, and text of the
// documents reaches the page as text, never as markup.
import style from "uplot/dist/uPlot.min.css";
import { drawHistogram, type ScaleKind, type Scales } from "./histogram.js";
import { setUpCopying, setUpKeys } from "./keyboard.js";
import { setUpFilter, setUpRows, setUpSorting } from "./tables.js";
import { onTheme, setUpTheme } from "./theme.js";
import { setUpTimeline } from "./timeline.js";
import { setUpTrees } from "./trees.js";
import { drawInView, drawSoon, drawVisible, redraw, setUpView } from "./view.js";

const scales: Scales = { x: "log", y: "linear", before: false };

function setUpCharts(): void {
  for (const box of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    drawInView(
      box,
      () => JSON.stringify(scales),
      () => drawHistogram(box, scales),
    );
  }
}

function setUpScales(): void {
  const controls = document.getElementById("scales");
  if (controls === null) return;
  controls.hidden = false;
  controls.addEventListener("change", (event) => {
    const { name, value, checked } = event.target as HTMLInputElement;
    if (name === "before") scales.before = checked;
    else if (name === "x" || name === "y") scales[name] = value as ScaleKind;
    drawSoon();
  });
}

const styles = document.createElement("style");
styles.textContent = style;
document.head.prepend(styles);
setUpScales();
setUpCharts();
setUpTrees();
setUpTimeline();
setUpSorting();
setUpRows();
setUpFilter();
setUpTheme();
setUpKeys();
setUpCopying();
setUpView();
onTheme(redraw);
drawVisible();
document.documentElement.dataset["ready"] = "";
