"""Tree search in k in a row: what happens between two evaluations of leaves.

Boards are int64 sets of stones, as rlgames.games.bit_layout draws them. S simulations side by side,
N nodes, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.gumbel import GumbelPlan
from rlgames.kernels.jit import jit
from rlgames.kernels.random_lines import Rules, makes_line, write_planes
from rlgames.kernels.tree_search import descend, find_or_add_children
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
    positions as fields of a state. planes: float32 [S, 2 * cells], their observations, or without
    rows. edge, child, is_new: overwritten."""

    simulation: Integers
    node: Integers
    end: Integers
    value: Floats
    leaf: Integers
    own: Integers
    occupied: Integers
    current_seat: Integers
    turn: Integers
    planes: Floats
    edge: Integers
    child: Integers
    is_new: Bools


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
def find_children(
    tree: TreeArrays,
    batch: Batch,
    plan: GumbelPlan,
    bounds: Floats,
    c_puct: float,
    rule: int,
    live: int,
    num_nodes: int,
) -> int:
    """Descend with the first `live` rows of a batch to child and is_new; the number of nodes then.

    bounds: float32 [S, 2], the same for all."""
    edge = batch.edge[:live]
    descend(
        tree.prior,
        tree.visit_counts,
        tree.value_sums,
        tree.pending,
        tree.sign,
        tree.parent_edge,
        tree.is_expanded,
        tree.keys,
        tree.children,
        batch.node[:live],
        bounds,
        c_puct,
        rule,
        plan,
        True,
        edge,
    )
    return find_or_add_children(
        tree.keys,
        tree.children,
        tree.parent_edge,
        tree.depth,
        edge,
        np.zeros(live, np.int64),
        tree.prior.shape[1],
        num_nodes,
        batch.child,
        batch.is_new,
    )


@jit()
def add_leaf(
    tree: TreeArrays, boards: Boards, batch: Batch, rules: Rules, row: int, node: int
) -> None:
    """Write the position of a node to this row of leaves."""
    own, occupied = boards.own[node], boards.occupied[node]
    batch.own[row], batch.occupied[row] = own, occupied
    batch.current_seat[row] = np.int64(tree.sign[node] < 0)
    batch.turn[row] = count_bits(np.uint64(occupied))
    if len(batch.planes) > 0:
        write_planes(rules, own, own ^ occupied, batch.planes[row])


@jit()
def run_round(
    tree: TreeArrays,
    boards: Boards,
    batch: Batch,
    rules: Rules,
    plan: GumbelPlan,
    bounds: Floats,
    c_puct: float,
    rule: int,
    max_depth: float,
    live: int,
    num_nodes: int,
) -> tuple[int, int, int]:
    """Continue the first `live` rows of a batch until each has ended or waits for priors.

    bounds: float32 [S, 2], the same for all. Returns the numbers of rows that have not ended, of
    leaves, and of nodes.
    """
    num_nodes = find_children(tree, batch, plan, bounds, c_puct, rule, live, num_nodes)
    board: int = rules.cell_bits.sum()
    still_live, leaves = 0, 0
    for row in range(live):
        node, simulation = int(batch.child[row]), int(batch.simulation[row])
        if batch.is_new[row]:
            add_child(tree, boards, rules, board, node)
        batch.end[simulation] = node
        if boards.is_done[node]:
            batch.value[simulation] = boards.outcome[node]
        elif batch.is_new[row] or tree.depth[node] >= max_depth:
            batch.leaf[leaves] = simulation
            add_leaf(tree, boards, batch, rules, leaves, node)
            leaves += 1
        else:
            batch.simulation[still_live], batch.node[still_live] = simulation, node
            still_live += 1
    return still_live, leaves, num_nodes


@jit()
def expand_leaves(
    tree: TreeArrays,
    batch: Batch,
    rules: Rules,
    scores: Floats,
    value: Floats,
    temperature: float,
    value_scale: float,
    max_depth: float,
) -> bool:
    """Store the priors of leaves, softmax(scores ÷ temperature) over legal actions, and values.

    scores: float32 [leaves, A]. value: float32 [leaves], of the seats to move, in units of 1 ÷
    value_scale. Returns False for scores that are not finite.
    """
    actions = scores.shape[1]
    for row in range(len(scores)):
        simulation, occupied = batch.leaf[row], batch.occupied[row]
        node = batch.end[simulation]
        prior = tree.prior[node]
        highest = np.float32(-np.inf)
        for action in range(actions):
            if not np.isfinite(scores[row, action]):
                return False
            bit = rules.cell_bits[action]  # with gravity that of the top row
            prior[action] = -np.inf if occupied & bit else scores[row, action]
            highest = max(highest, prior[action])
        total = 0.0
        for action in range(actions):
            if prior[action] > -np.inf:
                logit = np.float32(prior[action] - highest)
                if temperature != 1:
                    logit = max(np.float32(logit / temperature), np.float32(-MAX_LOGIT))
                total += np.exp(np.float64(logit))
        for action in range(actions):
            if prior[action] > -np.inf:
                logit = np.float32(prior[action] - highest)
                if temperature != 1:
                    logit = max(np.float32(logit / temperature), np.float32(-MAX_LOGIT))
                prior[action] = np.exp(np.float64(logit)) / total
        tree.is_expanded[node] = tree.depth[node] < max_depth
        estimate = value[row] * np.float32(value_scale) * tree.sign[node]
        batch.value[simulation] = min(max(estimate, np.float32(-1)), np.float32(1))
    return True
