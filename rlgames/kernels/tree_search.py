"""Monte Carlo tree search: descents of simulations, children of nodes, values on their way back.

Arrays of N nodes of all trees together, with A actions each; an edge is node * A + action:

    prior, visit_counts, value_sums: float32 [N, A], see SearchTree. sign: float32 [N], 1 where seat
    0 is to move, otherwise -1. parent_edge: int64 [N], -1 for a root. depth: int64 [N], plies since
    the root. is_expanded: bool [N], descents continue here. keys: uint64 and children: int64, both
    [slots], a power of two: the hash table from edges with outcomes to nodes; free keys are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.gumbel import GumbelPlan, choose_by_plan
from rlgames.kernels.jit import jit

DEDIEU_AMAR, PUCT, GUMBEL = 0, 1, 2
RULES = {"dedieu_amar": DEDIEU_AMAR, "puct": PUCT, "gumbel": GUMBEL}
"""The rules that choose actions, by their names in MctsSettings."""

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@jit()
def spread(number: np.uint64) -> np.uint64:
    """64 bits spread over 64 bits, never 0: the finalizer of splitmix64."""
    number = number * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return (number ^ (number >> np.uint64(32))) | np.uint64(1 << 63)


@jit()
def find_slot(keys: NDArray[np.uint64], edge: int, outcome: int) -> tuple[np.uint64, np.uint64]:
    """The slot of an edge with an outcome, or the free one where it belongs, and its key."""
    key = spread(spread(np.uint64(outcome)) + np.uint64(edge))
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != np.uint64(0) and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot, key


@jit()
def normalized(value: float, low: float, high: float, sign: float) -> np.float32:
    """A value for seat 0, from low to high, as one in [0, 1] for the seat to move."""
    q = (value - low) / (high - low) if high > low else np.float32(0.5)
    return q * sign + np.float32(sign < 0)


@jit()
def q_values(
    visits: Floats, value_sums: Floats, low: float, high: float, sign: float, q: Floats
) -> None:
    """Fill q [A]: Q of the actions of one node; unvisited ones have the mean of the node."""
    total = max(visits.sum(), np.float32(1))
    mean = normalized(value_sums.sum() / total, low, high, sign)
    for action in range(len(visits)):
        if visits[action] > 0:
            q[action] = normalized(value_sums[action] / visits[action], low, high, sign)
        else:
            q[action] = mean


@jit()
def q_of_nodes(
    visit_counts: Floats,
    value_sums: Floats,
    sign: Floats,
    node: Integers,
    bounds: Floats,
    q: Floats,
) -> None:
    """Fill q [S, A] for nodes [S]; bounds: as in descend."""
    for row in range(len(node)):
        low, high = bounds[row, 0], bounds[row, 1]
        number = node[row]
        q_values(visit_counts[number], value_sums[number], low, high, sign[number], q[row])


@jit()
def best_action(
    prior: Floats, visits: Floats, pending: Floats, q: Floats, c_puct: float, is_puct: bool
) -> int:
    """The action with the highest priority at one node, after the visits that are pending.

    A pending visit is assumed to return the mean value of the node if the action's own mean is
    higher, so that a lucky value in few visits does not attract all simulations.
    """
    total = visits.sum()
    weight = np.float32(c_puct)
    if is_puct:
        weight *= np.sqrt(max(total, np.float32(1)))
    mean = (visits * q).sum() / max(total, np.float32(1))
    best, highest = -1, np.float32(-np.inf)
    for action in range(len(prior)):
        all_visits = visits[action] + pending[action]
        priority = q[action] + weight * prior[action] / (np.float32(1) + all_visits)
        if pending[action] > 0:
            advantage = max(q[action] - mean, np.float32(0))
            priority -= advantage * (pending[action] / all_visits)
        if priority > highest:
            best, highest = action, priority
    return best


@jit()
def descend(
    prior: Floats,
    visit_counts: Floats,
    value_sums: Floats,
    pending: Floats,
    sign: Floats,
    parent_edge: Integers,
    is_expanded: NDArray[np.bool_],
    keys: NDArray[np.uint64],
    children: Integers,
    start: Integers,
    bounds: Floats,
    c_puct: float,
    rule: int,
    plan: GumbelPlan,
    continues: bool,
    edge: Integers,
) -> None:
    """Fill edge, int64 [S]: where each of S simulations leaves what is known of its tree.

    start: the node of each. bounds: float32 [S, 2], the lowest and the highest value for seat 0.
    plan: of rule=GUMBEL. continues: a simulation continues at expanded children with outcome 0;
    otherwise its first action ends the descent. pending: zeros [N, A]. The simulations choose one
    after the other; each sees those before it as pending visits.
    """
    actions = prior.shape[1]
    q = np.empty(actions, np.float32)
    for row in range(len(start)):
        node = start[row]
        while True:
            own, visits = prior[node], visit_counts[node]
            sums, waits = value_sums[node], pending[node]
            if rule == GUMBEL:
                action = choose_by_plan(plan, node, own, visits, sums, waits, sign[node], q)
            else:
                q_values(visits, sums, bounds[row, 0], bounds[row, 1], sign[node], q)
                action = best_action(own, visits, waits, q, c_puct, rule == PUCT)
            waits[action] += 1
            edge[row] = node * actions + action
            if not continues:
                break
            slot, _ = find_slot(keys, edge[row], 0)
            if children[slot] < 0 or not is_expanded[children[slot]]:
                break
            node = children[slot]
    clear_pending(pending, parent_edge, start, edge)


@jit()
def clear_pending(pending: Floats, parent_edge: Integers, start: Integers, edge: Integers) -> None:
    """Set the pending visits on the ways from nodes [S] to edges [S] to 0."""
    actions = pending.shape[1]
    for row in range(len(start)):
        last = edge[row]
        while True:
            node = last // actions
            pending[node, last % actions] = 0
            if node == start[row]:
                break
            last = parent_edge[node]


@jit()
def find_or_add_children(
    keys: NDArray[np.uint64],
    children: Integers,
    parent_edge: Integers,
    depth: Integers,
    edge: Integers,
    outcome: Integers,
    actions: int,
    num_nodes: int,
    child: Integers,
    is_new: NDArray[np.bool_],
) -> int:
    """Fill child and is_new [S] for edges with outcomes [S]; returns the number of nodes then."""
    for row in range(len(edge)):
        slot, key = find_slot(keys, edge[row], outcome[row])
        is_new[row] = children[slot] < 0
        if is_new[row]:
            keys[slot] = key
            children[slot] = num_nodes
            parent_edge[num_nodes] = edge[row]
            depth[num_nodes] = depth[edge[row] // actions] + 1
            num_nodes += 1
        child[row] = children[slot]
    return num_nodes


@jit()
def back_up(
    visit_counts: Floats, value_sums: Floats, parent_edge: Integers, node: Integers, value: Floats
) -> None:
    """Add a visit with its value, for seat 0, to every edge from the roots to nodes [S]."""
    actions = visit_counts.shape[1]
    for row in range(len(node)):
        edge = parent_edge[node[row]]
        while edge >= 0:
            parent, action = edge // actions, edge % actions
            visit_counts[parent, action] += 1
            value_sums[parent, action] += value[row]
            edge = parent_edge[parent]
