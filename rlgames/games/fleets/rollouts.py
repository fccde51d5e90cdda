"""Turns that greedy play takes over listed layouts of a fleet, and turns that are better.

A set of cells is two uint64 words: bit b of word w is cell 64 w + b. Greedy play shoots at the
cells that most of the layouts that agree occupy. It ranges over the whole list, so the number of
turns is exact. Layouts that agree are a range of the list, which the result of a turn divides.
"""

from typing import NamedTuple

import numpy as np

from rlgames.games.fleets.count_layouts import Ints, Position, Stack, Words, enter, place_next
from rlgames.kernels.words import ONE, ZERO, compiled, count_bits, first_bit

NUM_WORDS = 2
UNLIMITED = np.int64(1 << 62)


class Layouts(NamedTuple):
    """cells: uint64 [L, 2], the cells of the ships. number: int64 [L], the row of placements, int64
    [L, ships]. Kernels reorder cells and number. masks: uint64 [64 W, 2], the cells of each
    placement. codes: int64 [64 W], what it adds when it sinks to the code of a result, or [0] where
    sunk ships are not announced."""

    cells: Words
    number: Ints
    placements: Ints
    masks: Words
    codes: Ints


class Room(NamedTuple):
    """frames: int64 [L + 2, 3], the first and last layout of a range and the hits to come. free:
    uint64 [L + 2, 2], the cells not shot at. counts: int64 [128]. order: int64 [cells to try]."""

    frames: Ints
    free: Words
    counts: Ints
    order: Ints


@compiled
def frame_at(room: Room, top: np.int64) -> tuple[np.int64, np.int64, np.int64]:
    return room.frames[top, 0], room.frames[top, 1], room.frames[top, 2]


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
def sinking_code(
    layouts: Layouts,
    at: np.int64,
    low: np.uint64,
    high: np.uint64,
    turn_low: np.uint64,
    turn_high: np.uint64,
) -> np.int64:
    """What is announced after a turn at these cells if a layout is the true one. low, high: the
    cells that were not shot at before."""
    code = np.int64(0)
    for placement in layouts.placements[layouts.number[at]]:
        afloat_low = layouts.masks[placement, 0] & low
        afloat_high = layouts.masks[placement, 1] & high
        if (afloat_low | afloat_high) and not (afloat_low & ~turn_low | afloat_high & ~turn_high):
            code += layouts.codes[placement]
    return code


@compiled
def split_off(
    layouts: Layouts,
    start: np.int64,
    end: np.int64,
    low: np.uint64,
    high: np.uint64,
    turn_low: np.uint64,
    turn_high: np.uint64,
) -> np.int64:
    """Move the layouts of a range that give a turn the same result as the first one to its front;
    returns their end."""
    cells, number = layouts.cells, layouts.number
    hits_low, hits_high = cells[start, 0] & turn_low, cells[start, 1] & turn_high
    announces = layouts.codes.shape[0] > 0 and (hits_low | hits_high) != ZERO
    code = np.int64(0)
    if announces:
        code = sinking_code(layouts, start, low, high, turn_low, turn_high)
    front = start + 1
    for at in range(start + 1, end):
        if cells[at, 0] & turn_low != hits_low or cells[at, 1] & turn_high != hits_high:
            continue
        if (
            announces
            and sinking_code(layouts, np.int64(at), low, high, turn_low, turn_high) != code
        ):
            continue
        for word in range(2):
            cells[at, word], cells[front, word] = cells[front, word], cells[at, word]
        number[at], number[front] = number[front], number[at]
        front += 1
    return front


@compiled
def count_ships(
    layouts: Layouts, start: np.int64, end: np.int64, low: np.uint64, high: np.uint64, counts: Ints
) -> None:
    """Count how many layouts of a range occupy each of these cells."""
    for cell in range(counts.shape[0]):
        counts[cell] = 0
    for at in range(start, end):
        rest = layouts.cells[at, 0] & low
        while rest:
            counts[first_bit(rest)] += 1
            rest &= rest - ONE
        rest = layouts.cells[at, 1] & high
        while rest:
            counts[64 + first_bit(rest)] += 1
            rest &= rest - ONE


