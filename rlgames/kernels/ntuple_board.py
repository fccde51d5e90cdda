"""N-tuple networks on the boards of two seats, from the rules of a game alone; see ntuple.py.

A cell is empty or has a stone of either seat. The contents of a tuple are the digits of a number,
and a stone adds the same to the place of this number in the table wherever the other stones lie. So
the places of a board are sums over its stones, and a move changes those of the tuples with a cell
whose stone has changed.

Either each seat has its own values, and the places are of the board itself, or the places are kept
in two views: the board as each seat sees it, of which the one of the seat that moved counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import Memory
from rlgames.kernels.rules import (
    Played,
    Position,
    implement,
    is_legal,
    placed_cell,
    play,
    write_cells,
)
from rlgames.kernels.words import Array, compiled

U = np.uint64


class BoardNetwork(NamedTuple):
    """For N cells, K lookups of a board, and V views.

    starts: uint64 [V · N + 1]. Cell c in view v has the changes starts[v · N + c] to
    starts[v · N + c + 1] - 1. lookups: uint64 [C], the lookup that changes.
    deltas: uint64 [3 · C], by how much the lookup's place grows, modulo 2^64, with an empty cell,
    with a stone of the first seat, from C on, and of the second, from 2 · C on.
    empty: uint64 [K], the places of the empty board. offsets: uint64 [2, N + 1], how much later the
    values are, by the seat that moved and the number of stones then.
    cells: int64 [2, N], the cell of the board that each seat sees at each cell.
    win, draws: the values of a won game, and of a drawn one by the seat that moved last. largest:
    bounds the values of games in progress, from below and above."""

    starts: Array
    lookups: Array
    deltas: Array
    empty: Array
    offsets: Array
    cells: Array
    win: np.float32
    draws: Array
    largest: np.float32


class Stones(NamedTuple):
    """The board that the places are of. owners: int64 [N], 0 empty, or the seat of the stone plus
    1. count: int64 [1], of stones.

    What score_moves writes: seen: float32 [N], the cells after a move; changed: int64 [N], those
    that differ; sums: uint64 [K], by how much lookups change, 0 between moves; touched: uint64
    [C + 1], the lookups that do.
    """

    owners: Array
    count: Array
    seen: Array
    changed: Array
    sums: Array
    touched: Array


@jit()
def make_own(network: BoardNetwork, actions: int) -> Stones:
    cells = network.cells.shape[1]
    return Stones(
        np.zeros(cells, np.int64),
        np.zeros(1, np.int64),
        np.zeros(cells, np.float32),
        np.zeros(cells, np.int64),
        np.zeros(len(network.empty), np.uint64),
        np.zeros(len(network.lookups) + 1, np.uint64),
    )


@compiled
def num_entries(network: BoardNetwork) -> np.uint64:
    return U(len(network.empty))


@compiled
def num_views(network: BoardNetwork) -> int:
    """V."""
    return int((len(network.starts) - 1) // network.cells.shape[1])


@compiled
def num_places(network: BoardNetwork) -> int:
    """V · K: the places of all views."""
    return len(network.empty) * num_views(network)


@compiled
def view_of(network: BoardNetwork, seat: int) -> tuple[np.uint64, np.uint64]:
    """Where the places and the cells' starts begin in the view that counts after a seat's move."""
    view = (num_views(network) - 1) * seat
    return U(view * len(network.empty)), U(view * network.cells.shape[1])


@compiled
def bounded(network: BoardNetwork, value: np.float32) -> np.float32:
    return min(max(value, -network.largest), network.largest)


@compiled
def owner_of(value: np.float32, seat: int) -> int:
    """Whose stone write_cells has written for a seat to move."""
    if value == np.float32(0):
        return 0
    return 1 + seat if value == np.float32(1) else 2 - seat


@compiled
def set_cell(network: BoardNetwork, cell: int, owner: int, memory: Memory) -> None:
    """Have a cell be empty, or have a stone."""
    stones, cells, num = memory.own, U(network.cells.shape[1]), U(len(network.empty))
    old, size = stones.owners[cell], len(network.lookups)
    new_deltas, old_deltas = network.deltas[size * owner :], network.deltas[size * old :]
    for view in range(U(num_views(network))):
        at, first = view * cells + U(cell), view * num
        for change in range(network.starts[at], network.starts[at + U(1)]):
            added = new_deltas[change] - old_deltas[change]
            memory.places[first + network.lookups[change]] += added
    stones.owners[cell] = owner
    stones.count[0] += (owner > 0) - (old > 0)


@compiled
def set_board(
    network: BoardNetwork, rules: Any, position: Position, seat: int, memory: Memory
) -> None:
    """Have the board be that of a position where a seat is to move."""
    stones = memory.own
    write_cells(rules, position, 0, stones.seen)
    for seen in range(len(stones.seen)):
        cell, owner = network.cells[seat, seen], owner_of(stones.seen[seen], seat)
        if owner != stones.owners[cell]:
            set_cell(network, cell, owner, memory)


@compiled
def enter(network: BoardNetwork, rules: Any, position: Position, seat: int, memory: Memory) -> None:
    num = len(network.empty)
    for place in range(num_places(network)):
        memory.places[place] = network.empty[place % num]
    memory.own.owners[:] = 0
    memory.own.count[0] = 0
    memory.own.sums[:] = 0
    set_board(network, rules, position, seat, memory)


@compiled
def find_changes(
    network: BoardNetwork, rules: Any, after: Position, seat: int, memory: Memory
) -> tuple[int, int]:
    """Write the cells whose stones a seat's move changes; how many, and the stones after it."""
    stones, num, count = memory.own, 0, memory.own.count[0]
    write_cells(rules, after, 0, stones.seen)
    for seen in range(len(stones.seen)):
        cell, owner = network.cells[1 - seat, seen], owner_of(stones.seen[seen], 1 - seat)
        old = stones.owners[cell]
        if owner != old:
            stones.changed[num] = 3 * cell + owner
            num += 1
            count += (owner > 0) - (old > 0)
    return num, count


