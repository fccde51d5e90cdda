"""Values of all beliefs of battleship that can follow, by depth-first search.

states.py describes the layout of states, tables and the stack.
"""

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import ONE, TWO, ZERO, compiled, count_bits, first_bit
from rlgames.solvers.belief.states import (
    ALL,
    ALWAYS,
    BEST,
    CELLS,
    END,
    EVER,
    OWED,
    PLACE,
    RESULT,
    SIZE,
    START,
    TOTAL,
    TURN,
    UNKNOWN,
    WEIGHT,
    Floats,
    Ints,
    Problem,
    Stack,
    Table,
    Words,
    belief_key,
    find_slot,
    first_slot,
)

DONE, PAUSED, FULL = 0, 1, 2
"""Why a search returns: the root is valued, its work is used up, the table needs more room."""


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


@compiled
def move_to_front(
    layouts: Words, weights: Floats, start: int, end: int, mask: np.uint64, bits: np.uint64
) -> int:
    """Move the layouts with these bits under a mask to the front of a range; returns its end."""
    for at in range(start, end):
        if layouts[at] & mask == bits:
            layouts[at], layouts[start] = layouts[start], layouts[at]
            weights[at], weights[start] = weights[start], weights[at]
            start += 1
    return start


@compiled
def group_by_turn(
    layouts: Words, weights: Floats, sums: Floats, sets: Words, cells: Ints, turn: np.uint64
) -> None:
    """The same for a turn at the cells at these places. Bit i of a result: the i-th was hit."""
    for result in range(1 << count_bits(turn)):
        sums[result], sets[result, 0], sets[result, 1] = 0.0, ZERO, ALL
    for at in range(layouts.shape[0]):
        layout = layouts[at]
        hits, rest, bit = ZERO, turn, ZERO
        while rest:
            hits |= ((layout >> np.uint64(cells[first_bit(rest)])) & ONE) << bit
            rest &= rest - ONE
            bit += ONE
        sums[hits] += weights[at]
        sets[hits, 0] |= layout
        sets[hits, 1] &= layout


