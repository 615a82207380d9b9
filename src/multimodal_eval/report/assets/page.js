"use strict";
// What report and site share: regions that scroll, and the theme button.
const page = (() => {
  // Make scrollable tables reachable by keyboard.
  function reachable() {
    for (const table of document.querySelectorAll(".scroll")) {
      const scrolls = table.scrollWidth > table.clientWidth + 1;
      table.tabIndex = scrolls ? 0 : -1;
      if (scrolls) {
        table.setAttribute("role", "region");
        table.setAttribute("aria-label", table.dataset.label);
      } else {
        table.removeAttribute("tabindex");
        table.removeAttribute("role");
        table.removeAttribute("aria-label");
      }
    }
  }

  function theme() {
    const button = document.getElementById("theme");
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const update = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      update();
    });
    system.addEventListener("change", update);
    update();
  }

  return { reachable, theme };
})();
