"""Results of single shots at the cells of a belief: grouped, looked up and valued together.

belief_states.py describes the layout of states, tables and the stack.
"""

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import ONE, ZERO, compiled, count_bits
from rlgames.solvers.belief.states import (
    ALL,
    ALWAYS,
    BEST,
    CELLS,
    END,
    PLACE,
    RESULT,
    START,
    UNKNOWN,
    Floats,
    Problem,
    Stack,
    Table,
    Words,
    belief_key,
    find_slot,
    first_slot,
)


@jit(_nrt=False, fastmath={"reassoc"})  # several layouts at once
def group_by_cell(
    layouts: Words, weights: Floats, sums: Floats, sets: Words, cell: np.uint64
) -> None:
    """Compute the sums and sets of the two results of a shot, for the layouts of a range."""
    sum_miss, ever_miss, always_miss = 0.0, ZERO, ALL
    sum_hit, ever_hit, always_hit = 0.0, ZERO, ALL
    for at in range(layouts.shape[0]):
        layout, weight = layouts[at], weights[at]
        is_hit = (layout >> cell) & ONE
        hit = ~is_hit + ONE  # all bits or none
        sum_hit += weight if is_hit else 0.0
        sum_miss += 0.0 if is_hit else weight
        ever_hit |= layout & hit
        ever_miss |= layout & ~hit
        always_hit &= layout | ~hit
        always_miss &= layout | hit
    sums[0], sets[0, 0], sets[0, 1] = sum_miss, ever_miss, always_miss
    sums[1], sets[1, 0], sets[1, 1] = sum_hit, ever_hit, always_hit


@compiled
def look_at_cells(problem: Problem, table: Table, stack: Stack, depth: int) -> None:
    """Group the results of a shot at each unknown cell of the state at this depth.

    All results are looked up in the table together, so that the processor waits for memory once.
    """
    ints, results, sums = stack.ints, stack.results, problem.sums
    start, end, unknown = ints[depth, START], ints[depth, END], ints[depth, UNKNOWN]
    layouts, weights = problem.layouts[start:end], problem.weights[start:end]
    before = stack.words[depth, ALWAYS]
    for place in range(unknown):
        sets = results.sets[depth, place]
        group_by_cell(layouts, weights, sums, sets, np.uint64(ints[depth, CELLS + place]))
        charge = 0.0
        for result in range(2):
            ever, always = sets[result, 0], sets[result, 1]
            charge += sums[result] * np.float64(count_bits(always & ~before) - result)
            key = ZERO
            if ever != always:
                key = belief_key(problem.numbers, problem.cells, ever, always)
            results.keys[depth, place, result] = key
            results.weights[depth, place, result] = sums[result]
        results.charges[depth, place] = charge
    keys, row_keys, values = results.keys[depth], results.row_keys[depth], results.values[depth]
    for place in range(unknown):
        for result in range(2):
            slot = first_slot(table.keys, keys[place, result], ZERO)
            # No comparison here: it would wait for memory.
            row_keys[place, result] = table.keys[slot, 0]
            values[place, result] = table.values[slot, 1]


@compiled
def value_shot(table: Table, stack: Stack, depth: int, place: int | np.int64) -> tuple[float, int]:
    """Add up the results of the shot at the unknown cell at this place. Returns W and -1, or an
    unknown value and the first result that is not valued yet."""
    results = stack.results
    keys, row_keys, values = results.keys[depth], results.row_keys[depth], results.values[depth]
    total = results.charges[depth, place]
    for result in range(2):
        key = keys[place, result]
        if key == ZERO:
            continue
        if row_keys[place, result] == key:
            total += values[place, result]
            continue
        slot = find_slot(table.keys, table.owed, key, 0)
        if table.keys[slot, 0] == ZERO:
            return total, result
        total += table.values[slot, 1]
    return total, -1


@compiled
def value_shots(table: Table, stack: Stack, depth: int) -> bool:
    """Find the least W of a shot of the state at this depth. False: the next result is not valued
    yet."""
    ints, best = stack.ints, stack.floats[depth, BEST]
    for place in range(ints[depth, PLACE], ints[depth, UNKNOWN]):
        total, result = value_shot(table, stack, depth, place)
        if result >= 0:
            ints[depth, PLACE], ints[depth, RESULT] = place, result
            stack.floats[depth, BEST] = best
            return False
        best = min(best, total)
    stack.floats[depth, BEST] = best
    return True
