// The brush of a scatter plot: a rectangle drawn with a mouse, pen or finger sets the four number fields, and the
// fields set the rectangle. The fields and their form work without this file.
(() => {
  "use strict";

  const limits = () => document.getElementById("limits");
  const field = (name) => limits().elements.namedItem(name);
  const plotOf = () => document.querySelector("[data-brush2d]");

  // An axis of the plot: its ends, and whether it points down the page.
  function axis(plot, name) {
    return { low: Number(plot.getAttribute(`data-${name}-low`)), high: Number(plot.getAttribute(`data-${name}-high`)) };
  }

  // A value with as many digits as a pixel of the plot can tell apart.
  function rounded(value, { low, high }) {
    const digits = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(high - low))));
    return String(Number(value.toFixed(digits)));
  }

  // The position of a pointer event in the plot, as shares of its width and height, measured from the bottom left.
  function position(plot, event) {
    const box = plot.getBoundingClientRect();
    const share = (value) => Math.min(1, Math.max(0, value));
    return { x: share((event.clientX - box.left) / box.width), y: share(1 - (event.clientY - box.top) / box.height) };
  }

  function draw() {
    const plot = plotOf();
    if (!plot || !limits()) return;
    const rectangle = plot.querySelector(".brush");
    const ends = {};
    let isSet = false;
    for (const name of ["x", "y"]) {
      const { low, high } = axis(plot, name);
      const values = [field(`${name}0`).value, field(`${name}1`).value];
      isSet = isSet || values.some((value) => value !== "");
      const [start, end] = values.map((value, index) => (value === "" ? index : (Number(value) - low) / (high - low)));
      ends[name] = [Math.min(start, end), Math.max(start, end)].map((share) => Math.min(1, Math.max(0, share)));
    }
    const percent = (share) => `${(100 * share).toFixed(3)}%`;
    rectangle.setAttribute("x", percent(ends.x[0]));
    rectangle.setAttribute("width", percent(ends.x[1] - ends.x[0]));
    rectangle.setAttribute("y", percent(1 - ends.y[1]));
    rectangle.setAttribute("height", percent(ends.y[1] - ends.y[0]));
    rectangle.classList.toggle("unset", !isSet);
    document.getElementById("brush-clear").hidden = !isSet;
  }

  function setFields(plot, start, end) {
    for (const name of ["x", "y"]) {
      const scale = axis(plot, name);
      const values = [start[name], end[name]].sort((a, b) => a - b);
      values.forEach((share, index) => {
        field(`${name}${index}`).value = rounded(scale.low + share * (scale.high - scale.low), scale);
      });
    }
    draw();
  }

  function clear() {
    for (const name of ["x0", "x1", "y0", "y1"]) field(name).value = "";
    draw();
    limits().requestSubmit();
  }

  let dragged = null; // the plot, the pointer and the place of its press

  document.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest("[data-brush2d]");
    if (!plot || event.button !== 0 || dragged) return;
    dragged = { plot, pointer: event.pointerId, start: position(plot, event), x: event.clientX, y: event.clientY };
    plot.setPointerCapture(event.pointerId);
    event.preventDefault();
  });

  document.addEventListener("pointermove", (event) => {
    if (dragged && event.pointerId === dragged.pointer) setFields(dragged.plot, dragged.start, position(dragged.plot, event));
  });

  document.addEventListener("pointerup", (event) => {
    if (!dragged || event.pointerId !== dragged.pointer) return;
    const { plot, start, x, y } = dragged;
    dragged = null;
    const isClick = Math.abs(event.clientX - x) < 4 || Math.abs(event.clientY - y) < 4;
    if (isClick) clear();
    else {
      setFields(plot, start, position(plot, event));
      limits().requestSubmit();
    }
  });

  document.addEventListener("pointercancel", () => {
    dragged = null;
  });

  document.addEventListener("input", (event) => {
    if (event.target.closest("#limits")) draw();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("#brush-clear")) clear();
  });

  document.addEventListener("htmx:after:swap", draw);
  draw();
})();
