// One game at a time: what the server sends is shown, and what a person does is sent back. In an exported page a worker
// takes the place of the server.
"use strict";

const $ = (id) => document.getElementById(id);
const make = (tag, textContent, more = {}) => Object.assign(document.createElement(tag), { textContent, ...more });
const ARROWS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const SIGNS = { up: "↑", down: "↓", left: "←", right: "→" };
const REPLY_DELAY = 150, RETRY_DELAY = 1500;  // milliseconds before a player's move, and before another try
const FALL = 160;      // milliseconds in which a stone falls one row; four rows take twice as long
const MAX_LISTED = 300;  // moves that are listed; the buttons reach the others, too

let game = null;       // what the server said about the game, with the key of this one
let view = null;       // the position that is shown
let chosen = [];       // cells of a move that were clicked so far
let hints = "";        // the kind of hints that are shown; "" for none
let advice = null;     // the last hint
let isPaused = false, isMoving = false, fromLink = false;
let wish = null;       // a change of the game that waits for the move of the player that thinks
let thinking = null;   // the answer to come of the player that was asked for a move, with the key of its game
let era = 0;           // grows with every action; an answer to an earlier one is dropped

// The server

/** The answer to a request; GET without a body. Throws an error with the status, 0 if the server is away, and the answer. */
async function post(path, body) {
  if (globalThis.askWorker) return globalThis.askWorker(path, body);  // of an exported page: export/frame.js
  const request = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, request).catch(() => ({ status: 502 }));
  const result = await answer.json?.().catch(() => null);  // a proxy answers in its own words
  if (answer.ok && result) return result;
  const isAway = !result && [502, 503, 504].includes(answer.status);
  const words = isAway ? "The server does not answer. The page tries again; is rlgames still running?"
    : result?.error ?? `The answer is not of this page's server (status ${answer.status}); is there a login in front of it?`;
  throw Object.assign(new Error(words), { status: isAway ? 0 : answer.status, result });
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
    $("error").textContent = error.message;
    if (!view) $("status").textContent = "No game: choose another one";
    if (error.status === 404 && game) open(settings(), "The server had forgotten this game; it goes on from here.");
    if (error.status === 0) setTimeout(() => mine === era && act({ do: "view", ply: shownPly() }), RETRY_DELAY);
    if (error.status === 409) await show(error.result);  // the game went on elsewhere
    else if (view) drawSetup();  // as it is, not as it was wanted
    return false;
  }
}

/** Start a game, from the settings of an address or of the controls, or go on with the one that has parts.id. */
function open(parts, note = "") {
  document.body.classList.add("is-waiting");
  wish = null;
  return ask(() => post("api/sessions", parts), (answer) => {
    game = { ...answer.about, id: answer.id };
    isPaused = false;
    fromLink = Boolean(parts.position);
    document.title = `${game.title} – rlgames`;
    $("rules").textContent = game.rules ? game.rules[0].toUpperCase() + game.rules.slice(1) + "." : "";
    $("error").textContent = note;
    return show(answer);
  });
}

const act = (body, shown = show) => view && ask(() => post(`api/sessions/${game.id}`, body), shown);

/** Change the position that is shown; the server refuses if the game went on elsewhere. */
const alter = (body) => act({ ply: view.plies, present: view.present, ...body });

/** Change the game, once the player that thinks has moved. */
async function change(body) {
  if (thinking?.id !== game.id) return alter(body);
  wish = body;
  drawSetup();
  document.body.classList.add("is-waiting");
  $("error").textContent = "Waiting for the player's move …";
}

/** Ask the player for its move, once; whatever is shown when it comes is shown anew. */
async function reply() {
  const id = game.id, isAsked = thinking?.id === id;
  if (!isAsked) thinking = { id, answer: post(`api/sessions/${id}`, { do: "reply", ply: view.plies }).catch((error) => error) };
  const mine = era, asked = thinking, answer = await asked.answer;
  if (thinking === asked) thinking = null;
  if (game.id !== id) return;
  if (wish && answer.status !== 0) {
    const wished = wish;
    wish = null;
    if (!(answer instanceof Error)) take(answer);
    await alter(wished);
  } else if (mine === era) await ask(() => (answer instanceof Error ? Promise.reject(answer) : answer), show);
  else if (!document.body.dataset.asks) await act({ do: "view", ply: shownPly() });
}

/** The ply that is shown; undefined for the present one. */
const shownPly = () => (view.ply < view.plies ? view.ply : undefined);

/** The seats and the search, as the person wants them. */
const seated = ({ seats, search } = wish ?? view) => ({ seats, search });

