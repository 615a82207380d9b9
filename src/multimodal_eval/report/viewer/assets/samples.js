// The samples page: search fields for long lists of values, and the focus after a filter is removed.
(() => {
  "use strict";

  const MANY = 12; // values: from this number on a list has a search field

  function addSearch(list) {
    const items = [...list.querySelectorAll("li")];
    list.dataset.values = "ready";
    if (items.length < MANY) return;
    const field = Object.assign(document.createElement("input"), { type: "search", className: "value-search", placeholder: "find a value", autocomplete: "off" });
    field.setAttribute("aria-label", `Find a value of ${list.querySelector("legend").textContent}`);
    field.addEventListener("input", (event) => {
      event.stopPropagation(); // it changes the list, not the query
      const text = field.value.trim().toLowerCase();
      for (const item of items) item.hidden = !item.textContent.toLowerCase().includes(text);
    });
    field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    list.querySelector("ul").before(field);
  }

  function start() {
    for (const list of document.querySelectorAll("[data-values]:not([data-values=ready])")) addSearch(list);
  }

  document.addEventListener("htmx:after:swap", () => {
    start();
    if (document.activeElement === document.body) document.getElementById("content").focus({ preventScroll: true });
  });
  start();
})();
