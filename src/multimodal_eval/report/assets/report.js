"use strict";
// Draws the charts, and makes tabs, the choice of theme and the choices of numbers work. Without it, the page still
// says everything in tables.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const places = [...document.querySelectorAll("[data-chart]")];
  const series = (place) => `var(--series-${(place % 6) + 1})`;
  const colour = { value: (row) => series(row.series), scale: null };
  const short = (value) => (Math.abs(value) >= 1000 ? d3.format(",.0f")(value) : d3.format(".4~g")(value));
  const digits = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));
  const chosen = { spread: "histogram", number: 0 };

  function base(width, more) {
    return {
      width,
      className: "mm-chart", // the style of this class is allowed by its hash
      style: { fontSize: "12px", background: "transparent", fontFamily: "inherit" },
      ...more,
    };
  }

  // Room for labels at the left, as long as they need and the page has.
  function left(rows, width) {
    const longest = Math.max(...rows.map((row) => row.label.length));
    return Math.min(Math.max(60, longest * 7 + 16), Math.round(width * 0.42));
  }

  function cut(width, margin) {
    const letters = Math.floor((margin - 14) / 6.6);
    const end = Math.floor(letters / 3); // long names often differ at their ends
    return (label) => (label.length > letters ? `${label.slice(0, Math.max(1, letters - end - 1))}…${label.slice(label.length - end)}` : label);
  }

  // A value and its interval a row, one colour a run; rows of one label lie beside one another.
  function intervals({ rows, runs, domain }, width) {
    const margin = left(rows, width);
    const labels = [...new Set(rows.map((row) => row.label))];
    const step = 10 * runs.length + 14;
    const offset = (row) => (row.series - (runs.length - 1) / 2) * 10;
    // An interval by the normal distribution may leave the number's range; the chart ends there, the table tells.
    const inside = (value) => (domain ? Math.min(Math.max(value, domain[0]), domain[1]) : value);
    const marks = [...runs.keys()].flatMap((place) => {
      const own = rows.filter((row) => row.series === place);
      const dy = own.length ? offset(own[0]) : 0;
      const title = (row) => `${row.label}, ${runs[place]}: ${digits(row.value)} (${digits(row.low)} … ${digits(row.high)})`;
      return [
        Plot.ruleY(own.filter((row) => row.low !== null), { y: "label", x1: (row) => inside(row.low), x2: (row) => inside(row.high), stroke: series(place), strokeWidth: 2, dy }),
        Plot.dot(own, { y: "label", x: "value", fill: series(place), r: 4, dy, title }),
      ];
    });
    return Plot.plot(
      base(width, {
        height: labels.length * step + 40,
        marginLeft: margin,
        marginRight: 16,
        x: { domain, grid: true, label: null, ticks: width < 500 ? 4 : 8, nice: !domain },
        y: { domain: labels, label: null, tickFormat: cut(width, margin), tickSize: 0 },
        marks,
      }),
    );
  }

  function histogram({ label, edges, counts, logarithmic, runs }, width) {
    const x = { type: logarithmic ? "log" : "linear", label: null, ticks: 4, tickFormat: short, domain: [edges[0], edges[edges.length - 1]] };
    const totals = counts.map((own) => Math.max(1, d3.sum(own)));
    const one = runs.length === 1;
    if (chosen.spread === "ecdf") {
      const steps = counts.flatMap((own, place) => {
        let sum = 0;
        return [{ x: edges[0], y: 0, series: place }, ...own.map((count, bin) => ({ x: edges[bin + 1], y: (sum += count) / totals[place], series: place }))];
      });
      const marks = [Plot.ruleY([0]), Plot.line(steps, { x: "x", y: "y", z: "series", stroke: colour, strokeWidth: 2 })];
      return Plot.plot(base(width, { height: 170, marginLeft: 46, x, y: { label: null, grid: true, ticks: 4, domain: [0, 1], tickFormat: "%" }, marks }));
    }
    const bins = counts.flatMap((own, place) =>
      own.map((count, bin) => ({ x1: edges[bin], x2: edges[bin + 1], y: one ? count : count / totals[place], count, series: place })),
    );
    const title = (bin) => `${short(bin.x1)} to ${short(bin.x2)}: ${bin.count.toLocaleString("en")} samples`;
    const outline = (place) => {
      const own = bins.filter((bin) => bin.series === place);
      return [{ x: own[0].x1, y: 0 }, ...own.flatMap((bin) => [{ x: bin.x1, y: bin.y }, { x: bin.x2, y: bin.y }]), { x: own[own.length - 1].x2, y: 0 }];
    };
    const marks = one
      ? [Plot.rect(bins, { x1: "x1", x2: "x2", y1: 0, y2: "y", fill: series(0), insetLeft: 0.5, insetRight: 0.5, title })]
      : [...runs.keys()].flatMap((place) => [
          Plot.areaY(outline(place), { x: "x", y1: 0, y2: "y", fill: series(place), fillOpacity: runs.length > 2 ? 0 : 0.18 }),
          Plot.line(outline(place), { x: "x", y: "y", stroke: series(place), strokeWidth: 2 }),
        ]);
    const y = one ? { label: null, grid: true, ticks: 4, tickFormat: "~s" } : { label: null, grid: true, ticks: 4, tickFormat: "%" };
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
        y: { domain: rows.map((row) => row.label), label: null, tickSize: 0, tickFormat: cut(width, margin) },
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
    const marks = [...runs.keys()].flatMap((place) => {
      const own = rows.filter((row) => row.series === place);
      const dy = (place - (runs.length - 1) / 2) * 10;
      const both = own.filter((row) => row.effective !== null);
      return [
        Plot.ruleY(both, { y: "label", x1: "weight", x2: "effective", stroke: series(place), strokeOpacity: 0.5, dy }),
        Plot.dot(own, { y: "label", x: "weight", stroke: "currentColor", r: 4, dy }),
        Plot.dot(both, { y: "label", x: "effective", fill: series(place), r: 4, dy }),
      ];
    });
    return Plot.plot(
      base(width, {
        height: labels.length * (10 * runs.length + 16) + 40,
        marginLeft: margin,
        marginRight: 20,
        x: { grid: true, label: null, tickFormat: "%", ticks: width < 500 ? 4 : 8, zero: true },
        y: { domain: labels, label: null, tickSize: 0, tickFormat: cut(width, margin) },
        marks,
      }),
    );
  }

  function slices({ runs, numbers }, width) {
    const own = numbers[Math.min(chosen.number, numbers.length - 1)];
    return own ? intervals({ rows: own.rows, runs }, width) : null;
  }

  const kinds = { intervals, histogram, forest, weights, slices };

  function draw(place) {
    const chart = data.charts[place.dataset.chart];
    const width = Math.floor(place.clientWidth);
    if (!chart || width < 40) return;
    const drawn = kinds[chart.kind](chart, width);
    if (drawn) {
      drawn.setAttribute("aria-hidden", "true"); // the place has a label, and a table says the rest
      drawn.setAttribute("focusable", "false");
      place.replaceChildren(drawn);
    }
  }

  const drawAll = (name = "") => places.filter((place) => place.dataset.chart.startsWith(name)).forEach(draw);

  // What scrolls must be reachable by keyboard; what does not, need not.
  function reachable() {
    for (const one of document.querySelectorAll(".scroll")) {
      const scrolls = one.scrollWidth > one.clientWidth + 1;
      one.tabIndex = scrolls ? 0 : -1;
      if (scrolls) {
        one.setAttribute("role", "region");
        one.setAttribute("aria-label", one.dataset.label);
      } else {
        one.removeAttribute("tabindex");
        one.removeAttribute("role");
        one.removeAttribute("aria-label");
      }
    }
  }

  function theme() {
    const button = document.getElementById("theme");
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const tell = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      tell();
    });
    system.addEventListener("change", tell);
    tell();
  }

  function tabs() {
    const holder = document.getElementById("sample-tabs");
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
    const show = (place) => {
      buttons.forEach((button, number) => {
        const is = number === place;
        button.setAttribute("aria-selected", String(is));
        button.tabIndex = is ? 0 : -1;
        panels[number].hidden = !is;
      });
      reachable();
    };
    buttons.forEach((button, place) => button.addEventListener("click", () => show(place)));
    list.addEventListener("keydown", (event) => {
      const now = buttons.indexOf(document.activeElement);
      const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const place = (next + buttons.length) % buttons.length;
      show(place);
      buttons[place].focus();
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
    const number = document.getElementById("slice-number");
    const first = Object.values(data.charts).find((chart) => chart.kind === "slices");
    if (!number || !first) return;
    first.numbers.forEach((own, place) => number.add(new Option(own.number, String(place))));
    chosen.number = Math.max(0, first.numbers.length - 1); // the composite is the last
    number.value = String(chosen.number);
    number.disabled = false;
    number.addEventListener("change", () => {
      chosen.number = Number(number.value);
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
