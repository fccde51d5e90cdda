"""N-tuple networks: what a kind of network gives so that kernels can play and learn by it.

The value of a board right after a move is the sum of K numbers of a flat table, at places that are
called its entries. ntuple_board.py (boards of two seats) and policies/ntuple_2048.py implement the
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
    ones. places: uint64 [K] or more, see find_places. values, errors and sizes: float32 [K], what
    the table had there. rates: float32 [K], their step sizes. rng: uint64 [1], the state of
    next_random from which the chance after a move is drawn next. own: what the network keeps.
    """

    scores: Array
    places: Array
    values: Array
    errors: Array
    sizes: Array
    rates: Array
    rng: Array
    own: Any


@jit()
def make_memory(network: Any, actions: int) -> Memory:
    num = np.int64(num_entries(network))
    return Memory(
        np.zeros(actions, np.float32),
        np.zeros(np.int64(num_places(network)), np.uint64),
        np.zeros(num, np.float32),
        np.zeros(num, np.float32),
        np.zeros(num, np.float32),
        np.zeros(num, np.float32),
        np.zeros(1, np.uint64),
        make_own(network, actions),
    )


@found_by_type
def num_entries(network: Any) -> np.uint64:
    """K."""
    raise NotImplementedError


@found_by_type
def num_places(network: Any) -> int:
    """The places of all ways to see a board."""
    return int(num_entries(network))


@found_by_type
def make_own(network: Any, actions: int) -> Any:
    """A named tuple of arrays, for Memory.own."""
    raise NotImplementedError


@found_by_type
def enter(network: Any, rules: Any, position: Position, seat: int, memory: Memory) -> None:
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
def take_back(
    network: Any, rules: Any, before: Position, after: Position, seat: int, memory: Memory
) -> None:
    """Return to the position before a seat's move."""


@found_by_type
def find_places(
    network: Any, after: Position, seat: int, memory: Memory
) -> tuple[np.uint64, np.uint64]:
    """Have memory.places hold the board after a seat's move to a position: where its K places
    begin, and what is to be added to each to get an entry."""
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
