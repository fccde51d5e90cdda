"""Tree search by compiled rules: all that happens between two calls of torch.

S simulations side by side, N nodes, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.gumbel import GumbelPlan, keep_first_values
from rlgames.kernels.mlp import forward
from rlgames.kernels.tree_nodes import (
    Batch,
    Evaluator,
    Nodes,
    add_child,
    add_leaf,
    expand_leaves,
)
from rlgames.kernels.tree_search import TreeArrays, back_up, descend, find_or_add_children
from rlgames.kernels.words import compiled

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Selection(NamedTuple):
    """How simulations choose. bounds: float32 [S, 2], the same for all. rule: of tree_search.py.
    plan: for rule=GUMBEL. max_depth: the limit of plies."""

    bounds: Floats
    c_puct: float
    rule: int
    plan: GumbelPlan
    max_depth: float


BATCHES, LIVE, LEAVES, IS_EVALUATED, NODES = range(5)
"""How far a search is, int64 [5]: the number of batches begun, of their simulations that have not
ended, of leaves that wait, whether torch has written their outputs, and the number of nodes."""


@compiled
def find_children(
    tree: TreeArrays, batch: Batch, selection: Selection, live: int, num_nodes: int
) -> int:
    """Descend with the first `live` rows of a batch to child and is_new; the number of nodes
    then."""
    edge, start = batch.edge[:live], batch.node[:live]
    bounds, c_puct, rule = selection.bounds, selection.c_puct, selection.rule
    descend(tree, start, bounds, c_puct, rule, selection.plan, True, edge)
    return find_or_add_children(tree, edge, batch.outcome, num_nodes, batch.child, batch.is_new)


@compiled
def run_round(
    tree: TreeArrays,
    nodes: Nodes,
    batch: Batch,
    rules: Any,
    evaluator: Evaluator,
    selection: Selection,
    live: int,
    num_nodes: int,
) -> tuple[int, int, int]:
    """Continue the first `live` rows of a batch until each has ended or waits for priors.

    Returns the numbers of rows that have not ended, of leaves, and of nodes.
    """
    num_nodes = find_children(tree, batch, selection, live, num_nodes)
    still_live, leaves, max_depth = 0, 0, selection.max_depth
    for row in range(live):
        node, simulation = int(batch.child[row]), int(batch.simulation[row])
        if batch.is_new[row]:
            add_child(tree, nodes, rules, node)
        batch.end[simulation] = node
        if nodes.is_over[node]:
            batch.value[simulation] = nodes.outcome[node]
        elif batch.is_new[row] or tree.depth[node] >= max_depth:
            leaves = add_leaf(tree, nodes, batch, rules, evaluator, max_depth, simulation, leaves)
        else:
            batch.simulation[still_live], batch.node[still_live] = simulation, node
            still_live += 1
    return still_live, leaves, num_nodes


@compiled
def finish_batch(tree: TreeArrays, batch: Batch, plan: GumbelPlan, size: int) -> None:
    """Back up the values of the simulations of a batch."""
    end, value = batch.end[:size], batch.value[:size]
    if len(plan.raw_values) > 0:
        keep_first_values(plan.raw_values, tree.parent_edge, tree.prior.shape[1], end, value)
    back_up(tree, end, value)


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
    num_nodes: int,
    at: Integers,
) -> None:
    """Begin a search, of which nothing but the roots' positions and signs is set. first: its first
    tree. num_nodes: the number of its first node that is not a root. at: its state, overwritten."""
    at[:] = 0
    at[NODES], leaves = num_nodes, 0
    for number in range(trees):
        batch.end[number] = first + number
        leaves = add_leaf(tree, nodes, batch, rules, evaluator, max_depth, number, leaves)
    at[LEAVES] = leaves


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
    """Evaluate the leaves that wait and run batches of `sizes` simulations in each tree, until
    leaves wait for torch or nothing is left to do.

    first: the first of the trees. at: the state of the search. Returns the number of leaves to
    evaluate, 0 at the end, or -1 if the outputs of leaves are not finite.
    """
    num_batches, live, leaves = int(at[BATCHES]), int(at[LIVE]), int(at[LEAVES])
    is_evaluated, num_nodes = bool(at[IS_EVALUATED]), int(at[NODES])
    while True:
        if leaves > 0 and not is_evaluated:
            if leaves > evaluator.max_rows:
                break
            forward(evaluator.network, batch.inputs[:leaves], batch.outputs[:leaves])
        if not expand_leaves(tree, nodes, batch, rules, evaluator, selection.max_depth, leaves):
            at[LEAVES] = leaves
            return -1
        leaves, is_evaluated = 0, False
        if live == 0:
            if num_batches > 0:
                finish_batch(tree, batch, selection.plan, trees * sizes[num_batches - 1])
            if num_batches == len(sizes):
                break
            live = trees * sizes[num_batches]
            for row in range(live):
                batch.simulation[row] = row
                batch.node[row] = first + row // sizes[num_batches]
            num_batches += 1
        live, leaves, num_nodes = run_round(
            tree, nodes, batch, rules, evaluator, selection, live, num_nodes
        )
    at[BATCHES], at[LIVE], at[LEAVES] = num_batches, live, leaves
    at[IS_EVALUATED], at[NODES] = 0, num_nodes
    return leaves
