"""Alpha-beta search on the values of n-tuple networks, for games of two seats without chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import Memory, enter, make_memory, make_move, score_moves, take_back
from rlgames.kernels.rules import Position, load
from rlgames.kernels.words import Array, compiled

NO_POINTS = np.float32(0)


@compiled
def first_highest(stack: Array, plies: int) -> int:
    """The action with the highest number in a row of the stack."""
    best = 0
    for action in range(stack.shape[1]):
        if stack[plies, action] > stack[plies, best]:
            best = action
    return best


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
        action = first_highest(stack, plies)  # by the scores of one ply
        value = stack[plies, action]
        if value == -np.inf:
            break
        stack[plies, action] = -np.inf
        after, is_over, _ = make_move(network, rules, position, seat, action, memory)
        if not is_over:
            # fmt: off
            reply, _ = search_node(
                after, 1 - seat, plies - 1, -high, -low,
                table, network, rules, memory, stack,
            )
            # fmt: on
            value = -reply
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
    low, high = np.float32(-np.inf), np.float32(np.inf)
    actions, values = np.empty(len(seats), np.int64), np.empty(len(seats), np.float32)
    for row in range(len(seats)):
        position = load(rules.start, positions, row)
        enter(network, position, seats[row], memory)
        # fmt: off
        values[row], actions[row] = search_node(
            position, seats[row], plies, low, high, table, network, rules, memory, stack
        )
        # fmt: on
    return actions, values
