// One game at a time: what the server sends is shown, and what a person does is sent back.
"use strict";

const $ = (id) => document.getElementById(id);
const make = (tag, textContent, more = {}) => Object.assign(document.createElement(tag), { textContent, ...more });
const ARROWS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const SIGNS = { up: "↑", down: "↓", left: "←", right: "→" };
const WATCH_DELAY = 600, REPLY_DELAY = 150;  // milliseconds before a player's move
const MAX_LISTED = 300;  // moves that are listed; the buttons reach the others, too

let game = null;       // what the server said about the game, with the key of this one
let view = null;       // the position that is shown
let chosen = [];       // cells of a move that were clicked so far
let hints = "";        // the kind of hints that are shown; "" for none
let advice = null;     // the last hint
let isPaused = false, isMoving = false, fromLink = false;
let era = 0;           // grows with every action; an answer to an earlier one is dropped

// The server

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const result = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(result.error), { status: answer.status });
  return result;
}

/** Ask the server and show its answer, unless something else was done since; whether it was shown. */
async function ask(request, shown) {
  const mine = ++era;
  document.body.dataset.asks = mine;
  try {
    const answer = await request();
    if (mine !== era) return false;
    $("error").textContent = "";
    await shown(answer);
    if (mine === era) delete document.body.dataset.asks;
    return true;
  } catch (error) {
    if (mine !== era) return false;
    isMoving = false;
    delete document.body.dataset.asks;
    document.body.classList.remove("is-waiting");
    $("error").textContent = error.message || "the server does not answer";
    if (!view) $("status").textContent = "No game: choose another one";
    if (error.status === 404 && game) open(settings(), "The server had forgotten this game; it goes on from here.");
    if (error.status === 409) setTimeout(() => mine === era && act({ do: "view" }), 500);
    return false;
  }
}

/** Start a game: from the settings of an address, or of the controls. */
function open(parts, note = "") {
  document.body.classList.add("is-waiting");
  return ask(() => post("/api/sessions", parts), (answer) => {
    game = { ...answer.about, id: answer.id };
    isPaused = false;
    fromLink = Boolean(parts.position);
    document.title = `${game.game} – rlgames`;
    $("rules").textContent = game.rules ? game.rules[0].toUpperCase() + game.rules.slice(1) + "." : "";
    $("error").textContent = note;
    return show(answer);
  });
}

const act = (body, shown = show) =>
  view && ask(() => post(`/api/sessions/${game.id}`, body), shown);

/** What would start this position again. */
function settings(changes = {}) {
  if (!view) return { game: $("game").value, fleet: "hand", ...changes };  // a game that did not open
  const position = view && (view.plies || fromLink) ? view.position : null;
  return { game: game.game, seats: view.seats, search: view.search, position, fleet: "hand", ...changes };
}

// What is shown

async function show(next) {
  view = next;
  chosen = [];
  advice = null;
  isMoving = false;
  if (hints && !(hints in view.hints)) hints = "";
  draw();
  const isWatched = !view.seats.includes("you");
  if (view.turn === "player" && view.ply === view.plies && !(isWatched && isPaused)) {
    document.body.classList.add("is-waiting");
    if (isWatched && hints && !await hint()) return;
    const mine = era;
    await new Promise((wake) => setTimeout(wake, isWatched ? WATCH_DELAY : REPLY_DELAY));
    if (mine === era) await act({ do: "reply" });
  } else {
    document.body.classList.remove("is-waiting");
    if (hints) await hint();
  }
}

const hint = () => act({ do: "hint", kind: hints, ply: view.ply }, (answer) => {
  advice = answer;
  drawBoards(answer.boards.length ? answer.boards : view.boards);
  drawMoves();
  drawAdvice();
  drawLog();
});

function draw() {
  $("status").textContent = view.status;
  document.body.dataset.turn = view.turn;
  drawBoards(view.boards);
  $("text").hidden = !view.text;
  $("text").textContent = view.text;
  $("history").textContent = view.history;
  drawMoves();
  drawSetup();
  drawAdvice();
  drawLog();
  const isOver = view.turn === "over";
  $("new").classList.toggle("primary", isOver);
  $("undo").disabled = !view.undo || view.turn === "player";
  $("undo").title = game.is_hidden ? "No move can be taken back: the answer has told you something" : "";
  $("swap").hidden = new Set(view.seats).size < 2;
  $("random").hidden = view.turn !== "place";
  $("pause").hidden = view.seats.includes("you") || isOver;
  $("pause").textContent = isPaused ? "Continue" : "Pause";
  updateAddress();
}

