"""Checks of tensors from untrusted files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.core.untrusted import sanitized

POSITIVE_STATES = ("step", "exp_avg_sq", "square_avg", "scale")
"""The counters and the means of squares among the states of optimizers: never negative."""


def load_weights(module: nn.Module, tensors: Any) -> None:
    """Load a state dict. Raises ValueError unless names and shapes match and all weights are
    finite; some weights may then be loaded."""
    try:
        module.load_state_dict(tensors)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"the tensors do not match: {sanitized(error)}") from None
    for name, tensor in weights(module):
        if not all(bool(part.isfinite().all()) for part in parts(tensor)):
            raise ValueError(f"the weights {name} are not finite numbers")


def weights(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """What is trained, which has to be finite: all parameters, and the buffers that a module lists
    in trained_buffers. Other buffers may be infinite, as in masks."""
    yield from module.named_parameters()
    for prefix, each in module.named_modules():
        for name in getattr(each, "trained_buffers", ()):
            yield f"{prefix}.{name}".lstrip("."), each.get_buffer(name)


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
            layout = (expected.shape, expected.dtype)
            if not (isinstance(value, Tensor) and (value.shape, value.dtype) == layout):
                raise ValueError(f"{name} of weight {index} has the wrong shape or dtype")
            is_negative = name in POSITIVE_STATES and bool((value < 0).any())
            if is_negative or not bool(value.isfinite().all()):
                raise ValueError(f"{name} of weight {index} is out of range")
