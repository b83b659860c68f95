// Ties the page together: what is selected, what keys and buttons do, what is said.
import { cell, edit, freshId, ids, inFrame, load, match, ofObject, send, state, sync, whenChanged, whenSaved } from "/assets/state.js";
import { draw, listen, of, pointNow, selected, showFrame, view } from "/assets/stage.js";
import { drawGraph, frameAt, marks, stops } from "/assets/graph.js";

const POLL_MS = 1500, NUDGE_PX = 0.25;
let target = "partner", tracking = 0, refused = null;

const say = (words) => { of("message").textContent = words ?? ""; of("message").hidden = !words; };
const metres = (place) => (place ? place.map((value) => value.toFixed(2)).join(", ") + " m" : "–");
const show = () => {
  draw();
  drawGraph();
  const mine = selected(), one = view.id === null ? null : cell(view.frame, view.id), spot = pointNow(), about = state.frames[view.frame];
  of("place").textContent = `frame ${view.frame + 1} of ${state.frames.length}, ${about.id}${about.time_s === null ? "" : `, ${about.time_s.toFixed(2)} s`}`;
  of("frame").value = view.frame;
  of("frame").setAttribute("aria-valuetext", `frame ${view.frame + 1}`);
  const score = spot?.score ?? 0;
  of("score").value = score;
  of("score-words").textContent = view.proposal ? `${score.toFixed(2)}, unsure: Enter takes it` : spot ? (spot.right_x ? `${score.toFixed(2)}, ${spot.point_by === "tracker" ? "tracked" : "by hand"}` : "from the depth map") : "no point";
  of("fact-object").textContent = view.id === null ? (ids().length ? "none selected" : "none yet: drag a box around a person") : `${view.id}${mine ? `, ${mine.label}${mine.ignore ? ", ignored" : ""}` : ", not in this frame"}`;
  const disparity = spot?.right_x ? `, disparity ${(spot.point[0] - spot.right_x).toFixed(2)} px` : "";
  of("fact-depth").textContent = view.proposal ? `not saved${disparity}` : one?.derived?.depth_m ? `${one.derived.depth_m.toFixed(2)} m${disparity}${mine?.point ? "" : ", as the data set says"}` : about.no_depth || (view.id === null ? "–" : "click on the person");
  of("fact-camera").textContent = metres(one?.derived?.camera_m);
  const error = mine ? state.unsure[view.id]?.[view.frame] : null;
  of("fact-world").textContent = about.posed ? `${metres(one?.derived?.world_m)}${error ? `; unsure: the export may be off by ${error.toFixed(2)} m` : ""}` : "no pose";
  of("undo").disabled = !state.undo;
  of("undo").title = state.undo ? `undo: ${state.undo.words}` : "";
  of("redo").disabled = !state.redo;
  of("redo").title = state.redo ? `redo: ${state.redo.words}` : "";
  ["edit-id", "edit-class", "edit-ignore"].forEach((id) => { of(id).disabled = !mine; });
  if (document.activeElement !== of("edit-id")) of("edit-id").value = view.id ?? "";
  if (mine) { of("edit-class").value = mine.label; of("edit-ignore").checked = Boolean(mine.ignore); }
  document.querySelectorAll("[data-target]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.target === target)));
  const body = of("objects").tBodies[0];
  body.replaceChildren(...ids().map((id) => {
    const cells = ofObject(id), row = document.createElement("tr");
    row.dataset.id = id;
    row.setAttribute("aria-selected", String(id === view.id));
    [id, cells[0].value.label, cells.length, cells.filter((each) => each.derived.depth_m).length, (state.jumps[id] ?? []).length || "", Object.keys(state.unsure[id] ?? {}).length || "", cells.some((each) => each.frame === view.frame) ? "yes" : ""]
      .forEach((text) => { row.insertCell().textContent = text; });
    row.addEventListener("click", () => choose(id, true));
    return row;
  }));
};
const go = async (frame) => {
  const wanted = Math.min(Math.max(frame, 0), state.frames.length - 1);
  if (wanted !== view.frame) { view.proposal = null; say(""); }
  view.frame = wanted;
  show();
  await showFrame();
  show();
};
const choose = (id, travel = false) => {
  view.id = id;
  view.proposal = null;
  say("");
  if (travel && id !== null && !cell(view.frame, id)?.value) go(ofObject(id)[0].frame);
  show();
};
const answered = ({ status, data }, again) => {
  if (status === 200) return true;
  if (status === 409 && data.version !== undefined && again) {
    refused = again;
    of("conflict-words").textContent = `Not saved: ${data.error}. This window now shows what it is.`;
    of("conflict").hidden = false;
  } else say(data.error);
  return false;
};
const change = async (words, edits, group) => answered(await edit(words, edits, group), () => edit(words, edits.map(({ frame, id, after }) => ({ frame, id, after })), group));
const put = (words, after, id = view.id) => change(words, [{ frame: view.frame, id, after }]);
const withPoint = (value, spot) => ({ ...value, point: spot.point, right_x: spot.right_x ?? undefined, depth_m: spot.depth_m ?? undefined, score: spot.score, fine: spot.fine ?? undefined, point_by: "hand" });
const withoutPoint = ({ point, right_x, depth_m, score, fine, point_by, ...rest }) => rest;

const setPoint = async (id, spot) => {
  if (id === null) { choose(null); say("Draw a box around the person first: drag over the image, or press n."); return; }
  if (id !== view.id) choose(id);
  const frame = view.frame, value = selected();
  say("");
  const found = await match(frame, spot[0], spot[1], value.box[3] - value.box[1]);
  if (frame !== view.frame) return;
  if (!found.why) { view.proposal = null; await put(`point on ${id}`, withPoint(value, found)); return; }
  view.proposal = found.usable ? found : null;
  say(`Not saved: ${found.why}.${found.usable ? " Correct the partner, or press Enter to take it." : ""}`);
  show();
};
const setPartner = async (right_x) => {
  const spot = pointNow(), value = selected(), frame = view.frame;
  if (!spot || !value || !state.frames[frame].stereo) return;
  const { score, fine } = await match(frame, spot.point[0], spot.point[1], value.box[3] - value.box[1], right_x);
  if (frame !== view.frame) return;
  view.proposal = null;
  say("");
  await put(`partner of ${view.id}`, withPoint(value, { ...spot, right_x, depth_m: undefined, score, fine }));
};
const nudge = (across, down) => {
  const value = selected(), spot = pointNow();
  if (!value) return null;
  if (target === "partner" && spot?.right_x) return setPartner(spot.right_x + across);
  if (target === "point" && spot) return setPoint(view.id, [spot.point[0] + across, spot.point[1] + down]);
  if (target === "box") return put(`moved ${view.id}`, { ...value, box: value.box.map((side, n) => side + (n % 2 ? down : across)), box_by: "hand" });
  if (target === "corner") return put(`resized ${view.id}`, { ...value, box: [value.box[0], value.box[1], value.box[2] + across, value.box[3] + down], box_by: "hand" });
  return null;
};
const newBox = async (box) => {
  // drawn where the selected object is missing, it is that object; else a new one
  const missing = view.id !== null && !selected() && ofObject(view.id).length;
  const id = missing ? view.id : freshId(), label = missing ? ofObject(id)[0].value.label : of("edit-class").value || state.classes[0];
  const after = { box: [Math.min(box[0], box[2]), Math.min(box[1], box[3]), Math.max(box[0], box[2]), Math.max(box[1], box[3])], label };
  if (await put(`box ${id}`, after, id)) choose(id);
};
const copyBox = () => {
  const away = (one) => Math.abs(one.frame - view.frame);
  const nearest = view.id === null || selected() ? null : ofObject(view.id).sort((a, b) => away(a) - away(b))[0];
  if (!nearest) { say("Select an object that is in another frame and not in this one."); return null; }
  return put(`copied ${view.id}`, { ...withoutPoint(nearest.value), row: undefined, box_by: "hand" });
};
const track = async (steps) => {
  if (!pointNow() || view.proposal) { say("Put a point on the selected object first; tracking starts there."); return; }
  const mine = (tracking += 1), id = view.id, start = view.frame, group = `track ${Date.now()}`, told = [];
  say("");
  for (const step of steps) {
    let frame = start;
    for (;;) {
      const from = frame, answer = await send("/track.json", () => ({ frame: from, id, step, group }));
      if (!answered(answer)) return;
      const { frame: reached, why } = answer.data.tracked;
      frame = reached;
      of("tracked").className = "";
      of("tracked").textContent = `tracking ${step > 0 ? "on" : "back"}: frame ${frame + 1}`;
      if (mine !== tracking || why) {
        const end = /is reached$|set by hand$/.test(why);
        if (why && !end) stops.set(`${id}:${frame}`, { why, next: frame + step }); else stops.delete(`${id}:${frame}`);
        told.push([why || "stopped by you", frame, end]);
        break;
      }
    }
    if (mine !== tracking) break;
  }
  const open = told.find(([, , end]) => !end);
  of("tracked").className = open ? "stopped" : "";
  of("tracked").textContent = told.map(([why, , end]) => (end ? why : `stopped: ${why}`)).join("; ");
  if (open) await go(open[1]); else show();
};
const undo = async (again) => {
  view.proposal = null;
  answered(await send("/undo.json", () => { const top = again ? state.redo : state.undo; return top && { top: top.version, again }; }));
};
const whole = async (body) => answered(await send("/object.json", () => ({ id: view.id, ...body })));
const remove = async (everywhere) => {
  if (view.id === null) return;
  if (everywhere) { if (await whole({ to: "delete" })) choose(null); } else if (selected()) await put(`deleted ${view.id}`, null);
};
const another = async (text) => {
  const id = Number(text);
  if (text.trim() && Number.isSafeInteger(id) && id !== view.id && await whole({ to: "id", new_id: id })) choose(id);
  else show();
};
const mark = (step) => {
  const all = marks(view.id), next = step > 0 ? all.find((frame) => frame > view.frame) : all.filter((frame) => frame < view.frame).pop();
  if (next === undefined) say("There is no jump and no stop there."); else go(next);
};
const neighbour = (step) => {
  const here = inFrame(view.frame).map((one) => one.id).sort((a, b) => a - b), all = here.length ? here : ids();
  if (all.length) choose(all[(all.indexOf(view.id) + step + all.length) % all.length] ?? all[0], true);
};
const zoom = (by) => { view.zoom = Math.min(Math.max(view.zoom * by, 1), 8); show(); };
const take = () => {
  const spot = view.proposal;
  if (!spot) return null;
  view.proposal = null;
  say("");
  return put(`point on ${view.id}`, withPoint(selected(), spot));
};
const middle = () => { const [w, h] = view.size; return newBox([w * 0.45, h * 0.35, w * 0.55, h * 0.7]); };
const point = () => { const value = selected(); return value && setPoint(view.id, [(value.box[0] + value.box[2]) / 2, value.box[1] + (value.box[3] - value.box[1]) / 3]); };
const ignored = () => { const value = selected(); return value && put(`${value.ignore ? "counted" : "ignored"} ${view.id}`, { ...value, ignore: !value.ignore }); };
const nextClass = () => { const value = selected(); return value && whole({ to: "label", label: state.classes[(state.classes.indexOf(value.label) + 1) % state.classes.length] }); };

// What changes something waits for the change before it: ten quick presses are ten steps.
let queue = Promise.resolve();
const inTurn = (act) => (...given) => { queue = queue.then(() => act(...given)).catch((error) => say(String(error))); return queue; };
const KEYS = {
  a: () => go(view.frame - 1), d: () => go(view.frame + 1), A: () => go(view.frame - 10), D: () => go(view.frame + 10),
  Home: () => go(0), End: () => go(state.frames.length - 1), "[": () => mark(-1), "]": () => mark(1), w: () => neighbour(-1), s: () => neighbour(1),
  p: inTurn(point), P: inTurn(() => selected()?.point && put(`no point on ${view.id}`, withoutPoint(selected()))), m: inTurn(() => pointNow() && setPoint(view.id, pointNow().point)),
  Enter: inTurn(take), f: () => track([1]), b: () => track([-1]), t: () => track([1, -1]), Escape: () => { tracking += 1; view.proposal = null; say(""); show(); },
  n: inTurn(middle), c: inTurn(copyBox), i: inTurn(ignored), k: inTurn(nextClass), r: () => { of("edit-id").focus(); of("edit-id").select(); },
  z: inTurn(() => undo(false)), Z: inTurn(() => undo(true)), "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0), "?": () => of("help").showModal(),
  ArrowLeft: inTurn((by) => nudge(-by, 0)), ArrowRight: inTurn((by) => nudge(by, 0)), ArrowUp: inTurn((by) => nudge(0, -by)), ArrowDown: inTurn((by) => nudge(0, by)),
};
const removed = inTurn(remove);
["partner", "point", "box", "corner"].forEach((name, n) => { KEYS[n + 1] = () => { target = name; show(); }; });
document.addEventListener("keydown", (event) => {
  if (of("help").open || event.altKey) return;
  const typed = event.target.matches("input:not([type=range]):not([type=checkbox]), select");
  const pressing = event.target.matches("button, summary, [type=checkbox]") && ["Enter", " "].includes(event.key);
  if (typed || pressing || (event.target.id === "frame" && /^(Arrow|Home|End)/.test(event.key))) return;
  if (event.ctrlKey || event.metaKey) {
    const again = event.key === "y" || (event.shiftKey && event.key.toLowerCase() === "z");
    if (!again && event.key !== "z") return;
    event.preventDefault();
    KEYS[again ? "Z" : "z"]();
    return;
  }
  if (event.key === "Delete" || event.key === "Backspace") { event.preventDefault(); removed(event.shiftKey); return; }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act(event.shiftKey ? 16 * NUDGE_PX : NUDGE_PX);
});
const press = (id, act) => of(id).addEventListener("click", act);
press("undo", KEYS.z); press("redo", KEYS.Z); press("help-open", () => of("help").showModal());
press("track-back", () => track([-1])); press("track-both", () => track([1, -1])); press("track-on", () => track([1]));
press("new-box", KEYS.n); press("copy-box", KEYS.c); press("delete-one", () => removed(false)); press("delete-all", () => removed(true));
press("theirs", () => { of("conflict").hidden = true; refused = null; });
press("mine", async () => { of("conflict").hidden = true; const again = refused; refused = null; if (again) answered(await again(), again); });
document.querySelectorAll("[data-target]").forEach((button) => button.addEventListener("click", () => { target = button.dataset.target; show(); }));
of("graph").addEventListener("click", (event) => go(frameAt(event)));
of("frame").addEventListener("input", () => go(Number(of("frame").value)));
of("log").addEventListener("change", () => { location.search = new URLSearchParams({ log: of("log").value }); });
of("edit").addEventListener("submit", (event) => { event.preventDefault(); of("left").focus(); });
of("edit-id").addEventListener("change", () => another(of("edit-id").value));
of("edit-class").addEventListener("change", () => { if (selected()) whole({ to: "label", label: of("edit-class").value }); });
of("edit-ignore").addEventListener("change", ignored);
window.addEventListener("resize", show);
listen({
  onPoint: inTurn(setPoint), onNew: inTurn(newBox), onPartner: inTurn(setPartner),
  onBox: inTurn((id, box) => put(`moved ${id}`, { ...selected(), box, box_by: "hand" })),
});
whenChanged(show);
whenSaved((words, fine) => {
  of("saved").textContent = words === "saving" ? "saving…" : fine ? `all saved, ${state.version} changes` : "not saved";
  if (words && words !== "saving" && !fine) say(words);
});
(async () => {
  const failed = await load();
  if (failed) { say(failed); return; }
  of("frame").max = state.frames.length - 1;
  of("saved").textContent = `all saved, ${state.version} changes`;
  const lacking = state.frames.find((one) => one.no_depth);
  if (lacking) say(lacking.no_depth);
  else if (state.frames.length === 1) say("This log has one frame: points can be put, there is nothing to track.");
  view.id = inFrame(0)[0]?.id ?? ids()[0] ?? null;
  await go(0);
  of("left").dataset.ready = "1";
  setInterval(() => { if (!document.hidden) sync(); }, POLL_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) sync(); });
})();
