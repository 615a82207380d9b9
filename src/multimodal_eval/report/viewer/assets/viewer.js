// Keyboard shortcuts and announcements for screen readers. Links and forms work without this file.
(() => {
  "use strict";

  const isField = (element) => element.closest("input, select, textarea, [contenteditable]") !== null;

  const rows = () => [...document.querySelectorAll("[data-line]")];

  const linkOf = (row) => row.querySelector("a[href], input");

  function move(step) {
    const all = rows();
    if (all.length === 0) return;
    const at = all.indexOf(document.activeElement.closest("[data-line]"));
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    const link = all[next].querySelector('a[href]:not([tabindex="-1"])') || linkOf(all[next]);
    if (link) link.focus();
  }

  function select() {
    const row = document.activeElement.closest("[data-line]");
    const box = row && row.querySelector("input[type=checkbox]");
    if (box) box.click();
  }

  function press(key) {
    const element = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!element) return false;
    if (element.matches("input, select")) element.focus();
    else element.click();
    return true;
  }

  const keys = { j: () => move(1), k: () => move(-1), x: select };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (isField(event.target) && !(event.target.type === "checkbox" && event.key !== " ")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key in keys) {
      keys[event.key]();
      event.preventDefault();
    } else if (event.key.length === 1 && press(event.key)) {
      event.preventDefault();
    }
  });

  document.getElementById("keys-button").addEventListener("click", () => document.getElementById("keys").showModal());

  // Announce the number of rows of an updated table to screen readers.
  document.addEventListener("htmx:after:swap", () => {
    const status = document.querySelector("[data-status]");
    if (status) document.getElementById("status").textContent = status.textContent;
  });

  // Replace an image that cannot be shown by a message, and a thumbnail by an empty box.
  function missing(image) {
    if (image.matches(".thumb")) image.replaceWith(Object.assign(document.createElement("span"), { className: "thumb" }));
    else image.replaceWith("(the image cannot be shown)");
  }
  document.addEventListener("error", (event) => event.target.matches("img") && missing(event.target), true);
  for (const image of document.images) if (image.complete && image.naturalWidth === 0 && image.loading !== "lazy") missing(image);
})();
