"""Counts the layouts of a fleet that agree with hits and misses, by each ship's placement.

Placements of all lengths have one numbering, each length (a type) in one block from a
multiple of 64 on. A set of placements is W uint64 words: bit b of word w is placement 64 w + b.
Hits are numbered, and a set of them is one uint64.

While a hit is open, some ship covers the first open hit. Then ships are placed type by type, those
of a type in ascending order, so each layout comes once. The last two ships are not enumerated: for
each placement of one, the placements of the other are counted, 64 at a time.
"""

from typing import NamedTuple

import numpy as np

from rlgames.kernels.words import ONE, ZERO, Integers, Words, compiled, count_bits, first_bit


class Position(NamedTuple):
    """What is known. disjoint: uint64 [64 W, W], the placements that do not meet each. covers:
    [hits, W], those on each hit. hit_sets: [64 W], the hits on each. types: [64 W]. starts:
    [types + 1], the words of each type. order: of types, the first is placed first."""

    disjoint: Words
    covers: Words
    hit_sets: Words
    types: Integers
    starts: Integers
    order: Integers


class Stack(NamedTuple):
    """A row for each ship that is placed and one for the end, the first filled: available: [D, W],
    the placements that are possible; open_hits: [D]; ships: [D, types], those to place. The others
    are room: candidates: [D, W]; placed, totals: [D]."""

    available: Words
    candidates: Words
    open_hits: Words
    ships: Integers
    placed: Integers
    totals: Integers


@compiled
def count_partners(
    these: Words,
    others: Words,
    disjoint: Words,
    counts: Integers,
    first: int,
    last: int,
    low: int,
    high: int,
) -> np.int64:
    """Add to the counts of these placements, in words first to last, how many of the others, in
    words low to high, do not meet each; returns the sum."""
    total = np.int64(0)
    # Up to three words, as for any ship on 10 x 10, stay in registers.
    b = min(low + 1, high - 1)
    c = min(low + 2, high - 1)
    in_a = others[low] if high > low else ZERO
    in_b = others[b] if b > low else ZERO
    in_c = others[c] if c > b else ZERO
    for word in range(first, last):
        rest = these[word]
        while rest:
            placement = 64 * word + first_bit(rest)
            rest &= rest - ONE
            partners = count_bits(in_a & disjoint[placement, low])
            partners += count_bits(in_b & disjoint[placement, b])
            partners += count_bits(in_c & disjoint[placement, c])
            for other in range(low + 3, high):
                partners += count_bits(others[other] & disjoint[placement, other])
            counts[placement] += partners
            total += partners
    return total


@compiled
def count_last(
    position: Position,
    available: Words,
    open_hits: np.uint64,
    counts: Integers,
    taken: np.int64,
    kind: np.int64,
) -> np.int64:
    """Count the placements of one last ship, of this type, that cover all open hits.

    taken: the placement of the ship before it, which they must not meet; -1: none. It is counted as
    often as there are such placements.
    """
    total = np.int64(0)
    for word in range(position.starts[kind], position.starts[kind + 1]):
        rest = available[word]
        if taken >= 0:
            rest &= position.disjoint[taken, word]
        hits = open_hits
        while hits:
            rest &= position.covers[first_bit(hits), word]
            hits &= hits - ONE
        while rest:
            counts[64 * word + first_bit(rest)] += 1
            rest &= rest - ONE
            total += 1
    if taken >= 0:
        counts[taken] += total
    return total


@compiled
def count_both(
    position: Position, these: Words, others: Words, a: np.int64, b: np.int64, counts: Integers
) -> np.int64:
    """Count pairs of one of these placements, of type a, and one of the others, of type b."""
    disjoint, starts = position.disjoint, position.starts
    low_a, high_a, low_b, high_b = starts[a], starts[a + 1], starts[b], starts[b + 1]
    count_partners(others, these, disjoint, counts, low_b, high_b, low_a, high_a)
    return count_partners(these, others, disjoint, counts, low_a, high_a, low_b, high_b)


