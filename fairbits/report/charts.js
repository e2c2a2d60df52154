"use strict";
// Draw every chart into its place; a chart that fails says so and leaves its table.
const folds = [...document.querySelectorAll("details.fold")];
const drawn = [...document.querySelectorAll("script.spec")].map((spec) => {
  const place = document.getElementById(spec.dataset.chart);
  const options = { renderer: "svg", actions: false, tooltip: { disableDefaultStyle: true } };
  return vegaEmbed(place, JSON.parse(spec.textContent), options).catch((error) => {
    place.textContent = "This chart cannot be drawn here; its numbers are in the table below.";
    console.error(error);
  });
});
// A closed fold has no width to draw in: close it after drawing, and fit its charts to the page when it opens.
(async () => {
  for (const chart of drawn) await chart;
  for (const fold of folds) {
    fold.open = false;
    fold.addEventListener("toggle", () => dispatchEvent(new Event("resize")));
  }
})();
// On paper nothing can be opened, so print every table.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});
