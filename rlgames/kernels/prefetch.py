"""Reading from memory ahead of time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from rlgames.kernels.nibbles import Bits
from rlgames.kernels.words import Array


def prefetch(array: Array, index: Bits) -> None:
    """Have array[index] fetched into the cache, while the program continues."""


@intrinsic
def _prefetch(_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = ir.IntType(8).as_pointer()
        address = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        is_write, locality, is_data = (ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3]),
            "llvm.prefetch.p0",
        )
        builder.call(function, [address, is_write, locality, is_data])
        return impl_ret_untracked(
            context, builder, signature.return_type, context.get_dummy_value()
        )

    return types.none(array, index), generate


@overload(prefetch)
def _overload_prefetch(array: Any, index: Any) -> Any:
    def implementation(array: Any, index: Any) -> Any:
        _prefetch(array, index)  # type: ignore[call-arg]  # numba gives the context

    return implementation
