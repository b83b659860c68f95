"use strict";
// Moves markers, shows boxes and turns frames by picking from what the server worked out; computes no number.
(() => {
  const PLAY_MS = 150, SAVE_MS = 250;
  const form = document.getElementById("picks");
  const slider = document.getElementById("k");
  const of = (id) => document.getElementById(id);
  const all = (selector, act) => document.querySelectorAll(selector).forEach(act);
  const parsed = (element, name) => JSON.parse(element.dataset[name]);
  const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });
  let playing = false;
  let shown = 0; // how often main was replaced: an answer for an older one is dropped
  let saving = null;

  const query = () => new URLSearchParams(new FormData(form)).toString();
  const remember = () => {
    of("twin").href = `/explore.json?${query()}`;
    clearTimeout(saving); // browsers refuse addresses that change with every step of a slider
    saving = setTimeout(() => history.replaceState(null, "", `/explore?${query()}`), SAVE_MS);
  };
  const page = async (name, asked) => {
    try {
      const answer = await fetch(`/${name}?${asked}`);
      of("gone").hidden = true;
      if (!answer.ok) return null;
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      of("gone").hidden = false;
      return null;
    }
  };
  // One request of a kind at a time; what was asked for meanwhile comes next, and only the last of it.
  const busy = {}, waiting = {};
  const inTurn = async (name, act) => {
    waiting[name] = act;
    if (busy[name]) return busy[name];
    busy[name] = (async () => {
      while (waiting[name]) {
        const next = waiting[name];
        delete waiting[name];
        await next();
      }
      delete busy[name];
    })();
    return busy[name];
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
    const home = of("away") && of("away").dataset, shows = new FormData(form);
    if (home) of("away").hidden = ["log", "frame", "right"].every((name) => shows.get(name) === home[name]);
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
  const drawFrame = async () => {
    const mine = shown, number = of("scrub").value;
    const found = await page("frame", query());
    if (!found || mine !== shown) return;
    await Promise.all([...found.querySelectorAll("image[href]")].map((image) => loaded(image.getAttribute("href"))));
    if (mine !== shown) return;
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
    of("stage").dataset.frame = number;
  };
  const showFrame = () => {
    atFrame();
    remember();
    return inTurn("frame", drawFrame);
  };
  const drawDrive = async () => {
    const mine = shown, k = slider.value;
    const found = of("drive") && await page("drive", query());
    if (!found || mine !== shown) return;
    const fresh = document.adoptNode(found.getElementById("drive"));
    const open = of("drive").querySelector("details");
    if (open && open.open && fresh.querySelector("details")) fresh.querySelector("details").open = true;
    of("drive").replaceWith(fresh);
    atFrame();
    of("drive").dataset.k = k;
  };
  const showDrive = () => inTurn("drive", drawDrive);
  const scrub = (by) => {
    const range = of("scrub"), before = range.value;
    range.value = Number(before) + by;
    return range.value === before ? null : showFrame();
  };
  const walk = (rel) => {
    const link = document.querySelector(`#walk a[rel=${rel}]`);
    if (link) link.click();
  };
  // One on or back in the selection; without one a frame, at the end of the log into the one beside it.
  const turn = (by) => {
    if (of("walk")) {
      walk(by < 0 ? "prev" : "next");
      return;
    }
    if (scrub(by)) return;
    const { log, frame } = of(by < 0 ? "previous" : "next").dataset;
    if (log === undefined) return;
    const asked = new URLSearchParams(query());
    asked.set("log", log);
    asked.set("frame", frame);
    clearTimeout(saving);
    location.assign(`/explore?${asked}`);
  };
  const sensitivity = (by) => {
    if (!slider) return;
    slider.value = Number(slider.value) + by;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const play = async (on) => {
    const mine = (playing = on && {});
    of("play").textContent = on ? "pause" : "play";
    of("play").setAttribute("aria-pressed", String(Boolean(on)));
    while (on && playing === mine) {
      const drawn = scrub(1);
      if (!drawn) play(false);
      await Promise.all([drawn, pause(PLAY_MS)]);
    }
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
      turn(by);
    }));
    if (of("labels")) of("labels").addEventListener("change", (event) => of("stage").classList.toggle("unlabelled", !event.target.checked));
    of("play").hidden = false;
    of("play").addEventListener("click", () => play(!playing));
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
    if (!event.target.matches("select, input[name=log]")) return;
    play(false);
    const asked = new URLSearchParams(query());
    if (event.target.name === "log") asked.delete("frame");
    if (event.target.name === "sut" && of("walk")) { // the selection is then another one
      location.assign(`/explore?${asked}`);
      return;
    }
    await inTurn("explore", () => drawPick(asked.toString()));
  };
  const drawPick = async (asked) => {
    const found = await page("explore", asked);
    const typed = form.querySelector("input[name=log]");
    if (typed) typed.setAttribute("aria-invalid", String(!found));
    if (!found) return;
    shown += 1;
    if (slider) of("k-words").replaceWith(document.adoptNode(found.getElementById("k-words")));
    document.querySelector("main").replaceWith(document.adoptNode(found.querySelector("main")));
    listen();
    remember();
  };
  const keys = (event) => {
    const free = document.activeElement === document.body || (of("stage-keys") && of("stage-keys").contains(document.activeElement));
    if (!free || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("summary, .wide, a, button, input")) return;
    const act = {
      ArrowLeft: () => turn(-1), ArrowRight: () => turn(1), " ": () => play(!playing),
      n: () => walk("next"), p: () => walk("prev"),
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
