"""Turns that greedy play takes over listed layouts of a fleet, and turns that are better.

Greedy play shoots at the cells that most of the layouts that agree occupy. It ranges over the whole
list, so the number of turns is exact. Layouts that agree are a range of the list, which the result
of a turn divides.
"""

from typing import NamedTuple

import numpy as np

from rlgames.games.fleets.count_layouts import Position, Stack, enter, place_next
from rlgames.kernels.words import (
    NO_CELLS,
    ONE,
    ZERO,
    Cells,
    Integers,
    Words,
    cells_at,
    common,
    compiled,
    count_cells,
    first_bit,
    is_empty,
    with_cell,
    without,
)

NUM_WORDS = 2
UNLIMITED = np.int64(1 << 62)


class Layouts(NamedTuple):
    """cells: uint64 [L, 2], the cells of the ships. number: int64 [L], the row of placements, int64
    [L, ships]. Kernels reorder cells and number. masks: uint64 [64 W, 2], the cells of each
    placement. codes: int64 [64 W], what it adds when it sinks to the code of a result, or [0] where
    sunk ships are not announced."""

    cells: Words
    number: Integers
    placements: Integers
    masks: Words
    codes: Integers


class Room(NamedTuple):
    """frames: int64 [L + 2, 3], the first and last layout of a range and the hits to come. free:
    uint64 [L + 2, 2], the cells not shot at. counts: int64 [128]. order: int64 [cells to try]."""

    frames: Integers
    free: Words
    counts: Integers
    order: Integers


@compiled
def list_layouts(position: Position, stack: Stack, layouts: Layouts) -> np.int64:
    """List the layouts that agree; returns their number, or -1 if there are too many."""
    placed = stack.placed
    num_ships = layouts.placements.shape[1]
    depth, count = 0, 0
    enter(position, stack, depth)
    while depth >= 0:
        placed[depth] = place_next(position, stack, depth)
        if placed[depth] < 0:
            depth -= 1
        elif depth < num_ships - 1:
            depth += 1
            enter(position, stack, depth)
        elif not stack.open_hits[num_ships]:
            if count == layouts.cells.shape[0]:
                return np.int64(-1)
            layouts.cells[count, 0], layouts.cells[count, 1] = ZERO, ZERO
            for ship in range(num_ships):
                layouts.placements[count, ship] = placed[ship]
                layouts.cells[count, 0] |= layouts.masks[placed[ship], 0]
                layouts.cells[count, 1] |= layouts.masks[placed[ship], 1]
            layouts.number[count] = count
            count += 1
    return np.int64(count)


@compiled
def sinking_code(layouts: Layouts, at: np.int64, free: Cells, turn: Cells) -> np.int64:
    """What is announced after a turn at these cells if a layout is the true one. free: the cells
    that were not shot at before."""
    code = np.int64(0)
    for placement in layouts.placements[layouts.number[at]]:
        afloat = common(cells_at(layouts.masks, placement), free)
        if not is_empty(afloat) and is_empty(without(afloat, turn)):
            code += layouts.codes[placement]
    return code


@compiled
def split_off(
    layouts: Layouts, start: np.int64, end: np.int64, free: Cells, turn: Cells
) -> np.int64:
    """Move the layouts of a range that give a turn the same result as the first one to its front;
    returns their end."""
    cells, number, code = layouts.cells, layouts.number, np.int64(0)
    hits = common(cells_at(cells, start), turn)
    announces = layouts.codes.shape[0] > 0 and not is_empty(hits)
    if announces:
        code = sinking_code(layouts, start, free, turn)
    front = start + 1
    for at in range(start + 1, end):
        if common(cells_at(cells, at), turn) != hits:
            continue
        if announces and sinking_code(layouts, np.int64(at), free, turn) != code:
            continue
        for word in range(2):
            cells[at, word], cells[front, word] = cells[front, word], cells[at, word]
        number[at], number[front] = number[front], number[at]
        front += 1
    return front


@compiled
def count_ships(
    layouts: Layouts, start: np.int64, end: np.int64, free: Cells, counts: Integers
) -> None:
    """Count how many layouts of a range occupy each of these cells."""
    counts[:] = 0
    for at in range(start, end):
        for word in range(NUM_WORDS):
            rest = layouts.cells[at, word] & free[word]
            while rest:
                counts[64 * word + first_bit(rest)] += 1
                rest &= rest - ONE


