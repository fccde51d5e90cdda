"""Simulations of tree search by a game's rules, many side by side: selection, expansion, backup.

Two seats take turns, or one seat moves; a position is a tuple of W words, see rules.py. S
simulations side by side, T trees, N nodes, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.evaluation_cache import EvaluationCache, holds, key_of, slot_of
from rlgames.kernels.policy import compute_outputs, read_position
from rlgames.kernels.rules import (
    Position,
    add_chance,
    is_legal,
    load,
    play,
    random_move,
    store,
)
from rlgames.kernels.tree_search import (
    Selection,
    TreeArrays,
    back_up,
    clear_node,
    descend,
    find_or_add_children,
)
from rlgames.kernels.words import Bools, Floats, Integers, Words, compiled, inlined

MAX_LOGIT = np.finfo(np.float32).max

BATCHES, LIVE, LEAVES, NODES = range(4)
"""What Simulations.progress counts: the batches begun; of the last one, the simulations that have
not ended and the leaves that wait for evaluations; and the nodes."""


class Nodes(NamedTuple):
    """The positions of nodes, int64 [N, W]; by node, [N]: the turn, whether the game is over, and
    what seat 0 has earned since the root, discounted. rng: uint64 [T, 1], for chance and random
    play, the state of next_random in each tree."""

    positions: Integers
    turn: Integers
    is_over: Bools
    gain: Floats
    rng: Words


class Batch(NamedTuple):
    """Simulations side by side, [S]. The first rows of simulation and node are those that have not
    ended: their numbers and where they are. end, value: by number, the last node and its value for
    seat 0. The first rows of leaf are the simulations whose last nodes wait for an evaluation.
    inputs: float32 [S, I], what a policy reads of them. outputs: float32 [S, A + 1], their scores
    and, for the seats to move, their values. The others are overwritten:
    of moves, the positions after them, int64 [S, W], whether they end the game, their points, and
    their outcomes, 0 without chance; edge, child, is_new."""

    simulation: Integers
    node: Integers
    end: Integers
    value: Floats
    leaf: Integers
    inputs: Floats
    outputs: Floats
    edge: Integers
    positions: Integers
    is_over: Bools
    points: Floats
    outcome: Integers
    child: Integers
    is_new: Bools


class Evaluator(NamedTuple):
    """How leaves are evaluated. policy: see policy.py, for at most max_rows leaves at once; torch
    evaluates more. is_uniform: all legal actions have the same prior, and no policy is asked.
    rolls_out: the last node of a simulation is valued by random play to the end, not by the policy.
    temperature, value_scale, discount: as in Mcts. max_value: of a position, at most. max_plies: of
    random play, which ends before by the rules."""

    cache: EvaluationCache
    policy: Any
    max_rows: int
    is_uniform: bool
    rolls_out: bool
    temperature: float
    value_scale: float
    discount: float
    max_value: float
    max_plies: int


class Simulations(NamedTuple):
    """Some trees and their simulations. max_depth: the limit of plies. has_chance: moves have
    random outcomes. sign_factor: -1 if the other seat is to move after a move. progress: int64 [4],
    how far they are."""

    tree: TreeArrays
    selection: Selection
    nodes: Nodes
    batch: Batch
    evaluator: Evaluator
    trees: int
    max_depth: float
    has_chance: bool
    sign_factor: float
    progress: Integers


@inlined
def add_leaf(run: Simulations, rules: Any, simulation: int) -> None:
    """Expand the last node of a simulation from the cache, or add it to the leaves that wait."""
    batch, evaluator, leaves = run.batch, run.evaluator, run.progress[LEAVES]
    position = load(rules.start, run.nodes.positions, batch.end[simulation])
    slot = slot_of(evaluator.cache, position)
    if holds(evaluator.cache, slot, position):
        expand(run, slot, simulation)
        return
    batch.leaf[leaves] = simulation
    seat: Any = np.int64(run.tree.sign[batch.end[simulation]] < 0)
    inputs, outputs = batch.inputs[leaves], batch.outputs[leaves]
    read_position(evaluator.policy, rules, position, seat, inputs, outputs)
    run.progress[LEAVES] += 1


@inlined
def expand(run: Simulations, slot: np.uint64, simulation: int) -> None:
    """Store what the cache says about the last node of a simulation."""
    tree, cache, node = run.tree, run.evaluator.cache, run.batch.end[simulation]
    for action in range(tree.prior.shape[1]):
        tree.prior[node, action] = cache.prior[slot, action]
    tree.is_expanded[node] = tree.depth[node] < run.max_depth
    estimate = cache.value[slot] * tree.sign[node]
    weight = np.float32(run.evaluator.discount ** tree.depth[node])
    run.batch.value[simulation] = run.nodes.gain[node] + weight * estimate


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


@compiled
def expand_leaves(run: Simulations, rules: Any) -> bool:
    """Store the priors and values of the leaves from their outputs, here and in the cache.

    Returns False for scores that are not finite.
    """
    evaluator, actions = run.evaluator, run.tree.prior.shape[1]
    cache, limit = evaluator.cache, np.float32(evaluator.max_value)
    for row in range(run.progress[LEAVES]):
        simulation, outputs = int(run.batch.leaf[row]), run.batch.outputs[row]
        position = load(rules.start, run.nodes.positions, run.batch.end[simulation])
        slot = slot_of(cache, position)
        if not write_prior(outputs, rules, position, evaluator.temperature, cache.prior[slot]):
            cache.value[slot] = np.nan
            return False
        estimate = outputs[actions] * np.float32(evaluator.value_scale)
        cache.value[slot] = min(max(estimate, -limit), limit)
        store(cache.positions, slot, position)
        expand(run, slot, simulation)
    run.progress[LEAVES] = 0
    return True


@compiled
def evaluate_leaves(run: Simulations) -> int:
    """Write the outputs of the leaves, unless torch has to; returns how many it has to evaluate."""
    evaluator, batch, leaves = run.evaluator, run.batch, int(run.progress[LEAVES])
    if leaves > evaluator.max_rows:
        return leaves
    if evaluator.is_uniform:
        batch.outputs[:leaves] = 0
    elif leaves > 0:
        compute_outputs(evaluator.policy, batch.inputs[:leaves], batch.outputs[:leaves])
    return 0


@compiled
def make_moves(run: Simulations, rules: Any) -> None:
    """Play the edges of the simulations that have not ended.

    The moves of a tree draw their chance one after the other."""
    tree, nodes, batch = run.tree, run.nodes, run.batch
    actions = tree.prior.shape[1]
    for row in range(run.progress[LIVE]):
        parent, action = batch.edge[row] // actions, batch.edge[row] % actions
        position = load(rules.start, nodes.positions, parent)
        after, is_over, points = play(rules, position, action)
        batch.outcome[row] = 0
        if run.has_chance:
            after, is_over_now = add_chance(rules, after, nodes.rng[tree.root[parent]])
            is_over |= is_over_now
            batch.outcome[row] = np.int64(key_of(after))
        store(batch.positions, row, after)
        batch.is_over[row], batch.points[row] = is_over, points


@inlined
def add_child(run: Simulations, row: int) -> None:
    """Store the new node of a row."""
    tree, nodes, batch, child = run.tree, run.nodes, run.batch, run.batch.child[row]
    parent = tree.parent_edge[child] // tree.prior.shape[1]
    for word in range(nodes.positions.shape[1]):
        nodes.positions[child, word] = batch.positions[row, word]
    nodes.turn[child] = nodes.turn[parent] + 1
    nodes.is_over[child] = batch.is_over[row]
    weight = np.float32(run.evaluator.discount ** tree.depth[parent])
    nodes.gain[child] = nodes.gain[parent] + batch.points[row] * tree.sign[parent] * weight
    tree.sign[child] = tree.sign[parent] * np.float32(run.sign_factor)


@compiled
def select_leaves(run: Simulations, rules: Any) -> None:
    """Continue the simulations that have not ended until all have, or some wait for the priors of
    new nodes: so leaves are evaluated together."""
    tree, nodes, batch, progress = run.tree, run.nodes, run.batch, run.progress
    waits = False
    while progress[LIVE] > 0 and not waits:
        live = progress[LIVE]
        edge = batch.edge[:live]
        descend(tree, run.selection, batch.node[:live], not run.has_chance, edge)
        make_moves(run, rules)
        progress[NODES] = find_or_add_children(
            tree, edge, batch.outcome, int(progress[NODES]), batch.child, batch.is_new
        )
        progress[LIVE] = 0
        for row in range(live):
            node, simulation = int(batch.child[row]), int(batch.simulation[row])
            if batch.is_new[row]:
                add_child(run, row)
            batch.end[simulation] = node
            if nodes.is_over[node]:
                batch.value[simulation] = nodes.gain[node]
            elif batch.is_new[row] or tree.depth[node] >= run.max_depth:
                add_leaf(run, rules, simulation)
            else:
                batch.simulation[progress[LIVE]], batch.node[progress[LIVE]] = simulation, node
                waits |= not (run.has_chance and tree.is_expanded[node])
                progress[LIVE] += 1


@compiled
def roll_out(
    rules: Any, position: Position, sign_factor: float, max_plies: int, rng: Any
) -> np.float32:
    """The points of random play to the end, for the seat to move; rng: of next_random."""
    total, sign = np.float32(0), np.float32(1)
    for _ in range(max_plies):
        position, is_over, points = random_move(rules, position, rng)
        total += sign * points
        sign *= np.float32(sign_factor)
        if is_over:
            break
    return total


@compiled
def value_by_play(run: Simulations, rules: Any, count: int) -> None:
    """Value the last nodes of the first `count` simulations by random play."""
    tree, nodes, batch = run.tree, run.nodes, run.batch
    # In this order the random numbers of a tree do not depend on other trees, or on the cache.
    for simulation in range(count):
        node = batch.end[simulation]
        if not nodes.is_over[node]:
            position = load(rules.start, nodes.positions, node)
            rng, max_plies = nodes.rng[tree.root[node]], run.evaluator.max_plies
            points = roll_out(rules, position, run.sign_factor, max_plies, rng)
            batch.value[simulation] = nodes.gain[node] + tree.sign[node] * points


@compiled
def begin(run: Simulations, rules: Any) -> int:
    """Expand the roots, which have only positions, turns and signs. Returns as simulate."""
    tree, nodes = run.tree, run.nodes
    tree.keys[:], tree.children[:] = 0, -1
    run.progress[:], run.progress[NODES] = 0, run.trees
    for root in range(run.trees):
        clear_node(tree, root)
        # In a search of fewer trees it may have been another node.
        tree.parent_edge[root], tree.depth[root], tree.root[root] = -1, 0, root
        nodes.gain[root], nodes.is_over[root] = 0, False
        run.batch.end[root] = root
        add_leaf(run, rules, root)
    leaves = evaluate_leaves(run)
    if leaves > 0:
        return leaves
    return 0 if expand_leaves(run, rules) else -1


@compiled
def simulate(run: Simulations, rules: Any, sizes: Integers) -> int:
    """Expand the leaves, whose outputs are written, and run batches of `sizes` simulations in each
    tree. Returns the number of leaves that torch has to evaluate before the next call, 0 at the
    end, or -1 if outputs are not finite."""
    batch, progress = run.batch, run.progress
    while True:
        if not expand_leaves(run, rules):
            return -1
        if progress[LIVE] == 0:
            if progress[BATCHES] > 0:
                count = run.trees * sizes[progress[BATCHES] - 1]
                if run.evaluator.rolls_out:
                    value_by_play(run, rules, count)
                back_up(run.tree, run.selection, batch.end[:count], batch.value[:count])
            if progress[BATCHES] == len(sizes):
                return 0
            size = sizes[progress[BATCHES]]
            for row in range(run.trees * size):
                batch.simulation[row], batch.node[row] = row, row // size
            progress[LIVE] = run.trees * size
            progress[BATCHES] += 1
        select_leaves(run, rules)
        leaves = evaluate_leaves(run)
        if leaves > 0:
            return leaves
