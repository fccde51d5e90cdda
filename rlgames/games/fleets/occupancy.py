"""The probability that each cell has a ship, over all layouts that agree with the observations.

Placements, words and sets of hits are as in count_layouts. With announced sunk ships, a placement
was completed at the latest of its hits, so each ship has a set of possible placements: those that
were completed when it sank, or, while it is afloat, those that are not completed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.games.fleets.count_layouts import Position, Stack, count_layouts, next_type
from rlgames.kernels.words import ONE, ZERO, Bools, Integers, Words, compiled, count_bits

Floats = NDArray[np.float64]


class Counting(NamedTuple):
    """What all positions share: placements: [W], the bits in use. on_cell: [N, W], the placements
    on each cell. cells: [64 W, longest ship], its cells, then -1. max_ships: [types], the most
    ships of each type. radix: [types], the place value of a type in the code of a set of ships.

    Room: position and stack, as in count_layouts. counts: [64 W], the layouts with each placement.
    sizes: [types], the placements that agree. on_hit: [types], those on a hit, mean over the hits.
    ways: [codes], the ways to place all but two of a set of ships."""

    placements: Words
    on_cell: Words
    cells: Integers
    max_ships: Integers
    radix: Integers
    position: Position
    stack: Stack
    counts: Integers
    sizes: Floats
    on_hit: Floats
    ways: Floats


@compiled
def set_sizes(num_hits: np.int64, counting: Counting) -> None:
    """Write how many placements of each type agree, and the order of the types by that."""
    position, available = counting.position, counting.stack.available[0]
    sizes, on_hit = counting.sizes, counting.on_hit
    for kind in range(sizes.shape[0]):
        sizes[kind], on_hit[kind] = 0.0, 0.0
        for word in range(position.starts[kind], position.starts[kind + 1]):
            sizes[kind] += count_bits(available[word])
            for number in range(num_hits):
                on_hit[kind] += count_bits(available[word] & position.covers[number, word])
        on_hit[kind] /= max(1, num_hits)
    order = position.order
    for kind in range(sizes.shape[0]):
        place = kind
        while place > 0 and sizes[order[place - 1]] > sizes[kind]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = kind


@compiled
def set_position(shot: Bools, hit: Bools, possible: Words, counting: Counting) -> np.int64:
    """Write what is known of one board, bool [N] twice, and the placements, uint64 [W], that agree
    with the announced sunk ships; returns the number of hits, or -1 if they are too many."""
    position, stack = counting.position, counting.stack
    available, on_cell = stack.available[0], counting.on_cell
    for word in range(available.shape[0]):
        available[word] = possible[word]
    for cell in range(shot.shape[0]):
        if shot[cell] and not hit[cell]:
            for word in range(available.shape[0]):
                available[word] &= ~on_cell[cell, word]
    num_hits = np.int64(0)
    position.hit_sets[:] = ZERO
    for cell in range(hit.shape[0]):
        if not hit[cell]:
            continue
        if num_hits == position.covers.shape[0]:
            return np.int64(-1)
        for word in range(available.shape[0]):
            covering = on_cell[cell, word]
            position.covers[num_hits, word] = covering
            while covering:
                lowest = covering & (~covering + ONE)
                covering ^= lowest
                placement = 64 * word + count_bits(lowest - ONE)
                position.hit_sets[placement] |= ONE << np.uint64(num_hits)
        num_hits += 1
    stack.open_hits[0] = (ONE << np.uint64(num_hits)) - ONE if num_hits < 64 else ~ZERO
    set_sizes(num_hits, counting)
    return num_hits


@compiled
def estimate_steps(num_hits: np.int64, fleet: Integers, counting: Counting) -> np.float64:
    """About in how many ways all ships but two of a fleet, int64 [types], can be placed, if they
    could meet. -1 if some ship cannot be placed."""
    stack, radix, sizes = counting.stack, counting.radix, counting.sizes
    fleet_code = np.int64(0)
    for kind in range(fleet.shape[0]):
        if fleet[kind] and not sizes[kind]:
            return np.float64(-1.0)
        fleet_code += fleet[kind] * radix[kind]
    num_ships = stack.ships.shape[0] - 1
    ways, left = counting.ways, stack.ships[num_ships]
    for code in range(fleet_code + 1):
        total = np.int64(0)
        for kind in range(left.shape[0]):
            left[kind] = (code // radix[kind]) % (counting.max_ships[kind] + 1)
            total += left[kind]
        ways[code] = 1.0 if total < 3 else 0.0
        if total < 3:
            continue
        if num_hits > num_ships - total:
            for kind in range(left.shape[0]):
                if left[kind] > 0:
                    ways[code] += counting.on_hit[kind] * ways[code - radix[kind]]
        else:
            smallest = next_type(left, counting.position.order)
            ways[code] = sizes[smallest] * ways[code - radix[smallest]]
    return np.float64(ways[fleet_code])


@compiled
def write_occupancy(
    shot: Bools,
    hit: Bools,
    possible: Words,
    fleets: Integers,
    counting: Counting,
    max_steps: int,
    totals: Integers,
    occupancy: Floats,
) -> None:
    """Write how many layouts agree, int64 [B], and in how many of them each cell has a ship, as a
    fraction, float64 [B, N]. Both are -1 in rows with more than about max_steps ways to place all
    ships but two, and 0 in those that no layout agrees with.

    shot, hit: bool [B, N]. possible: uint64 [B, W], see set_position. fleets: int64 [B, types], the
    ships of each type.
    """
    stack, counts = counting.stack, counting.counts
    for row in range(shot.shape[0]):
        totals[row], occupancy[row] = -1, -1.0
        num_hits = set_position(shot[row], hit[row], possible[row], counting)
        if num_hits < 0:
            continue
        steps = estimate_steps(num_hits, fleets[row], counting)
        if steps > max_steps:
            continue
        totals[row], occupancy[row] = 0, 0.0
        if steps < 0:
            continue
        counts[:] = 0
        stack.totals[:] = 0
        for kind in range(fleets.shape[1]):
            stack.ships[0, kind] = fleets[row, kind]
        total = count_layouts(counting.position, stack, counts, max_steps)
        totals[row] = total
        if total < 0:
            occupancy[row] = -1.0
            continue
        for placement in range(counts.shape[0]):
            if counts[placement]:
                for cell in counting.cells[placement]:
                    if cell >= 0:
                        occupancy[row, cell] += counts[placement] / total
