"use strict";
// Lets keys press what has a data-key; not while something is being typed, and once for each page.
let pressed = false;
document.addEventListener("keydown", (event) => {
  if (pressed || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof HTMLInputElement) return;
  const wanted = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === wanted);
  if (found) {
    pressed = true;
    event.preventDefault();
    found.click();
  }
});
window.addEventListener("pageshow", () => { pressed = false; });
