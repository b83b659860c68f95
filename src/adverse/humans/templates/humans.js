"use strict";
// One trial: a cross, an image for as long as the study says, a mask, a choice. The frames of the screen are the clock.

const $ = (id) => document.getElementById(id);
const layers = ["cross", "image", "mask"].map($);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
let choosing = null;

function only(id) {
  for (const name of ["rest", "show", "choice"]) $(name).hidden = name !== id;
}

function layer(chosen) {
  for (const one of layers) one.classList.toggle("off", one !== chosen);
}

// What is sent arrives, however often the server must be asked: it keeps the first of several equal answers.
async function ask(address, told) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
    try {
      const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(told) });
      if (answer.ok) {
        $("note").textContent = "";
        return await answer.json();
      }
      if (answer.status < 500) throw new Refused((await answer.json()).error);
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    $("note").textContent = "The connection is lost. Trying again; please keep this page open.";
    await wait(pause);
  }
}

class Refused extends Error {}

async function loaded(image, address) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
    image.src = address;
    try {
      await image.decode();
      $("note").textContent = "";
      return;
    } catch {
      $("note").textContent = "The image does not arrive. Trying again; please keep this page open.";
      await wait(pause);
      image.removeAttribute("src");
    }
  }
}

// Resolves to how long the image was visible, and how long a frame lasts, both by the screen's own clock.
function present(times) {
  return new Promise((done) => {
    const periods = [];
    let phase = "cross", since = null, before = null, frame = 0, shown = 0;
    function step(now) {
      if (since === null) since = now;
      if (before !== null && phase === "cross") periods.push(now - before);
      before = now;
      if (phase === "cross" && now - since >= times.fixation_ms && periods.length >= 5) {
        periods.sort((a, b) => a - b);
        frame = periods[Math.floor(periods.length / 2)];
        layer($("image"));
        [phase, since] = ["image", now];
      } else if (phase === "image" && now - since >= times.exposure_ms - frame / 2) {
        layer($("mask"));
        shown = now - since;
        [phase, since] = ["mask", now];
      } else if (phase === "mask" && now - since >= times.mask_ms) {
        done({ shown_ms: shown, frame_ms: frame });
        return;
      }
      requestAnimationFrame(step);
    }
    requestAnimationFrame(step);
  });
}

function choice() {
  only("choice");
  const since = performance.now();
  return new Promise((done) => {
    choosing = (number) => {
      choosing = null;
      done({ answer: number, response_ms: performance.now() - since });
    };
  });
}

function count(progress) {
  const first = `Batch ${progress.batch} of ${progress.batches}`;
  $("counter").textContent = progress.stage === "running" || progress.left ? `${first}, ${progress.left} more after this one` : first;
}

async function run() {
  only("show");
  layer(null);
  $("note").textContent = "Getting the images ready …";
  let progress = await ask("/batch.json", {});
  for (;;) {
    layer(null);
    only("show");
    const times = await ask("/trial.json", { request: crypto.randomUUID ? crypto.randomUUID() : nonce() });
    progress = { ...times.progress, code: times.code };
    count(progress);
    if (times.trial === null) break;
    await Promise.all([loaded($("image"), `/image/${times.trial}.png`), loaded($("mask"), `/mask/${times.trial}.png`)]);
    layer($("cross"));
    const seen = await present(times);
    const told = await choice();
    only("show");
    layer(null);
    await ask("/answer.json", { trial: times.trial, ...seen, ...told });
  }
  rest(progress.stage, progress);
}

function nonce() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
}

const WORDS = {
  ready: ["", "Start"],
  running: ["You have begun. Go on where you stopped; an image that was interrupted is not shown again.", "Go on"],
  break: ["is done, thank you. Take a break if you like.", "Next batch"],
  failed: ["Thank you. The images of this study seem hard to tell apart for you on this screen, so it ends here.", null],
  finished: ["That was all. Thank you for taking part! If you may want your answers erased one day, note your number below.", null],
};

function rest(stage, progress) {
  const [words, label] = WORDS[stage];
  $("message").textContent = stage === "break" ? `Batch ${progress.batch} of ${progress.batches} ${words}` : words;
  $("message").hidden = !words;
  $("instructions").hidden = stage !== "ready" && stage !== "running";
  $("go").hidden = label === null;
  $("counter").textContent = "";
  $("code").hidden = !progress.code;
  $("code").querySelector("strong").textContent = progress.code || "";
  only("rest");
  if (label !== null) {
    $("go").textContent = label;
    $("go").disabled = false;
    $("go").focus();
  }
}

$("go").addEventListener("click", async () => {
  $("go").disabled = true;
  try {
    await run();
  } catch (error) {
    rest("finished", {});
    $("message").textContent = error instanceof Refused ? error.message : "Something went wrong. Please reload the page.";
  }
});
for (const button of document.querySelectorAll("#buttons button")) {
  button.addEventListener("click", () => choosing && choosing(Number(button.dataset.answer)));
}
document.addEventListener("keydown", (event) => {
  if (!choosing || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  const button = document.querySelector(`#buttons button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (button) {
    event.preventDefault();
    choosing(Number(button.dataset.answer));
  }
});
rest(document.body.dataset.stage, document.body.dataset);
