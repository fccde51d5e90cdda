"""Action selection of Gumbel AlphaZero and Gumbel MuZero in trees of tree_search.py.

Danihelka et al. 2022, "Policy improvement by planning with Gumbel"; names as in mctx. Values of one
node: prior, visits, value_sums, pending, sigma: float32 [A]; raw_value and sign: numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import Floats, Integers, compiled

MIN_PROBABILITY = float(np.finfo(np.float32).tiny)
"""What a legal action of probability 0 counts as."""

MIN_VALUE_RANGE = 1e-5
"""The smallest range of values that is scaled to [0, 1], in units of the largest of them: sums of
float32 differ by rounding."""


class GumbelPlan(NamedTuple):
    """raw_values: float32 [N], what the first simulation that reached a node returned, for seat 0;
    NaN before. root_scores: float32 [T, A], Gumbel noise plus logits, -inf for illegal actions.
    considered_visits: int64 [M, K], the visits of the action that simulation k takes at a root.
    sequence: int64 [T], the row of considered_visits of each tree. c_visit, c_scale: of sigma."""

    raw_values: Floats
    root_scores: Floats
    considered_visits: Integers
    sequence: Integers
    c_visit: float
    c_scale: float


NO_PLAN = GumbelPlan(
    np.empty(0, np.float32),
    np.empty((0, 0), np.float32),
    np.empty((0, 0), np.int64),
    np.empty(0, np.int64),
    0.0,
    0.0,
)
"""Of other rules."""


@compiled
def largest(values: Floats) -> Any:
    """The largest of some numbers."""
    top = values[0]
    for value in values:
        top = max(top, value)
    return top


@compiled
def mixed_value(prior: Floats, visits: Floats, value_sums: Floats, raw_value: float) -> float:
    """The value of unvisited actions, for seat 0 (appendix D of the paper)."""
    total, probability, weighted = 0.0, 0.0, 0.0
    for action in range(len(prior)):
        if visits[action] > 0:
            weight = max(prior[action], MIN_PROBABILITY)
            total += visits[action]
            probability += weight
            weighted += weight * (value_sums[action] / visits[action])
    if total == 0:
        return raw_value
    return (raw_value + total * weighted / probability) / (1 + total)


@compiled
def transform_completed_q(
    plan: GumbelPlan,
    prior: Floats,
    visits: Floats,
    value_sums: Floats,
    raw_value: float,
    sign: float,
    sigma: Floats,
) -> None:
    """Fill sigma [A]: (c_visit + max_b N(b)) · c_scale · q of legal actions, -inf for others.

    q: the completed Q for the seat to move, scaled to [0, 1] from the lowest to the highest of
    the node's legal actions.
    """
    missing = mixed_value(prior, visits, value_sums, raw_value)
    if np.isnan(missing):
        missing = 0.0  # nothing is known: the first simulation here has not returned
    low, high = np.inf, -np.inf
    for action in range(len(prior)):
        if prior[action] >= 0:
            value = missing
            if visits[action] > 0:
                value = value_sums[action] / visits[action]
            sigma[action] = value * sign
            low, high = min(low, sigma[action]), max(high, sigma[action])
    least = 1e-8 + MIN_VALUE_RANGE * max(abs(low), abs(high))
    scale = (plan.c_visit + largest(visits)) * plan.c_scale / max(high - low, least)
    for action in range(len(prior)):
        sigma[action] = scale * (sigma[action] - low) if prior[action] >= 0 else -np.inf


@compiled
def best_considered(
    scores: Floats, sigma: Floats, visits: Floats, pending: Floats, considered: int
) -> int:
    """The legal action with the highest score plus sigma of those with `considered` visits."""
    best, highest = 0, -np.inf
    for action in range(len(scores)):
        if visits[action] + pending[action] == considered:
            score = scores[action] + sigma[action]
            if score > highest:
                best, highest = action, score
    return best


@compiled
def deterministic_action(prior: Floats, sigma: Floats, visits: Floats, pending: Floats) -> int:
    """The rule of nodes that are not roots: argmax_a π'(a) - N(a) / (1 + Σ_b N(b)), where π' =
    softmax(logits + sigma)."""
    top, total, weights = largest(sigma), 0.0, 0.0
    for action in range(len(prior)):
        total += visits[action] + pending[action]
        if prior[action] >= 0:
            weights += max(prior[action], MIN_PROBABILITY) * np.exp(sigma[action] - top)
    best, highest = 0, -np.inf
    for action in range(len(prior)):
        if prior[action] >= 0:
            weight = max(prior[action], MIN_PROBABILITY) * np.exp(sigma[action] - top)
            taken = visits[action] + pending[action]
            priority = weight / weights - taken / (1 + total)
            if priority > highest:
                best, highest = action, priority
    return best


@compiled
def choose_by_plan(plan: GumbelPlan, tree: Any, node: int) -> int:
    """The action of a simulation at a node of TreeArrays: at a root by sequential halving.

    Pending visits count as visits whose values are unknown.
    """
    prior, visits, pending = tree.prior[node], tree.visit_counts[node], tree.pending[node]
    value_sums, sign, sigma = tree.value_sums[node], tree.sign[node], tree.scratch[0]
    transform_completed_q(plan, prior, visits, value_sums, plan.raw_values[node], sign, sigma)
    if node >= len(plan.root_scores):
        return deterministic_action(prior, sigma, visits, pending)
    simulation = 0
    for action in range(len(visits)):
        simulation += int(visits[action] + pending[action])
    considered = plan.considered_visits[plan.sequence[node], simulation]
    return best_considered(plan.root_scores[node], sigma, visits, pending, considered)


@compiled
def keep_first_values(
    raw_values: Floats, parent_edge: Integers, actions: int, node: Integers, value: Floats
) -> None:
    """Store the values of simulations that ended at nodes [S] in those that they reached first.

    The values of roots are known before."""
    for row in range(len(node)):
        current = node[row]
        while np.isnan(raw_values[current]):
            raw_values[current] = value[row]
            current = parent_edge[current] // actions


@jit()
def improve_policy(plan: GumbelPlan, tree: Any, logits: Floats, action: Integers) -> None:
    """Fill logits [T, A] = log of prior + sigma, -inf for illegal actions, and action [T], the one
    with the highest noise + logits + sigma among the most visited, at the roots of T trees.

    tree: TreeArrays.
    """
    for root in range(len(logits)):
        prior, visits, pending = tree.prior[root], tree.visit_counts[root], tree.pending[root]
        sigma, raw_value = logits[root], plan.raw_values[root]
        value_sums, sign = tree.value_sums[root], tree.sign[root]
        transform_completed_q(plan, prior, visits, value_sums, raw_value, sign, sigma)
        considered = int(largest(visits))
        action[root] = best_considered(plan.root_scores[root], sigma, visits, pending, considered)
        for each in range(len(sigma)):
            if prior[each] >= 0:
                sigma[each] += np.log(max(prior[each], MIN_PROBABILITY))
