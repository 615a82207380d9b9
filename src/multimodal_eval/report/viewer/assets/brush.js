// Choose a range by dragging over a histogram or by moving its two handles. The number fields are the form's values:
// the brush writes into them and follows them. Without this file the fields alone work.
(() => {
  "use strict";

  const NAMESPACE = "http://www.w3.org/2000/svg";

  class Brush {
    constructor(fieldset) {
      this.edges = fieldset.dataset.edges.split(" ");
      this.numbers = this.edges.map(Number);
      this.last = this.edges.length - 1;
      [this.least, this.most] = fieldset.querySelectorAll("input[type=number]");
      this.area = fieldset.querySelector(".brush-area");
      this.name = fieldset.querySelector("legend").textContent;
      this.draw();
      for (const field of [this.least, this.most]) field.addEventListener("input", () => this.follow());
      this.follow();
    }

    draw() {
      this.overlay = document.createElementNS(NAMESPACE, "svg");
      this.overlay.setAttribute("class", "brush");
      this.overlay.setAttribute("viewBox", `0 0 ${this.last} 100`);
      this.overlay.setAttribute("preserveAspectRatio", "none");
      this.overlay.setAttribute("aria-hidden", "true");
      this.shade = document.createElementNS(NAMESPACE, "rect");
      for (const [name, value] of Object.entries({ y: 0, height: 100, "vector-effect": "non-scaling-stroke" })) this.shade.setAttribute(name, value);
      this.overlay.append(this.shade);
      this.low = this.handle("lowest");
      this.high = this.handle("highest");
      this.low.addEventListener("input", () => this.choose(Math.min(+this.low.value, +this.high.value - 1), +this.high.value));
      this.high.addEventListener("input", () => this.choose(+this.low.value, Math.max(+this.high.value, +this.low.value + 1)));
      this.area.append(this.overlay, this.low, this.high);
      this.overlay.addEventListener("pointerdown", (event) => this.drag(event));
    }

    handle(end) {
      const handle = Object.assign(document.createElement("input"), { type: "range", className: "handle", min: 0, max: this.last, step: 1 });
      handle.setAttribute("aria-label", `${end} ${this.name}`);
      return handle;
    }

    // The bin below the pointer, from 0 on.
    bin(event) {
      const box = this.overlay.getBoundingClientRect();
      const at = Math.floor(((event.clientX - box.left) / box.width) * this.last);
      return Math.min(Math.max(at, 0), this.last - 1);
    }

    drag(event) {
      if (event.button !== 0) return;
      event.preventDefault();
      const start = this.bin(event);
      const range = (moved) => [Math.min(start, this.bin(moved)), Math.max(start, this.bin(moved)) + 1];
      const move = (moved) => this.show(...range(moved));
      const stop = (ended) => {
        this.overlay.removeEventListener("pointermove", move);
        this.overlay.removeEventListener("pointerup", stop);
        this.overlay.removeEventListener("pointercancel", stop);
        if (ended.type === "pointerup") this.choose(...range(ended));
        else this.follow();
      };
      this.overlay.setPointerCapture(event.pointerId);
      for (const [name, listener] of [["pointermove", move], ["pointerup", stop], ["pointercancel", stop]]) this.overlay.addEventListener(name, listener);
      this.show(start, start + 1);
    }

    // Write a range of bins into the fields. At either end of the histogram there is no limit.
    choose(low, high) {
      this.least.value = low <= 0 ? "" : this.edges[low];
      this.most.value = high >= this.last ? "" : this.edges[high];
      this.show(low, high);
      this.least.dispatchEvent(new Event("input", { bubbles: true }));
    }

    // Show the range of the fields.
    follow() {
      const least = this.least.value === "" ? -Infinity : +this.least.value;
      const most = this.most.value === "" ? Infinity : +this.most.value;
      const low = Math.max(this.numbers.findLastIndex((edge) => edge <= least), 0);
      const above = this.numbers.findIndex((edge) => edge >= most);
      this.show(Math.min(low, this.last - 1), Math.max(above < 0 ? this.last : above, low + 1));
    }

    show(low, high) {
      this.low.value = low;
      this.high.value = high;
      this.low.setAttribute("aria-valuetext", this.edges[low]);
      this.high.setAttribute("aria-valuetext", this.edges[high]);
      const isWhole = low <= 0 && high >= this.last;
      this.shade.setAttribute("x", isWhole ? 0 : low);
      this.shade.setAttribute("width", isWhole ? 0 : high - low);
    }
  }

  function start() {
    for (const fieldset of document.querySelectorAll("[data-brush]:not([data-brush=ready])")) {
      fieldset.dataset.brush = "ready";
      new Brush(fieldset);
    }
  }

  document.addEventListener("htmx:after:swap", start);
  start();
})();
