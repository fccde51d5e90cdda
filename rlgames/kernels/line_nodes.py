"""Nodes of tree search in k in a row: their positions, and what the network says about them.

Boards are int64 sets of stones, as rlgames.games.bit_layout draws them. S simulations side by side,
N nodes, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.evaluation_cache import FREE, EvaluationCache, holds, slot_of
from rlgames.kernels.jit import jit
from rlgames.kernels.mlp import MlpWeights
from rlgames.kernels.random_lines import Rules, makes_line, write_planes
from rlgames.kernels.words import count_bits

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_LOGIT = np.finfo(np.float32).max


class TreeArrays(NamedTuple):
    """The arrays of all nodes, see tree_search.py. depth: int64 [N]."""

    prior: Floats
    visit_counts: Floats
    value_sums: Floats
    pending: Floats
    sign: Floats
    parent_edge: Integers
    is_expanded: Bools
    keys: NDArray[np.uint64]
    children: Integers
    depth: Integers


class Boards(NamedTuple):
    """The positions of nodes, [N]: the stones of the seat to move, all stones, whether the game is
    over and its outcome for seat 0."""

    own: Integers
    occupied: Integers
    is_done: Bools
    outcome: Floats


class Batch(NamedTuple):
    """Simulations side by side, [S]. The first rows of simulation and node are those that have not
    ended: their numbers and where they are. end, value: by number, the last node and its value for
    seat 0. The first rows of the other arrays are leaves to evaluate: their numbers, and their
    positions as fields of a state. inputs: float32 [S, I], what a network reads of them, or without
    rows. outputs: float32 [S, A + 1], their scores and, for the seats to move, their values. edge,
    child, is_new: overwritten."""

    simulation: Integers
    node: Integers
    end: Integers
    value: Floats
    leaf: Integers
    own: Integers
    occupied: Integers
    current_seat: Integers
    turn: Integers
    inputs: Floats
    outputs: Floats
    edge: Integers
    child: Integers
    is_new: Bools


class Evaluator(NamedTuple):
    """How leaves are evaluated. network: for at most max_rows leaves at once; torch evaluates
    more. temperature, value_scale: as in MctsSettings. open_value: the value of cells that a stone
    can take, 0 if it is that of other empty cells; PLANES: networks read planes of stones, not the
    values of cells."""

    cache: EvaluationCache
    network: MlpWeights
    max_rows: int
    temperature: float
    value_scale: float
    open_value: int


PLANES = -1


@jit()
def add_child(tree: TreeArrays, boards: Boards, rules: Rules, board: int, child: int) -> None:
    """Store the position of a new node. board: all cells."""
    actions = tree.prior.shape[1]
    parent, action = tree.parent_edge[child] // actions, tree.parent_edge[child] % actions
    own, occupied = boards.own[parent], boards.occupied[parent]
    if rules.columns > 0:
        # Adding the bottom bit carries over the stones of the column.
        pile = ((1 << (rules.stride - 1)) - 1) << (action * rules.stride)
        stone = (occupied + (1 << (action * rules.stride))) & pile & ~occupied
    else:
        stone = rules.cell_bits[action]
    is_won = makes_line(own | stone, rules)
    boards.own[child], boards.occupied[child] = own ^ occupied, occupied | stone
    boards.is_done[child] = is_won or occupied | stone == board
    boards.outcome[child] = tree.sign[parent] if is_won else 0
    tree.sign[child] = -tree.sign[parent]


@jit()
def add_leaf(
    tree: TreeArrays,
    boards: Boards,
    batch: Batch,
    rules: Rules,
    evaluator: Evaluator,
    max_depth: float,
    simulation: int,
    leaves: int,
) -> int:
    """Expand the last node of a simulation from the cache, or add it to the leaves that wait;
    returns how many these are."""
    node, cache = batch.end[simulation], evaluator.cache
    own, occupied = boards.own[node], boards.occupied[node]
    slot = slot_of(cache, own, occupied)
    if holds(cache, slot, own, occupied):
        expand(tree, batch, cache, slot, max_depth, simulation)
        return leaves
    batch.leaf[leaves] = simulation
    batch.own[leaves], batch.occupied[leaves] = own, occupied
    batch.current_seat[leaves] = np.int64(tree.sign[node] < 0)
    batch.turn[leaves] = count_bits(np.uint64(occupied))
    if len(batch.inputs) > 0 and evaluator.open_value == PLANES:
        write_planes(rules, own, own ^ occupied, batch.inputs[leaves])
    elif len(batch.inputs) > 0:
        write_values(rules, own, occupied, evaluator.open_value, batch.inputs[leaves])
    return leaves + 1


@jit()
def write_values(rules: Rules, own: int, occupied: int, open_value: int, values: Floats) -> None:
    """Write the values of all cells, see Embedding.inputs."""
    open_cells = 0
    if open_value > 0:
        board: int = rules.cell_bits.sum()
        lowest = 0
        for column in range(rules.columns):
            lowest |= 1 << (column * rules.stride)
        # Adding the bottom bits carries over the stones, into the spare bit of a full column.
        open_cells = ((occupied + lowest) & board if rules.columns > 0 else board) & ~occupied
    for cell in range(len(rules.cell_bits)):
        bit, value = rules.cell_bits[cell], 0
        if occupied & bit:
            value = 1 if own & bit else 2
        elif open_cells & bit:
            value = open_value
        values[cell] = value


@jit()
def expand(
    tree: TreeArrays,
    batch: Batch,
    cache: EvaluationCache,
    slot: np.uint64,
    max_depth: float,
    simulation: int,
) -> None:
    """Store what the cache says about the last node of a simulation."""
    node = batch.end[simulation]
    tree.prior[node] = cache.prior[slot]
    tree.is_expanded[node] = tree.depth[node] < max_depth
    batch.value[simulation] = cache.value[slot] * tree.sign[node]


@jit()
def expand_leaves(
    tree: TreeArrays,
    batch: Batch,
    rules: Rules,
    evaluator: Evaluator,
    max_depth: float,
    leaves: int,
) -> bool:
    """Store the priors and values of the leaves from their outputs, here and in the cache.

    Returns False for scores that are not finite.
    """
    cache, actions = evaluator.cache, tree.prior.shape[1]
    for row in range(leaves):
        own, occupied, outputs = batch.own[row], batch.occupied[row], batch.outputs[row]
        slot = slot_of(cache, own, occupied)
        if not write_prior(outputs, rules, occupied, evaluator.temperature, cache.prior[slot]):
            cache.occupied[slot] = FREE
            return False
        estimate = outputs[actions] * np.float32(evaluator.value_scale)
        cache.value[slot] = min(max(estimate, np.float32(-1)), np.float32(1))
        cache.own[slot], cache.occupied[slot] = own, occupied
        expand(tree, batch, cache, slot, max_depth, int(batch.leaf[row]))
    return True


@jit()
def write_prior(
    scores: Floats, rules: Rules, occupied: int, temperature: float, prior: Floats
) -> bool:
    """Fill prior [A] with softmax(scores ÷ temperature) over legal actions, minus infinity for
    others; whether all scores are finite."""
    highest = np.float32(-np.inf)
    for action in range(len(prior)):
        if not np.isfinite(scores[action]):
            return False
        bit = rules.cell_bits[action]  # with gravity that of the top row
        prior[action] = -np.inf if occupied & bit else scores[action]
        highest = max(highest, prior[action])
    total = 0.0
    for action in range(len(prior)):
        if prior[action] > -np.inf:
            logit = np.float32(prior[action] - highest)
            if temperature != 1:
                logit = max(np.float32(logit / temperature), np.float32(-MAX_LOGIT))
            weight = np.exp(np.float64(logit))
            prior[action] = weight
            total += weight
    for action in range(len(prior)):
        if prior[action] > -np.inf:
            prior[action] = prior[action] / total
    return True
