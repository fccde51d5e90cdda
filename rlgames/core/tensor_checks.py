"""Tensors from files that somebody else may have written, and how much may be made for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlgames.core.untrusted import sanitized

SLACK = 1 << 20
"""Numbers that a policy may use beside its weights: tables of cells, say."""

MIN_TENSOR_SIZE = 1024
"""A tensor counts as so many numbers at least, for it takes time to make."""

MAX_COPIES = 4
"""How often the weights may be made while a policy is built: to be set, and to be drawn."""


class TooLarge(ValueError):
    """More numbers were asked for than a file has."""


class AllocationLimit(TorchDispatchMode):
    """Within it tensors of no more than COPIES times so many numbers, and SLACK, can be made.

    Raises TooLarge before the memory is asked for.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch would import its compiler, in a second

    def __init__(self, numbers: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers, self.left = numbers, MAX_COPIES * (numbers + SLACK)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        made = _made(func, args)
        self.left -= max(made, MIN_TENSOR_SIZE if made else 0)
        if made > self.numbers + SLACK or self.left < 0:
            raise TooLarge(
                f"its config needs far more numbers than the {self.numbers:,} of its file"
            )
        return func(*args, **(kwargs or {}))


def _made(func: Any, args: Sequence[Any]) -> int:
    """How many numbers a call is told to make; 0 for what works on those that there are."""
    name = func.overloadpacket.__name__
    if name in ("arange", "linspace"):
        return int(max((abs(value) for value in args if isinstance(value, int)), default=0))
    place = {"new": 1}.get(name.split("_")[0], 0)
    size = args[place] if len(args) > place else None
    if name.split("_")[0] in MAKERS and isinstance(size, Sequence):
        return math.prod(map(int, size))
    return 0


MAKERS = ("empty", "zeros", "ones", "full", "rand", "randn", "new")
"""How the names begin of what makes tensors of a size that it is told."""


def state_dict_mismatch(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> str:
    """What is missing, too much or of another shape or type, as part of a message; "" if nothing
    is."""
    parts = {
        "missing": [name for name in wanted if name not in found],
        "unknown": [name for name in found if name not in wanted],
        "of another shape or type": [
            name
            for name in wanted
            if name in found
            and not (isinstance(found[name], Tensor) and same_layout(found[name], wanted[name]))
        ],
    }
    return "; ".join(f"{_listed(names)} {what}" for what, names in parts.items() if names)


def _listed(names: list[str]) -> str:
    """The first few names."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(sanitized(name, 60) for name in names[:3]) + more


def same_layout(found: Tensor, wanted: Tensor) -> bool:
    return found.shape == wanted.shape and found.dtype == wanted.dtype


def load_weights(module: nn.Module, tensors: Any) -> None:
    """Load what a module remembers; ValueError unless every tensor is of its name, shape and type
    and finite."""
    if not isinstance(tensors, dict):
        raise ValueError("there are no tensors where some should be")
    wrong = state_dict_mismatch(tensors, module.state_dict())
    if wrong:
        raise ValueError(f"the tensors do not fit: {wrong}")
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise ValueError("some weights are not finite numbers")
    module.load_state_dict(tensors)


def checked_rows(found: Any, wanted: Tensor, rows: int) -> Tensor:
    """Tensor [rows, ...] with rows of the shape and type of those of wanted, and finite.

    Raises ValueError for anything else.
    """
    if not (isinstance(found, Tensor) and found.dtype == wanted.dtype):
        raise ValueError("a column is missing or of another type")
    if found.shape != (rows, *wanted.shape[1:]):
        raise ValueError(f"{rows} rows should be there, and {tuple(found.shape)[:4]} are")
    if not bool(found.isfinite().all()):
        raise ValueError("a number is not finite")
    return found.to(wanted.device)


def check_optimizer_state(optimizer: torch.optim.Optimizer, state: Any) -> None:
    """Raises ValueError for what an optimizer of this kind cannot have kept of its weights.

    state: by place of the weight, by name; tensors of the weight's shape or single numbers.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    probe = torch.zeros(2, 3, requires_grad=True)
    probe.grad = torch.zeros_like(probe)
    example = type(optimizer)([probe], **optimizer.defaults)
    example.step()
    kept = example.state[probe]
    for place, of_one in state.items():
        if not 0 <= place < len(weights) or of_one.keys() != kept.keys():
            raise ValueError(f"an optimizer of this kind keeps no such state of weight {place}")
        for name, value in of_one.items():
            wanted = weights[place] if kept[name].shape == probe.shape else kept[name]
            if not (isinstance(value, Tensor) and same_layout(value, wanted)):
                raise ValueError(f"{name} of weight {place} is of another shape or type")
            if not bool(value.isfinite().all()) or (value.dim() == 0 and value < 0):
                raise ValueError(f"{name} of weight {place} is out of range")
