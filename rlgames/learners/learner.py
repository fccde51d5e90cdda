"""The contract of every learner, its optimizers, and what guards the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.play import Moves, Results
from rlgames.sampling import BadNumber as BadNumber


class RmspropOfMatrices(torch.optim.Optimizer):
    """RMSProp with one running scale for each matrix, the square of its gradient's length.

    η ← ρ·η + (1 - ρ)·‖g‖², W ← W - lr·g / (√η + 1e-5), with η from 0 (section 3.2.4 of Dedieu
    and Amar's paper); each step is about lr long, however steep the loss.
    """

    def __init__(self, parameters: Iterable[Any], lr: float, rho: float = 0.99) -> None:
        super().__init__(parameters, {"lr": lr, "rho": rho})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            rho = group["rho"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                square = weight.grad.square().sum()
                scale = state.get("scale", torch.zeros_like(square))
                state["scale"] = rho * scale + (1 - rho) * square
                weight -= group["lr"] / (state["scale"].sqrt() + 1e-5) * weight.grad


def make_optimizer(name: str, policy: nn.Module, lr: float, rho: float) -> torch.optim.Optimizer:
    """An optimizer by its name in the config; rho: of the running means of both RMSProps."""
    weights = list(policy.named_parameters())  # with their names, for messages
    if name == "rmsprop_of_matrices":
        return RmspropOfMatrices(weights, lr, rho)
    if name == "rmsprop":
        return torch.optim.RMSprop(weights, lr, alpha=rho)
    return torch.optim.Adam(weights, lr) if name == "adam" else torch.optim.SGD(weights, lr)


class Learner(ABC):
    """Learns and does not play."""

    has_critic = False
    """Whether it teaches the policy's value head, always."""

    of_afterstates = False
    """Whether networks that it teaches value what moves lead to, rather than score the moves."""

    learns_logits = False
    """Whether the policy's scores are logits that it learns, rather than values."""

    learns_from_records = False
    """Whether it learns from recorded games as from those just played."""

    bootstraps = False
    """Whether it learns from windows of games, going on from the value of where one ends."""

    optimizer: torch.optim.Optimizer

    @abstractmethod
    def update(self, moves: Moves, results: Results, progress: float) -> dict[str, float]:
        """Learn from moves once, and from how their games ended.

        progress, 0 to 1, is how much of the run has been played.

        Returns metrics by name. Raises BadNumber, leaving the weights as they were.
        """


def step(
    optimizer: torch.optim.Optimizer, loss: Tensor, lr: float, max_norm: float | None
) -> float:
    """Descend the loss once and return the norm of its gradient, before it is clipped to max_norm.

    Raises BadNumber, before the step, if the loss or the gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    limit = torch.inf if max_norm is None else max_norm
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = nn.utils.get_total_norm(gradients)
    norm = float(total)
    if not (norm < torch.inf and float(loss.detach().abs()) < torch.inf):
        what = _not_finite(optimizer, loss)
        raise BadNumber(f"{what} is not a finite number; a smaller lr may help")
    nn.utils.clip_grads_with_norm_(parameters, limit, total)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    return norm


def _not_finite(optimizer: torch.optim.Optimizer, loss: Tensor) -> str:
    """The tensor that is to blame for a bad loss or a bad norm of its gradient."""
    named = [
        (name, weight)
        for group in optimizer.param_groups
        for name, weight in zip(group["param_names"], group["params"], strict=True)
    ]
    for name, weight in named:
        if not bool(weight.isfinite().all()):
            return f"the weight {name}"
    if not bool(loss.isfinite()):
        return "the loss"
    for name, weight in named:
        if weight.grad is not None and not bool(weight.grad.isfinite().all()):
            return f"the gradient of {name}"
    return "the length of the gradient"
