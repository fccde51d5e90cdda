// node replay.js MACHINE.js FOLDER: how often a machine differs from what Python recorded, and its milliseconds a move.
// A tie is another action of the same score.
"use strict";

const fs = require("fs"), vm = require("vm");
const [, , script, folder] = process.argv, read = (name) => fs.readFileSync(`${folder}/${name}`);
vm.runInThisContext(fs.readFileSync(script, "utf8"));
const startMachine = vm.runInThisContext("startMachine");
const { layout, plies } = JSON.parse(read("plies.json"));
const machine = startMachine({ code: new WebAssembly.Module(read("code.wasm")), data: read("data"), layout });
const differences = { rules: 0, actions: 0, ties: 0, scores: 0 };
const isNear = (one, other) => Math.abs(one - other) <= 1e-5 * (1 + Math.abs(one));
let milliseconds = 0;
for (const { question, words, seat, rng, legal, cells, action, scores, played, after, over } of plies) {
  machine.read("words", BigInt64Array, words.length).set(words.map(BigInt));
  machine.ask("look");
  differences.rules += String(machine.read("legal", Uint8Array, legal.length)) !== String(legal);
  differences.rules += String(machine.read("cells", Float32Array, cells.length)) !== String(cells);
  machine.read("rng", BigUint64Array, 1)[0] = BigInt(rng);
  const start = performance.now();
  const chosen = machine.ask(question, seat);
  milliseconds += performance.now() - start;
  if (chosen !== action) differences[isNear(scores[chosen], scores[action]) ? "ties" : "actions"] += 1;
  const own = machine.read("scores", Float32Array, legal.length);
  differences.scores += scores.some((score, each) => legal[each] && !isNear(score, own[each]));
  differences.rules += machine.ask("play", played) !== over;
  differences.rules += String(machine.read("words", BigInt64Array, words.length)) !== String(after);
}
console.log(JSON.stringify({ ...differences, milliseconds: milliseconds / plies.length }));
