"use strict";
// Moves markers, shows boxes and turns frames by picking from what the server worked out; computes no number.
(() => {
  const PLAY_MS = 200;
  const form = document.getElementById("picks");
  const slider = document.getElementById("k");
  const of = (id) => document.getElementById(id);
  const all = (selector, act) => document.querySelectorAll(selector).forEach(act);
  const parsed = (element, name) => JSON.parse(element.dataset[name]);
  let playing = null;

  const query = () => {
    const asked = new URLSearchParams(new FormData(form));
    return asked.toString();
  };
  const remember = () => {
    history.replaceState(null, "", `/explore?${query()}`);
    of("twin").href = `/explore.json?${query()}`;
  };

  // Only the latest answer of a kind counts: a slider asks faster than it is answered.
  const latest = {};
  const page = async (name, asked) => {
    const mine = (latest[name] = Symbol(name));
    const answer = await fetch(`/${name}?${asked}`);
    const text = await answer.text();
    if (latest[name] !== mine || !answer.ok) return null;
    return new DOMParser().parseFromString(text, "text/html");
  };

  const step = (steps, k) => steps.reduce((words, [start, text]) => (start <= k ? text : words), "");
  const move = (element, spot) => {
    element.setAttribute("visibility", spot ? "visible" : "hidden");
    if (spot) element.setAttribute("transform", `translate(${spot[0]} ${spot[1]})`);
  };
  const atLevel = () => {
    if (!slider) return;
    const k = Number(slider.value);
    all("[data-words]", (element) => { element.textContent = parsed(element, "words")[k]; });
    all("[data-steps]", (element) => { element.textContent = step(parsed(element, "steps"), k); });
    all("[data-spots]", (element) => move(element, parsed(element, "spots")[k]));
    all("[data-since]", (element) => element.classList.toggle("on", k >= Number(element.dataset.since)));
    slider.setAttribute("aria-valuetext", of("k-words").textContent);
  };
  const atFrame = () => {
    const n = Number(of("scrub").value);
    all("[data-frame-spots]", (element) => move(element, parsed(element, "frameSpots")[n]));
    all("[data-frame-words]", (element) => { element.textContent = parsed(element, "frameWords")[n]; });
    of("scrub").setAttribute("aria-valuetext", of("place").textContent);
  };
  const atDivider = () => {
    const at = `${of("at").value}%`;
    of("cut-left").setAttribute("width", at);
    of("cut-right").setAttribute("x", at);
    all("#divider line", (line) => { line.setAttribute("x1", at); line.setAttribute("x2", at); });
  };

  const loaded = (url) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = done;
    image.src = url;
  });
  const showFrame = async () => {
    atFrame();
    remember();
    const found = await page("frame", query());
    if (!found) return;
    const mine = latest.frame;
    await Promise.all([...found.querySelectorAll("image[href]")].map((image) => loaded(image.getAttribute("href"))));
    if (latest.frame !== mine) return;
    const stage = found.getElementById("stage");
    of("stage").setAttribute("viewBox", stage.getAttribute("viewBox"));
    of("stage").setAttribute("aria-label", stage.getAttribute("aria-label"));
    stage.querySelectorAll(".view").forEach((view) => {
      const old = of("stage").querySelector(`.view[data-side="${view.dataset.side}"]`);
      const images = [...view.querySelectorAll("image")], before = [...old.querySelectorAll("image")];
      if (images.length === before.length) {
        images.forEach((image, n) => image.getAttributeNames().forEach((name) => before[n].setAttribute(name, image.getAttribute(name))));
        images.forEach((image, n) => { if (!image.hasAttribute("href")) before[n].removeAttribute("href"); });
        old.querySelector(".boxes").replaceWith(document.adoptNode(view.querySelector(".boxes")));
      } else {
        old.replaceWith(document.adoptNode(view));
      }
    });
    ["said", "boxes-table"].forEach((id) => {
      const fresh = found.getElementById(id);
      if (!fresh || !of(id)) return;
      of(id).replaceChildren(...document.adoptNode(fresh).childNodes);
    });
    atLevel();
    atFrame();
    atDivider();
    of("stage").dataset.frame = of("scrub").value;
  };
  const showDrive = async () => {
    const found = of("drive") && await page("drive", query());
    if (!found) return;
    const fresh = document.adoptNode(found.getElementById("drive"));
    const open = of("drive").querySelector("details");
    if (open && open.open && fresh.querySelector("details")) fresh.querySelector("details").open = true;
    of("drive").replaceWith(fresh);
    atFrame();
    of("drive").dataset.k = slider.value;
  };
  const scrub = (by) => {
    const range = of("scrub");
    const before = range.value;
    range.value = Number(before) + by;
    if (range.value !== before) showFrame();
    return range.value !== before;
  };
  const sensitivity = (by) => {
    if (!slider) return;
    slider.value = Number(slider.value) + by;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const play = (on) => {
    clearInterval(playing);
    playing = on ? setInterval(() => { if (!scrub(1)) play(false); }, PLAY_MS) : null;
    of("play").textContent = on ? "pause" : "play";
    of("play").setAttribute("aria-pressed", String(on));
  };

  const dragTo = (event) => {
    const where = of("stage").getScreenCTM();
    of("at").value = Math.round((100 * (event.clientX - where.e)) / where.a / of("stage").viewBox.baseVal.width);
    atDivider();
  };
  const listen = () => {
    of("scrub").addEventListener("input", showFrame);
    of("at").addEventListener("input", atDivider);
    of("at").addEventListener("change", remember);
    [["previous", -1], ["next", 1]].forEach(([id, by]) => of(id).addEventListener("click", (event) => {
      event.preventDefault();
      scrub(by);
    }));
    if (of("labels")) of("labels").addEventListener("change", (event) => of("stage").classList.toggle("unlabelled", !event.target.checked));
    of("play").hidden = false;
    of("play").addEventListener("click", () => play(playing === null));
    of("stage").addEventListener("pointerdown", (event) => {
      of("stage").setPointerCapture(event.pointerId);
      dragTo(event);
    });
    of("stage").addEventListener("pointermove", (event) => { if (event.buttons) dragTo(event); });
    of("stage").addEventListener("pointerup", remember);
    atLevel();
    atFrame();
  };

  const pick = async (event) => {
    if (!(event.target instanceof HTMLSelectElement)) return;
    play(false);
    const asked = new URLSearchParams(query());
    if (event.target.name === "log") asked.delete("frame");
    const found = await page("explore", asked.toString());
    if (!found) return;
    if (slider) of("k-words").replaceWith(document.adoptNode(found.getElementById("k-words")));
    document.querySelector("main").replaceWith(document.adoptNode(found.querySelector("main")));
    listen();
    remember();
  };
  const keys = (event) => {
    const free = document.activeElement === document.body || (of("stage-keys") && of("stage-keys").contains(document.activeElement));
    if (!free || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("summary, .wide, a, button, input")) return;
    const act = {
      ArrowLeft: () => scrub(-1), ArrowRight: () => scrub(1), " ": () => play(playing === null),
      "+": () => sensitivity(1), "=": () => sensitivity(1), "-": () => sensitivity(-1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  document.documentElement.classList.add("scripted");
  form.addEventListener("change", pick);
  document.addEventListener("keydown", keys);
  if (slider) slider.addEventListener("input", () => { atLevel(); remember(); showDrive(); });
  listen();
})();
