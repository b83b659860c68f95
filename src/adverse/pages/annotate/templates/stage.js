// The images with what is drawn over them, and what the pointer does to it.
import { cell, inFrame, state } from "/assets/state.js";

const NS = "http://www.w3.org/2000/svg";
export const of = (id) => document.getElementById(id);
export const make = (parent, name, attributes, text) => {
  const element = document.createElementNS(NS, name);
  Object.entries(attributes).forEach(([attribute, value]) => element.setAttribute(attribute, value));
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};
export const url = (frame, side) => `/image.png?${new URLSearchParams({ log: state.log, frame, side })}`;
const LENS = [28, 21], CLICK_PX = 4;
export const view = { frame: 0, id: null, size: null, zoom: 1, proposal: null, drawn: null };

const images = new Map();
export const loaded = (address) => {
  if (!images.has(address)) {
    if (images.size > 60) images.delete(images.keys().next().value);
    images.set(address, new Promise((done) => {
      const image = new Image();
      image.onload = () => done(image);
      image.onerror = () => done(null);
      image.src = address;
    }));
  }
  return images.get(address);
};
const layer = (svg, name) => svg.querySelector(`.${name}`) ?? make(svg, "g", { class: name });
const picture = (svg, address, size) => {
  const group = layer(svg, "picture"), image = group.querySelector("image") ?? make(group, "image", {});
  if (address) { image.setAttribute("href", address); image.setAttribute("width", size[0]); image.setAttribute("height", size[1]); } else image.removeAttribute("href");
};
const cross = (group, x, y, arm, unsure) => {
  ["cross under", `cross${unsure ? " unsure" : ""}`].forEach((name) => make(group, "path", { class: name, d: `M${x - arm} ${y}H${x - arm / 4}M${x + arm / 4} ${y}H${x + arm}M${x} ${y - arm}V${y - arm / 4}M${x} ${y + arm / 4}V${y + arm}` }));
};
export const selected = () => (view.id === null ? undefined : cell(view.frame, view.id)?.value ?? undefined);
export const pointNow = () => view.proposal ?? (selected()?.point ? selected() : null);

const shownBox = () => {
  const [width, height] = view.size, box = selected()?.box;
  const wide = width / view.zoom, high = height / view.zoom;
  const middle = view.zoom > 1 && box ? [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2] : [width / 2, height / 2];
  const x = Math.min(Math.max(middle[0] - wide / 2, 0), width - wide), y = Math.min(Math.max(middle[1] - high / 2, 0), height - high);
  return [x, y, wide, high];
};
export const draw = () => {
  if (!view.size) return;
  const left = of("left"), spot = pointNow(), stereo = state.frames[view.frame].stereo;
  const unit = view.size[0] / view.zoom / 640;
  left.setAttribute("viewBox", shownBox().join(" "));
  const over = layer(left, "over");
  over.replaceChildren();
  inFrame(view.frame).sort((a, b) => (a.id === view.id) - (b.id === view.id)).forEach((one) => {
    const [x0, y0, x1, y1] = view.drawn?.id === one.id ? view.drawn.box : one.value.box;
    const mine = one.id === view.id, place = { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
    const group = make(over, "g", { class: `box ${one.value.box_by}${one.value.ignore ? " ignored" : ""}${mine ? " selected" : ""}`, "data-id": one.id });
    make(group, "rect", { class: "halo", ...place });
    make(group, "rect", { class: "line", ...place });
    make(group, "text", { x: x0, y: Math.max(y0 - 3 * unit, 12 * unit), "font-size": 12 * unit }, `${one.id} ${one.value.label}${one.derived.depth_m ? ` ${one.derived.depth_m.toFixed(1)} m` : ""}`);
    if (mine) [[x0, y0], [x1, y0], [x0, y1], [x1, y1]].forEach(([x, y], n) => make(group, "rect", { class: `grip n${n}`, "data-grip": n, x: x - 3.5 * unit, y: y - 3.5 * unit, width: 7 * unit, height: 7 * unit }));
  });
  if (view.drawn && view.drawn.id === undefined) {
    const [x0, y0, x1, y1] = view.drawn.box;
    make(over, "rect", { class: "drawn", x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) });
  }
  if (spot) cross(over, spot.point[0], spot.point[1], 9 * unit, view.proposal);
  const right = of("right"), beside = layer(right, "over");
  right.setAttribute("viewBox", `0 0 ${view.size.join(" ")}`);
  beside.replaceChildren();
  if (spot && stereo) {
    make(beside, "line", { class: "row", x1: 0, x2: view.size[0], y1: spot.point[1], y2: spot.point[1] });
    if (spot.right_x !== undefined && spot.right_x !== null) cross(beside, spot.right_x, spot.point[1], 16, view.proposal);
  }
  [["lens-left", spot?.point[0]], ["lens-right", spot?.right_x]].forEach(([id, x]) => {
    const lens = of(id), group = layer(lens, "over");
    group.replaceChildren();
    if (!spot || x === undefined || x === null) { lens.setAttribute("viewBox", "0 0 0 0"); return; }
    const y = spot.point[1];
    lens.setAttribute("viewBox", `${x - LENS[0] / 2} ${y - LENS[1] / 2} ${LENS[0]} ${LENS[1]}`);
    cross(group, x, y, 5, view.proposal);
  });
};
export const showFrame = async () => {
  const frame = view.frame, about = state.frames[frame];
  const [left, right] = await Promise.all([loaded(url(frame, "left")), about.right ? loaded(url(frame, "right")) : null]);
  if (frame !== view.frame) return;
  if (left) view.size = [left.naturalWidth, left.naturalHeight];
  view.size ??= [640, 480];
  picture(of("left"), left && url(frame, "left"), view.size);
  picture(of("lens-left"), left && url(frame, "left"), view.size);
  const size = right ? [right.naturalWidth, right.naturalHeight] : view.size;
  ["right", "lens-right"].forEach((id) => picture(of(id), right && url(frame, "right"), size));
  of("right").classList.toggle("empty", !right);
  of("left").dataset.frame = frame;
  draw();
  [1, -1].forEach((step) => { if (state.frames[frame + step]) loaded(url(frame + step, "left")); });
};
export const at = (svg, event) => {
  const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [spot.x, spot.y];
};
const under = ([x, y]) => inFrame(view.frame).filter(({ value: { box } }) => x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3])
  .sort((a, b) => (b.id === view.id) - (a.id === view.id) || size(a.value.box) - size(b.value.box))[0];