function drawBoards(boards) {
  const active = document.activeElement?.closest?.(".cell")?.dataset.cell;
  $("boards").replaceChildren(...boards.map((board, number) => {
    const figure = make("figure", "", { className: "board" });
    figure.innerHTML = board.svg;  // the server escapes all text in it
    const words = [board.title, board.legend].filter(Boolean).join(" · ");
    if (words) figure.append(make("figcaption", words));
    const svg = figure.firstElementChild, moves = number ? [] : view.moves.filter((move) => move.cells.length);
    svg.setAttribute("role", moves.length ? "group" : "img");
    let first = true;
    for (const cell of svg.querySelectorAll(".cell")) {
      const at = Number(cell.dataset.cell), own = moves.filter((move) => fits(move, at));
      if (!own.length) continue;
      cell.classList.add("open");
      if (!own.some((move) => move.cells.includes(at))) continue;
      const mark = cell.dataset.mark, name = own.length === 1 ? own[0].move : cell.dataset.name;
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", mark === "." ? name : `${name} ${mark}`);
      cell.setAttribute("tabindex", first ? "0" : "-1");
      first = false;
    }
    return figure;
  }));
  markCells();
  if (active !== undefined) focusCell(Number(active));
}

/** Whether a click on a cell can be a part of a move. */
const fits = (move, cell) => game.by_column
  ? move.cells[0] % game.columns === cell % game.columns
  : move.cells.includes(cell);

function markCells() {
  const fitting = view.moves.filter((move) => chosen.every((cell) => move.cells.includes(cell)));
  const targets = new Set(chosen.length ? fitting.flatMap((move) => move.cells) : []);
  for (const cell of $("boards").querySelectorAll(".cell.open")) {
    const at = Number(cell.dataset.cell);
    cell.classList.toggle("picked", chosen.includes(at));
    cell.classList.toggle("target", targets.has(at) && !chosen.includes(at));
    if (cell.hasAttribute("role")) cell.setAttribute("aria-pressed", String(chosen.includes(at)));
  }
}

/** Buttons for moves that have no cells, or that a choice of cells leaves open. */
function drawMoves(moves = view.moves.filter((move) => !move.cells.length)) {
  const shares = new Map((advice?.moves ?? []).map((move) => [move.move, move.text]));
  $("moves").replaceChildren(...moves.map(({ move }) => {
    const text = [SIGNS[move], move, shares.get(move)].filter(Boolean).join(" ");
    const button = make("button", text, { type: "button" });
    button.dataset.move = move;
    return button;
  }));
}

function fill(select, names, value, label = (name) => name) {
  select.replaceChildren(...names.map((name) => new Option(label(name), name, false, name === value)));
}

function drawSetup() {
  $("game").value = game.game;
  if ($("seats").children.length !== view.seats.length) {
    $("seats").replaceChildren(...view.seats.map((_, number) => {
      const label = make("label", view.seats.length > 1 ? `Seat ${number + 1} ` : "Player ");
      label.append(make("select"));
      return label;
    }));
  }
  // The closed control shows a name; the list shows how strong the others are.
  [...$("seats").querySelectorAll("select")].forEach((select, number) =>
    fill(select, [...new Set([...game.players, view.seats[number]])], view.seats[number], (name) =>
      name === view.seats[number] || !game.strengths[name] ? name : `${name}: ${game.strengths[name]}`));
  $("strength").textContent = [...new Set(view.seats)].filter((name) => game.strengths[name])
    .map((name) => `${name} ${game.strengths[name]}.`).join(" ");
  fill($("search"), ["", ...game.searches], view.search ?? "", (name) => name || "none");
  $("search-label").hidden = !game.searches.length;
  $("hints").hidden = !Object.keys(view.hints).length;
  const kinds = Object.entries({ "": "Off", ...view.hints });
  if ($("kinds").dataset.shown !== kinds.join()) {
    $("kinds").dataset.shown = kinds.join();
    $("kinds").replaceChildren(...kinds.map(([kind, name]) => {
      const label = make("label");
      label.append(make("input", "", { type: "radio", name: "hints", value: kind }), make("span", name));
      return label;
    }));
  }
  $("kinds").querySelector(`[value="${hints}"]`).checked = true;
}

