"use strict";
// Draws the charts and runs the tabs, the theme button and the selection of metrics. Without it, the page still has
// all content in tables.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const holders = [...document.querySelectorAll("[data-chart]")];
  const series = (index) => `var(--series-${(index % 6) + 1})`;
  const colour = { value: (row) => series(row.series), scale: null };
  const short = (value) => (Math.abs(value) >= 1000 ? d3.format(",.0f")(value) : d3.format(".4~g")(value));
  const digits = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));
  const chosen = { spread: "histogram", metric: 0 };

  function base(width, more) {
    return {
      width,
      className: "mm-chart", // the policy allows the style of this class by its hash
      style: { fontSize: "12px", background: "transparent", fontFamily: "inherit" },
      ...more,
    };
  }

  // The left margin: wide enough for the labels, up to 42 % of the width.
  function left(rows, width) {
    const longest = Math.max(...rows.map((row) => row.label.length));
    return Math.min(Math.max(60, longest * 7 + 16), Math.round(width * 0.42));
  }

  function cut(margin) {
    const letters = Math.floor((margin - 14) / 6.6);
    const end = Math.floor(letters / 3); // long names often differ at their ends
    return (label) => (label.length > letters ? `${label.slice(0, Math.max(1, letters - end - 1))}…${label.slice(label.length - end)}` : label);
  }

  // One row per label with a value and an interval per run, in the colour of the run.
  function intervals({ rows, runs, domain }, width) {
    const margin = left(rows, width);
    const labels = [...new Set(rows.map((row) => row.label))];
    const step = 10 * runs.length + 14;
    const offset = (row) => (row.series - (runs.length - 1) / 2) * 10;
    // A normal interval may exceed the range of the metric. The chart cuts it off; the table shows it in full.
    const inside = (value) => (domain ? Math.min(Math.max(value, domain[0]), domain[1]) : value);
    const marks = [...runs.keys()].flatMap((index) => {
      const points = rows.filter((row) => row.series === index);
      const dy = points.length ? offset(points[0]) : 0;
      const title = (row) => `${row.label}, ${runs[index]}: ${digits(row.value)} (${digits(row.low)} … ${digits(row.high)})`;
      return [
        Plot.ruleY(points.filter((row) => row.low !== null), { y: "label", x1: (row) => inside(row.low), x2: (row) => inside(row.high), stroke: series(index), strokeWidth: 2, dy }),
        Plot.dot(points, { y: "label", x: "value", fill: series(index), r: 4, dy, title }),
      ];
    });
    return Plot.plot(
      base(width, {
        height: labels.length * step + 40,
        marginLeft: margin,
        marginRight: 16,
        x: { domain, grid: true, label: null, ticks: width < 500 ? 4 : 8, nice: !domain },
        y: { domain: labels, label: null, tickFormat: cut(margin), tickSize: 0 },
        marks,
      }),
    );
  }

  function histogram({ label, edges, counts, logarithmic, runs }, width) {
    const x = { type: logarithmic ? "log" : "linear", label: null, ticks: 4, tickFormat: short, domain: [edges[0], edges[edges.length - 1]] };
    const totals = counts.map((bins) => Math.max(1, d3.sum(bins)));
    const single = runs.length === 1;
    if (chosen.spread === "ecdf") {
      const steps = counts.flatMap((bins, index) => {
        let sum = 0;
        return [{ x: edges[0], y: 0, series: index }, ...bins.map((count, bin) => ({ x: edges[bin + 1], y: (sum += count) / totals[index], series: index }))];
      });
      const marks = [Plot.ruleY([0]), Plot.line(steps, { x: "x", y: "y", z: "series", stroke: colour, strokeWidth: 2 })];
      return Plot.plot(base(width, { height: 170, marginLeft: 46, x, y: { label: null, grid: true, ticks: 4, domain: [0, 1], tickFormat: "%" }, marks }));
    }
    const bars = counts.flatMap((bins, index) =>
      bins.map((count, bin) => ({ x1: edges[bin], x2: edges[bin + 1], y: single ? count : count / totals[index], count, series: index })),
    );
    const title = (bar) => `${short(bar.x1)} to ${short(bar.x2)}: ${bar.count.toLocaleString("en")} samples`;
    const outline = (index) => {
      const run = bars.filter((bar) => bar.series === index);
      return [{ x: run[0].x1, y: 0 }, ...run.flatMap((bar) => [{ x: bar.x1, y: bar.y }, { x: bar.x2, y: bar.y }]), { x: run[run.length - 1].x2, y: 0 }];
    };
    const marks = single
      ? [Plot.rect(bars, { x1: "x1", x2: "x2", y1: 0, y2: "y", fill: series(0), insetLeft: 0.5, insetRight: 0.5, title })]
      : [...runs.keys()].flatMap((index) => [
          Plot.areaY(outline(index), { x: "x", y1: 0, y2: "y", fill: series(index), fillOpacity: runs.length > 2 ? 0 : 0.18 }),
          Plot.line(outline(index), { x: "x", y: "y", stroke: series(index), strokeWidth: 2 }),
        ]);
    const y = single ? { label: null, grid: true, ticks: 4, tickFormat: "~s" } : { label: null, grid: true, ticks: 4, tickFormat: "%" };
    return Plot.plot(base(width, { height: 170, marginLeft: 46, x, y, marks: [...marks, Plot.ruleY([0])] }));
  }

  function forest({ rows }, width) {
    const margin = left(rows, width);
    const tone = { value: (row) => ({ better: "var(--good)", worse: "var(--bad)" })[row.verdict] || "var(--quiet)", scale: null };
    const title = (row) => `${row.label}: ${digits(row.value)} (${digits(row.low)} … ${digits(row.high)}), ${row.verdict}`;
    return Plot.plot(
      base(width, {
        height: rows.length * 26 + 44,
        marginLeft: margin,
        marginRight: 16,
        x: { grid: true, label: null, ticks: width < 500 ? 4 : 8, nice: true },
        y: { domain: rows.map((row) => row.label), label: null, tickSize: 0, tickFormat: cut(margin) },
        marks: [
          Plot.ruleX([0], { stroke: "currentColor", strokeWidth: 1.5 }),
          Plot.ruleY(rows.filter((row) => row.low !== null), { y: "label", x1: "low", x2: "high", stroke: tone, strokeWidth: 2 }),
          Plot.dot(rows, { y: "label", x: "value", fill: tone, r: 5, title, symbol: "square" }),
        ],
      }),
    );
  }

  function weights({ rows, runs }, width) {
    const margin = left(rows, width);
    const labels = [...new Set(rows.map((row) => row.label))];
    const marks = [...runs.keys()].flatMap((index) => {
      const parts = rows.filter((row) => row.series === index);
      const dy = (index - (runs.length - 1) / 2) * 10;
      const both = parts.filter((row) => row.effective !== null);
      return [
        Plot.ruleY(both, { y: "label", x1: "weight", x2: "effective", stroke: series(index), strokeOpacity: 0.5, dy }),
        Plot.dot(parts, { y: "label", x: "weight", stroke: "currentColor", r: 4, dy }),
        Plot.dot(both, { y: "label", x: "effective", fill: series(index), r: 4, dy }),
      ];
    });
    return Plot.plot(
      base(width, {
        height: labels.length * (10 * runs.length + 16) + 40,
        marginLeft: margin,
        marginRight: 20,
        x: { grid: true, label: null, tickFormat: "%", ticks: width < 500 ? 4 : 8, zero: true },
        y: { domain: labels, label: null, tickSize: 0, tickFormat: cut(margin) },
        marks,
      }),
    );
  }

  function slices({ runs, metrics }, width) {
    const shown = metrics[Math.min(chosen.metric, metrics.length - 1)];
    return shown ? intervals({ rows: shown.rows, runs }, width) : null;
  }

  const kinds = { intervals, histogram, forest, weights, slices };

  function draw(holder) {
    const chart = data.charts[holder.dataset.chart];
    const width = Math.floor(holder.clientWidth);
    if (!chart || width < 40) return;
    const drawn = kinds[chart.kind](chart, width);
    if (drawn) {
      drawn.setAttribute("aria-hidden", "true"); // the element has a label, and a table has the values
      drawn.setAttribute("focusable", "false");
      holder.replaceChildren(drawn);
    }
  }

  const drawAll = (name = "") => holders.filter((holder) => holder.dataset.chart.startsWith(name)).forEach(draw);

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

  function choices() {
    const spread = document.getElementById("spread-kind");
    if (spread) {
      spread.disabled = false;
      spread.addEventListener("change", () => {
        chosen.spread = spread.value;
        drawAll("spread-");
      });
    }
    const select = document.getElementById("slice-metric");
    const first = Object.values(data.charts).find((chart) => chart.kind === "slices");
    if (!select || !first) return;
    first.metrics.forEach(({ metric }, index) => select.add(new Option(metric, String(index))));
    chosen.metric = Math.max(0, first.metrics.length - 1); // the composite is the last
    select.value = String(chosen.metric);
    select.disabled = false;
    select.addEventListener("change", () => {
      chosen.metric = Number(select.value);
      drawAll("slices-");
    });
  }

  theme();
  tabs();
  choices();
  drawAll();
  reachable();
  let width = innerWidth;
  let timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(() => {
      drawAll();
      reachable();
    }, 100);
  });
  document.addEventListener("toggle", reachable, true);
})();
