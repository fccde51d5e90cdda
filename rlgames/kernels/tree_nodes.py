"""Nodes of tree search by compiled rules: positions, and what the network says about them.

Two seats take turns, or one seat moves; a position is a tuple of W words, see rules.py. S
simulations side by side, T trees, N nodes, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.evaluation_cache import EvaluationCache, holds, key_of, slot_of
from rlgames.kernels.mlp import MlpWeights
from rlgames.kernels.rules import (
    Position,
    add_chance,
    is_legal,
    load,
    observe,
    play,
    store,
    write_cells,
)
from rlgames.kernels.tree_search import TreeArrays
from rlgames.kernels.words import compiled

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_LOGIT = np.finfo(np.float32).max


class Nodes(NamedTuple):
    """The positions of nodes, int64 [N, W]; by node, [N]: the turn, whether the game is over, and
    what seat 0 has earned since the root, discounted. rng: uint64 [T, 1], for chance and random
    play, the state of next_random in each tree."""

    positions: Integers
    turn: Integers
    is_over: Bools
    gain: Floats
    rng: NDArray[np.uint64]


class Batch(NamedTuple):
    """Simulations side by side, [S]. The first rows of simulation and node are those that have not
    ended: their numbers and where they are. end, value: by number, the last node and its value for
    seat 0. The first rows of leaf are the simulations whose last nodes wait for an evaluation.
    inputs: float32 [S, I], what a network reads of them, or without rows. outputs: float32
    [S, A + 1], their scores and, for the seats to move, their values. The others are overwritten:
    of moves, the positions after them, int64 [S, W], whether they end the game, their points, and
    their outcomes, 0 without chance; bounds, float32 [S, 2]; edge, child, is_new."""

    simulation: Integers
    node: Integers
    end: Integers
    value: Floats
    leaf: Integers
    inputs: Floats
    outputs: Floats
    bounds: Floats
    edge: Integers
    positions: Integers
    is_over: Bools
    points: Floats
    outcome: Integers
    child: Integers
    is_new: Bools


class Evaluator(NamedTuple):
    """How leaves are evaluated. network: for at most max_rows leaves at once; torch evaluates
    more. is_uniform: all legal actions have the same prior, and no network is asked. temperature,
    value_scale, discount: as in MctsSettings. max_value: of a position, at most. open_value: as in
    write_cells; PLANES: the network reads observations, not the values of cells."""

    cache: EvaluationCache
    network: MlpWeights
    max_rows: int
    is_uniform: bool
    temperature: float
    value_scale: float
    discount: float
    max_value: float
    open_value: int


PLANES = -1


@compiled
def make_moves(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    has_chance: bool,
    first: int,
    size: int,
    live: int,
) -> None:
    """Play the edges of the first `live` rows, of `size` simulations in each tree from `first` on.

    The moves of a tree draw their chance one after the other."""
    actions = tree.prior.shape[1]
    for row in range(live):
        parent, action = batch.edge[row] // actions, batch.edge[row] % actions
        position = load(rules.start, nodes.positions, parent)
        after, is_over, points = play(rules, position, action)
        batch.outcome[row] = 0
        if has_chance:
            root = first + batch.simulation[row] // size
            after, is_over_now = add_chance(rules, after, nodes.rng[root])
            is_over |= is_over_now
            batch.outcome[row] = np.int64(key_of(after))
        store(batch.positions, row, after)
        batch.is_over[row], batch.points[row] = is_over, points


@compiled
def add_child(
    tree: TreeArrays, nodes: Nodes, batch: Batch, discount: float, row: int, sign_factor: float
) -> None:
    """Store the new node of a row. sign_factor: -1 if the other seat is to move after a move."""
    child = batch.child[row]
    parent = tree.parent_edge[child] // tree.prior.shape[1]
    for word in range(nodes.positions.shape[1]):
        nodes.positions[child, word] = batch.positions[row, word]
    nodes.turn[child] = nodes.turn[parent] + 1
    nodes.is_over[child] = batch.is_over[row]
    points = batch.points[row] * tree.sign[parent] * np.float32(discount ** tree.depth[parent])
    nodes.gain[child] = nodes.gain[parent] + points
    tree.sign[child] = tree.sign[parent] * np.float32(sign_factor)


@compiled
def add_leaf(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    max_depth: float,
    simulation: int,
    leaves: int,
) -> int:
    """Expand the last node of a simulation from the cache, or add it to the leaves that wait;
    returns how many these are."""
    position = load(rules.start, nodes.positions, batch.end[simulation])
    slot = slot_of(evaluator.cache, position)
    if holds(evaluator.cache, slot, position):
        expand(tree, nodes, batch, evaluator, slot, max_depth, simulation)
        return leaves
    batch.leaf[leaves] = simulation
    if len(batch.inputs) > 0 and evaluator.open_value == PLANES:
        observe(rules, position, batch.inputs[leaves])
    elif len(batch.inputs) > 0:
        write_cells(rules, position, evaluator.open_value, batch.inputs[leaves])
    return leaves + 1


@compiled
def expand(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    evaluator: Evaluator,
    slot: np.uint64,
    max_depth: float,
    simulation: int,
) -> None:
    """Store what the cache says about the last node of a simulation."""
    node, cache = batch.end[simulation], evaluator.cache
    for action in range(tree.prior.shape[1]):
        tree.prior[node, action] = cache.prior[slot, action]
    tree.is_expanded[node] = tree.depth[node] < max_depth
    estimate = cache.value[slot] * tree.sign[node]
    weight = np.float32(evaluator.discount ** tree.depth[node])
    batch.value[simulation] = nodes.gain[node] + weight * estimate


@compiled
def expand_leaves(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    max_depth: float,
    leaves: int,
) -> bool:
    """Store the priors and values of the leaves from their outputs, here and in the cache.

    Returns False for scores that are not finite.
    """
    cache, actions = evaluator.cache, tree.prior.shape[1]
    for row in range(leaves):
        simulation, outputs = int(batch.leaf[row]), batch.outputs[row]
        position = load(rules.start, nodes.positions, batch.end[simulation])
        slot = slot_of(cache, position)
        prior = cache.prior[slot]
        if not write_prior(outputs, rules, position, evaluator.temperature, prior):
            cache.value[slot] = np.nan
            return False
        estimate = outputs[actions] * np.float32(evaluator.value_scale)
        limit = np.float32(evaluator.max_value)
        cache.value[slot] = min(max(estimate, -limit), limit)
        store(cache.positions, slot, position)
        expand(tree, nodes, batch, evaluator, slot, max_depth, simulation)
    return True


@compiled
def write_prior(
    scores: Floats, rules: Any, position: Position, temperature: float, prior: Floats
) -> bool:
    """Fill prior [A] with softmax(scores ÷ temperature) over legal actions, minus infinity for
    others; whether all scores are finite."""
    highest = np.float32(-np.inf)
    for action in range(len(prior)):
        if not np.isfinite(scores[action]):
            return False
        prior[action] = scores[action] if is_legal(rules, position, action) else -np.inf
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