function drawAdvice() {
  $("summary").textContent = advice?.summary ?? (hints && view.turn !== "over" ? "…" : "");
  $("advice").replaceChildren(...(advice?.moves ?? []).map(({ move, share, text }) => {
    const item = make("li"), bar = make("meter", "", { value: share });
    bar.setAttribute("aria-label", `${move}: ${text}`);
    item.append(make("span", move), bar, make("span", text));
    return item;
  }));
}

function drawLog() {
  const judged = advice?.judged ?? [], start = Math.max(0, view.log.length - MAX_LISTED);
  $("log").replaceChildren(...view.log.slice(start).map(({ move, seat }, row) => {
    const ply = start + row;
    const item = make("li", "", { className: view.seats.length > 1 ? `seat${seat}` : "" });
    const button = make("button", "", { type: "button" }), text = judged[ply]?.text;
    button.dataset.ply = ply;
    button.append(make("small", `${ply + 1}. `), make("b", move));
    if (text) button.append(make("small", ` ${text}`));
    if (ply === view.ply && view.ply < view.plies) button.setAttribute("aria-current", "step");
    item.append(button);
    return item;
  }));
  if (view.ply === view.plies) $("log").scrollTop = $("log").scrollHeight;
  $("first").disabled = $("back").disabled = !view.ply;
  $("forward").disabled = $("last").disabled = view.ply === view.plies;
  $("record").hidden = !view.log.length;
  drawCurve(judged);
}

/** The returns that the agent expected before each move or, without any, its moves' probabilities. */
function drawCurve(judged) {
  const hasReturns = judged.some(({ expected }) => expected !== null);
  const points = judged.map((each, ply) => [ply, hasReturns ? each.expected : each.probability]).filter(([, value]) => value !== null);
  $("judgement").hidden = points.length < 2;
  if (points.length < 2) return;
  const values = points.map(([, value]) => value);
  const most = Math.max(...values.map(Math.abs), 1e-9), isSigned = hasReturns && view.seats.length > 1;
  const low = isSigned ? -most : Math.min(0, ...values), high = Math.max(Number(!hasReturns), isSigned * most, ...values, low + 1e-9);
  const x = (ply) => 4 + 292 * ply / Math.max(1, judged.length - 1);
  const y = (value) => 68 - 64 * (value - low) / (high - low);
  const line = (x1, y1, x2, y2, kind) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const now = view.ply < view.plies ? line(x(view.ply), 2, x(view.ply), 70, "now") : "";
  $("curve").innerHTML = line(4, y(0), 296, y(0), "zero") + now +
    `<polyline points="${points.map(([ply, value]) => `${x(ply)},${y(value)}`).join(" ")}"/>`;
  const what = hasReturns ? "Return that the agent expected" : "Probability of the moves played";
  const round = (value) => Number(value.toPrecision(3));
  $("curve-caption").textContent = `${what}: ${round(values[0])} → ${round(values.at(-1))}`;
  $("curve").setAttribute("aria-label", $("curve-caption").textContent);
}

function updateAddress() {
  const { game: name, seats, search, position } = settings();
  const query = new URLSearchParams({ game: name });
  for (const seat of seats) query.append("seat", seat);
  if (search) query.set("search", search);
  if (hints) query.set("hints", hints);
  if (position) query.set("position", position);
  window.history.replaceState(null, "", `?${query}`);
}

// What a person does

function choose(cell) {
  if (game.by_column) return play(view.moves.find((each) => fits(each, cell)).move);
  const fitting = (cells) =>
    view.moves.filter((move) => move.cells.length && cells.every((each) => move.cells.includes(each)));
  chosen = chosen.includes(cell) ? chosen.filter((each) => each !== cell) : [...chosen, cell];
  if (!fitting(chosen).length) chosen = [cell];
  const whole = fitting(chosen).filter((move) => move.cells.length === chosen.length);
  if (chosen.length && whole.length === 1) play(whole[0].move);
  else if (chosen.length && whole.length) drawMoves(whole);
  else drawMoves();
  markCells();
}

