"use strict";
// A click on the head of a column sorts the rows: numbers first, the largest on top; another click turns it round.
const key = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace("−", "-"));
  return Number.isNaN(number) ? text : number;
};
const compare = (a, b) => {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return typeof a === "number" ? b - a : a.localeCompare(b);
};
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const turned = head.ariaSort === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = turned ? "ascending" : "descending";
      const rows = [...table.tBodies[0].rows].sort((a, b) => compare(key(a, column), key(b, column)));
      table.tBodies[0].append(...(turned ? rows.reverse() : rows));
    });
  });
}
