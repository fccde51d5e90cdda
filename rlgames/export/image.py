"""The arrays of kernels in one block of memory, and code that finds them there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from rlgames.kernels.rules import IMPLEMENTED
from rlgames.kernels.words import Array

ALIGNMENT = 64


def parts(value: Any) -> Iterator[Any]:
    """A value and, if it is a tuple, all that it consists of."""
    yield value
    if isinstance(value, tuple):
        for part in value:
            yield from parts(part)


class Image:
    """The arrays in nested tuples, one after the other in a block of bytes.

    Kernels share an array if they are given the same one, so each is stored once.
    """

    def __init__(self, *values: Any) -> None:
        self._values, self._offsets = values, dict[Any, int]()
        stored = list[bytes]()
        for each in parts(values):
            if isinstance(each, np.ndarray) and _identity(each) not in self._offsets:
                self._offsets[_identity(each)] = sum(map(len, stored))
                stored += [each.tobytes(), bytes(-each.nbytes % ALIGNMENT)]
        self.data = b"".join(stored)

    def offset(self, array: Array) -> int:
        """Where an array begins in the block."""
        return self._offsets[_identity(array)]

    @property
    def layout(self) -> str:
        """All that code from this image depends on, besides kernels: types, shapes, places and
        numbers."""
        found = [
            (each.shape, self.offset(each)) if isinstance(each, np.ndarray) else repr(each)
            for each in parts(self._values)
            if isinstance(each, np.ndarray | np.generic | int | float)
        ]
        return repr((typeof(self._values), found))

    @property
    def modules(self) -> set[str]:
        """Those that define the classes of the values for which kernels are implemented."""
        classes = {type(each) for each in parts(self._values)}
        return {each.__module__ for each in classes if each in IMPLEMENTED}

    def finder(self, value: Any) -> Any:
        """A function for kernels: from the address of the block to one of the values. Code that
        builds nested tuples in place is compiled in a tenth of the time of code that returns them.
        """
        kind = typeof(value)

        @intrinsic
        def find(_context: Any, base: Any) -> Any:
            def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
                return self._build(context, builder, arguments[0], kind, value)

            return kind(types.int64), generate

        return find

    def _build(self, context: Any, builder: ir.IRBuilder, base: Any, kind: Any, value: Any) -> Any:
        """The code for a value of a numba type."""

        def number(given: int) -> Any:
            return context.get_constant(types.intp, given)

        if isinstance(kind, types.Array):
            array = make_array(kind)(context, builder)
            address = builder.add(base, number(self.offset(value)))
            populate_array(
                array,
                data=builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer()),
                shape=[number(each) for each in value.shape],
                strides=[number(each) for each in np.ascontiguousarray(value).strides],
                itemsize=number(value.itemsize),
                meminfo=None,
            )
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            pairs = zip(kind, value, strict=True)  # type: ignore[call-overload]
            built = [self._build(context, builder, base, *pair) for pair in pairs]
            return context.make_tuple(builder, kind, built)
        if isinstance(kind, types.Number | types.Boolean):
            return context.get_constant(kind, value)
        return context.get_dummy_value()  # the type says all, as of an n-tuple network of 2048


def _identity(array: Array) -> tuple[Any, ...]:
    """What two arrays have in common that share all of their memory."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str
