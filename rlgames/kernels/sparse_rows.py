"""Products of sparse rows with matrices.

A row is read in blocks of 64 numbers, and the matrix in tiles of up to 64 columns. The part of a
tile that belongs to a block stays in the processor's first cache while all rows are multiplied by
it, and the sums of a tile stay in registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from rlgames.kernels.jit import jit
from rlgames.kernels.words import Array

BLOCK = 64
LANES = 16
MAX_VECTORS = 4
TILE = LANES * MAX_VECTORS

FLOAT, INT64 = ir.FloatType(), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)
CONTRACT = ("contract",)


def mask_of(x: Array, start: int) -> Any:
    """A word whose bit i says whether x[start + i] is not 0."""
    return sum(np.uint64(1 << i) for i in range(BLOCK) if x[start + i] != 0)


def add_block(
    x: Array, start: int, mask: Any, matrix: Array, first: int, width: int, total: Array, at: int
) -> None:
    """total[at + c] += Σ_i x[start + i] · matrix[first + width · i + c] for c < width, over bits
    i of a mask. width: a multiple of LANES up to TILE."""
    for i in range(BLOCK):
        if int(mask) >> i & 1:
            begin = first + width * i
            total[at : at + width] += x[start + i] * matrix[begin : begin + width]


@jit(_nrt=False)
def multiply(
    x: Array,
    masks: Array,
    stride: int,
    rows: int,
    matrix: Array,
    inputs: int,
    columns: int,
    total: Array,
) -> None:
    """Add the products of rows with a matrix to total.

    x, total: float32, flat; rows begin at multiples of stride. masks: uint64, flat, one per block
    of each row of x, stride / BLOCK per row. matrix: float32, one tile of TILE columns after the
    other, the last one perhaps narrower; `columns` is a multiple of LANES. A tile lists its numbers
    by input, then by column.
    """
    blocks = -(-inputs // BLOCK)
    column = 0
    while column < columns:
        width = min(TILE, columns - column)
        for block in range(blocks):
            first = inputs * column + block * BLOCK * width
            for row in range(rows):
                mask = masks[row * (stride // BLOCK) + block]
                start, at = row * stride + block * BLOCK, row * stride + column
                add_block(x, start, mask, matrix, first, width, total, at)
        column += width


@overload(mask_of)
def _overload_mask_of(x: Any, start: Any) -> Any:
    def implementation(x: Any, start: Any) -> Any:
        return _mask_of(x, start)  # type: ignore[call-arg]  # numba gives the context

    return implementation


@overload(add_block)
def _overload_add_block(
    x: Any, start: Any, mask: Any, matrix: Any, first: Any, width: Any, total: Any, at: Any
) -> Any:
    def implementation(
        x: Any, start: Any, mask: Any, matrix: Any, first: Any, width: Any, total: Any, at: Any
    ) -> None:
        if width == 4 * LANES:
            _add_block(x, start, mask, matrix, first, total, at, 4)  # type: ignore[call-arg]
        elif width == 3 * LANES:
            _add_block(x, start, mask, matrix, first, total, at, 3)  # type: ignore[call-arg]
        elif width == 2 * LANES:
            _add_block(x, start, mask, matrix, first, total, at, 2)  # type: ignore[call-arg]
        else:
            _add_block(x, start, mask, matrix, first, total, at, 1)  # type: ignore[call-arg]

    return implementation


def _pointer(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any) -> Any:
    """To a number of an array."""
    return builder.gep(make_array(kind)(context, builder, array).data, [index])


@intrinsic
def _mask_of(_context: Any, x: Any, _start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(FLOAT, BLOCK)
        pointer = _pointer(context, builder, x, *arguments)
        numbers = builder.load(builder.bitcast(pointer, block.as_pointer()), align=4)
        is_set = builder.fcmp_unordered("!=", numbers, ir.Constant(block, [0.0] * BLOCK))
        return builder.bitcast(is_set, INT64)

    return types.uint64(x, types.int64), generate


@intrinsic(prefer_literal=True)
def _add_block(
    _context: Any,
    x: Any,
    _start: Any,
    _mask: Any,
    matrix: Any,
    _first: Any,
    total: Any,
    _at: Any,
    vectors: Any,
) -> Any:
    """As add_block, with vectors of LANES columns."""
    int64 = types.int64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _pointer(context, builder, x, *arguments[:2])
        rows = _pointer(context, builder, matrix, *arguments[3:5])
        sums = _pointer(context, builder, total, *arguments[5:7])
        _add_rows(builder, numbers, arguments[2], rows, sums, vectors.literal_value)
        return context.get_dummy_value()

    signature = types.none(x, int64, types.uint64, matrix, int64, total, int64, vectors)
    return signature, generate


def _add_rows(
    builder: ir.IRBuilder, numbers: Any, mask: Any, rows: Any, total: Any, vectors: int
) -> None:
    """A loop over the bits of a mask, with the sums in registers."""
    places, zero, one = _vectors_at(builder, total, vectors), INT64(0), INT64(1)
    before, begin = [builder.load(place, align=4) for place in places], builder.block
    loop, end = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_unsigned("!=", mask, zero), loop, end)

    builder.position_at_end(loop)
    bits, sums = builder.phi(INT64), [builder.phi(VECTOR) for _ in places]
    index = builder.cttz(bits, ir.IntType(1)(1))
    row = builder.gep(rows, [builder.mul(index, INT64(LANES * vectors))])
    factor = builder.load(builder.gep(numbers, [index]))
    after = _add_product(builder, factor, _vectors_at(builder, row, vectors), sums)
    others = builder.and_(bits, builder.sub(bits, one))
    for phi, first, then in zip([bits, *sums], [mask, *before], [others, *after], strict=True):
        phi.add_incoming(first, begin)
        phi.add_incoming(then, loop)
    builder.cbranch(builder.icmp_unsigned("!=", others, zero), loop, end)

    builder.position_at_end(end)
    results = [builder.phi(VECTOR) for _ in places]
    for phi, first, then in zip(results, before, after, strict=True):
        phi.add_incoming(first, begin)
        phi.add_incoming(then, loop)
    for result, place in zip(results, places, strict=True):
        builder.store(result, place, align=4)


def _vectors_at(builder: ir.IRBuilder, pointer: Any, vectors: int) -> list[Any]:
    """Pointers to vectors that follow each other."""
    first = builder.bitcast(pointer, VECTOR.as_pointer())
    return [builder.gep(first, [INT64(number)]) for number in range(vectors)]


def _add_product(
    builder: ir.IRBuilder, factor: Any, pointers: list[Any], sums: list[Any]
) -> list[Any]:
    """The sums after the addition of a number times some vectors."""
    undefined, index = ir.Constant(VECTOR, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, factor, index(0))
    zeros = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    factors = builder.shuffle_vector(first, undefined, zeros)
    results = []
    for pointer, before in zip(pointers, sums, strict=True):
        product = builder.fmul(factors, builder.load(pointer, align=4), flags=CONTRACT)
        results.append(builder.fadd(product, before, flags=CONTRACT))
    return results
