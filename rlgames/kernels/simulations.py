"""Tree search by compiled rules: all that happens between two calls of torch.

S simulations side by side, N nodes, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.gumbel import GumbelPlan, keep_first_values
from rlgames.kernels.mlp import forward
from rlgames.kernels.rules import Position, load, random_move
from rlgames.kernels.tree_nodes import (
    Batch,
    Evaluator,
    Nodes,
    add_child,
    add_leaf,
    expand_leaves,
    make_moves,
)
from rlgames.kernels.tree_search import (
    GUMBEL,
    TreeArrays,
    back_up,
    clear_node,
    descend,
    find_or_add_children,
)
from rlgames.kernels.words import compiled

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Selection(NamedTuple):
    """How simulations choose. bounds: float32 [T, 2], of the values in each tree; with
    widens_bounds, of those so far. rule: of tree_search.py. plan: for rule=GUMBEL. max_depth: the
    limit of plies. has_chance: moves have random outcomes. rolls_out: the last node of a simulation
    is valued by random play to the end, not by the network. sign_factor: as in add_child."""

    bounds: Floats
    widens_bounds: bool
    c_puct: float
    rule: int
    plan: GumbelPlan
    max_depth: float
    has_chance: bool
    rolls_out: bool
    sign_factor: float


BATCHES, LIVE, LEAVES, IS_EVALUATED, NODES = range(5)
"""How far a search is, int64 [5]: the number of batches begun, of their simulations that have not
ended, of leaves that wait (or NEW), whether torch has written their outputs, and the number of
nodes: before the search, that of its first node that is not a root."""

NEW = -1
"""Instead of a number of leaves: nothing but the roots' positions and signs is set."""


@compiled
def find_children(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    selection: Selection,
    first: int,
    size: int,
    live: int,
    num_nodes: int,
) -> int:
    """Descend with the first `live` rows of a batch, of `size` simulations in each tree, to child
    and is_new; the number of nodes then."""
    edge, start, plan = batch.edge[:live], batch.node[:live], selection.plan
    for row in range(live):
        root = first + batch.simulation[row] // size
        batch.bounds[row, 0], batch.bounds[row, 1] = (
            selection.bounds[root, 0],
            selection.bounds[root, 1],
        )
    continues = not selection.has_chance
    descend(tree, start, batch.bounds, selection.c_puct, selection.rule, plan, continues, edge)
    make_moves(tree, nodes, batch, rules, selection.has_chance, first, size, live)
    return find_or_add_children(tree, edge, batch.outcome, num_nodes, batch.child, batch.is_new)


@compiled
def run_round(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    selection: Selection,
    first: int,
    size: int,
    live: int,
    leaves: int,
    num_nodes: int,
) -> tuple[int, int, int, bool]:
    """Continue the first `live` rows of a batch until each has ended, waits for priors, or, with
    chance, has moved once.

    Returns the numbers of rows that have not ended, of leaves, and of nodes, and whether some row
    waits for priors.
    """
    num_nodes = find_children(tree, nodes, batch, rules, selection, first, size, live, num_nodes)
    still_live, waits, max_depth = 0, False, selection.max_depth
    for row in range(live):
        node, simulation = int(batch.child[row]), int(batch.simulation[row])
        if batch.is_new[row]:
            add_child(tree, nodes, batch, evaluator.discount, row, selection.sign_factor)
        batch.end[simulation] = node
        if nodes.is_over[node]:
            batch.value[simulation] = nodes.gain[node]
        elif batch.is_new[row] or tree.depth[node] >= max_depth:
            leaves = add_leaf(tree, nodes, batch, rules, evaluator, max_depth, simulation, leaves)
        else:
            batch.simulation[still_live], batch.node[still_live] = simulation, node
            waits |= not (selection.has_chance and tree.is_expanded[node])
            still_live += 1
    return still_live, leaves, num_nodes, waits


@compiled
def run_rounds(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    selection: Selection,
    first: int,
    size: int,
    live: int,
    num_nodes: int,
) -> tuple[int, int, int]:
    """Continue until all rows have ended or some wait for priors: so leaves are evaluated together.

    Returns the numbers of rows that have not ended, of leaves, and of nodes.
    """
    leaves, waits = 0, False
    while live > 0 and not waits:
        live, leaves, num_nodes, waits = run_round(
            tree, nodes, batch, rules, evaluator, selection, first, size, live, leaves, num_nodes
        )
    return live, leaves, num_nodes


