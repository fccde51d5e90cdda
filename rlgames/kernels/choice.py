"""The choice of actions by their scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.keys import fold
from rlgames.kernels.words import Array, Words, compiled

F = np.float32
MAX = np.finfo(np.float32).max


@compiled
def bounded(score: Any) -> Any:
    """A score as it counts: NaN as 0, and infinity as the largest number."""
    return F(0) if np.isnan(score) else min(max(score, -MAX), MAX)


@compiled
def best_action(scores: Array, legal: Array) -> int:
    """The first legal action with the highest score, float32 [A]; legal: bool [A]."""
    best, action = -F(np.inf), 0
    for each in range(len(scores)):
        if legal[each] and bounded(scores[each]) > best:
            best, action = bounded(scores[each]), each
    return action


@compiled
def sample_action(
    scores: Array, legal: Array, key: Any, temperature: Any, weights: Array
) -> tuple[int, Any]:
    """A sample from softmax(scores ÷ temperature) over the legal actions, by the first number of a
    key, and its log-probability. weights: float32 [A], overwritten."""
    top = -F(np.inf)
    for action in range(len(scores)):
        if legal[action]:
            top = max(top, bounded(scores[action]))
    total = 0.0
    for action in range(len(scores)):
        weights[action] = F(0)
        if legal[action]:  # the difference keeps huge scores finite
            logit = max((bounded(scores[action]) - top) / temperature, -MAX)
            weights[action] = math.exp(logit)
            total += weights[action]
    limit = np.float64(fold(key, 0) >> np.uint64(11)) * 2.0**-53 * total
    so_far, chosen = 0.0, 0
    for action in range(len(scores)):
        if weights[action] > 0:
            chosen = action
            so_far += weights[action]
            if so_far > limit:
                break
    logit = max((bounded(scores[chosen]) - top) / temperature, -MAX)
    return chosen, logit - F(math.log(total))


@compiled
def random_action(legal: Array, u: Any) -> int:
    """The legal action, bool [A], with the number floor(u * count), for u in [0, 1)."""
    count = 0
    for action in range(len(legal)):
        count += legal[action]
    # The product may be rounded up to the count.
    nth, action = min(int(u * F(count)), count - 1), -1
    while nth >= 0:
        action += 1
        nth -= legal[action]
    return action


@jit()
def best_rows(scores: Array, legal: Array, actions: Array) -> None:
    """Write what best_action finds in each row, int64 [B]."""
    for row in range(len(actions)):
        actions[row] = best_action(scores[row], legal[row])


@jit()
def sample_rows(
    scores: Array, legal: Array, keys: Words, temperature: Any, actions: Array, log_probs: Array
) -> None:
    """Write what sample_action draws in each row: int64 [B] and float32 [B]."""
    weights = np.empty(scores.shape[1], np.float32)
    for row in range(len(actions)):
        actions[row], log_probs[row] = sample_action(
            scores[row], legal[row], keys[row], temperature, weights
        )
