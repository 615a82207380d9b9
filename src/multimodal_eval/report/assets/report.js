// Runs the tabs, the theme button and the selection of charts. Without it, the page still has all content.
(() => {
  const { reachable } = page;

  function tabs() {
    const holder = document.getElementById("sample-tabs");
    if (!holder) return;
    const panels = [...holder.querySelectorAll(":scope > .panel")];
    if (panels.length < 2) return;
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Groups of samples");
    const buttons = panels.map((panel) => {
      const button = document.createElement("button");
      button.type = "button";
      button.id = `${panel.id}-tab`;
      button.textContent = panel.dataset.title;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      list.append(button);
      return button;
    });
    const show = (selected) => {
      buttons.forEach((button, index) => {
        const isSelected = index === selected;
        button.setAttribute("aria-selected", String(isSelected));
        button.tabIndex = isSelected ? 0 : -1;
        panels[index].hidden = !isSelected;
      });
      reachable();
    };
    buttons.forEach((button, index) => button.addEventListener("click", () => show(index)));
    list.addEventListener("keydown", (event) => {
      const current = buttons.indexOf(document.activeElement);
      const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const index = (next + buttons.length) % buttons.length;
      show(index);
      buttons[index].focus();
    });
    holder.prepend(list);
    show(0);
  }

  // A selection that shows the charts with a value and hides the others.
  function choice(id, charts, value) {
    const select = document.getElementById(id);
    if (!select) return;
    select.disabled = false;
    select.addEventListener("change", () => {
      for (const chart of document.querySelectorAll(charts)) chart.hidden = value(chart) !== select.value;
      reachable();
    });
  }

  page.theme();
  tabs();
  choice("spread-kind", "[data-spread]", (chart) => chart.dataset.spread);
  reachable();
  let width = innerWidth;
  let timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(reachable, 100);
  });
  document.addEventListener("toggle", reachable, true);
})();
