"""Monte Carlo tree search: descents of simulations, children of nodes, values on their way back.

N nodes of all trees together, with A actions each; an edge is node * A + action. S simulations side
by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.gumbel import GumbelPlan, choose_by_plan, keep_first_values
from rlgames.kernels.jit import jit
from rlgames.kernels.words import GOLDEN_RATIO, Bools, Floats, Integers, Words, compiled, mix

DEDIEU_AMAR, PUCT, GUMBEL = 0, 1, 2
RULES = {"dedieu_amar": DEDIEU_AMAR, "puct": PUCT, "gumbel": GUMBEL}
"""The rules that choose actions, by their names in search.rule."""


class TreeArrays(NamedTuple):
    """The nodes of all trees.

    prior: float32 [N, A], the policy's probabilities, minus infinity for illegal actions.
    visit_counts: float32 [N, A], how many simulations took each action. value_sums: float32
    [N, A], the sum of their values for seat 0. pending: zeros [N, A]. sign: float32 [N], 1 where
    seat 0 is to move, otherwise -1. parent_edge: int64 [N], -1 for a root. is_expanded: bool [N],
    it has priors, and no limit ends descents here. depth: int64 [N], plies since the root.
    keys: uint64 and children: int64, both [slots], a power of two: the hash table from edges with
    outcomes to nodes; free keys are 0. root: int64 [N], the root above each node. bounds: float32
    [T, 2], the lowest and the highest value for seat 0 in each tree. scratch: float32 [2, A], for
    one thread.
    """

    prior: Floats
    visit_counts: Floats
    value_sums: Floats
    pending: Floats
    sign: Floats
    parent_edge: Integers
    is_expanded: Bools
    depth: Integers
    keys: Words
    children: Integers
    root: Integers
    bounds: Floats
    scratch: Floats


class Selection(NamedTuple):
    """How simulations choose actions. rule: one of RULES. plan: for rule=GUMBEL. widens_bounds: the
    bounds follow the values so far."""

    rule: int
    c_puct: float
    plan: GumbelPlan
    widens_bounds: bool


unchecked = jit(error_model="numpy", _nrt=False)
"""As words.compiled, and dividing by 0 gives infinity or NaN: checks keep loops from being
vectorized."""


@compiled
def spread(number: np.uint64) -> Any:
    """64 bits spread over 64 bits, never 0: a number of SplitMix64."""
    return mix(number * GOLDEN_RATIO) | np.uint64(1 << 63)


@compiled
def find_slot(keys: Words, edge: int, outcome: int) -> tuple[np.uint64, np.uint64]:
    """The slot of an edge with an outcome, or the free one where it belongs, and its key."""
    key = spread(spread(np.uint64(outcome)) + np.uint64(edge))
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != np.uint64(0) and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot, key


@unchecked
def normalized(value: Any, low: float, high: float, sign: float) -> np.float32:
    """A value for seat 0, from low to high, as one in [0, 1] for the seat to move."""
    q = (value - low) / (high - low) if high > low else np.float32(0.5)
    return q * sign + np.float32(sign < 0)


@unchecked
def q_values(
    visits: Floats, value_sums: Floats, low: float, high: float, sign: float, q: Floats
) -> tuple[np.float32, np.float32]:
    """Fill q [A]: Q of the actions of one node; unvisited ones have the mean of the node.

    Returns the number of visits, and the sum of Q over these.
    """
    # Most actions have no visits: skipping them is faster than adding zeros, one after the other.
    total, value = np.float32(0), np.float32(0)
    for action in range(len(visits)):
        if visits[action] > 0:
            total += visits[action]
            value += value_sums[action]
    q[:] = normalized(value / max(total, np.float32(1)), low, high, sign)
    weighted = np.float32(0)
    for action in range(len(visits)):
        if visits[action] > 0:
            q[action] = normalized(value_sums[action] / visits[action], low, high, sign)
            weighted += visits[action] * q[action]
    return total, weighted


@unchecked
def root_results(
    tree: TreeArrays,
    visits: Floats,
    q: Floats,
    policy: Floats,
    action: Integers,
    value: Floats,
) -> None:
    """Fill visits, q and policy [T, A], action and value [T] as in SearchResult, of the first T
    nodes."""
    for root in range(len(visits)):
        counts, value_sums = tree.visit_counts[root], tree.value_sums[root]
        low, high = tree.bounds[tree.root[root], 0], tree.bounds[tree.root[root], 1]
        value[root], best = 0, np.float32(-np.inf)
        total, _ = q_values(counts, value_sums, low, high, tree.sign[root], q[root])
        for each in range(len(counts)):
            q[root, each] = min(max(q[root, each], np.float32(0)), np.float32(0.999))
            if counts[each] == 0:
                q[root, each] = 0
            visits[root, each], policy[root, each] = counts[each], counts[each] / total
            if counts[each] + q[root, each] > best:
                action[root], best = each, counts[each] + q[root, each]
            value[root] += value_sums[each]
        value[root] *= tree.sign[root] / total


@unchecked
def noise_parameters(prior: Floats, total: float, parameter: Floats) -> None:
    """Fill parameter [T, A] with total, shared by the legal actions of each root."""
    for root in range(len(prior)):
        num_legal = 0
        for action in range(prior.shape[1]):
            num_legal += prior[root, action] >= 0
        for action in range(prior.shape[1]):
            parameter[root, action] = total / num_legal


@unchecked
def mix_noise(prior: Floats, fraction: float, gamma: Floats) -> None:
    """Mix the priors of legal actions with gamma [T, A], scaled to a sum of 1."""
    for root in range(len(prior)):
        total = np.float32(1e-30)
        for action in range(prior.shape[1]):
            if prior[root, action] >= 0:
                total += gamma[root, action]
        for action in range(prior.shape[1]):
            if prior[root, action] >= 0:
                noise = fraction * gamma[root, action] / total
                prior[root, action] = (1 - fraction) * prior[root, action] + noise


@unchecked
def best_action(tree: TreeArrays, node: int, c_puct: float, is_puct: bool) -> int:
    """The action with the highest priority at one node, after the visits that are pending.

    A pending visit is assumed to return the mean value of the node if the action's own mean is
    higher, so that a lucky value in few visits does not attract all simulations.
    """
    prior, visits, pending = tree.prior[node], tree.visit_counts[node], tree.pending[node]
    q, priority = tree.scratch[0], tree.scratch[1]
    low, high = tree.bounds[tree.root[node], 0], tree.bounds[tree.root[node], 1]
    total, weighted = q_values(visits, tree.value_sums[node], low, high, tree.sign[node], q)
    weight = np.float32(c_puct)
    if is_puct:
        weight *= np.sqrt(max(total, np.float32(1)))
    for action in range(len(prior)):
        all_visits = visits[action] + pending[action]
        priority[action] = q[action] + weight * prior[action] / (np.float32(1) + all_visits)
    mean = weighted / max(total, np.float32(1))
    best, highest = 0, np.float32(-np.inf)
    for action in range(len(prior)):
        if pending[action] > 0:
            advantage = max(q[action] - mean, np.float32(0))
            fraction = pending[action] / (visits[action] + pending[action])
            priority[action] -= advantage * fraction
        if priority[action] > highest:
            best, highest = action, priority[action]
    return best


@compiled
def descend(
    tree: TreeArrays, selection: Selection, start: Integers, continues: bool, edge: Integers
) -> None:
    """Fill edge, int64 [S]: where each of S simulations leaves what is known of its tree.

    start: the node of each. continues: a simulation continues at expanded children with outcome 0;
    otherwise its first action ends the descent. The simulations choose one after the other; each
    sees those before it as pending visits.
    """
    rule, c_puct = selection.rule, selection.c_puct
    for row in range(len(start)):
        node = start[row]
        while True:
            if rule == GUMBEL:
                action = choose_by_plan(selection.plan, tree, node)
            else:
                action = best_action(tree, node, c_puct, rule == PUCT)
            tree.pending[node, action] += 1
            edge[row] = node * tree.prior.shape[1] + action
            if not continues:
                break
            slot, _ = find_slot(tree.keys, edge[row], 0)
            if tree.children[slot] < 0 or not tree.is_expanded[tree.children[slot]]:
                break
            node = tree.children[slot]
    clear_pending(tree, start, edge)


@compiled
def clear_pending(tree: TreeArrays, start: Integers, edge: Integers) -> None:
    """Set the pending visits on the ways from nodes [S] to edges [S] to 0."""
    actions = tree.pending.shape[1]
    for row in range(len(start)):
        last = edge[row]
        while True:
            node = last // actions
            tree.pending[node, last % actions] = 0
            if node == start[row]:
                break
            last = tree.parent_edge[node]


@compiled
def clear_node(tree: TreeArrays, node: int) -> None:
    """Forget what an earlier search knew of a node of this number."""
    for action in range(tree.prior.shape[1]):
        tree.visit_counts[node, action] = 0
        tree.value_sums[node, action] = 0
    tree.is_expanded[node] = False


@compiled
def find_or_add_children(
    tree: TreeArrays,
    edge: Integers,
    outcome: Integers,
    num_nodes: int,
    child: Integers,
    is_new: Bools,
) -> int:
    """Fill child and is_new [S] for edges with outcomes [S]; returns the number of nodes then."""
    for row in range(len(edge)):
        slot, key = find_slot(tree.keys, edge[row], outcome[row])
        is_new[row] = tree.children[slot] < 0
        if is_new[row]:
            tree.keys[slot] = key
            tree.children[slot] = num_nodes
            tree.parent_edge[num_nodes] = edge[row]
            parent = edge[row] // tree.prior.shape[1]
            tree.depth[num_nodes], tree.root[num_nodes] = tree.depth[parent] + 1, tree.root[parent]
            clear_node(tree, num_nodes)
            num_nodes += 1
        child[row] = tree.children[slot]
    return num_nodes


@compiled
def back_up(tree: TreeArrays, selection: Selection, node: Integers, value: Floats) -> None:
    """Add a visit with its value, for seat 0, to every edge from the roots to nodes [S]."""
    actions, raw_values = tree.prior.shape[1], selection.plan.raw_values
    if len(raw_values) > 0:
        keep_first_values(raw_values, tree.parent_edge, actions, node, value)
    for row in range(len(node)):
        edge = tree.parent_edge[node[row]]
        while edge >= 0:
            parent, action = edge // actions, edge % actions
            tree.visit_counts[parent, action] += 1
            tree.value_sums[parent, action] += value[row]
            edge = tree.parent_edge[parent]
        if selection.widens_bounds:
            bounds = tree.bounds[tree.root[node[row]]]
            bounds[0], bounds[1] = min(bounds[0], value[row]), max(bounds[1], value[row])
