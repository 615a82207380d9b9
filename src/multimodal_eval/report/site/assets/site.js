// Sorts and filters the ranking, and runs the theme button. Without it, the table is in the order of places.
(() => {
  const { reachable } = page;

  function ranking() {
    const table = document.getElementById("ranking-table");
    if (!table) return;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const select = document.getElementById("sort");
    const filter = document.getElementById("filter");
    const status = document.getElementById("status");
    const names = rows.map((row) => row.querySelector("th").textContent.trim());
    const letters = new Intl.Collator(undefined, { numeric: true });
    let sorted = { column: 0, up: true };

    // Numbers by value, with missing ones last in both directions; equal rows stay in the order of places.
    function order({ column, up }) {
      const sign = up ? 1 : -1;
      if (heads[column].dataset.sort === "text") {
        return rows.map((row, index) => index).sort((a, b) => sign * letters.compare(names[a], names[b]) || a - b);
      }
      const values = rows.map((row) => {
        const value = row.cells[column].dataset.value;
        return value === undefined ? null : Number(value);
      });
      return rows
        .map((row, index) => index)
        .sort((a, b) => {
          if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
          return sign * (values[a] - values[b]) || a - b;
        });
    }

    function sort(next) {
      sorted = next;
      body.append(...order(next).map((index) => rows[index]));
      heads.forEach((head, column) => {
        if (column === next.column) head.setAttribute("aria-sort", next.up ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      select.value = String(next.column);
    }

    function click(column) {
      const first = heads[column].dataset.sort !== "down";
      sort({ column, up: column === sorted.column ? !sorted.up : first });
      tell(`Sorted by ${label(column)}, ${sorted.up ? "ascending" : "descending"}`);
    }

    const label = (column) => heads[column].textContent.replace(/\s+/g, " ").replace("↓", "").trim();

    function tell(text) {
      const shown = rows.filter((row) => !row.hidden).length;
      status.textContent = shown < rows.length ? `${text}. ${shown} of ${rows.length} submissions` : text;
    }

    heads.forEach((head, column) => {
      if (!head.dataset.sort || head.dataset.sort === "none") return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorter";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => click(column));
      select.add(new Option(label(column), String(column)));
    });
    select.addEventListener("change", () => {
      const column = Number(select.value);
      sort({ column, up: heads[column].dataset.sort !== "down" });
      tell(`Sorted by ${label(column)}`);
    });
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLocaleLowerCase();
      rows.forEach((row, index) => {
        row.hidden = !names[index].toLocaleLowerCase().includes(wanted);
      });
      const shown = rows.filter((row) => !row.hidden).length;
      status.textContent = wanted ? `${shown} of ${rows.length} submissions` : "";
    });
    sort(sorted);
    document.getElementById("tools").hidden = false;
  }

  page.theme();
  ranking();
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
})();
