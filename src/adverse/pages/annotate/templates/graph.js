// Depth over the log: the selected object as a line, the others as dots, jumps and the tracker's stops marked.
import { cell, ids, ofObject, state } from "/assets/state.js";
import { make, of, view } from "/assets/stage.js";

const EDGE = { left: 46, right: 12, top: 16, bottom: 20 };
const THUMB = 16; // width of the slider's thumb
export const stops = new Map(); // where the tracker stopped, why, and which frame it did not reach, by "id:frame"
const openStops = (id) => [...stops].map(([name, stop]) => [...name.split(":").map(Number), stop]).filter(([mine, , { next }]) => mine === id && !cell(next, id)?.value?.point);
export const marks = (id) => [...(state.jumps[id] ?? []).map(([frame]) => frame), ...openStops(id).map(([, frame]) => frame)].sort((a, b) => a - b);

const nice = (most) => [1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => most / step <= 5) ?? 1000;
let width = 1000;
const xOf = (frame) => EDGE.left + (frame + 0.5) / state.frames.length * (width - EDGE.left - EDGE.right);

export const drawGraph = () => {
  const svg = of("graph"), height = 176;
  width = Math.max(svg.clientWidth, 300);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const slider = of("frame"), first = xOf(0), last = xOf(state.frames.length - 1); // its thumb stands below the line
  slider.style.marginLeft = `${first - THUMB / 2}px`;
  slider.style.width = `${last - first + THUMB}px`;
  const all = ids().map((id) => [id, ofObject(id).filter((one) => one.derived.depth_m)]);
  const most = Math.max(5, ...all.flatMap(([, cells]) => cells.map((one) => one.derived.depth_m))) * 1.08;
  const y = (depth) => height - EDGE.bottom - Math.min(depth, most) / most * (height - EDGE.top - EDGE.bottom);
  for (let depth = 0; depth <= most; depth += nice(most)) {
    make(svg, "line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: y(depth), y2: y(depth) });
    make(svg, "text", { x: EDGE.left - 6, y: y(depth) + 4, "text-anchor": "end" }, `${depth} m`);
  }
  const every = Math.max(1, Math.ceil(state.frames.length / 20 / 5) * 5);
  for (let frame = 0; frame < state.frames.length; frame += every) make(svg, "text", { x: xOf(frame), y: height - 5, "text-anchor": "middle" }, String(frame + 1));
  make(svg, "text", { x: EDGE.left, y: 11 }, view.id === null ? "depth of all objects; select one to see its line" : `depth of object ${view.id} over the log${Object.keys(state.unsure[view.id] ?? {}).length ? "; upright bars: may be off by more than 0.10 m" : ""}`);
  all.filter(([id]) => id !== view.id).forEach(([, cells]) => cells.forEach((one) => make(svg, "circle", { class: "other", r: 2, cx: xOf(one.frame), cy: y(one.derived.depth_m) })));
  const mine = all.find(([id]) => id === view.id)?.[1] ?? [];
  mine.slice(1).forEach((one, n) => {
    const before = mine[n], jump = (state.jumps[view.id] ?? []).find(([frame]) => frame === one.frame);
    const line = make(svg, "line", { class: jump ? "jump" : "line", x1: xOf(before.frame), y1: y(before.derived.depth_m), x2: xOf(one.frame), y2: y(one.derived.depth_m) });
    if (jump) {
      make(line, "title", {}, jump[1]);
      const x = xOf(one.frame), at = y(one.derived.depth_m) - 9;
      make(make(svg, "path", { class: "jump-mark", d: `M${x - 6} ${at - 10}h12l-6 10z` }), "title", {}, `jump: ${jump[1]}`);
    }
  });
  mine.forEach((one) => {
    const error = state.unsure[view.id]?.[one.frame];
    if (error) make(make(svg, "line", { class: "unsure", x1: xOf(one.frame), x2: xOf(one.frame), y1: y(one.derived.depth_m) - 7, y2: y(one.derived.depth_m) + 7 }), "title", {}, `frame ${one.frame + 1}: may be off by ${error.toFixed(2)} m`);
  });
  mine.forEach((one) => make(svg, "circle", { class: `dot${one.value.point_by === "hand" && one.value.point ? " hand" : ""}`, r: one.value.point_by === "hand" && one.value.point ? 4 : 2.5, cx: xOf(one.frame), cy: y(one.derived.depth_m) }));
  openStops(view.id).forEach(([, frame, { why }]) => make(make(svg, "rect", { class: "stop", x: xOf(frame) - 5, y: EDGE.top, width: 10, height: 10 }), "title", {}, `the tracker stopped: ${why}`));
  make(svg, "line", { class: "now", x1: xOf(view.frame), x2: xOf(view.frame), y1: EDGE.top - 4, y2: height - EDGE.bottom });
};
export const frameAt = (event) => {
  const box = of("graph").getBoundingClientRect(), x = (event.clientX - box.left) / box.width * width;
  const frame = Math.floor((x - EDGE.left) / (width - EDGE.left - EDGE.right) * state.frames.length);
  return Math.min(Math.max(frame, 0), state.frames.length - 1);
};
