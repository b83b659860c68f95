// What the server says of a log, and the only way to change it. Nothing counts before the server has it.
export const state = { log: document.body.dataset.log, version: 0, frames: [], classes: [], cells: new Map(), jumps: {}, unsure: {}, undo: null, redo: null };
export const key = (frame, id) => `${frame}:${id}`;
export const cell = (frame, id) => state.cells.get(key(frame, id));
export const inFrame = (frame) => [...state.cells.values()].filter((one) => one.frame === frame && one.value);
export const ofObject = (id) => [...state.cells.values()].filter((one) => one.id === id && one.value).sort((a, b) => a.frame - b.frame);
export const ids = () => [...new Set([...state.cells.values()].filter((one) => one.value).map((one) => one.id))].sort((a, b) => a - b);
export const freshId = () => Math.max(0, ...[...state.cells.values()].map((one) => one.id)) + 1;

let changed = () => {}, saved = () => {};
export const whenChanged = (act) => { changed = act; };
export const whenSaved = (act) => { saved = act; };

const take = (answer) => {
  if (answer.version === undefined) return;
  answer.annotations.forEach((one) => state.cells.set(key(one.frame, one.id), one));
  Object.entries(answer.jumps).forEach(([id, jumps]) => { state.jumps[id] = jumps; });
  Object.entries(answer.unsure).forEach(([id, errors]) => { state.unsure[id] = errors; });
  Object.assign(state, { version: Math.max(state.version, answer.version), undo: answer.undo, redo: answer.redo });
};
const asked = async (path, body) => {
  try {
    const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, options || {});
    return { status: answer.status, data: await answer.json() };
  } catch {
    return { status: 0, data: { error: "The server does not answer; nothing was saved since. Start adverse annotate again, and go on here." } };
  }
};
export const load = async () => {
  const { status, data } = await asked(`/log.json?${new URLSearchParams({ log: state.log })}`);
  if (status !== 200) return data.error;
  Object.assign(state, { frames: data.frames, classes: data.classes });
  take(data);
  return "";
};
export const sync = async () => {
  const { status, data } = await asked(`/sync.json?${new URLSearchParams({ log: state.log, since: state.version })}`);
  if (status !== 200) { saved(data.error, false); return; }
  const news = data.version > state.version;
  take(data);
  saved("", true);
  if (news) changed();
};
// One change after the other: each is based on what the one before made of the log.
let last = Promise.resolve();
export const send = (path, makeBody) => {
  const mine = last.then(async () => {
    const body = makeBody();
    if (!body) return { status: 200, data: {} };
    saved("saving", true);
    const answer = await asked(path, { log: state.log, since: state.version, ...body });
    take(answer.data);
    saved(answer.status === 200 ? "" : answer.data.error, answer.status === 200);
    changed();
    return answer;
  });
  last = mine.catch(() => {});
  return mine;
};
export const edit = (words, edits, group = "") => send("/change.json", () => ({
  words, group,
  edits: edits.map(({ frame, id, after, version }) => ({ frame, id, after, version: version ?? cell(frame, id)?.version ?? 0 })),
}));
export const match = async (frame, x, y, height, right_x) => (await asked(`/match.json?${new URLSearchParams({ log: state.log, frame, x, y, height, ...(right_x === undefined ? {} : { right_x }) })}`)).data;
