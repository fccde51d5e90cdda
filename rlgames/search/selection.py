"""How simulations choose actions at the nodes of a search tree.

Letters in shapes: T trees, S simulations side by side, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.search.tree import SearchTree


def select_actions(
    tree: SearchTree, node: Tensor, bounds: Tensor, rule: str, c_puct: float
) -> Tensor:
    """Int64 [S]: an action for each simulation at its node, int64 [S]; bounds as in q_values.

    The first of several simulations at one node takes the best action, the next one the best
    after one more visit to that action, and so on: the j-th takes the j-th best pair of (action,
    additional visits). A pending visit is assumed to return the mean value of the node if the
    action's own mean is higher. Each pending visit then lowers an action's priority, and a lucky
    value in few visits does not attract all simulations.
    """
    visits = tree.visit_counts[node]
    bonus = c_puct * tree.prior[node]
    if rule == "puct":
        bonus = bonus * visits.sum(1, keepdim=True).clamp(min=1).sqrt()
    q = q_values(tree, node, bounds)
    occurrence = count_earlier(node)
    max_pending = int(occurrence.max())
    if not max_pending:
        return (q + bonus / (1 + visits)).argmax(1)
    mean = (visits * q).sum(1, keepdim=True) / visits.sum(1, keepdim=True).clamp(min=1)
    advantage = (q - mean).clamp(min=0)
    pending = torch.arange(max_pending + 1, device=node.device)
    all_visits = visits[:, :, None] + pending
    pending_fraction = pending / all_visits.clamp(min=1)
    priority = (
        q[:, :, None]
        - advantage[:, :, None] * pending_fraction
        + bonus[:, :, None] / (1 + all_visits)
    )
    order = priority.flatten(1).topk(max_pending + 1).indices
    return order.gather(1, occurrence[:, None])[:, 0] // (max_pending + 1)


def q_values(tree: SearchTree, node: Tensor, bounds: Tensor) -> Tensor:
    """Float32 [S, A]: Q of the actions at nodes for the seat to move, normalized to [0, 1].

    bounds: float32 [S, 2], the lowest and the highest value for seat 0. Unvisited actions have
    the mean of their node.
    """
    visits, value_sums = tree.visit_counts[node], tree.value_sums[node]
    mean = value_sums.sum(1, keepdim=True) / visits.sum(1, keepdim=True).clamp(min=1)
    q = torch.where(visits > 0, value_sums / visits.clamp(min=1), mean)
    low, high = bounds[:, :1], bounds[:, 1:]
    q = (q - low) / (high - low)
    q = torch.where(high > low, q, 0.5)
    sign = tree.sign[node]
    return q * sign + (sign < 0)


def add_dirichlet_noise(
    prior: Tensor, fraction: float, total: float, rng: torch.Generator
) -> Tensor:
    """Prior, float32 [T, A], mixed with noise; illegal actions stay minus infinity.

    fraction: the share of the noise. total: the sum of the parameters of its symmetric Dirichlet
    distribution (Silver et al. 2018).
    """
    is_legal = prior >= 0
    parameter = total / is_legal.sum(1, keepdim=True).expand_as(prior)
    noise = torch._standard_gamma(parameter, generator=rng) * is_legal
    noise = noise / noise.sum(1, keepdim=True).clamp(min=1e-30)
    return torch.where(is_legal, (1 - fraction) * prior + fraction * noise, prior)


def count_earlier(node: Tensor) -> Tensor:
    """Int64 [S]: how many earlier rows have the same node."""
    values, order = node.sort(stable=True)
    earlier = torch.empty_like(node)
    row = torch.arange(len(node), device=node.device)
    earlier[order] = row - torch.searchsorted(values, values)
    return earlier
