"""Results of a tree search that backs up proven outcomes (search.solve=true)."""

from __future__ import annotations

import torch

from rlgames.search.search import SearchResult
from rlgames.search.tree import SearchTree


def prefer_proven(tree: SearchTree, result: SearchResult) -> SearchResult:
    """The result of a search, corrected by what it proved.

    Where an action is proven to win, only such actions have probability. Otherwise, none that is
    proven to lose has, unless all are, and none that is proven to draw is excluded: the others may
    be better. The q of a proven action and the value of a proven root are exact.
    """
    from rlgames.kernels.tree_search import UNSOLVED

    trees, device = len(result.visits), result.visits.device
    is_legal = (tree.prior[:trees] >= 0).to(device)
    is_solved = (tree.solved[:trees] != UNSOLVED).to(device)
    outcome = (tree.solved[:trees] * tree.sign[:trees, None]).to(device)
    outcome = outcome.masked_fill(~is_solved, 0)
    best = outcome.masked_fill(~is_legal, -1).amax(1, keepdim=True)
    is_allowed = is_legal & torch.where(best > 0, outcome > 0, outcome >= best)
    weights = result.visits.masked_fill(~is_allowed, 0)
    weights = torch.where(weights.sum(1, keepdim=True) > 0, weights, is_allowed.float())
    q = torch.where(is_solved, ((1 + outcome) / 2).clamp(max=0.999), result.q)
    is_proven = (best[:, 0] > 0) | (is_solved | ~is_legal).all(1)
    return SearchResult(
        visits=result.visits,
        q=q,
        policy=weights / weights.sum(1, keepdim=True),
        action=(result.visits + q).masked_fill(~is_allowed, -torch.inf).argmax(1),
        value=torch.where(is_proven, best[:, 0], result.value),
    )
