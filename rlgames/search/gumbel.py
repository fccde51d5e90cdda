"""Sequential halving with Gumbel noise at the roots of a search (rule=gumbel).

Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from torch import Tensor

from rlgames.config.options.search import MctsConfig
from rlgames.kernels.gumbel import MIN_PROBABILITY, GumbelPlan
from rlgames.rng import Rng
from rlgames.search.tree import SearchTree


@cache
def halving(num_considered: int, simulations: int) -> tuple[list[int], set[int]]:
    """Sequential halving (Karnin et al. 2013): for each simulation, how often the action that it
    takes at the root was visited before; and the numbers of simulations after which a phase is
    over.

    ⌈log₂ num_considered⌉ phases get the same number of simulations each. The better half of the
    actions remains, but at least two, which share what is left over. The last phase may be cut
    short.
    """
    num_phases = max(1, math.ceil(math.log2(max(1, num_considered))))
    num_remaining, num_rounds = max(1, num_considered), 0
    visits: list[int] = []
    ends: set[int] = set()
    while len(visits) < simulations:
        for _ in range(max(1, simulations // (num_phases * num_remaining))):
            visits += [num_rounds] * num_remaining
            num_rounds += 1
        ends.add(min(len(visits), simulations))
        num_remaining = min(num_remaining, max(2, num_remaining // 2))
    return visits[:simulations], ends


def plan_roots(tree: SearchTree, root_value: Tensor, settings: MctsConfig, rng: Rng) -> list[int]:
    """Let the simulations of a tree choose by rule=gumbel; the numbers of simulations after which
    a phase of some tree is over, in order.

    root_value: float32 [T], estimates of the roots for seat 0. The actions with the highest noise +
    logits are considered, at most max_num_considered_actions of the legal ones.
    """
    prior = tree.prior[: len(root_value)]
    is_legal = prior >= 0
    scores = prior.clamp(min=MIN_PROBABILITY).log()
    if settings.gumbel_scale:
        scores += settings.gumbel_scale * rng.gumbel(*prior.shape).cpu()
    scores = scores.masked_fill(~is_legal, -torch.inf)
    num_considered = is_legal.sum(1).clamp(max=settings.max_num_considered_actions)
    numbers, sequence = num_considered.unique(return_inverse=True)
    plans = [halving(number, settings.simulations) for number in numbers.tolist()]
    raw_values = np.full(len(tree.sign), np.nan, np.float32)
    raw_values[: len(root_value)] = root_value.numpy()
    plan = GumbelPlan(
        raw_values=raw_values,
        root_scores=scores.numpy(),
        considered_visits=np.array([visits for visits, _ in plans]),
        sequence=sequence.numpy(),
        c_visit=settings.c_visit,
        c_scale=settings.c_scale,
    )
    tree.selection = tree.selection._replace(plan=plan)
    return sorted(set().union(*(ends for _, ends in plans)))


def batch_sizes(ends: list[int], num_parallel: int) -> Iterator[int]:
    """The sizes of batches of at most num_parallel simulations, none of them across an end."""
    num_done = 0
    for end in ends:
        while num_done < end:
            size = min(num_parallel, end - num_done)
            yield size
            num_done += size
