/* Sorts a table by the column whose heading is pressed; pressed again, the other way round. */
for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = button.closest("table").tBodies[0];
    const column = head.cellIndex;
    const falling = head.getAttribute("aria-sort") !== "descending";
    const value = (row) => row.cells[column].dataset.v;
    const compare = (a, b) => {
      const x = Number(value(a)), y = Number(value(b));
      if (Number.isNaN(x) && Number.isNaN(y)) return String(value(a)).localeCompare(value(b));
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? -1 : 1;
      return x - y;
    };
    const rows = [...body.rows].sort((a, b) => (falling ? compare(b, a) : compare(a, b)));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    body.append(...rows);
  });
}
