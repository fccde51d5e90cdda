"""Alpha-beta search of k in a row on the values of n-tuple networks."""

from __future__ import annotations

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.k_in_a_row import Bits, LineRules, stone_of
from rlgames.kernels.ntuple_lines import (
    Memory,
    Network,
    Settings,
    add_stone,
    find_places,
    make_memory,
    remove_stone,
    score_moves,
)
from rlgames.kernels.words import Array


@jit()
def first_highest(stack: Array, plies: int) -> int:
    """The action with the highest number in a row of the stack."""
    best = 0
    for action in range(stack.shape[1]):
        if stack[plies, action] > stack[plies, best]:
            best = action
    return best


@jit()
def search_node(
    own: Bits,
    occupied: Bits,
    seat: Bits,
    plies: int,
    low: np.float32,
    high: np.float32,
    table: Array,
    network: Network,
    rules: LineRules,
    settings: Settings,
    memory: Memory,
    stack: Array,
) -> tuple[np.float32, int]:
    """The value that the best of `plies` moves reaches and the first of them, if it is between low
    and high; else a bound of the value that is not.

    memory has the places of the board, before and after. stack: float32 [plies + 1, actions].
    """
    best = score_moves(own, occupied, seat, table, network, rules, settings, memory)
    if plies == 1 or memory.scores[best] == settings.win:
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
        stone = stone_of(occupied, action, rules)
        if occupied | stone != rules.board:
            add_stone(stone, seat, network, memory.places)
            # fmt: off
            reply, _ = search_node(
                own ^ occupied, occupied | stone, 1 - seat, plies - 1, -high, -low,
                table, network, rules, settings, memory, stack,
            )
            # fmt: on
            remove_stone(stone, seat, network, memory.places)
            value = -reply
        if value > highest:
            highest, best = value, action
        low = max(low, value)
        if low >= high:
            break
    return highest, best


@jit()
def search_positions(
    own: Array,
    occupied: Array,
    seat: Array,
    plies: int,
    table: Array,
    network: Network,
    rules: LineRules,
    settings: Settings,
) -> tuple[Array, Array]:
    """The best actions, int64 [B], and what they reach, float32 [B].

    own, occupied, seat: int64 [B], positions that are not over.
    """
    memory = make_memory(network, rules.actions, 1, np.uint64(0))
    stack = np.empty((plies + 1, rules.actions), np.float32)
    low, high = np.float32(-np.inf), np.float32(np.inf)
    actions, values = np.empty(len(own), np.int64), np.empty(len(own), np.float32)
    for row in range(len(own)):
        find_places(own[row], occupied[row], seat[row], network, memory.places)
        # fmt: off
        values[row], actions[row] = search_node(
            own[row], occupied[row], seat[row], plies, low, high,
            table, network, rules, settings, memory, stack,
        )
        # fmt: on
    return actions, values
