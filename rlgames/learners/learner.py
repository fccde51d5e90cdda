"""The contract of every learner, its optimizers, and what guards the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from rlgames.play import Moves, Results

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


class BadNumber(ArithmeticError):
    """A NaN or an infinity, met before it could reach the weights."""


class Learner(ABC):
    """Learns and does not play."""

    needs_value = False
    """Whether the policy must have a value head."""

    learns_from_records = False
    """Whether it learns from recorded games as from those just played."""

    optimizer: torch.optim.Optimizer

    @abstractmethod
    def update(self, moves: Moves, results: Results, progress: float) -> dict[str, float]:
        """Learn from moves once, and from how their games ended.

        progress, 0 to 1, is how much of the run has been played.

        Returns metrics by name. Raises BadNumber, leaving the weights as they were.
        """


def step(optimizer: torch.optim.Optimizer, loss: Tensor, max_norm: float | None) -> float:
    """Descend the loss once and return the norm of its gradient, before it is clipped to max_norm.

    Raises BadNumber, before the step, if the loss or the gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    limit = torch.inf if max_norm is None else max_norm
    norm = float(nn.utils.clip_grad_norm_(parameters, limit))
    if not (norm < torch.inf and float(loss.detach().abs()) < torch.inf):
        what = "the loss" if not torch.isfinite(loss) else "the gradient"
        raise BadNumber(f"{what} is not a finite number; a smaller lr may help")
    optimizer.step()
    return norm