@compiled
def take_likeliest(counts: Integers) -> np.int64:
    """The cell with the largest count, which becomes 0; -1 if all are 0."""
    best, most = np.int64(-1), np.int64(0)
    for cell in range(counts.shape[0]):
        if counts[cell] > most:
            best, most = np.int64(cell), counts[cell]
    if best >= 0:
        counts[best] = 0
    return best


@compiled
def push_results(
    layouts: Layouts,
    room: Room,
    top: np.int64,
    start: np.int64,
    end: np.int64,
    to_hit: np.int64,
    free: Cells,
    turn: Cells,
) -> np.int64:
    """Push a frame for each result of a turn that leaves something to hit; returns the top."""
    left = without(free, turn)
    while start < end:
        front = split_off(layouts, start, end, free, turn)
        hits = count_cells(common(cells_at(layouts.cells, start), turn))
        if hits < to_hit:
            room.frames[top, 0], room.frames[top, 1] = start, front
            room.frames[top, 2] = to_hit - hits
            room.free[top, 0], room.free[top, 1] = left
            top += 1
        start = front
    return top


@compiled
def play_greedily(
    layouts: Layouts, room: Room, bottom: np.int64, top: np.int64, shots: int, bound: np.int64
) -> np.int64:
    """The sum over the layouts of the frames from bottom to top of the turns that are left; only
    known to be at least the bound if it is."""
    total = np.int64(0)
    counts = room.counts
    while top > bottom and total < bound:
        top -= 1
        start, end, to_hit = room.frames[top]
        free = cells_at(room.free, top)
        if end - start == 1:
            total += -(-to_hit // shots)
            continue
        if shots == 1 and not layouts.codes.shape[0]:
            # Cells that all layouts occupy tell nothing, and greedy play shoots at them first.
            certain = free
            for at in range(start, end):
                certain = common(certain, cells_at(layouts.cells, at))
            total += count_cells(certain) * (end - start)
            to_hit -= count_cells(certain)
            if not to_hit:
                continue
            free = without(free, certain)
        count_ships(layouts, start, end, free, counts)
        turn = NO_CELLS
        for _ in range(shots):
            cell = take_likeliest(counts)
            if cell >= 0:
                turn = with_cell(turn, cell)
        total += end - start
        top = push_results(layouts, room, top, start, end, to_hit, free, turn)
    return total


@compiled
def value_turn(
    layouts: Layouts, room: Room, top: np.int64, shots: int, turn: Cells, bound: np.int64
) -> np.int64:
    """The sum over the layouts of the frame at the top of the turns that are left if the next one
    is at these cells and play is greedy from then on."""
    start, end, to_hit = room.frames[top]
    free = cells_at(room.free, top)
    above = push_results(layouts, room, top + 1, start, end, to_hit, free, turn)
    turns = end - start
    return turns + play_greedily(layouts, room, top + 1, above, shots, bound - turns)


@compiled
def choose_turn(layouts: Layouts, room: Room, top: np.int64, shots: int, turn: Words) -> np.int64:
    """Write the best turn for the frame at the top, uint64 [2]: the likeliest cells, or these with
    one replaced by one of the next likeliest; returns its value, see value_turn."""
    start, end, _ = room.frames[top]
    count_ships(layouts, start, end, cells_at(room.free, top), room.counts)
    order, likeliest, count = room.order, NO_CELLS, 0
    while count < order.shape[0]:
        order[count] = take_likeliest(room.counts)
        if order[count] < 0:
            break
        if count < shots:
            likeliest = with_cell(likeliest, order[count])
        count += 1
    best = value_turn(layouts, room, top, shots, likeliest, UNLIMITED)
    turn[0], turn[1] = likeliest
    for place in range(shots, count):
        for replaced in range(shots):
            others = without(likeliest, with_cell(NO_CELLS, order[replaced]))
            other = with_cell(others, order[place])
            value = value_turn(layouts, room, top, shots, other, best)
            if value < best:
                best, (turn[0], turn[1]) = value, other
    return best
