// A game and its player, compiled: one function of WebAssembly over one block of memory.
"use strict";

const QUESTIONS = { look: 0n, play: 1n, chance: 2n, policy: 3n, search: 4n };  // as in machine.py
const TABLE_SIZE = 64, BASE = 2 << 20;  // below: constants of the code, then its stack, which grows down; from here on: arrays

/** code: a module. data: all arrays. layout: where each begins, by name. */
function startMachine({ code, data, layout }) {
  const heap = BASE + data.length, memory = new WebAssembly.Memory({ initial: (heap >>> 16) + 16 });
  const table = new WebAssembly.Table({ initial: TABLE_SIZE, element: "anyfunc" });
  let end = heap;

  /** Memory for an array of numba, behind a header as on a machine of 64 bits; all of it is free again after the answer. */
  function allocate(length) {
    const header = end, start = header + 64;
    end = (start + Number(length) + 63) & ~63;
    if (end > memory.buffer.byteLength) memory.grow(((end - memory.buffer.byteLength) >>> 16) + 16);
    const view = new DataView(memory.buffer);
    view.setBigInt64(header, 1n, true);
    view.setInt32(header + 24, start, true);
    view.setBigInt64(header + 32, length, true);
    return header;
  }

  /** The product of two integers of 128 bits, each in two halves. */
  function multiply(to, low, high, otherLow, otherHigh) {
    const whole = (a, b) => BigInt.asUintN(64, a) + (b << 64n), product = whole(low, high) * whole(otherLow, otherHigh);
    const view = new DataView(memory.buffer);
    view.setBigUint64(to, BigInt.asUintN(64, product), true);
    view.setBigUint64(to + 8, BigInt.asUintN(64, product >> 64n), true);
  }

  const bytes = () => new Uint8Array(memory.buffer);
  const fill = (to, value, length) => (bytes().fill(value, to, to + Number(length)), to);
  const copy = (to, from, length) => (bytes().copyWithin(to, from, from + Number(length)), to);
  const functions = { memset: fill, memcpy: copy, memmove: copy, __multi3: multiply };
  const fail = (name) => () => { throw new Error(`a kernel failed: ${name}`); };
  const kinds = {
    memory: () => memory,
    table: () => table,
    global: () => new WebAssembly.Global({ value: "i32", mutable: true }, BASE),
    function: (name) => functions[name] ?? (/^NRT_.*alloc/i.test(name) ? allocate : Math[name] ?? Math[name.replace(/f$/, "")]) ?? fail(name),
  };
  const env = Object.fromEntries(WebAssembly.Module.imports(code).map(({ name, kind }) => [name, kinds[kind](name)]));
  new WebAssembly.Instance(code, { env });
  bytes().set(data, BASE);
  const answer = Array.from({ length: TABLE_SIZE }, (_, at) => table.get(at)).findLast(Boolean);

  return {
    /** An array, which the next question may move. */
    read: (name, Kind, length) => new Kind(memory.buffer, BASE + layout[name], length),
    ask: (question, argument = 0) => {
      end = heap;
      return Number(answer(BigInt(BASE), QUESTIONS[question], BigInt(argument)));
    },
  };
}
