"""States of battleship as a belief MDP, their keys, and tables of their values.

A set of cells is a uint64 with bit c for cell c. The layouts that agree with a belief are a range
of `Problem.layouts`; the agreeing layouts of a result of a turn are moved to the front of that
range, so that the search needs no copies. Of a range, `ever` has the cells with a ship in any
layout and `always` those with a ship in all. They say all that is known once beliefs are closed:
cells outside ever are misses, cells in always are hits, the others are unknown.

A belief has digit 0 for an unknown cell, 1 for a miss and 2 for a hit. Its key is its number in
base 3, the smallest over all symmetries, plus 1. A table has one row of 16 bytes for each state:
column 0 the key (0: free) and column 1 W, the expected number of turns times the weight of the
agreeing layouts. `owed` has the certain hits of each state. If a turn has one shot they are
charged at once, and owed has no rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.words import ONE, ZERO, compiled, count_bits

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALL = np.uint64(2**64 - 1)
HASH_FACTOR, OWED_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
MISSING = -1.0
"""The value of a state that is not in a table."""


class Problem(NamedTuple):
    """What is searched. layouts: uint64 [L], in an order that the search changes. weights: [L],
    in the same order. numbers: uint64 [3, 2^(N/3), G], the numbers of sets of each third of the
    cells under each symmetry. shots: of a turn. cells: uint64, all of them. sums: of the weights
    for each result of a turn, [2^shots]. sets: [2^shots, 2], ever and always for each result."""

    layouts: Words
    weights: Floats
    numbers: Words
    shots: int
    cells: np.uint64
    sums: Floats
    sets: Words


class Table(NamedTuple):
    """States and their values; keys and values are two views of the same memory [capacity, 2].
    size: [1], how many states there are."""

    keys: Words
    values: Floats
    owed: NDArray[np.uint8]
    size: Ints


class ShotResults(NamedTuple):
    """The results of a shot, 0 a miss and 1 a hit, at each unknown cell of the states on a stack.

    sets: uint64 [D, N, 2, 2], ever and always. keys: uint64 [D, N, 2], 0 where no cell is unknown.
    row_keys, values: [D, N, 2], the row of the table where the search for the key begins. weights:
    [D, N, 2]. charges: [D, N], the turns of certain hits times the weight.
    """

    sets: Words
    keys: Words
    row_keys: Words
    values: Floats
    weights: Floats
    charges: Floats


class Stack(NamedTuple):
    """The states between the root and the one that is searched, a row for each.

    ints: int64 [D, CELLS + N], the columns below. words: uint64 [D, 3]: ever, always, and the turn,
    as a set of places in the list of unknown cells. floats: [D, 3]: weight, W of the turn's results
    so far, the least W of a turn. results: where a turn has one shot; otherwise without rows.
    """

    ints: Ints
    words: Words
    floats: Floats
    results: ShotResults


START, END, UNKNOWN, OWED, SIZE, RESULT, PLACE, CELLS = range(8)
"""The range of agreeing layouts; how many unknown cells, certain hits, and cells of the turn there
are; the result that is next; where a turn has one shot, the place of its cell; the unknown
cells."""
EVER, ALWAYS, TURN = range(3)
WEIGHT, TOTAL, BEST = range(3)


@compiled
def belief_key(numbers: Words, cells: np.uint64, ever: np.uint64, always: np.uint64) -> np.uint64:
    """The key of a closed belief. numbers, cells: of the Problem."""
    last = np.uint64(numbers.shape[1] - 1)
    width = np.uint64(count_bits(last))
    misses = cells & ~ever
    miss_0, hit_0 = misses & last, always & last
    miss_1, hit_1 = (misses >> width) & last, (always >> width) & last
    width += width
    miss_2, hit_2 = misses >> width, always >> width
    least = ALL
    for g in range(numbers.shape[2]):
        miss = numbers[0, miss_0, g] + numbers[1, miss_1, g] + numbers[2, miss_2, g]
        hit = numbers[0, hit_0, g] + numbers[1, hit_1, g] + numbers[2, hit_2, g]
        least = min(least, miss + (hit << ONE))
    return least + ONE


@compiled
def first_slot(table_keys: Words, key: np.uint64, owed: np.uint64) -> np.uint64:
    """The row of a table where the search for a state begins."""
    mixed = (key ^ (owed * OWED_FACTOR)) * HASH_FACTOR
    return (mixed ^ (mixed >> np.uint64(32))) & np.uint64(table_keys.shape[0] - 1)


@compiled
def find_slot(
    table_keys: Words, table_owed: NDArray[np.uint8], key: np.uint64, owed: int | np.int64
) -> np.int64:
    """The row of a state in a table, or the free row where it belongs."""
    mask = np.uint64(table_keys.shape[0] - 1)
    has_owed = table_owed.shape[0] > 0
    slot = first_slot(table_keys, key, np.uint64(owed))
    while table_keys[slot, 0] != ZERO:
        if table_keys[slot, 0] == key and (not has_owed or table_owed[slot] == owed):
            break
        slot = (slot + ONE) & mask
    return np.int64(slot)


@compiled
def find_value(table: Table, key: np.uint64, owed: int | np.int64) -> float:
    """W of a state, or MISSING."""
    slot = find_slot(table.keys, table.owed, key, owed)
    return table.values[slot, 1] if table.keys[slot, 0] != ZERO else MISSING


@compiled
def copy_table(source: Table, target: Table) -> None:
    """Insert all states of a table into an empty one."""
    for row in range(source.keys.shape[0]):
        if source.keys[row, 0] != ZERO:
            owed = np.int64(source.owed[row]) if source.owed.shape[0] > 0 else np.int64(0)
            slot = find_slot(target.keys, target.owed, source.keys[row, 0], owed)
            target.keys[slot, 0] = source.keys[row, 0]
            target.values[slot, 1] = source.values[row, 1]
            if source.owed.shape[0] > 0:
                target.owed[slot] = owed
    target.size[0] = source.size[0]
