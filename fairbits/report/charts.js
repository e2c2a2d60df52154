"use strict";
// Draw every chart into its place; a chart that fails says so and leaves its table.
for (const spec of document.querySelectorAll("script.spec")) {
  const place = document.getElementById(spec.dataset.chart);
  const options = { renderer: "svg", actions: false, tooltip: { disableDefaultStyle: true } };
  vegaEmbed(place, JSON.parse(spec.textContent), options).catch((error) => {
    place.textContent = "This chart cannot be drawn here; its numbers are in the table below.";
    console.error(error);
  });
}
// Show the numbers of the model that the slider points to.
const slider = document.getElementById("place");
if (slider) {
  const texts = JSON.parse(document.getElementById("places").textContent);
  const show = () => {
    document.getElementById("picked").textContent = texts[slider.value];
    slider.setAttribute("aria-valuetext", texts[slider.value]);
  };
  slider.addEventListener("input", show);
  show();
}
// On paper nothing can be opened, so print every table.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});
