"use strict";
// Without it everything is there; it sorts and filters.
function enhance(root) {
  for (const table of root.querySelectorAll("table[data-sorts]")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((cell, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = cell.textContent;
      cell.textContent = "";
      cell.append(button);
      button.addEventListener("click", () => {
        const up = cell.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[at].dataset.v ?? row.cells[at].textContent;
        const numeric = cell.classList.contains("n");
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          return numeric ? (Number(x) || 0) - (Number(y) || 0) : x < y ? -1 : x > y ? 1 : 0;
        });
        if (!up) rows.reverse();
        body.append(...rows);
      });
    });
  }
  for (const input of root.querySelectorAll("input[data-filters]")) {
    const table = document.getElementById(input.dataset.filters);
    const count = input.parentElement.parentElement.querySelector("[data-count]");
    input.parentElement.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
    });
  }
}
enhance(document);
