// Has the requests of page.js answered by a worker of this page, and talks to a page around it.
"use strict";

(() => {
  const text = (id) => document.getElementById(id).textContent, data = JSON.parse(text("agent"));
  const worker = new Worker(URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" })));
  const waiting = new Map(), isFramed = parent !== self;
  let asked = 0;
  worker.postMessage({ agent: { about: data, code: text("code"), numbers: text("numbers") } });
  worker.addEventListener("message", ({ data: { id, answer, error } }) => {
    const { accept, refuse } = waiting.get(id);
    waiting.delete(id);
    if (error) refuse(Object.assign(new Error(error), { status: 400 }));
    else accept(answer);
  });
  worker.addEventListener("error", (event) => {
    for (const { refuse } of waiting.values()) refuse(Object.assign(new Error(`This browser cannot run the page: ${event.message}`), { status: 500 }));
  });

  let first = new URLSearchParams(location.search);  // of the first game
  globalThis.askWorker = (path, body) => new Promise((accept, refuse) => {
    let request = body;
    if (path === "api/sessions" && first) {
      request = { ...body, position: body.position ?? first.get("moves") ?? data.moves, search: body.search ?? (first.has("game") ? null : data.search) };
      first = null;
    }
    asked += 1;
    waiting.set(asked, { accept, refuse });
    worker.postMessage({ id: asked, path, body: request });
  });

  addEventListener("shown", ({ detail: { log, turn, seat, turns, scores } }) => {
    const moves = log.map(({ move }) => move);
    if (isFramed) parent.postMessage({ rlgames: { game: data.about.game, moves, turn, seat: seat + 1, turns, scores } }, "*");
  });
  addEventListener("message", ({ data: message, source }) => {
    const wanted = message?.rlgames;
    if (!isFramed || source !== parent || !wanted) return;
    const seats = wanted.seats ?? (wanted.seat ? [String(wanted.seat)] : seated().seats);
    open(settings({ position: wanted.moves ?? "", seats }));  // of page.js
  });
})();
