// The server of an exported page, in a worker: a game, its player and its board. The requests are those of web/app.py.

const YOU = "you", RANDOM = "random", MIN_SHARE = 0.0005, MAX_LISTED = 40;  // as in web/hints.py and web/session.py

let data = null, machine = null, loaded = null;
let positions = [], log = [], seats = [], search = null;

/** A number in few characters, as in core/text.py. */
const short = (value) => (Math.abs(value) >= 10 ? Math.round(value).toLocaleString("en") : (Number(value.toFixed(2)) || 0).toFixed(2));

/** Bytes that were compressed and written as text. */
async function unpacked(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** All words of 32 bits, from those that are not 0: see page.py. */
function spread(packed, size) {
  const bytes = new Uint8Array(size), first = size >>> 5, count = (packed.length - first) >>> 2;
  for (let word = 0, at = first; 4 * word < size; word += 1) {
    if (!(packed[word >> 3] >> (word & 7) & 1)) continue;
    for (let byte = 0; byte < 4; byte += 1) bytes[4 * word + byte] = packed[at + byte * count];
    at += 1;
  }
  return bytes;
}

async function load({ about, code, numbers }) {
  data = about;
  const module = await WebAssembly.compile(await unpacked(code));
  machine = startMachine({ code: module, data: spread(await unpacked(numbers), data.size), layout: data.layout });
  crypto.getRandomValues(machine.read("rng", Uint8Array, 8));
}

// Positions

const enter = (position) => machine.read("words", BigInt64Array, data.start.length).set(position.words);

/** The marks of the cells, which are stored as the seat to move sees them. */
function marksFor(seat) {
  const values = [...machine.read("cells", Float32Array, data.about.look.places.length)];
  const seen = seat && data.second ? data.second.map((cell) => values[cell]) : values;
  return seen.map((value) => data.marks[seat && value ? 3 - value : value]);
}

/** The position of the machine, with what else is known of it. */
function present(more) {
  const words = machine.read("words", BigInt64Array, data.start.length).slice();
  machine.ask("look");
  const legal = [...machine.read("legal", Uint8Array, data.actions)].flatMap((is, action) => (is ? [action] : []));
  return { words, legal, marks: marksFor(more.seat), ...more };
}

/** The cells that a person clicks to choose an action. */
function cellsOf({ seat, marks }, action) {
  if (data.about.is_hidden) return data.cells[seat][action].filter((cell) => marks[cell] === ".");  // those that are new
  if (!data.about.by_column) return data.cells[seat][action];
  const column = marks.flatMap((mark, cell) => (cell % data.about.columns === action && mark === "." ? [cell] : []));
  return column.slice(-1);
}

/** The name of an action, which may tell that it captures. */
function nameOf(position, action) {
  const { seat, marks } = position;
  if (data.about.is_hidden) return cellsOf(position, action).map((cell) => data.about.look.names[cell]).join(" ");
  const target = data.cells[seat][action].at(-1), captures = target !== undefined && marks[target] !== ".";
  return data.names[Number(captures)][seat][action];
}

function restart() {
  machine.read("words", BigInt64Array, data.start.length).set(data.start.map(BigInt));
  for (let tile = 0; tile < data.startChance; tile += 1) machine.ask("chance");
  positions = [present({ seat: 0, turns: 0, score: 0, isOver: false, changed: [] })];
  log = [];
}

function play(action) {
  const before = positions.at(-1), { seat } = before;
  log.push({ move: nameOf(before, action), seat: seat + 1, isYours: seats[seat] === YOU });
  enter(before);
  let isOver = Boolean(machine.ask("play", action)), shown = before.marks;
  const points = machine.read("points", Float32Array, 1)[0] * (seat ? -1 : 1);
  if (data.hasChance) {
    shown = present({ seat }).marks;
    isOver = Boolean(machine.ask("chance"));
  }
  const more = { turns: before.turns + 1, score: before.score + points, isOver };
  const after = present({ seat: (seat + 1) % seats.length, ...more });
  after.changed = after.marks.flatMap((mark, cell) => (mark === shown[cell] ? [] : [cell]));
  positions.push(after);
}

/** Play a move by its name. */
function playNamed(name) {
  const now = positions.at(-1), plain = (text) => text.toUpperCase().replace(/(?<=\d)X(?=[A-Z])/, "");
  const action = now.isOver ? undefined : now.legal.find((each) => plain(nameOf(now, each)) === plain(name));
  if (action === undefined) throw new Error(`${name} is not a legal move`);
  play(action);
}

function reply() {
  const now = positions.at(-1);
  if (now.isOver || seats[now.seat] === YOU) return;
  enter(now);
  if (seats[now.seat] === RANDOM) play(now.legal[Math.floor(Math.random() * now.legal.length)]);
  else play(machine.ask(search ? "search" : "policy", now.seat));
}

function undo() {
  const last = log.findLastIndex((move) => move.isYours);
  if (last < 0) return;
  positions.length = last + 1;
  log.length = last;
}

// What is shown

const drawn = ({ marks, changed }, hints = {}) => [{ title: "", legend: data.legend, looks: data.looks, marks, chosen: changed, hints }];

function view(ply = positions.length - 1) {
  const last = positions.length - 1, at = Math.min(ply, last), now = positions[at];
  const isYours = at === last && !now.isOver && seats[now.seat] === YOU;
  const line = (end) => (data.startChance ? null : log.slice(0, end).map(({ move }) => move).join(" "));
  return {
    seats, search, log, ply: at, plies: last, history: "", text: "", boards: drawn(now), hints: data.hints,
    seat: now.seat, turns: now.turns, scores: seats.length > 1 ? [now.score, -now.score] : [now.score],
    turn: now.isOver ? "over" : isYours ? "you" : "player",
    moves: isYours ? now.legal.map((action) => ({ move: nameOf(now, action), cells: cellsOf(now, action) })) : [],
    undo: log.some((move) => move.isYours) && !data.about.is_hidden, position: line(at), present: line(last),
  };
}

/** What the player thinks of the moves: probabilities, shares of visits, or values. */
function hint(kind, ply = positions.length - 1) {
  const now = positions[Math.min(ply, positions.length - 1)];
  if (now.isOver) return { boards: [], summary: "", moves: [] };
  enter(now);
  machine.ask(kind, now.seat);
  const scores = machine.read("scores", Float32Array, data.actions), value = machine.read("value", Float32Array, 1)[0];
  const isShare = data.shares[kind], all = now.legal.map((action) => scores[action]), overlay = [];
  const low = Math.min(...all), range = Math.max(...all) - low;
  const moves = now.legal.map((action) => {
    const score = scores[action], share = isShare ? score : range ? (score - low) / range : 1;
    return { action, move: nameOf(now, action), share, text: isShare ? `${(100 * score).toFixed(1)}%` : short(score) };
  }).sort((one, other) => other.share - one.share);
  for (const { action, share, text } of moves) {
    for (const cell of cellsOf(now, action)) {
      const sum = Math.min(share + (isShare ? overlay[cell]?.[0] ?? 0 : 0), 1);
      const label = isShare ? (sum >= 0.005 ? (100 * sum).toFixed(0) : "") : text;
      if (isShare || !overlay[cell]) overlay[cell] = [sum, label];
    }
  }
  const who = `${data.agent}${kind === "search" ? `+${data.search}` : ""}`;
  return {
    boards: drawn(now, overlay),
    summary: Number.isNaN(value) ? who : `${who} expects a return of ${short(value)}`,
    moves: moves.filter(({ share }) => !isShare || share >= MIN_SHARE).slice(0, MAX_LISTED),
    value: data.about.goal !== "outcome" || Number.isNaN(value) ? null : value * (now.seat ? -1 : 1),
  };
}

// Requests

/** The players in the seats that a person asks for, by their names or as the number of the person's seat. */
function sit(wanted, newSearch) {
  const names = wanted?.length ? wanted : data.seats;
  seats = names.length === 1 && data.seats.length === 2 ? (names[0] === "2" ? [data.agent, YOU] : [YOU, data.agent]) : names;
  for (const name of seats) if (!data.about.players.includes(name)) throw new Error(`no player is called ${name}`);
  if (seats.length !== data.seats.length) throw new Error(`${data.about.title} has ${data.seats.length} seats`);
  search = newSearch || null;
}

function openGame({ seats: wanted, search: newSearch, position }) {
  sit(wanted, newSearch);
  restart();
  for (const name of (position ?? "").split(/[\s,]+/).filter(Boolean)) playNamed(name);
  return { id: "1", about: data.about, ...view() };
}

function act({ do: what, kind, ply, move, seats: wanted, search: newSearch }) {
  if (what === "hint") return hint(kind, ply);
  if (what === "move") playNamed(move);
  if (what === "undo") undo();
  if (what === "sit") sit(wanted, newSearch);
  if (what === "reply" && ply === positions.length - 1) reply();
  return view(what === "view" ? ply : undefined);
}

async function answer(path, body) {
  await loaded;
  if (path === "api/games") return { games: { [data.about.game]: data.about.title } };
  return path === "api/sessions" ? openGame(body) : act(body);
}

onmessage = async ({ data: { agent, id, path, body } }) => {
  if (agent) loaded = load(agent).catch(({ message }) => { throw new Error(`This browser cannot run the page: ${message}`); });
  else postMessage(await answer(path, body).then((result) => ({ id, answer: result }), (error) => ({ id, error: error.message })));
};
