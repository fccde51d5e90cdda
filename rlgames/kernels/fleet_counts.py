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
from numpy.typing import NDArray

from rlgames.kernels.words import ONE, ZERO, compiled, count_bits, first_bit

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


class Position(NamedTuple):
    """What is known. disjoint: uint64 [64 W, W], the placements that do not meet each. covers:
    [hits, W], those on each hit. hit_sets: [64 W], the hits on each. types: [64 W]. starts:
    [types + 1], the words of each type. order: of types, the first is placed first."""

    disjoint: Words
    covers: Words
    hit_sets: Words
    types: Ints
    starts: Ints
    order: Ints


class Stack(NamedTuple):
    """A row for each ship that is placed, the first filled: available: [D, W], the placements that
    are possible; open_hits: [D]; ships: [D, types], those to place. The others are room:
    candidates: [D, W]; placed, totals: [D]."""

    available: Words
    candidates: Words
    open_hits: Words
    ships: Ints
    placed: Ints
    totals: Ints


@compiled
def count_partners(
    these: Words,
    others: Words,
    disjoint: Words,
    counts: Ints,
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
    available: Words,
    covers: Words,
    open_hits: np.uint64,
    counts: Ints,
    disjoint: Words,
    taken: np.int64,
    first: int,
    last: int,
) -> np.int64:
    """Count the placements of one last ship, in words first to last, that cover all open hits.

    taken: the placement of the ship before it, which they must not meet; -1: none. It is counted as
    often as there are such placements.
    """
    total = np.int64(0)
    for word in range(first, last):
        rest = available[word]
        if taken >= 0:
            rest &= disjoint[taken, word]
        hits = open_hits
        while hits:
            rest &= covers[first_bit(hits), word]
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
    these: Words,
    others: Words,
    disjoint: Words,
    starts: Ints,
    a: np.int64,
    b: np.int64,
    counts: Ints,
) -> np.int64:
    """Count pairs of one of these placements, of type a, and one of the others, of type b."""
    count_partners(
        others, these, disjoint, counts, starts[b], starts[b + 1], starts[a], starts[a + 1]
    )
    return count_partners(
        these, others, disjoint, counts, starts[a], starts[a + 1], starts[b], starts[b + 1]
    )


@compiled
def count_pair(
    available: Words,
    room: Words,
    disjoint: Words,
    covers: Words,
    hit_sets: Words,
    open_hits: np.uint64,
    starts: Ints,
    a: np.int64,
    b: np.int64,
    counts: Ints,
) -> np.int64:
    """Count the placements of the last two ships, of types a and b. room: [W]."""
    low, high = starts[a], starts[a + 1]
    if not open_hits and a == b:
        return count_partners(available, available, disjoint, counts, low, high, low, high) // 2
    if not open_hits:
        return count_both(available, available, disjoint, starts, a, b, counts)
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
                total += count_last(
                    available,
                    covers,
                    open_hits & ~hit_sets[taken],
                    counts,
                    disjoint,
                    taken,
                    starts[other],
                    starts[other + 1],
                )
        # Placements that meet do not pair, so with one type those in room pair with the others.
        total += count_both(room, available, disjoint, starts, one, other, counts)
        one, other = b, a
    return total


@compiled
def next_type(ships: Ints, order: Ints) -> np.int64:
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
def enter(
    depth: int,
    available: Words,
    candidates: Words,
    covers: Words,
    open_hits: Words,
    ships: Ints,
    starts: Ints,
    order: Ints,
) -> None:
    """List the placements of the next ship at this depth."""
    for word in range(available.shape[1]):
        candidates[depth, word] = ZERO
    hits = open_hits[depth]
    chosen = np.int64(-1)
    if not hits:
        chosen = next_type(ships[depth], order)
    for kind in range(order.shape[0]):
        if ships[depth, kind] > 0 and (chosen < 0 or kind == chosen):
            for word in range(starts[kind], starts[kind + 1]):
                candidates[depth, word] = available[depth, word]
                if hits:
                    first_hit = first_bit(hits)
                    candidates[depth, word] &= covers[first_hit, word]


@compiled
def place_next(
    depth: int,
    available: Words,
    candidates: Words,
    disjoint: Words,
    hit_sets: Words,
    open_hits: Words,
    ships: Ints,
    types: Ints,
) -> np.int64:
    """Place the next candidate at this depth, which makes the row below it; -1 if there is none."""
    for word in range(candidates.shape[1]):
        rest = candidates[depth, word]
        if rest:
            lowest = rest & (~rest + ONE)
            candidates[depth, word] ^= lowest
            # Later ships of this type come after this placement.
            available[depth, word] &= ~lowest
            placement = 64 * word + count_bits(lowest - ONE)
            for each in range(candidates.shape[1]):
                available[depth + 1, each] = available[depth, each] & disjoint[placement, each]
            for kind in range(ships.shape[1]):
                ships[depth + 1, kind] = ships[depth, kind]
            ships[depth + 1, types[placement]] -= 1
            open_hits[depth + 1] = open_hits[depth] & ~hit_sets[placement]
            return placement
    return np.int64(-1)


@compiled
def count_rest(position: Position, stack: Stack, counts: Ints, depth: int) -> np.int64:
    """Count the placements of the one or two ships that are left at this depth."""
    a, b = np.int64(-1), np.int64(-1)
    for kind in range(stack.ships.shape[1]):
        for _ in range(stack.ships[depth, kind]):
            a, b = b, np.int64(kind)
    available, hits, starts = stack.available[depth], stack.open_hits[depth], position.starts
    covers, disjoint = position.covers, position.disjoint
    if a < 0:
        low, high = starts[b], starts[b + 1]
        return count_last(available, covers, hits, counts, disjoint, a, low, high)
    room, hit_sets = stack.candidates[depth], position.hit_sets
    return count_pair(available, room, disjoint, covers, hit_sets, hits, starts, a, b, counts)


@compiled
def count_layouts(position: Position, stack: Stack, counts: Ints, max_steps: int) -> np.int64:
    """The number of layouts, or -1 if there are more ways than max_steps to place all ships but
    two; counts, int64 [64 W], gets the number of layouts with each placement."""
    disjoint, covers, hit_sets, types, starts, order = position
    available, candidates, open_hits, ships, placed, totals = stack
    depth, steps = 0, np.int64(0)
    last = max(0, available.shape[0] - 2)  # the depth at which two ships are left
    if last > 0:
        enter(depth, available, candidates, covers, open_hits, ships, starts, order)
    while steps <= max_steps:
        if depth < last:
            placed[depth] = place_next(
                depth, available, candidates, disjoint, hit_sets, open_hits, ships, types
            )
            if placed[depth] >= 0:
                depth += 1
                totals[depth] = 0
                if depth < last:
                    enter(depth, available, candidates, covers, open_hits, ships, starts, order)
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
