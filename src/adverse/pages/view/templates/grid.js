"use strict";
// Sends the filters when one changes, and moves between the pictures by keys; computes nothing.
(() => {
  const form = document.getElementById("filters");
  const links = [...document.querySelectorAll(".tiles a")];
  const across = () => {
    const top = (link) => Math.round(link.getBoundingClientRect().top);
    return Math.max(1, links.filter((link) => top(link) === top(links[0])).length);
  };
  const move = (by) => {
    const now = links.indexOf(document.activeElement);
    const next = now < 0 ? 0 : now + by;
    if (links[next]) links[next].focus();
  };
  const turn = (rel) => {
    const link = document.querySelector(`.pager a[rel=${rel}]`);
    if (link) link.click();
  };
  document.documentElement.classList.add("scripted");
  form.addEventListener("change", () => form.requestSubmit());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select, input, button")) return;
    const act = {
      ArrowLeft: () => move(-1), ArrowRight: () => move(1),
      ArrowUp: () => move(-across()), ArrowDown: () => move(across()),
      n: () => turn("next"), p: () => turn("prev"),
    }[event.key];
    if (!act || (!links.length && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    act();
  });
})();