/** What would start this position again. */
function settings(changes = {}) {
  if (!view) return { game: $("game").value, fleet: "hand", ...changes };  // a game that did not open
  const position = view.plies || fromLink ? view.present : null;
  return { game: game.game, ...seated(), position, fleet: "hand", ...changes };
}

// What is shown

function take(next) {
  const before = view?.boards[0]?.marks ?? [];
  view = next;
  chosen = [];
  advice = null;
  isMoving = false;
  if (hints && !(hints in view.hints)) hints = "";
  draw();
  fall(before);
  dispatchEvent(new CustomEvent("shown", { detail: view }));
}

async function show(next) {
  take(next);
  const isWatched = !view.seats.includes("you");
  const isWaiting = view.turn === "player" && view.ply === view.plies && !(isWatched && isPaused);
  document.body.classList.toggle("is-waiting", isWaiting || Boolean(wish));
  if (hints && (isWatched || !isWaiting) && !await hint()) return;
  if (!isWaiting) return;
  const mine = era;
  await new Promise((wake) => setTimeout(wake, isWatched ? Number($("speed").value) : REPLY_DELAY));
  if (mine === era) await reply();
}

const hint = () => act({ do: "hint", kind: hints, ply: view.ply }, (answer) => {
  advice = answer;
  drawPosition();
});

/** Whose turn it is, or how the game ended, in a sentence. */
function status() {
  const { seats, seat, turn, turns, scores, ply, plies } = view, turnNow = `turn ${turns + 1}`;
  const people = [...seats.keys()].filter((each) => seats[each] === "you");
  if (turn === "place") return `Place your ship of ${view.length}: choose its two ends`;
  if (turn === "over" && ply === plies) {
    const winner = scores[0] > 0 ? 0 : 1, isYours = people.length === 1 && people[0] === winner;
    const ending = game.goal === "score" ? `Over with a score of ${scores[0]}` : game.goal !== "outcome" ? "The whole fleet is sunk"
      : !scores[0] ? "A draw" : people.length !== 1 ? `Seat ${winner + 1} wins` : isYours ? "You win" : "You lose";
    return `${ending} after ${turns} turns`;
  }
  const now = game.goal === "score" ? `${turnNow}, score ${scores[seat]}` : turnNow;
  if (ply < plies) return `Before ${now}`;
  const who = seats.length === 1 ? "" : game.marks ? ` as ${game.marks[seat]}` : ` in seat ${seat + 1}`;
  return `${turn === "you" ? "Your turn" : `${seats[seat]} is to move`}${who}, ${now}`;
}

function draw() {
  const focus = focused();
  const last = view.log.at(-1), who = last && view.seats[last.seat - 1], isPresent = view.ply === view.plies;
  $("status").textContent = status();
  $("spoken").textContent = last && who !== "you" && isPresent ? `${who} played ${last.move}` : "";  // for screen readers
  document.body.dataset.turn = view.turn;
  $("text").hidden = !view.text;
  $("text").textContent = view.text;
  $("history").textContent = view.history;
  drawPosition();
  drawLog();
  drawSetup();
  $("new").classList.toggle("primary", view.turn === "over");
  $("undo").setAttribute("aria-disabled", String(!view.undo || view.turn === "player"));
  $("undo").title = game.is_hidden ? "No move can be taken back: the answer has told you something" : "";
  $("swap").hidden = new Set(view.seats).size < 2;
  $("random").hidden = view.turn !== "place";
  $("pause").hidden = view.seats.includes("you") || view.turn === "over";
  $("speed-label").hidden = view.seats.includes("you");
  $("pause").textContent = isPaused ? "Continue" : "Pause";
  remember();
  focus();
}

/** Keep the game over a reload, where the browser allows it: cookies may be blocked, or changes of the address too many. */
function remember() {
  try {
    window.history.replaceState(null, "", address(settings()));
    sessionStorage.setItem("game", JSON.stringify([location.search, game.id]));
  } catch { /* a reload starts a new game */ }
}

/** The key of the game that this address had before a reload. */
function remembered() {
  try {
    const [shown, id] = JSON.parse(sessionStorage.getItem("game"));
    return shown === location.search ? id : null;
  } catch {
    return null;
  }
}

/** The position and its moves, with the last hint. */
function drawPosition() {
  drawBoards(advice?.boards.length ? advice.boards : view.boards);
  drawMoves();
  drawAdvice();
}

