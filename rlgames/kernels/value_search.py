"""Alpha-beta search on the values of n-tuple networks, for games of two seats without chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.evaluation_cache import key_of
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import Memory, enter, make_memory, make_move, score_moves, take_back
from rlgames.kernels.rules import Position, implement, load, store
from rlgames.kernels.words import Array, compiled

NO_POINTS = np.float32(0)
SLOTS = 1 << 16
"""Of a transposition table: so few that it stays in the cache of the processor."""


class TranspositionTable(NamedTuple):
    """Bounds of the values of positions that the search may meet again on other paths. keys: int64
    [slots, W + 1], the slots a power of two: a position, and the plies and the seat of its search;
    0: nothing is stored here. bounds: float32 [slots, 2], the lower and the upper one."""

    keys: Array
    bounds: Array


@jit()
def make_table(words: int) -> TranspositionTable:
    return TranspositionTable(
        np.zeros((SLOTS, words + 1), np.int64), np.empty((SLOTS, 2), np.float32)
    )


@compiled
def lookup(
    known: TranspositionTable, position: Position, seat: int, plies: int
) -> tuple[np.uint64, np.float32, np.float32]:
    """The slot of a position, and the bounds of what these plies reach from it."""
    slot, words = key_of(position) + np.uint64(plies), len(position)
    slot &= np.uint64(len(known.keys) - 1)
    is_same = known.keys[slot, words] == 2 * plies + seat
    for word in range(words):
        is_same &= known.keys[slot, word] == position[word]
    if is_same:
        return slot, known.bounds[slot, 0], known.bounds[slot, 1]
    return slot, np.float32(-np.inf), np.float32(np.inf)


@compiled
def keep(
    known: TranspositionTable,
    slot: np.uint64,
    position: Position,
    seat: int,
    plies: int,
    lower: np.float32,
    upper: np.float32,
) -> None:
    """Store the bounds of a position in its slot."""
    store(known.keys, slot, position)
    known.keys[slot, len(position)] = 2 * plies + seat
    known.bounds[slot, 0], known.bounds[slot, 1] = lower, upper


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
    known: TranspositionTable,
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
            slot, lower, upper = lookup(known, after, 1 - seat, plies - 1)
            if lower < min(upper, -low) and upper > -high:
                # fmt: off
                reply, _ = search_node(
                    after, 1 - seat, plies - 1, -high, -low,
                    table, network, rules, memory, stack, known,
                )
                # fmt: on
                lower = reply if reply > -high else lower
                upper = reply if reply < -low else upper
                keep(known, slot, after, 1 - seat, plies - 1, lower, upper)
            value = -lower if lower >= min(upper, -low) else -upper
        take_back(network, rules, position, after, seat, memory)
        if value > highest:
            highest, best = value, action
        low = max(low, value)
        if low >= high:
            break
    return highest, best


class CompiledNtuples(NamedTuple):
    """A policy of n-tuples as kernels take it, see ntuple.py. table: float32, flat. scale: the
    reward of a point. memory: for one thread. A position is worth what its best move is."""

    network: Any
    table: Array
    scale: np.float32
    memory: Memory
    num_inputs: int = 0
    has_value: bool = False


@compiled
def score_position(
    policy: CompiledNtuples, rules: Any, position: Position, seat: int, _: Array, outputs: Array
) -> None:
    network, memory = policy.network, policy.memory
    enter(network, rules, position, seat, memory)
    best = score_moves(network, rules, position, seat, policy.table, policy.scale, memory)
    actions = len(memory.scores)
    for action in range(actions):
        is_illegal = memory.scores[action] == -np.inf
        outputs[action] = np.float32(0) if is_illegal else memory.scores[action]
    if len(outputs) > actions:
        outputs[actions] = memory.scores[best]


implement(CompiledNtuples, read_position=score_position)


@jit()
def score_positions(
    positions: Array, seats: Array, policy: CompiledNtuples, rules: Any, scores: Array
) -> None:
    """Write what the moves are worth, float32 [B, A], 0 for illegal ones; as search_positions."""
    for row in range(len(seats)):
        position = load(rules.start, positions, row)
        score_position(policy, rules, position, seats[row], scores[row], scores[row])


@jit()
def search_positions(
    positions: Array, seats: Array, plies: int, table: Array, network: Any, rules: Any
) -> tuple[Array, Array]:
    """The best actions, int64 [B], and what they reach, float32 [B].

    positions: int64 [B, W], those that are not over. seats: int64 [B], the ones to move.
    """
    memory = make_memory(network, rules.actions)
    stack = np.empty((plies + 1, rules.actions), np.float32)
    known = make_table(positions.shape[1])
    low, high = np.float32(-np.inf), np.float32(np.inf)
    actions, values = np.empty(len(seats), np.int64), np.empty(len(seats), np.float32)
    for row in range(len(seats)):
        position = load(rules.start, positions, row)
        enter(network, rules, position, seats[row], memory)
        # fmt: off
        values[row], actions[row] = search_node(
            position, seats[row], plies, low, high, table, network, rules, memory, stack, known
        )
        # fmt: on
    return actions, values