@compiled
def take_likeliest(counts: Ints) -> np.int64:
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
    low: np.uint64,
    high: np.uint64,
    turn_low: np.uint64,
    turn_high: np.uint64,
) -> np.int64:
    """Push a frame for each result of a turn that leaves something to hit; returns the top."""
    while start < end:
        front = split_off(layouts, start, end, low, high, turn_low, turn_high)
        hits = count_bits(layouts.cells[start, 0] & turn_low)
        hits += count_bits(layouts.cells[start, 1] & turn_high)
        if hits < to_hit:
            room.frames[top, 0], room.frames[top, 1] = start, front
            room.frames[top, 2] = to_hit - hits
            room.free[top, 0], room.free[top, 1] = low & ~turn_low, high & ~turn_high
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
        start, end, to_hit = frame_at(room, top)
        low, high = room.free[top, 0], room.free[top, 1]
        if end - start == 1:
            total += -(-to_hit // shots)
            continue
        if shots == 1 and not layouts.codes.shape[0]:
            # Cells that all layouts occupy tell nothing, and greedy play shoots at them first.
            all_low, all_high = low, high
            for at in range(start, end):
                all_low &= layouts.cells[at, 0]
                all_high &= layouts.cells[at, 1]
            certain = count_bits(all_low) + count_bits(all_high)
            total += certain * (end - start)
            to_hit -= certain
            if not to_hit:
                continue
            low, high = low & ~all_low, high & ~all_high
        count_ships(layouts, start, end, low, high, counts)
        turn_low, turn_high = ZERO, ZERO
        for _ in range(shots):
            cell = take_likeliest(counts)
            if cell >= 64:
                turn_high |= ONE << np.uint64(cell - 64)
            elif cell >= 0:
                turn_low |= ONE << np.uint64(cell)
        total += end - start
        top = push_results(layouts, room, top, start, end, to_hit, low, high, turn_low, turn_high)
    return total


@compiled
def value_turn(
    layouts: Layouts,
    room: Room,
    top: np.int64,
    shots: int,
    turn_low: np.uint64,
    turn_high: np.uint64,
    bound: np.int64,
) -> np.int64:
    """The sum over the layouts of the frame at the top of the turns that are left if the next one
    is at these cells and play is greedy from then on."""
    start, end, to_hit = frame_at(room, top)
    low, high = room.free[top, 0], room.free[top, 1]
    above = push_results(layouts, room, top + 1, start, end, to_hit, low, high, turn_low, turn_high)
    turns = end - start
    return turns + play_greedily(layouts, room, top + 1, above, shots, bound - turns)


@compiled
def choose_turn(layouts: Layouts, room: Room, top: np.int64, shots: int, turn: Words) -> np.int64:
    """Write the best turn for the frame at the top, uint64 [2]: the likeliest cells, or these with
    one replaced by one of the next likeliest; returns its value, see value_turn."""
    start, end, _ = frame_at(room, top)
    count_ships(layouts, start, end, room.free[top, 0], room.free[top, 1], room.counts)
    order, turn[0], turn[1] = room.order, ZERO, ZERO
    count = 0
    while count < order.shape[0]:
        order[count] = take_likeliest(room.counts)
        if order[count] < 0:
            break
        if count < shots:
            turn[order[count] // 64] |= ONE << np.uint64(order[count] % 64)
        count += 1
    low, high = turn[0], turn[1]
    best = value_turn(layouts, room, top, shots, low, high, UNLIMITED)
    for place in range(shots, count):
        for replaced in range(shots):
            other_low, other_high = low, high
            for cell in (order[place], order[replaced]):
                if cell < 64:
                    other_low ^= ONE << np.uint64(cell)
                else:
                    other_high ^= ONE << np.uint64(cell - 64)
            value = value_turn(layouts, room, top, shots, other_low, other_high, best)
            if value < best:
                best, turn[0], turn[1] = value, other_low, other_high
    return best