/** A function that focuses what has the focus now, or what took its place when it was drawn anew. */
function focused() {
  const { id, dataset } = document.activeElement ?? {};
  const key = ["cell", "move", "ply"].find((name) => dataset?.[name] !== undefined);
  return () => {
    if (document.activeElement !== document.body || !(id || key)) return;
    const same = id ? $(id) : document.querySelector(`[data-${key}="${CSS.escape(dataset[key])}"][tabindex], button[data-${key}="${CSS.escape(dataset[key])}"]`);
    if (same?.dataset.cell !== undefined) focusCell(same);
    else (same ?? $("boards").querySelector(".cell[tabindex]") ?? $("new")).focus();
  };
}

/** Let the stone of a move fall down its column, if the marks before and now differ in that stone. */
function fall(before) {
  const now = view.boards[0]?.marks ?? [], cells = now.flatMap((mark, cell) => (mark === before[cell] ? [] : [cell]));
  const isMove = game.by_column && before.length === now.length && cells.length === 1 && before[cells[0]] === ".";
  if (!isMove || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [top, bottom] = [cells[0] % game.columns, cells[0]].map((cell) => Number(game.look.places[cell].split(" ")[1]));
  const frames = { transform: [`translateY(${top - bottom}px)`, "none"] };
  const timing = { duration: FALL * Math.sqrt(Math.floor(cells[0] / game.columns)), easing: "ease-in" };
  for (const layer of $("boards").querySelectorAll(`[data-cell="${cells[0]}"] > :not(:first-child)`)) layer.animate(frames, timing);
}

/** A board as SVG, whose text the server has escaped. */
function boardSvg({ marks, chosen, looks, hints: shares }) {
  const { head, around, places, hints: templates } = game.look;
  const cells = marks.map((mark, cell) => {
    const [kind, drawn] = looks[mark], [share, label] = (kind === "empty" && shares[cell]) || [0, ""];
    const template = templates[Math.min(label.length, templates.length - 1)];
    const inner = share ? template.replace("SHADE", (share ** 0.6).toFixed(3)).replace("LABEL", label) : drawn;
    const classes = ["cell", kind, ...(chosen.includes(cell) ? ["chosen"] : [])].join(" ");
    return `<g class='${classes}' data-cell='${cell}' transform='translate(${places[cell]})'>${inner}</g>`;
  });
  return `${head}${cells.join("")}${around}</svg>`;
}

function drawBoards(boards) {
  $("boards").replaceChildren(...boards.map((board, number) => {
    const figure = make("figure", "", { className: "board" });
    figure.innerHTML = boardSvg(board);
    const words = [board.title, board.legend].filter(Boolean).join(" · ");
    if (words) figure.append(make("figcaption", words));
    const svg = figure.firstElementChild, moves = number ? [] : view.moves.filter((move) => move.cells.length);
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", board.title || game.title);
    for (const cell of svg.querySelectorAll(".cell")) {
      const at = Number(cell.dataset.cell), own = moves.filter((move) => fits(move, at)), mark = board.marks[at];
      Object.assign(cell.dataset, { mark, name: game.look.names[at] });
      if (own.length) cell.classList.add("open");
      const isButton = own.some((move) => move.cells.includes(at));
      const name = isButton && own.length === 1 ? own[0].move : cell.dataset.name;
      cell.setAttribute("role", isButton ? "button" : "img");
      cell.setAttribute("aria-label", `${name} ${game.meanings[mark] ?? mark}`);
      if (!number) cell.setAttribute("tabindex", "-1");
    }
    if (!number) (svg.querySelector("[role=button]") ?? svg.querySelector(".cell"))?.setAttribute("tabindex", "0");
    return figure;
  }));
  markCells();
}

/** Whether a click on a cell can be a part of a move. */
const fits = ({ cells }, cell) => game.by_column ? cells[0] % game.columns === cell % game.columns : cells.includes(cell);

/** The moves that take all of some cells. */
const fitting = (all) => view.moves.filter(({ cells }) => cells.length && all.every((cell) => cells.includes(cell)));

function markCells() {
  const targets = new Set(chosen.length ? fitting(chosen).flatMap((move) => move.cells) : []);
  for (const cell of $("boards").querySelectorAll(".cell.open")) {
    const at = Number(cell.dataset.cell);
    cell.classList.toggle("picked", chosen.includes(at));
    cell.classList.toggle("target", targets.has(at) && !chosen.includes(at));
    if (cell.getAttribute("role") === "button") cell.setAttribute("aria-pressed", String(chosen.includes(at)));
  }
}

/** Buttons for moves that have no cells, or that a choice of cells leaves open. */
function drawMoves(moves = view.moves.filter((move) => !move.cells.length)) {
  const shares = new Map((advice?.moves ?? []).map((move) => [move.move, move.text]));
  const names = moves.map(({ move }) => move);
  if (names.length) game.directions ??= names.every((name) => SIGNS[name]);
  document.body.classList.toggle("slides", Boolean(game.directions));
  $("moves").replaceChildren(...(game.directions ? Object.keys(SIGNS) : names).map((move) => {
    const text = [SIGNS[move], move, shares.get(move)].filter(Boolean).join(" ");
    const button = make("button", text, { type: "button" });
    button.dataset.move = move;
    if (!names.includes(move)) button.setAttribute("aria-disabled", "true");
    return button;
  }));
}

const fill = (select, names, value, label = (name) => name) =>
  select.replaceChildren(...names.map((name) => new Option(label(name), name, false, name === value)));

function drawSetup() {
  $("game").value = game.game;
  $("game").parentElement.hidden = $("game").length < 2;
  const { seats, search } = seated();
  $("seats").replaceChildren(...seats.map((player, number) => {
    const label = make("label", seats.length > 1 ? `Seat ${number + 1} ` : "Player ");
    const select = make("select", "", { id: `seat${number}` });
    // The closed control shows a name; the list shows how strong the others are.
    fill(select, [...new Set([...game.players, player])], player, (name) =>
      name === player || !game.strengths[name] ? name : `${name}: ${game.strengths[name]}`);
    label.append(select);
    return label;
  }));
  $("strength").textContent = [...new Set(seats)].filter((name) => game.strengths[name])
    .map((name) => `${name} ${game.strengths[name]}.`).join(" ");
  fill($("search"), ["", ...game.searches], search ?? "", (name) => name || "none");
  $("search-label").hidden = !game.searches.length;
  $("hints").hidden = !Object.keys(view.hints).length;
  $("kinds").replaceChildren(...Object.entries({ "": "Off", ...view.hints }).map(([kind, name]) => {
    const label = make("label"), look = { type: "radio", name: "hints", value: kind, id: `hints-${kind}` };
    label.append(make("input", "", { ...look, checked: kind === hints }), make("span", name));
    return label;
  }));
}

function drawAdvice() {
  $("value").hidden = typeof advice?.value !== "number";
  $("value").value = advice?.value ?? 0;
  $("summary").textContent = advice?.summary ?? (hints && view.turn !== "over" ? "…" : "");
  $("advice").replaceChildren(...(advice?.moves ?? []).map(({ move, share, text }) => {
    const item = make("li"), bar = make("meter", "", { value: share });
    bar.setAttribute("aria-label", `${move}: ${text}`);
    item.append(make("span", move), bar, make("span", text));
    return item;
  }));
}

function drawLog() {
  const start = Math.max(0, view.log.length - MAX_LISTED);
  $("log").replaceChildren(...view.log.slice(start).map(({ move, seat }, row) => {
    const ply = start + row;
    const item = make("li", "", { className: view.seats.length > 1 ? `seat${seat}` : "" });
    const button = make("button", "", { type: "button" });
    button.dataset.ply = ply;
    button.append(make("small", `${ply + 1}. `), make("b", move));
    if (ply === view.ply && view.ply < view.plies) button.setAttribute("aria-current", "step");
    item.append(button);
    return item;
  }));
  if (view.ply === view.plies) $("log").scrollTop = $("log").scrollHeight;
  $("first").disabled = $("back").disabled = !view.ply;
  $("forward").disabled = $("last").disabled = view.ply === view.plies;
  $("record").hidden = !view.log.length;
}

function address({ game: name, seats, search, position }) {
  const parts = [...seats.map((seat) => ["seat", seat]), ["search", search], ["hints", hints], ["position", position]];
  if (document.body.classList.contains("small")) parts.push(["small", "1"]);
  return `?${new URLSearchParams([["game", name], ...parts.filter(([, value]) => value)])}`;
}

// What a person does

function choose(target) {
  if (!target?.classList.contains("open")) return;
  const cell = Number(target.dataset.cell);
  if (game.by_column) return play(view.moves.find((each) => fits(each, cell)).move);
  chosen = chosen.includes(cell) ? chosen.filter((each) => each !== cell) : [...chosen, cell];
  if (!fitting(chosen).length) chosen = [cell];
  const whole = fitting(chosen).filter((move) => move.cells.length === chosen.length);
  if (whole.length === 1) play(whole[0].move);
  else drawMoves(whole.length ? whole : undefined);
  markCells();
}

function play(move) {
  if (isMoving) return;
  isMoving = true;
  alter({ do: "move", move });
}

function focusCell(target) {
  if (!target) return;
  for (const each of $("boards").querySelectorAll("[tabindex='0']")) each.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  target.focus();
}

/** The next cell in a direction, if there is one; the one that Tab reaches, if from is none. */
function nextCell(from, key) {
  if (!from) return $("boards").querySelector(".cell[tabindex='0']");
  const at = Number(from.dataset.cell), row = (cell) => Math.floor(cell / game.columns);
  const to = at + { ArrowUp: -game.columns, ArrowDown: game.columns, ArrowLeft: -1, ArrowRight: 1 }[key];
  return Math.abs(to - at) === 1 && row(to) !== row(at) ? null : $("boards").querySelector(`.cell[tabindex][data-cell="${to}"]`);
}

function press(event) {
  if (!view || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input")) return;
  const cell = event.target.closest(".cell[tabindex]");
  const name = ARROWS[event.key] ?? event.key, isMove = view.moves.some(({ move }) => move === name);
  const isChoice = [" ", "Enter"].includes(event.key) && event.target.closest("button, .cell");
  if (event.repeat && !ARROWS[event.key]) {  // a key that is held is pressed once, unless it slides tiles or moves the focus
    if (!isMove && !isChoice) return;
  } else if (isMove) play(name);
  else if (cell && isChoice) choose(cell);
  else if (ARROWS[event.key] && (cell || event.target === document.body)) focusCell(nextCell(cell, event.key));
  else return;
  event.preventDefault();
}

/** New seats or a new search: in the same game or, where something is hidden, in a new one. */
function sit(seats) {
  const search = $("search").value || null;
  isPaused = false;
  if (game.is_hidden && seats.join() !== view.seats.join()) open(settings({ seats, search, position: null }));
  else change({ do: "sit", seats, search });
}

/** A swipe over the board is a move in its direction, in games of directions. */
function swipe(from, to) {
  const across = to.clientX - from.clientX, down = to.clientY - from.clientY;
  if (!game?.directions || Math.max(Math.abs(across), Math.abs(down)) < 24) return;
  const move = Math.abs(across) > Math.abs(down) ? (across > 0 ? "right" : "left") : (down > 0 ? "down" : "up");
  if (view.moves.some((each) => each.move === move)) play(move);
}

const goTo = (ply) => { isPaused = true; act({ do: "view", ply: Math.max(0, Math.min(ply, view.plies)) }); };

async function copyLink() {
  const shown = new URL(address(settings({ position: view.position })), location.href).href;
  const copied = await navigator.clipboard?.writeText(shown).then(() => true, () => false);
  $("error").textContent = copied ? "" : shown;
  $("link").textContent = copied ? "Copied" : "Copy link";
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
}

function listen() {
  $("boards").addEventListener("click", ({ target }) => choose(target.closest(".cell.open")));
  let touch = null;  // of one finger; two zoom
  const begin = ({ touches, changedTouches }) => { touch = touches.length > 1 ? null : changedTouches[0]; };
  $("boards").addEventListener("touchstart", begin, { passive: true });
  $("boards").addEventListener("touchend", (event) => touch && swipe(touch, event.changedTouches[0]));
  const isOn = (button) => button.getAttribute("aria-disabled") !== "true";
  $("moves").addEventListener("click", ({ target }) => target.dataset.move && isOn(target) && play(target.dataset.move));
  $("log").addEventListener("click", ({ target }) => {
    const ply = target.closest("button")?.dataset.ply;
    if (ply) goTo(Number(ply));
  });
  $("kinds").addEventListener("change", (event) => { hints = event.target.value; show(view); });
  $("game").addEventListener("change", () => { view = null; open({ game: $("game").value, fleet: "hand" }); });
  $("seats").addEventListener("change", () => sit([...$("seats").querySelectorAll("select")].map(({ value }) => value)));
  $("search").addEventListener("change", () => sit(seated().seats));
  $("new").addEventListener("click", () => open(settings({ position: null })));
  $("undo").addEventListener("click", () => isOn($("undo")) && change({ do: "undo" }));
  $("swap").addEventListener("click", () => sit([...seated().seats].reverse()));
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
  const query = new URLSearchParams(location.search), seats = query.getAll("seat");
  try {
    const { games } = await post("api/games");
    fill($("game"), Object.keys(games), query.get("game"), (name) => games[name]);
  } catch (error) {
    $("status").textContent = error.message;
    if (error.status === 0) setTimeout(start, RETRY_DELAY);
    return;
  }
  listen();
  hints = query.get("hints") ?? "";
  document.body.classList.toggle("small", query.has("small"));  // in a frame: the board alone
  open({
    id: remembered(),
    game: query.get("game"), seats: seats.length ? seats : null, search: query.get("search"),
    position: query.get("position"), fleet: query.get("fleet") ?? "hand",
  });
}

start();