const size = (box) => (box[2] - box[0]) * (box[3] - box[1]);

// A click puts the point; a drag moves a grip, the point or the selected box, or else draws a new one.
export const listen = ({ onPoint, onBox, onNew, onPartner }) => {
  const left = of("left");
  let drag = null;
  left.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !view.size) return;
    left.setPointerCapture(event.pointerId);
    const spot = at(left, event), mine = selected(), unit = view.size[0] / view.zoom / 640, point = pointNow()?.point;
    const grip = event.target.dataset?.grip;
    const nearPoint = point && Math.hypot(spot[0] - point[0], spot[1] - point[1]) < 6 * unit;
    const inside = mine && under(spot)?.id === view.id;
    drag = { start: spot, screen: [event.clientX, event.clientY], moved: false, what: grip !== undefined ? Number(grip) : nearPoint ? "point" : inside ? "box" : "new", box: mine && [...mine.box] };
  });
  left.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.moved ||= Math.hypot(event.clientX - drag.screen[0], event.clientY - drag.screen[1]) > CLICK_PX;
    if (!drag.moved) return;
    const spot = at(left, event), by = [spot[0] - drag.start[0], spot[1] - drag.start[1]], box = drag.box && [...drag.box];
    if (drag.what === "new") view.drawn = { box: [...drag.start, ...spot] };
    else if (drag.what === "box") view.drawn = { id: view.id, box: [box[0] + by[0], box[1] + by[1], box[2] + by[0], box[3] + by[1]] };
    else if (drag.what !== "point") {
      box[drag.what % 2 ? 2 : 0] += by[0];
      box[drag.what > 1 ? 3 : 1] += by[1];
      view.drawn = { id: view.id, box: [Math.min(box[0], box[2]), Math.min(box[1], box[3]), Math.max(box[0], box[2]), Math.max(box[1], box[3])] };
    }
    draw();
  });
  left.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { moved, what } = drag, spot = at(left, event), drawn = view.drawn;
    drag = null;
    view.drawn = null;
    if (!moved || what === "point") {
      const one = what === "point" ? { id: view.id } : under(spot);
      onPoint(one ? one.id : null, spot);
    } else if (what === "new") onNew(drawn.box);
    else onBox(view.id, drawn.box);
  });
  left.addEventListener("pointercancel", () => { drag = null; view.drawn = null; draw(); });
  const lens = of("lens-right");
  let held = false;
  lens.addEventListener("pointerdown", (event) => { held = true; lens.setPointerCapture(event.pointerId); });
  lens.addEventListener("pointerup", (event) => { if (held) { held = false; onPartner(at(lens, event)[0]); } });
  of("right").addEventListener("click", (event) => onPartner(at(of("right"), event)[0]));
};
