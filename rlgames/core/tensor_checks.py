"""Checks of tensors from untrusted files, and a limit on the memory they can claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlgames.core.pages import release_pages
from rlgames.core.untrusted import sanitized

NUM_EXTRA_ELEMENTS = 1 << 20
"""Elements that a policy may allocate beyond its weights, for example tables of cells."""

MIN_TENSOR_SIZE = 1024
"""Elements that every new tensor counts at least, because creating it takes time."""

MAX_COPIES = 4
"""How often the weights may be allocated while a policy is built and initialized."""

ALLOCATORS = ("empty", "zeros", "ones", "full", "rand", "randn", "new")
"""Prefixes of the names of operators that allocate a tensor of a given size."""


class TooLarge(ValueError):
    """A config asks for more elements than its file has."""


class AllocationLimit(TorchDispatchMode):
    """A context that limits the tensors created in it.

    One tensor may have numel + NUM_EXTRA_ELEMENTS elements, all together MAX_COPIES times that.
    Raises TooLarge before the memory is allocated.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here; True imports torch's compiler, about a second

    def __init__(self, numel: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numel = numel
        self.remaining = MAX_COPIES * (numel + NUM_EXTRA_ELEMENTS)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        allocated = _allocated_numel(func, args)
        self.remaining -= max(allocated, MIN_TENSOR_SIZE if allocated else 0)
        if allocated > self.numel + NUM_EXTRA_ELEMENTS or self.remaining < 0:
            raise TooLarge(f"its config needs far more numbers than the {self.numel:,} of its file")
        return func(*args, **(kwargs or {}))


def _allocated_numel(func: Any, args: Sequence[Any]) -> int:
    """The number of elements that an operator allocates; 0 if it reads existing tensors."""
    name = func.overloadpacket.__name__
    if name in ("arange", "linspace"):
        return int(max((abs(value) for value in args if isinstance(value, int)), default=0))
    prefix = name.split("_")[0]
    size_index = 1 if prefix == "new" else 0
    size = args[size_index] if len(args) > size_index else None
    if prefix in ALLOCATORS and isinstance(size, Sequence):
        return math.prod(map(int, size))
    return 0


def state_dict_mismatch(state: dict[str, Tensor], expected: dict[str, Tensor]) -> str:
    """The missing, unknown and misshapen tensors as part of a message; "" if all match."""
    problems = {
        "missing": [name for name in expected if name not in state],
        "unknown": [name for name in state if name not in expected],
        "with the wrong shape or dtype": [
            name
            for name in expected
            if name in state
            and not (isinstance(state[name], Tensor) and same_layout(state[name], expected[name]))
        ],
    }
    texts = []
    for problem, names in problems.items():
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        shown = ", ".join(sanitized(name, 60) for name in names[:3])
        texts += [f"{shown}{more} {problem}"] if names else []
    return "; ".join(texts)


def same_layout(tensor: Tensor, expected: Tensor) -> bool:
    """Whether two tensors have the same shape and dtype."""
    return tensor.shape == expected.shape and tensor.dtype == expected.dtype


@torch.no_grad()
def load_weights(module: nn.Module, tensors: Any) -> None:
    """Load a state dict, in parts: what is mapped from a file then takes no second copy of memory.

    Raises ValueError unless names, shapes and dtypes match and all numbers are finite; some weights
    may then be loaded.
    """
    if not isinstance(tensors, dict):
        raise ValueError("the state is not a dictionary of tensors")
    weights = module.state_dict()
    mismatch = state_dict_mismatch(tensors, weights)
    if mismatch:
        raise ValueError(f"the tensors do not fit: {mismatch}")
    for name, tensor in tensors.items():
        for part, target in zip(parts(tensor), parts(weights[name]), strict=True):
            if not bool(part.isfinite().all()):
                raise ValueError("some weights are not finite numbers")
            target.copy_(part)
            release_pages(part)


def parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """A tensor in parts of some rows: to check it at once takes 1.5 times its memory."""
    rows = tensor if tensor.dim() else tensor[None]
    size = max(1, (1 << 22) * len(rows) // max(1, rows.numel()))
    return tuple(rows.split(size))


def checked_rows(column: Any, example: Tensor, rows: int) -> Tensor:
    """The column if it is a finite tensor [rows, ...] with the row shape and dtype of example.

    Raises ValueError for anything else.
    """
    if not (isinstance(column, Tensor) and column.dtype == example.dtype):
        raise ValueError("a column is missing or has the wrong dtype")
    if column.shape != (rows, *example.shape[1:]):
        raise ValueError(f"a column has the shape {tuple(column.shape)[:4]}, expected {rows} rows")
    if not bool(column.isfinite().all()):
        raise ValueError("a column has numbers that are not finite")
    return column.to(example.device)


def check_optimizer_state(optimizer: torch.optim.Optimizer, state: Any) -> None:
    """Raises ValueError for a state that an optimizer of this class cannot have.

    state: by index of the weight, then by name; tensors of the weight's shape, or scalars.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    probe = torch.zeros(2, 3, requires_grad=True)
    probe.grad = torch.zeros_like(probe)
    example_optimizer = type(optimizer)([probe], **optimizer.defaults)
    example_optimizer.step()
    example = example_optimizer.state[probe]
    for index, weight_state in state.items():
        if not 0 <= index < len(weights) or weight_state.keys() != example.keys():
            raise ValueError(f"the optimizer has no such state for weight {index}")
        for name, value in weight_state.items():
            expected = weights[index] if example[name].shape == probe.shape else example[name]
            if not (isinstance(value, Tensor) and same_layout(value, expected)):
                raise ValueError(f"{name} of weight {index} has the wrong shape or dtype")
            if not bool(value.isfinite().all()) or (value.dim() == 0 and value < 0):
                raise ValueError(f"{name} of weight {index} is out of range")