@compiled
def count_pair(
    position: Position,
    available: Words,
    room: Words,
    open_hits: np.uint64,
    a: np.int64,
    b: np.int64,
    counts: Integers,
) -> np.int64:
    """Count the placements of the last two ships, of types a and b. room: [W]."""
    starts, disjoint, covers = position.starts, position.disjoint, position.covers
    low, high = starts[a], starts[a + 1]
    if not open_hits and a == b:
        return count_partners(available, available, disjoint, counts, low, high, low, high) // 2
    if not open_hits:
        return count_both(position, available, available, a, b, counts)
    first_hit = first_bit(open_hits)
    total = np.int64(0)
    one, other = a, b
    for _ in range(1 if a == b else 2):
        for word in range(starts[one], starts[one + 1]):
            rest = available[word] & covers[first_hit, word]
            room[word] = rest
            hits = open_hits & (open_hits - ONE)
            while hits:
                room[word] &= covers[first_bit(hits), word]
                hits &= hits - ONE
            rest &= ~room[word]
            while rest:  # it leaves hits open, which the other one covers
                taken = 64 * word + first_bit(rest)
                rest &= rest - ONE
                left = open_hits & ~position.hit_sets[taken]
                total += count_last(position, available, left, counts, taken, other)
        # Placements that meet do not pair, so with one type those in room pair with the others.
        total += count_both(position, room, available, one, other, counts)
        one, other = b, a
    return total


@compiled
def next_type(ships: Integers, order: Integers) -> np.int64:
    """The type of the next ship where no hit is open: two equal ships are left for the end."""
    reserved = np.int64(-1)
    for at in range(order.shape[0]):
        if ships[order[at]] > 1:
            reserved = np.int64(order[at])
    for at in range(order.shape[0]):
        if ships[order[at]] > 0 and order[at] != reserved:
            return np.int64(order[at])
    return reserved


@compiled
def enter(position: Position, stack: Stack, depth: int) -> None:
    """List the placements of the next ship at this depth."""
    available, candidates = stack.available, stack.candidates
    for word in range(available.shape[1]):
        candidates[depth, word] = ZERO
    hits, ships = stack.open_hits[depth], stack.ships[depth]
    chosen = np.int64(-1)
    if not hits:
        chosen = next_type(ships, position.order)
    for kind in range(position.order.shape[0]):
        if ships[kind] > 0 and (chosen < 0 or kind == chosen):
            for word in range(position.starts[kind], position.starts[kind + 1]):
                candidates[depth, word] = available[depth, word]
                if hits:
                    candidates[depth, word] &= position.covers[first_bit(hits), word]


@compiled
def place_next(position: Position, stack: Stack, depth: int) -> np.int64:
    """Place the next candidate at this depth, which makes the row below it; -1 if there is none."""
    available, candidates, ships = stack.available, stack.candidates, stack.ships
    for word in range(candidates.shape[1]):
        rest = candidates[depth, word]
        if rest:
            lowest = rest & (~rest + ONE)
            candidates[depth, word] ^= lowest
            # Later ships of this type come after this placement.
            available[depth, word] &= ~lowest
            placement = 64 * word + count_bits(lowest - ONE)
            for each in range(candidates.shape[1]):
                free = position.disjoint[placement, each]
                available[depth + 1, each] = available[depth, each] & free
            for kind in range(ships.shape[1]):
                ships[depth + 1, kind] = ships[depth, kind]
            ships[depth + 1, position.types[placement]] -= 1
            left = stack.open_hits[depth] & ~position.hit_sets[placement]
            stack.open_hits[depth + 1] = left
            return placement
    return np.int64(-1)


@compiled
def count_rest(position: Position, stack: Stack, counts: Integers, depth: int) -> np.int64:
    """Count the placements of the one or two ships that are left at this depth."""
    a, b = np.int64(-1), np.int64(-1)
    for kind in range(stack.ships.shape[1]):
        for _ in range(stack.ships[depth, kind]):
            a, b = b, np.int64(kind)
    available, hits = stack.available[depth], stack.open_hits[depth]
    if a < 0:
        return count_last(position, available, hits, counts, a, b)
    return count_pair(position, available, stack.candidates[depth], hits, a, b, counts)


@compiled
def count_layouts(position: Position, stack: Stack, counts: Integers, max_steps: int) -> np.int64:
    """The number of layouts, or -1 if there are more ways than max_steps to place all ships but
    two; counts, int64 [64 W], gets the number of layouts with each placement."""
    placed, totals = stack.placed, stack.totals
    depth, steps = 0, np.int64(0)
    last = max(0, len(stack.available) - 3)  # the depth where two ships are left
    if last > 0:
        enter(position, stack, depth)
    while steps <= max_steps:
        if depth < last:
            placed[depth] = place_next(position, stack, depth)
            if placed[depth] >= 0:
                depth += 1
                totals[depth] = 0
                if depth < last:
                    enter(position, stack, depth)
                continue
        else:
            steps += 1
            totals[depth] = count_rest(position, stack, counts, depth)
        if depth == 0:
            return np.int64(totals[depth])
        depth -= 1
        totals[depth] += totals[depth + 1]
        counts[placed[depth]] += totals[depth + 1]
    return np.int64(-1)
