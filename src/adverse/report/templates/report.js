"use strict";
// Shows one level at a time; without this script all of them are shown below each other.
document.querySelectorAll("[data-switch]").forEach((box) => {
  const parts = document.querySelectorAll(`[data-of="${box.dataset.switch}"]`);
  const show = (name) => parts.forEach((part) => { part.hidden = part.dataset.name !== name; });
  box.querySelectorAll("input").forEach((input) => {
    input.addEventListener("change", () => show(input.value));
    if (input.checked) show(input.value);
  });
  box.hidden = false;
});
document.querySelectorAll("[data-choice]").forEach((menu) => {
  const parts = document.querySelectorAll(`[data-of="${menu.dataset.choice}"]`);
  const show = () => parts.forEach((part) => { part.hidden = part.dataset.name !== menu.value; });
  menu.addEventListener("change", show);
  menu.closest("label").hidden = false;
  show();
});
// A film plays by itself only for those who want things to move; a click starts it and stops it.
document.querySelectorAll("[data-film]").forEach((button) => {
  const picture = button.querySelector("img");
  const still = picture.src;
  const play = (on) => {
    picture.src = on ? button.dataset.film : still;
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-label", on ? "Stop the film" : "Play the film");
  };
  button.addEventListener("click", () => play(button.getAttribute("aria-pressed") !== "true"));
  window.addEventListener("beforeprint", () => play(false));
  play(!window.matchMedia("(prefers-reduced-motion: reduce)").matches);
});
