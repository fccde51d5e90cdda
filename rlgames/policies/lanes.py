"""Vectors of integers in compiled code.

A function of such vectors is also one of arrays of numpy, which is how it runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import Any

import numpy as np
from llvmlite import ir


class Lanes:
    """Integers of 64 bits of which the compiled code computes all at once, as arrays of numpy do.

    builder: of the code. value: what it calls the vector of them.
    """

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder, self.value = builder, value

    def _with(self, operation: str, other: Any) -> Lanes:
        if isinstance(other, Lanes):
            operand = other.value
        else:
            operand = ir.Constant(self.value.type, [int(other)] * len(self))
        return Lanes(self.builder, getattr(self.builder, operation)(self.value, operand))

    __add__ = partialmethod(_with, "add")
    __sub__ = partialmethod(_with, "sub")
    __mul__ = partialmethod(_with, "mul")
    __and__ = partialmethod(_with, "and_")
    __or__ = partialmethod(_with, "or_")
    __xor__ = partialmethod(_with, "xor")
    __lshift__ = partialmethod(_with, "shl")
    __rshift__ = partialmethod(_with, "lshr")

    def __len__(self) -> int:
        return int(self.value.type.count)

    def take(self, numbers: Sequence[int], others: Lanes | None = None) -> Lanes:
        """Some of these, by number; with others, their numbers follow these."""
        second = self.value if others is None else others.value
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))
        return Lanes(self.builder, self.builder.shuffle_vector(self.value, second, mask))

    def minimum(self, other: Lanes) -> Lanes:
        is_lower = self.builder.icmp_unsigned("<", self.value, other.value)
        return Lanes(self.builder, self.builder.select(is_lower, self.value, other.value))


def join_lanes(some: Any, others: Any) -> Any:
    """Lanes or arrays, and as many others after them."""
    if isinstance(some, Lanes):
        return some.take(range(2 * len(some)), others)
    return np.concatenate([some, others])


def lower_lanes(some: Any, others: Any) -> Any:
    """The lower one of each two lanes or numbers of arrays."""
    return some.minimum(others) if isinstance(some, Lanes) else np.minimum(some, others)


def on_lanes(function: Any) -> Any:
    """A kernel of a board as a function of several boards at once."""
    return getattr(function, "py_func", function)
