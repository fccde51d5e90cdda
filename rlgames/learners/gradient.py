"""Shared by gradient-based learners: optimizers, gradient steps, and terms of policy gradients.

Shapes: M moves, A actions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Required, TypedDict

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from rlgames.core.errors import NonFiniteError
from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import check_optimizer_state
from rlgames.learners.learner import BatchLearner, LearnerContext


class RmspropPerMatrix(torch.optim.Optimizer):
    """RMSProp with one running scale per matrix (Dedieu and Amar, section 3.2.4).

        η ← ρ·η + (1 - ρ)·‖g‖²,  W ← W - lr·g / (√η + 1e-5),  initially η = 0

    The length of each step is about lr, independent of the gradient's norm.
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
    """An optimizer by its name in the config. rho: decay of the running means of RMSProp.

    fused_adam is torch.optim.Adam(fused=True): the same update, rounded differently.
    """
    weights = list(policy.named_parameters())  # names appear in error messages
    if name == "rmsprop_per_matrix":
        return _without_compiler(RmspropPerMatrix)(weights, lr, rho)
    if name == "rmsprop":
        return _without_compiler(torch.optim.RMSprop)(weights, lr, alpha=rho)
    if name == "fused_adam":
        return _without_compiler(torch.optim.Adam)(weights, lr, fused=True)
    return _without_compiler(torch.optim.Adam if name == "adam" else torch.optim.SGD)(weights, lr)


def _without_compiler(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """The optimizer class without the wrappers that torch's compiler adds to its methods.

    The wrappers import the compiler, which is not used here: with torch 2.13 the first Adam takes
    1.8 s of CPU time with them and 0.01 s without (median of 5 processes).
    """
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    unwrapped: type[torch.optim.Optimizer] = type(kind.__name__, (kind,), methods | {"step": step})
    return unwrapped


class OptimizerSettings(TypedDict, total=False):
    """Keyword arguments of GradientLearner, which its subclasses pass on."""

    lr: Required[float]
    lr_end: float | None
    optimizer: str
    rho: float
    max_grad_norm: float | None


class GradientLearner(BatchLearner):
    """Minimizes a loss by gradient steps.

    lr, lr_end: learning rate, linear from the first to the last game; constant if lr_end is None.
    optimizer, rho: as in make_optimizer. max_grad_norm: longest gradient; None: no limit.
    """

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None = None,
        optimizer: str = "adam",
        rho: float = 0.99,
        max_grad_norm: float | None = 1.0,
    ) -> None:
        super().__init__(context)
        self.lr, self.max_grad_norm = Schedule(lr, lr_end), max_grad_norm
        self.optimizer = make_optimizer(optimizer, self.policy, lr, rho)

    def descend(self, loss: Tensor | Iterable[Tensor], lr: float) -> float:
        """One gradient step; returns the gradient's norm, as the function descend does."""
        self.num_gradient_steps += 1
        return descend(self.optimizer, loss, lr, self.max_grad_norm)

    def minibatches(
        self,
        count: int,
        epochs: int,
        *,
        size: int | None = None,
        parts: int = 1,
    ) -> Iterator[Tensor]:
        """The rows of each gradient step, int64: in each epoch all `count` rows in random order,
        split into minibatches of a size, or if it is None into parts."""
        for _ in range(epochs):
            order = torch.randperm(count, generator=self.generator, device=self.generator.device)
            yield from order.tensor_split(min(parts, count)) if size is None else order.split(size)

    def fit(
        self, loss: Callable[[Tensor], Tensor], batches: Iterable[Tensor], lr: float
    ) -> dict[str, float]:
        """A gradient step on the mean loss of each minibatch of rows; the metrics of all steps."""
        losses, grad_norms = [], []
        for rows in batches:
            value = loss(rows)
            grad_norms.append(self.descend(value, lr))
            losses.append(value.detach())
        grad_norm = sum(grad_norms) / len(grad_norms)
        return {"loss": float(torch.stack(losses).mean()), "grad_norm": grad_norm, "lr": lr}

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict()["state"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        weight_states = {int(index): value for index, value in state["optimizer"].items()}
        check_optimizer_state(self.optimizer, weight_states)
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": weight_states})


def descend(
    optimizer: torch.optim.Optimizer,
    loss: Tensor | Iterable[Tensor],
    lr: float,
    max_grad_norm: float | None,
) -> float:
    """Take one gradient step; returns the gradient's norm before it is clipped to max_grad_norm.

    loss: several losses are added up; of an iterator, each is differentiated before the next one is
    computed.
    Raises NonFiniteError, before the step, if the loss or the gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for part in [loss] if isinstance(loss, Tensor) else loss:
        part.backward()
        losses.append(part.detach())
    loss = torch.stack(losses).sum()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    grad_norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if not (float(grad_norm) < torch.inf and float(loss.abs()) < torch.inf):
        name = non_finite_name(optimizer, loss)
        raise NonFiniteError(f"{name} is not a finite number; a smaller lr may help")
    max_norm = torch.inf if max_grad_norm is None else max_grad_norm
    nn.utils.clip_grads_with_norm_(parameters, max_norm, grad_norm)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    if optimizer.defaults.get("fused"):
        # Torch does not count a fused step as a change, and caches of evaluations ask for changes.
        for parameter in parameters:
            increment_version(parameter)
    return float(grad_norm)


def non_finite_name(optimizer: torch.optim.Optimizer, loss: Tensor) -> str:
    """The name of the first tensor that makes a loss or its gradient's norm non-finite."""
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
    return "the norm of the gradient"


def select_actions(log_prob: Tensor, action: Tensor) -> Tensor:
    """Float32 [M]: the log-probabilities of the actions taken, out of all actions [M, A]."""
    return log_prob.gather(1, action[:, None])[:, 0]


def mean_entropy(log_prob: Tensor, prob: Tensor) -> Tensor:
    """The mean entropy of distributions [M, A]; illegal actions have log-probability -inf."""
    return -(prob * log_prob.clamp(min=-1e9)).sum(1).mean()


def standardized(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """[M] minus its mean, divided by its standard deviation, both weighted by weight [M]."""

    def mean(values: Tensor) -> Tensor:
        return values.mean() if weight is None else (weight * values).sum() / weight.sum()

    centered = advantage - mean(advantage)
    return centered / mean(centered.square()).sqrt().clamp(min=1e-6)
