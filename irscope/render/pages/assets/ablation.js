"use strict";
// Sorts the table by a column when its heading is pressed; everything is there to read without it.
for (const table of document.querySelectorAll("table.ablation")) {
  const headings = [...table.querySelectorAll("thead th")];
  headings.forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") !== "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = table.tBodies[1];
      const key = (row) => row.dataset.keys.split("\u001f")[place];
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
        return descending ? -order : order;
      });
      body.append(...rows);
    });
  });
}