function play(move) {
  if (isMoving) return;
  isMoving = true;
  act({ do: "move", move });
}

function focusCell(cell) {
  const target = $("boards").querySelector(`.cell[role=button][data-cell="${cell}"]`)
    ?? $("boards").querySelector(".cell[role=button]");
  if (!target) return;
  for (const each of $("boards").querySelectorAll("[tabindex='0']")) each.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  target.focus();
}

/** The next cell with a move in a direction: the nearest one, those straight ahead first. */
function nextCell(from, key) {
  const { x, y } = from.getBoundingClientRect(), isAcross = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
  const far = (cell) => {
    const box = cell.getBoundingClientRect(), steps = [box.x - x, box.y - y];
    const [ahead, aside] = isAcross ? steps : steps.reverse();
    return sign * ahead > 1 ? Math.abs(ahead) + 3 * Math.abs(aside) : Infinity;
  };
  const cells = [...$("boards").querySelectorAll(".cell[role=button]")];
  const nearest = cells.reduce((best, cell) => (far(cell) < far(best) ? cell : best), from);
  return Number(nearest.dataset.cell);
}

function press(event) {
  if (!view || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input")) return;
  const cell = event.target.closest(".cell[role=button]");
  const name = ARROWS[event.key] ?? event.key;
  if (view.moves.some(({ move }) => move === name)) play(name);
  else if (cell && (event.key === "Enter" || event.key === " ")) choose(Number(cell.dataset.cell));
  else if (ARROWS[event.key] && cell) focusCell(nextCell(cell, event.key));
  else if (ARROWS[event.key] && event.target === document.body) focusCell(-1);
  else return;
  event.preventDefault();
}

/** New seats or a new search: in the same game or, where something is hidden, in a new one. */
function sit(seats) {
  const search = $("search").value || null;
  isPaused = false;
  if (game.is_hidden && seats.join() !== view.seats.join()) open(settings({ seats, search, position: null }));
  else act({ do: "sit", seats, search });
}

const goTo = (ply) => { isPaused = true; act({ do: "view", ply: Math.max(0, Math.min(ply, view.plies)) }); };

async function copyLink() {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  $("error").textContent = copied ? "" : location.href;
  $("link").textContent = copied ? "Copied" : "Copy link";
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
}

function listen() {
  $("boards").addEventListener("click", (event) => {
    const cell = event.target.closest(".cell.open");
    if (cell) choose(Number(cell.dataset.cell));
  });
  $("moves").addEventListener("click", ({ target }) => {
    if (target.dataset.move) play(target.dataset.move);
  });
  $("log").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) goTo(Number(button.dataset.ply));
  });
  $("kinds").addEventListener("change", (event) => { hints = event.target.value; show(view); });
  $("game").addEventListener("change", () => { view = null; open({ game: $("game").value, fleet: "hand" }); });
  $("seats").addEventListener("change", () =>
    sit([...$("seats").querySelectorAll("select")].map((select) => select.value)));
  $("search").addEventListener("change", () => sit(view.seats));
  $("new").addEventListener("click", () => open(settings({ position: null })));
  $("undo").addEventListener("click", () => act({ do: "undo" }));
  $("swap").addEventListener("click", () => sit([...view.seats].reverse()));
  $("random").addEventListener("click", () => play("random"));
  $("pause").addEventListener("click", () => { isPaused = !isPaused; act({ do: "view" }); });
  $("link").addEventListener("click", copyLink);
  $("first").addEventListener("click", () => goTo(0));
  $("back").addEventListener("click", () => goTo(view.ply - 1));
  $("forward").addEventListener("click", () => goTo(view.ply + 1));
  $("last").addEventListener("click", () => { isPaused = false; act({ do: "view" }); });
  document.addEventListener("keydown", press);
}

async function start() {
  const query = new URLSearchParams(location.search), answer = await (await fetch("/api/games")).json();
  fill($("game"), answer.games, query.get("game"));
  listen();
  hints = query.get("hints") ?? "";
  const seats = query.getAll("seat");
  open({
    game: query.get("game"), seats: seats.length ? seats : null, search: query.get("search"),
    position: query.get("position"), fleet: query.get("fleet") ?? "hand",
  });
}

start();
