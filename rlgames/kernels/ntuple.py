"""N-tuple networks: what a kind of network gives so that kernels can play and learn by it.

The value of a board right after a move is the sum of K numbers of a flat table, at places that are
called its entries. policies/ntuple_lines.py (k in a row) and policies/ntuple_2048.py implement the
functions below, by `rules.implement`. A position is as in rules.py, and a seat is 0 or 1.

Entries may be found from the entries of the board before, so memory follows a game: `enter` begins
at a position, `make_move` goes on, and `take_back` returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.rules import Played, Position, found_by_type
from rlgames.kernels.words import Array, compiled

U = np.uint64


class Memory(NamedTuple):
    """What one thread writes, for A actions and K entries of a board.

    scores: float32 [A], what the moves are worth to the seat that makes them, -inf for illegal
    ones. places: uint64 [K], see find_places. values, errors and sizes: float32 [K], what the table
    had there. rates: float32 [K], their step sizes. rng: uint64 [1], the state of next_random from
    which the chance after a move is drawn next. For the network's own use: entries, uint64
    [2 · A · K], afters, uint64 [A], and points, float32 [A], what the moves lead to; recent,
    float32 [A], how often each action was made of late.
    """

    scores: Array
    places: Array
    values: Array
    errors: Array
    sizes: Array
    rates: Array
    rng: Array
    entries: Array
    afters: Array
    points: Array
    recent: Array


@jit()
def make_memory(network: Any, actions: int) -> Memory:
    num = np.int64(num_entries(network))
    return Memory(
        np.empty(actions, np.float32),
        np.empty(num, np.uint64),
        np.empty(num, np.float32),
        np.empty(num, np.float32),
        np.empty(num, np.float32),
        np.empty(num, np.float32),
        np.zeros(1, np.uint64),
        np.empty(2 * actions * num, np.uint64),
        np.empty(actions, np.uint64),
        np.empty(actions, np.float32),
        np.zeros(actions, np.float32),
    )


@found_by_type
def num_entries(network: Any) -> np.uint64:
    """K."""
    raise NotImplementedError


@found_by_type
def enter(network: Any, position: Position, seat: int, memory: Memory) -> None:
    """Begin at a position where a seat is to move."""


@found_by_type
def score_moves(
    network: Any,
    rules: Any,
    position: Position,
    seat: int,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    """Fill memory.scores with the reward, points · scale, and the value of each move; the first
    legal action with the highest one."""
    raise NotImplementedError


@found_by_type
def make_move(
    network: Any, rules: Any, position: Position, seat: int, action: int, memory: Memory
) -> Played:
    """As rules.play, by an action that score_moves has scored."""
    raise NotImplementedError


@found_by_type
def take_back(network: Any, before: Position, after: Position, seat: int, memory: Memory) -> None:
    """Return to the position before a seat's move."""


@found_by_type
def find_places(network: Any, after: Position, seat: int, memory: Memory) -> np.uint64:
    """Have memory.places be those after a seat's move to a position; what is to be added to each
    to get the board's entries."""
    raise NotImplementedError


@found_by_type
def fetch_places(network: Any, after: Position, memory: Memory, table: Array) -> None:
    """Have the entries of the board after a seat's move fetched, which find_places follows."""


@found_by_type
def bounded(network: Any, value: np.float32) -> np.float32:
    """What a sum of entries counts as: a game in progress may be less than won."""
    return value


@compiled
def sum_values(table: Array, places: Array, first: Any, num: Any, offset: Any) -> np.float32:
    """The sum of the values at `num` places from places[first] on, each moved by offset, in four
    parts."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    at, stop = first, first + num
    while at + U(4) <= stop:
        a += table[places[at] + offset]
        b += table[places[at + U(1)] + offset]
        c += table[places[at + U(2)] + offset]
        d += table[places[at + U(3)] + offset]
        at += U(4)
    while at < stop:
        a += table[places[at] + offset]
        at += U(1)
    return (a + b) + (c + d)