@compiled
def next_turn(turn: np.uint64) -> np.uint64:
    """The next larger set of as many places."""
    lowest = turn & (~turn + ONE)
    above = turn + lowest
    return above | (((turn ^ above) >> TWO) // lowest)


@compiled
def advance(ints: Ints, words: Words, floats: Floats, depth: int, shots: int) -> bool:
    """Go to the next turn of the state at this depth; False after the last one."""
    unknown, size = ints[depth, UNKNOWN], ints[depth, SIZE]
    turn = next_turn(words[depth, TURN])
    if turn >> np.uint64(unknown):
        size += 1
        if size > min(unknown, shots):
            return False
        ints[depth, SIZE] = size
        turn = (ONE << np.uint64(size)) - ONE
    words[depth, TURN] = turn
    ints[depth, RESULT], floats[depth, TOTAL] = 0, 0.0
    return True


@compiled
def turn_cells(ints: Ints, words: Words, depth: int, result: int) -> np.uint64:
    """The cells that the turn at this depth hits with a result."""
    cells, rest = ZERO, words[depth, TURN]
    while rest:
        if result & 1:
            cells |= ONE << np.uint64(ints[depth, CELLS + first_bit(rest)])
        rest &= rest - ONE
        result >>= 1
    return cells


@compiled
def push(
    problem: Problem,
    table: Table,
    stack: Stack,
    depth: int,
    start: int,
    end: int,
    weight: float,
    ever: np.uint64,
    always: np.uint64,
    owed: int,
) -> None:
    """Put the state of a range of layouts, with their weight and sets, at this depth."""
    ints, words, floats, shots = stack.ints, stack.words, stack.floats, problem.shots
    ints[depth, START], ints[depth, END], ints[depth, OWED] = start, end, owed
    words[depth, EVER], words[depth, ALWAYS] = ever, always
    unknown, rest = 0, ever & ~always
    while rest:
        ints[depth, CELLS + unknown] = first_bit(rest)
        rest &= rest - ONE
        unknown += 1
    size = max(1, shots - owed)
    ints[depth, UNKNOWN], ints[depth, SIZE], ints[depth, RESULT] = unknown, size, 0
    words[depth, TURN] = (ONE << np.uint64(size)) - ONE
    floats[depth, WEIGHT] = weight
    floats[depth, TOTAL], floats[depth, BEST] = 0.0, np.inf
    ints[depth, PLACE] = 0
    if shots == 1:
        look_at_cells(problem, table, stack, depth)


@compiled
def push_root(
    problem: Problem, table: Table, stack: Stack, shot: np.uint64, hit: np.uint64, owed: int
) -> None:
    """Begin with the state after these shots, which leaves cells unknown."""
    layouts, weights, sums, sets = problem.layouts, problem.weights, problem.sums, problem.sets
    end = move_to_front(layouts, weights, 0, layouts.shape[0], shot, hit)
    group_by_turn(layouts[:end], weights[:end], sums, sets, stack.ints[0, CELLS:], ZERO)
    push(problem, table, stack, 0, 0, end, sums[0], sets[0, 0], sets[0, 1], owed)


@compiled
def push_result(problem: Problem, table: Table, stack: Stack, depth: int) -> None:
    """Put the next result of the turn at this depth, which was just valued, above it."""
    ints, words, owed = stack.ints, stack.words, 0
    result, start, end = ints[depth, RESULT], ints[depth, START], ints[depth, END]
    if problem.shots == 1:
        place = ints[depth, PLACE]
        cells = ONE << np.uint64(ints[depth, CELLS + place])
        hits = cells if result else ZERO
        weight, sets = stack.results.weights[depth, place, result], stack.results.sets[depth, place]
    else:
        cells = turn_cells(ints, words, depth, (1 << ints[depth, SIZE]) - 1)
        hits = turn_cells(ints, words, depth, result)
        weight, sets = problem.sums[result], problem.sets
        owed = ints[depth, OWED] - problem.shots + ints[depth, SIZE]
        owed += count_bits(sets[result, 1] & ~words[depth, ALWAYS]) - count_bits(hits)
    end = move_to_front(problem.layouts, problem.weights, start, end, cells, hits)
    ever, always = sets[result, 0], sets[result, 1]
    push(problem, table, stack, depth + 1, start, end, weight, ever, always, owed)


@compiled
def value_turn(problem: Problem, table: Table, stack: Stack, depth: int) -> bool:
    """Add up the results of the turn at this depth. False: the next one is not valued yet."""
    ints, sums, sets, shots = stack.ints, problem.sums, problem.sets, problem.shots
    start, end = ints[depth, START], ints[depth, END]
    layouts, weights = problem.layouts[start:end], problem.weights[start:end]
    turn, before, size = stack.words[depth, TURN], stack.words[depth, ALWAYS], ints[depth, SIZE]
    group_by_turn(layouts, weights, sums, sets, ints[depth, CELLS:], turn)
    total = stack.floats[depth, TOTAL]
    for result in range(ints[depth, RESULT], 1 << size):
        weight, ever, always = sums[result], sets[result, 0], sets[result, 1]
        if weight == 0:
            continue
        owed = ints[depth, OWED] - shots + size
        owed += count_bits(always & ~before) - count_bits(np.uint64(result))
        unknown = count_bits(ever & ~always)
        if unknown == 0:
            total += weight * np.float64((owed + shots - 1) // shots)
        elif unknown + owed <= shots:
            total += weight
        else:
            key = belief_key(problem.numbers, problem.cells, ever, always)
            slot = find_slot(table.keys, table.owed, key, owed)
            if table.keys[slot, 0] == ZERO:
                ints[depth, RESULT], stack.floats[depth, TOTAL] = result, total
                return False
            total += table.values[slot, 1]
    stack.floats[depth, TOTAL] = total
    return True


@compiled
def search(
    problem: Problem, table: Table, stack: Stack, depth: int, work: int, max_count: int
) -> tuple[int, int]:
    """Value the states on the stack and all that can follow.

    depth: of the last state. work: layouts and results to look at before it pauses.
    max_count: states that the table has room for. Returns why it stops, and the depth.
    """
    ints, words, floats = stack.ints, stack.words, stack.floats
    while depth >= 0:
        if work <= 0:
            return PAUSED, depth
        if table.size[0] >= max_count:
            return FULL, depth
        if problem.shots == 1:
            is_valued = value_shots(table, stack, depth)
            work -= ints[depth, END] - ints[depth, START] + ints[depth, UNKNOWN]
        else:
            work -= ints[depth, END] - ints[depth, START] + (1 << ints[depth, SIZE])
            is_valued = value_turn(problem, table, stack, depth)
        if not is_valued:
            push_result(problem, table, stack, depth)
            depth += 1
            continue
        if problem.shots > 1:
            floats[depth, BEST] = min(floats[depth, BEST], floats[depth, TOTAL])
        if problem.shots == 1 or not advance(ints, words, floats, depth, problem.shots):
            ever, always, owed = words[depth, EVER], words[depth, ALWAYS], ints[depth, OWED]
            key = belief_key(problem.numbers, problem.cells, ever, always)
            slot = find_slot(table.keys, table.owed, key, owed)
            table.keys[slot, 0] = key
            table.values[slot, 1] = floats[depth, WEIGHT] + floats[depth, BEST]
            if table.owed.shape[0] > 0:
                table.owed[slot] = owed
            table.size[0] += 1
            depth -= 1
    return DONE, depth


@compiled
def turn_rank(num_cells: np.int64, spare: int, cells: np.uint64, due: np.uint64) -> np.uint64:
    """The highest for the set with the lowest cells, where this many spare shots of the turn go to
    the first cells that are due."""
    for _ in range(spare):
        cells |= due & (~due + ONE)
        due &= due - ONE
    rank = ZERO
    while cells:
        rank |= ONE << np.uint64(num_cells - 1 - first_bit(cells))
        cells &= cells - ONE
    return rank


@compiled
def choose_turn(
    problem: Problem, table: Table, stack: Stack, depth: int, due: np.uint64
) -> np.uint64:
    """The unknown cells of the best turn of the state at this depth, which must be valued.

    due: the certain hits. Of equally good turns it takes the one with the lowest cells.
    """
    ints, words, floats, shots = stack.ints, stack.words, stack.floats, problem.shots
    num_cells = count_bits(problem.cells)
    best, best_rank, chosen = np.inf, ZERO, ZERO
    is_open = True
    while is_open:
        if shots == 1:
            total, _ = value_shot(table, stack, depth, first_bit(words[depth, TURN]))
        else:
            value_turn(problem, table, stack, depth)
            total = floats[depth, TOTAL]
        # Sums are exact for whole weights; the margin is for fractions.
        if total <= best * (1 + 1e-9):
            cells = turn_cells(ints, words, depth, (1 << ints[depth, SIZE]) - 1)
            spare = shots - ints[depth, SIZE] if shots > 1 else 0
            rank = turn_rank(num_cells, spare, cells, due)
            if rank > best_rank or total < best * (1 - 1e-9):
                best_rank, chosen = rank, cells
            best = min(best, total)
        is_open = advance(ints, words, floats, depth, shots)
    return chosen


@compiled
def close_beliefs(layouts: Words, weights: Floats, seen: Words, sums: Floats, sets: Words) -> None:
    """Compute the sums [B] and sets [B, 2] of the layouts that agree, as for results of a turn.

    seen: uint64 [B, 2], the cells shot at and those hit.
    """
    for row in range(seen.shape[0]):
        sums[row], sets[row, 0], sets[row, 1] = 0.0, ZERO, ALL
        for at in range(layouts.shape[0]):
            layout = layouts[at]
            if layout & seen[row, 0] == seen[row, 1]:
                sums[row] += weights[at]
                sets[row, 0] |= layout
                sets[row, 1] &= layout