@compiled
def sum_changes(
    network: BoardNetwork,
    num: int,
    seat: int,
    offset: np.uint64,
    table: Array,
    memory: Memory,
) -> np.float32:
    """How much the value of the board changes with the cells that find_changes has written."""
    stones, size = memory.own, len(network.lookups)
    first, start = view_of(network, seat)
    num_touched, total = U(0), np.float32(0)
    for number in range(num):
        cell, owner = stones.changed[number] // 3, stones.changed[number] % 3
        new, old = network.deltas[size * owner :], network.deltas[size * stones.owners[cell] :]
        at = start + U(cell)
        for change in range(network.starts[at], network.starts[at + U(1)]):
            lookup = network.lookups[change]
            stones.touched[num_touched] = lookup
            num_touched += U(stones.sums[lookup] == U(0))  # twice if a sum returns to 0
            stones.sums[lookup] += new[change] - old[change]
    for number_touched in range(num_touched):
        lookup = stones.touched[number_touched]
        place = memory.places[first + lookup] + offset + stones.sums[lookup]
        total += table[place] - memory.values[lookup]
        stones.sums[lookup] = U(0)
    return total


@compiled
def read_values(
    network: BoardNetwork, first: np.uint64, offset: np.uint64, table: Array, memory: Memory
) -> np.float32:
    """Fill memory.values; their sum."""
    total = np.float32(0)
    for lookup in range(U(len(network.empty))):
        memory.values[lookup] = table[memory.places[first + lookup] + offset]
        total += memory.values[lookup]
    return total


@compiled
def score_moves(
    network: BoardNetwork,
    rules: Any,
    position: Position,
    seat: int,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    first, start = view_of(network, seat)
    count, deltas = memory.own.count[0], network.deltas[len(network.lookups) * (1 + seat) :]
    offset = network.offsets[seat, min(count + 1, network.cells.shape[1])]
    total = read_values(network, first, offset, table, memory)
    best, highest = 0, np.float32(-np.inf)
    for action in range(len(memory.scores)):
        score = np.float32(-np.inf)
        if is_legal(rules, position, action):
            after, is_over, points = play(rules, position, action)
            if is_over:
                score = network.draws[seat] if points == 0 else np.sign(points) * network.win
            else:
                placed = placed_cell(rules, position, after)
                if placed < 0:
                    num, stones = find_changes(network, rules, after, seat, memory)
                    if network.offsets[seat, stones] != offset:
                        offset = network.offsets[seat, stones]
                        total = read_values(network, first, offset, table, memory)
                    value = total + sum_changes(network, num, seat, offset, table, memory)
                else:
                    value = total
                    at = start + U(network.cells[seat, placed])
                    for change in range(network.starts[at], network.starts[at + U(1)]):
                        lookup = network.lookups[change]
                        place = memory.places[first + lookup] + offset + deltas[change]
                        value += table[place] - memory.values[lookup]
                score = bounded(network, value)
            if not score <= highest:  # also if it is not a number: an illegal move would never end
                best, highest = action, score
        memory.scores[action] = score
    return best


@compiled
def make_move(
    network: BoardNetwork,
    rules: Any,
    position: Position,
    seat: int,
    action: int,
    memory: Memory,
) -> Played:
    after, is_over, points = play(rules, position, action)
    placed = placed_cell(rules, position, after)
    if placed < 0:
        set_board(network, rules, after, 1 - seat, memory)
    else:
        set_cell(network, network.cells[seat, placed], 1 + seat, memory)
    return after, is_over, points


@compiled
def take_back(
    network: BoardNetwork,
    rules: Any,
    before: Position,
    after: Position,
    seat: int,
    memory: Memory,
) -> None:
    placed = placed_cell(rules, before, after)
    if placed < 0:
        set_board(network, rules, before, seat, memory)
    else:
        set_cell(network, network.cells[seat, placed], 0, memory)


@compiled
def find_places(
    network: BoardNetwork, after: Position, seat: int, memory: Memory
) -> tuple[np.uint64, np.uint64]:
    return view_of(network, seat)[0], network.offsets[seat, memory.own.count[0]]


implement(
    BoardNetwork,
    num_entries=num_entries,
    num_places=num_places,
    make_own=make_own,
    bounded=bounded,
    enter=enter,
    score_moves=score_moves,
    make_move=make_move,
    take_back=take_back,
    find_places=find_places,
)
