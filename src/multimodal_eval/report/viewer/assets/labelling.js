// Keys that give labels. The forms work without this file.
(() => {
  "use strict";

  // Where a key has another meaning: in fields, in players, in the list of keys.
  const isBusy = (element) => element.closest("input, select, textarea, audio, video, [contenteditable]") !== null
    || document.querySelector("dialog[open]") !== null;

  const buttonOf = (key) => [...document.querySelectorAll("[data-label-key]")]
    .find((element) => element.dataset.labelKey.split(" ").includes(key));

  function press(element) {
    if (element.matches("summary")) {
      element.parentElement.open = true;
      element.parentElement.querySelector("textarea").focus();
    } else {
      element.click();
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing) return;
    if (isBusy(event.target)) return;
    const element = buttonOf(event.key);
    if (!element) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat) press(element); // a key that is held down labels one item, not the next ones
  }, true);

  // A second click while the next page loads does not label again.
  let isSent = false;
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (isSent) event.preventDefault();
    isSent = true;
  });
  window.addEventListener("pageshow", () => { isSent = false; });

  const field = document.querySelector("[data-label-focus]");
  if (field) field.focus();
})();
