"""Alpha-beta search on the values of n-tuple networks, for games of two seats without chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.evaluation_cache import key_of
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import Memory, enter, make_memory, make_move, score_moves, take_back
from rlgames.kernels.rules import Position, load
from rlgames.kernels.words import Array, compiled

NO_POINTS = np.float32(0)
SLOTS = 1 << 16
"""Of the table of bounds: so few that they stay in the cache of the processor."""


class Bounds(NamedTuple):
    """What is known about positions that the search meets again on other paths. keys: int64
    [slots, W + 1], the slots a power of two: positions, and the plies and the seat of their search;
    0: nothing is stored here. values: float32 [slots, 2], from below and from above."""

    keys: Array
    values: Array


@jit()
def make_bounds(words: int) -> Bounds:
    return Bounds(np.zeros((SLOTS, words + 1), np.int64), np.empty((SLOTS, 2), np.float32))


@compiled
def find_bounds(
    bounds: Bounds, position: Position, seat: int, plies: int
) -> tuple[np.uint64, np.float32, np.float32]:
    """The slot of a position, and between what its value after these plies lies."""
    slot, words = key_of(position) + np.uint64(plies), len(position)
    slot &= np.uint64(len(bounds.keys) - 1)
    is_same = bounds.keys[slot, words] == 2 * plies + seat
    for word in range(words):
        is_same &= bounds.keys[slot, word] == position[word]
    if is_same:
        return slot, bounds.values[slot, 0], bounds.values[slot, 1]
    return slot, np.float32(-np.inf), np.float32(np.inf)


@compiled
def keep_bounds(
    bounds: Bounds,
    slot: np.uint64,
    position: Position,
    seat: int,
    plies: int,
    least: np.float32,
    most: np.float32,
) -> None:
    words = len(position)
    for word in range(words):
        bounds.keys[slot, word] = position[word]
    bounds.keys[slot, words] = 2 * plies + seat
    bounds.values[slot, 0], bounds.values[slot, 1] = least, most


@compiled
def take_highest(stack: Array, plies: int) -> tuple[int, np.float32]:
    """The action with the highest number in a row of the stack, which becomes minus infinity, and
    this number."""
    best = 0
    for action in range(stack.shape[1]):
        if stack[plies, action] > stack[plies, best]:
            best = action
    highest = stack[plies, best]
    stack[plies, best] = -np.inf
    return best, highest


@jit()
def search_node(
    position: Position,
    seat: int,
    plies: int,
    low: np.float32,
    high: np.float32,
    table: Array,
    network: Any,
    rules: Any,
    memory: Memory,
    stack: Array,
    bounds: Bounds,
) -> tuple[np.float32, int]:
    """The value that the best of `plies` moves reaches and the first of them, if it is between low
    and high; else a bound of the value that is not.

    memory is at the position, before and after. stack: float32 [plies + 1, actions].
    """
    best = score_moves(network, rules, position, seat, table, NO_POINTS, memory)
    if plies == 1 or memory.scores[best] == network.win:
        return memory.scores[best], best
    num_actions = len(memory.scores)
    for action in range(num_actions):
        stack[plies, action] = memory.scores[action]
    highest = np.float32(-np.inf)
    for _ in range(num_actions):
        action, value = take_highest(stack, plies)  # by the scores of one ply
        if value == -np.inf:
            break
        after, is_over, _ = make_move(network, rules, position, seat, action, memory)
        if not is_over:
            slot, least, most = find_bounds(bounds, after, 1 - seat, plies - 1)
            if least < min(most, -low) and most > -high:
                # fmt: off
                reply, _ = search_node(
                    after, 1 - seat, plies - 1, -high, -low,
                    table, network, rules, memory, stack, bounds,
                )
                # fmt: on
                least = reply if reply > -high else least
                most = reply if reply < -low else most
                keep_bounds(bounds, slot, after, 1 - seat, plies - 1, least, most)
            value = -least if least >= min(most, -low) else -most
        take_back(network, position, after, seat, memory)
        if value > highest:
            highest, best = value, action
        low = max(low, value)
        if low >= high:
            break
    return highest, best


@jit()
def search_positions(
    positions: Array, seats: Array, plies: int, table: Array, network: Any, rules: Any
) -> tuple[Array, Array]:
    """The best actions, int64 [B], and what they reach, float32 [B].

    positions: int64 [B, W], those that are not over. seats: int64 [B], the ones to move.
    """
    memory = make_memory(network, rules.actions)
    stack = np.empty((plies + 1, rules.actions), np.float32)
    bounds = make_bounds(positions.shape[1])
    low, high = np.float32(-np.inf), np.float32(np.inf)
    actions, values = np.empty(len(seats), np.int64), np.empty(len(seats), np.float32)
    for row in range(len(seats)):
        position = load(rules.start, positions, row)
        enter(network, position, seats[row], memory)
        # fmt: off
        values[row], actions[row] = search_node(
            position, seats[row], plies, low, high, table, network, rules, memory, stack, bounds
        )
        # fmt: on
    return actions, values
