"""The choice of actions by their scores, in many positions side by side."""

from __future__ import annotations

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import Array

MAX = np.finfo(np.float32).max


@jit()
def choose_rows(
    scores: Array, legal: Array, noise: Array, temperature: float, logits: Array, actions: Array
) -> None:
    """Write the first legal action with the highest logit less noise, int64 [B], and the logits.

    scores, logits: float32 [B, A]; a logit is the score, NaN as 0, of a legal action, and -inf of
    others. A temperature that is not 1 divides its difference to the highest one. noise: float32
    [B, A], or [0, A] without any.
    """
    divisor, is_scaled = np.float32(temperature), temperature != 1
    for row in range(len(actions)):
        top, best, action = -np.float32(np.inf), -np.float32(np.inf), 0
        for each in range(scores.shape[1]):
            logit = -np.float32(np.inf)
            if legal[row, each]:
                score = scores[row, each]
                logit = np.float32(0) if np.isnan(score) else min(max(score, -MAX), MAX)
                top = max(top, logit)
            logits[row, each] = logit
        for each in range(scores.shape[1]):
            logit = logits[row, each]
            if is_scaled and legal[row, each]:
                # The difference keeps huge scores finite.
                logit = max((logit - top) / divisor, -MAX)
                logits[row, each] = logit
            if len(noise):
                logit -= noise[row, each]
            if logit > best:
                best, action = logit, each
        actions[row] = action
