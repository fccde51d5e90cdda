"""Learners that descend a loss, their optimizers, and what guards the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.core import distributed
from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import check_optimizer_state
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, NonFiniteError
from rlgames.rewards import Reward
from rlgames.sampling import Sampling


class RmspropPerMatrix(torch.optim.Optimizer):
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
    if name == "rmsprop_per_matrix":
        return _bare(RmspropPerMatrix)(weights, lr, rho)
    if name == "rmsprop":
        return _bare(torch.optim.RMSprop)(weights, lr, alpha=rho)
    return _bare(torch.optim.Adam if name == "adam" else torch.optim.SGD)(weights, lr)


def _bare(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """The same optimizer without what torch puts around its methods for its compiler.

    That would import the compiler, which takes as long as the rest of torch, and is not used here.
    """
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    bare: type[torch.optim.Optimizer] = type(kind.__name__, (kind,), methods | {"step": step})
    return bare


class GradientLearner(Learner):
    """Descends a loss of the policy's weights.

    lr, lr_end: the step size, from the first to the second in a straight line. optimizer, rho: as
    in make_optimizer. max_grad_norm: longest gradient, or None.
    """

    def __init__(
        self,
        game: Game[Any],
        policy: Any,
        sampling: Sampling,
        reward: Reward,
        rng: torch.Generator,
        *,
        lr: float,
        lr_end: float | None = None,
        optimizer: str = "adam",
        rho: float = 0.99,
        max_grad_norm: float | None = 1.0,
    ) -> None:
        self.game, self.policy, self.sampling, self.reward = game, policy, sampling, reward
        self.rng, self.lr, self.max_grad_norm = rng, Schedule(lr, lr_end), max_grad_norm
        self.optimizer = make_optimizer(optimizer, policy, lr, rho)

    def descend(self, loss: Tensor, lr: float, weight: float = 1.0) -> float:
        """One step, as in the function of this name."""
        return descend(self.optimizer, loss, lr, self.max_grad_norm, weight)

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict()["state"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        of_each = {int(number): value for number, value in state["optimizer"].items()}
        check_optimizer_state(self.optimizer, of_each)
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": of_each})


def _average(parameters: list[nn.Parameter], weight: float) -> None:
    """Give every process the mean of all gradients, each counted by its process's weight."""
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat(
        [weight * part.reshape(-1) for part in parts] + [parts[0].new_tensor([weight])]
    )
    found = distributed.all_reduce_sum(flat)
    means = (found[:-1] / found[-1]).split([part.numel() for part in parts])
    for parameter, mean in zip(parameters, means, strict=True):
        parameter.grad = mean.view_as(parameter)


def descend(
    optimizer: torch.optim.Optimizer,
    loss: Tensor,
    lr: float,
    max_grad_norm: float | None,
    weight: float = 1.0,
) -> float:
    """Descend the loss once and return the norm of its gradient, before it is clipped to
    max_grad_norm.

    weight: what this loss counts where several processes descend the mean of theirs.

    Raises BadNumber, before the step, if the loss or the gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if distributed.world_size() > 1:
        _average(parameters, weight)
    limit = torch.inf if max_grad_norm is None else max_grad_norm
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = nn.utils.get_total_norm(gradients)
    norm = float(total)
    if not (norm < torch.inf and float(loss.detach().abs()) < torch.inf):
        what = _not_finite(optimizer, loss)
        raise NonFiniteError(f"{what} is not a finite number; a smaller lr may help")
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