@compiled
def roll_out(rules: Any, position: Position, sign_factor: float, rng: Any) -> np.float32:
    """The points of random play to the end, for the seat to move; rng: of next_random."""
    total, sign, is_over = np.float32(0), np.float32(1), False
    while not is_over:
        position, is_over, points = random_move(rules, position, rng)
        total += sign * points
        sign *= np.float32(sign_factor)
    return total


@compiled
def value_by_play(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    selection: Selection,
    first: int,
    trees: int,
    size: int,
) -> None:
    """Value the last nodes of a batch of `size` simulations in each tree by random play, if it does
    so."""
    if not selection.rolls_out:
        return
    # In this order the random numbers of a tree do not depend on other trees, or on the cache.
    for simulation in range(trees * size):
        node = batch.end[simulation]
        if not nodes.is_over[node]:
            position = load(rules.start, nodes.positions, node)
            rng = nodes.rng[first + simulation // size]
            points = roll_out(rules, position, selection.sign_factor, rng)
            batch.value[simulation] = nodes.gain[node] + tree.sign[node] * points


@compiled
def finish_batch(
    tree: TreeArrays, batch: Batch, selection: Selection, first: int, trees: int, size: int
) -> None:
    """Back up the values of a batch of `size` simulations in each tree."""
    end, value, plan = batch.end[: trees * size], batch.value[: trees * size], selection.plan
    if len(plan.raw_values) > 0:
        keep_first_values(plan.raw_values, tree.parent_edge, tree.prior.shape[1], end, value)
    back_up(tree, end, value)
    if selection.widens_bounds:
        for row in range(trees * size):
            bounds = selection.bounds[first + row // size]
            bounds[0], bounds[1] = min(bounds[0], value[row]), max(bounds[1], value[row])


@compiled
def add_roots(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    max_depth: float,
    first: int,
    trees: int,
) -> int:
    """Begin a search, of which nothing but the roots' positions and signs is set. first: its first
    tree. Returns the number of leaves."""
    tree.keys[:], tree.children[:] = 0, -1
    leaves = 0
    for number in range(trees):
        root = first + number
        clear_node(tree, root)
        # In a search of fewer trees it may have been another node.
        tree.parent_edge[root], tree.depth[root] = -1, 0
        nodes.gain[root], nodes.is_over[root] = 0, False
        batch.end[number] = first + number
        leaves = add_leaf(tree, nodes, batch, rules, evaluator, max_depth, number, leaves)
    return leaves


@compiled
def evaluate(evaluator: Evaluator, batch: Batch, leaves: int) -> None:
    """Write the outputs of leaves."""
    if evaluator.is_uniform:
        batch.outputs[:leaves] = 0
    else:
        forward(evaluator.network, batch.inputs[:leaves], batch.outputs[:leaves])


@compiled
def advance(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    selection: Selection,
    first: int,
    trees: int,
    sizes: Integers,
    at: Integers,
) -> int:
    """Evaluate the leaves that wait, in a new search the roots, and run batches of `sizes`
    simulations in each tree, until leaves wait for torch or nothing is left to do.

    first: the first of the trees. at: the state of the search. Returns the number of leaves to
    evaluate, 0 at the end, or -1 if the outputs of leaves are not finite.
    """
    num_batches, live, leaves = int(at[BATCHES]), int(at[LIVE]), int(at[LEAVES])
    is_evaluated, num_nodes, max_depth = bool(at[IS_EVALUATED]), int(at[NODES]), selection.max_depth
    if leaves == NEW:
        leaves = add_roots(tree, nodes, batch, rules, evaluator, max_depth, first, trees)
    while True:
        if leaves > 0 and not is_evaluated:
            if leaves > evaluator.max_rows:
                break
            evaluate(evaluator, batch, leaves)
        if not expand_leaves(tree, nodes, batch, rules, evaluator, max_depth, leaves):
            at[LEAVES] = leaves
            return -1
        leaves, is_evaluated = 0, False
        if live == 0:
            if num_batches > 0:
                size = sizes[num_batches - 1]
                value_by_play(tree, nodes, batch, rules, selection, first, trees, size)
                finish_batch(tree, batch, selection, first, trees, size)
            elif len(sizes) == 0 and selection.rule == GUMBEL:
                value_by_play(tree, nodes, batch, rules, selection, first, trees, 1)
            if num_batches == len(sizes):
                break
            live = trees * sizes[num_batches]
            for row in range(live):
                batch.simulation[row], batch.node[row] = row, first + row // sizes[num_batches]
            num_batches += 1
        size = sizes[num_batches - 1]
        live, leaves, num_nodes = run_rounds(
            tree, nodes, batch, rules, evaluator, selection, first, size, live, num_nodes
        )
    at[:] = num_batches, live, leaves, 0, num_nodes
    return leaves
