"""N-tuple networks of k in a row: their cells and tuples, and kernels, see kernels/ntuple.py.

The value of a board right after a move belongs to the seat that moved, and each seat has its own
tables. A cell is 0 empty, 1 with a stone of the first seat, 2 with one of the second, or 3 empty
where a stone can fall. The contents of a tuple are the digits of a number, whose place in the table
changes with every stone by the same amount wherever the other stones lie. So a board's places are
sums over its stones, and a move changes the entries of the tuples with its cell or the one above.

memory.places are the board's places for the first seat, and memory.values are the values there.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor

from rlgames.games.board_game import BoardState
from rlgames.games.k_in_a_row import KInARow
from rlgames.kernels.ntuple import Memory
from rlgames.kernels.rules import Played, Position, implement, is_legal, play
from rlgames.kernels.words import Array, compiled, count_bits

Bits: TypeAlias = Any
"""np.int64, a set of stones or a seat; numba infers more of it than mypy can."""

U = np.uint64
ADDED, REMOVED = U(1), U(0xFFFFFFFFFFFFFFFF)
"""The signs of changes: 1 and -1."""

OPEN = 3
"""The value of an empty cell where a stone can fall."""

DEFAULT_NUM_TUPLES, MAX_LENGTH = 70, 8
"""The number and the length of default tuples (Thill, Koch and Konen 2012)."""

MAX_SINGLE = MAX_LENGTH + 1
"""A board of at most this many cells is a single tuple by default."""


def check_rules(game: KInARow) -> None:
    """Raises ValueError for a game derived from k in a row, which may be won in another way."""
    if type(game) is not KInARow:
        raise ValueError(
            f"policy=ntuple supports 2048 and k in a row, not {game.spec.name}; "
            "use a network, or policy=table"
        )


def cell_values(game: KInARow, num_cell_values: int) -> int:
    """The number of values of a cell. Raises ValueError for too few to tell stones apart."""
    if num_cell_values < OPEN:
        raise ValueError(
            f"policy.num_cell_values={num_cell_values} does not tell empty cells and the stones of "
            f"two seats apart; use {OPEN} or more"
        )
    return min(num_cell_values, OPEN + 1) if game.gravity else OPEN


def digits(game: KInARow, state: BoardState, num_cell_values: int) -> Tensor:
    """Int64 [B, cells], in row-major order from the top: 0 empty, 1 and 2 with a stone of the first
    or the second seat, OPEN if there are that many values."""
    cells = game.cells(state).flatten(1)
    if num_cell_values <= OPEN:
        return cells
    return cells + OPEN * game.open_cells(state).flatten(1)


def random_walks(game: KInARow, num_tuples: int | None = None) -> list[list[int]]:
    """Random walks over neighboring cells, the same at each call, as many as num_tuples, or
    DEFAULT_NUM_TUPLES; or all cells of a board with at most nine. Small boards may have fewer."""
    num_cells = game.rows * game.columns
    if num_cells <= MAX_SINGLE:
        return [list(range(num_cells))]
    symmetries, generator = game.symmetries(), random.Random(0)
    tuples: dict[frozenset[int], list[int]] = {}
    num_tuples = num_tuples or DEFAULT_NUM_TUPLES
    for _ in range(100 * num_tuples):
        cells = _walk(game, MAX_LENGTH, generator)
        canonical = min(sorted(view) for view in symmetries[:, cells].tolist())
        tuples.setdefault(frozenset(canonical), canonical)
        if len(tuples) == num_tuples:
            break
    return list(tuples.values())


def _walk(game: KInARow, length: int, generator: random.Random) -> list[int]:
    """Distinct cells that a walk over neighbors meets."""

    def below(limit: int) -> int:
        return int(generator.random() * limit)

    row, column = below(game.rows), below(game.columns)
    cells = {row * game.columns + column}
    while len(cells) < length:
        row = min(max(row + below(3) - 1, 0), game.rows - 1)
        column = min(max(column + below(3) - 1, 0), game.columns - 1)
        cells.add(row * game.columns + column)
    return sorted(cells)


class LineNetwork(NamedTuple):
    """starts: int64 [65]. Bit b of a board has the changes starts[b] to starts[b + 1] - 1.
    lookups: uint64 [C], the lookup that changes, of K lookups of a board.
    deltas: uint64 [2 · C], what a stone of the first seat adds to its place in the table, modulo
    2^64; from C on, a stone of the second seat.
    empty: uint64 [K], the places of the empty board after a move of the first seat. Those after a
    move of the second seat come `half` later.
    win, draws: the values of a won game, and of a drawn one by the seat that moved last. largest:
    bounds the values of games in progress, from below and above."""

    starts: Array
    lookups: Array
    deltas: Array
    empty: Array
    half: np.uint64
    win: np.float32
    draws: Array
    largest: np.float32


@compiled
def num_entries(network: LineNetwork) -> np.uint64:
    return U(len(network.empty))


@compiled
def bounded(network: LineNetwork, value: np.float32) -> np.float32:
    return min(max(value, -network.largest), network.largest)


@compiled
def move_stone(
    network: LineNetwork, stone: Bits, seat: Bits, sign: np.uint64, memory: Memory
) -> None:
    """Change the places by a stone of a seat."""
    bit = count_bits(U(stone) - U(1))
    owner = len(network.lookups) * seat
    for change in range(network.starts[bit], network.starts[bit + 1]):
        memory.places[network.lookups[change]] += sign * network.deltas[owner + change]


@compiled
def enter(network: LineNetwork, position: Position, seat: Bits, memory: Memory) -> None:
    own, rest = position
    for lookup in range(len(network.empty)):
        memory.places[lookup] = network.empty[lookup]
    while rest:
        stone = rest & -rest
        rest ^= stone
        move_stone(network, stone, seat if own & stone else 1 - seat, ADDED, memory)


@compiled
def score_moves(
    network: LineNetwork,
    rules: Any,
    position: Position,
    seat: Bits,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    half, total, owner = network.half * U(seat), np.float32(0), len(network.lookups) * seat
    for lookup in range(len(network.empty)):
        memory.values[lookup] = table[memory.places[lookup] + half]
        total += memory.values[lookup]
    best, highest = 0, np.float32(-np.inf)
    for action in range(len(memory.scores)):
        score = np.float32(-np.inf)
        if is_legal(rules, position, action):
            after, is_over, points = play(rules, position, action)
            if is_over:
                score = network.win if points > 0 else network.draws[seat]
            else:
                stone = position[1] ^ after[1]
                bit, value = count_bits(U(stone) - U(1)), total
                for change in range(network.starts[bit], network.starts[bit + 1]):
                    lookup = network.lookups[change]
                    place = memory.places[lookup] + half + network.deltas[owner + change]
                    value += table[place] - memory.values[lookup]
                score = bounded(network, value)
            if not score <= highest:  # also if it is not a number: an illegal move would never end
                best, highest = action, score
        memory.scores[action] = score
    return best


@compiled
def make_move(
    network: LineNetwork,
    rules: Any,
    position: Position,
    seat: Bits,
    action: int,
    memory: Memory,
) -> Played:
    after, is_over, points = play(rules, position, action)
    move_stone(network, position[1] ^ after[1], seat, ADDED, memory)
    return after, is_over, points


@compiled
def take_back(
    network: LineNetwork, before: Position, after: Position, seat: Bits, memory: Memory
) -> None:
    move_stone(network, before[1] ^ after[1], seat, REMOVED, memory)


@compiled
def find_places(network: LineNetwork, after: Position, seat: Bits, memory: Memory) -> np.uint64:
    return network.half * U(seat)


implement(
    LineNetwork,
    num_entries=num_entries,
    bounded=bounded,
    enter=enter,
    score_moves=score_moves,
    make_move=make_move,
    take_back=take_back,
    find_places=find_places,
)
