"""Sets of up to 64 things as words, how kernels on them are compiled, and random words."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.jit import jit

Array: TypeAlias = Any
"""An array of numpy; numba infers more of it than mypy can."""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

compiled = jit(_nrt=False)
"""For kernels that allocate nothing: counting references to arrays would take most of the time."""

inlined = jit(_nrt=False, inline="always")
"""As compiled, for functions of large named tuples, whose fields each call would copy."""

ONE, TWO, ZERO = np.uint64(1), np.uint64(2), np.uint64(0)

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""The fraction of 2^64 that the states of SplitMix64 grow."""


@compiled
def count_bits(word: np.uint64) -> np.int64:
    """The number of bits that are set."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> TWO) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def first_bit(word: np.uint64) -> np.int64:
    """The place of the lowest bit that is set."""
    return count_bits((word & (~word + ONE)) - ONE)


Cells: TypeAlias = Any
"""A set of up to 128 cells, two np.uint64: bit b of word w is cell 64 w + b."""

NO_CELLS = ZERO, ZERO


@compiled
def cells_at(table: Array, row: Any) -> Cells:
    """The cells in a row of uint64 [N, 2]."""
    return table[row, 0], table[row, 1]


@compiled
def common(cells: Cells, others: Cells) -> Cells:
    """The cells that are in both sets."""
    return cells[0] & others[0], cells[1] & others[1]


@compiled
def without(cells: Cells, others: Cells) -> Cells:
    """The cells that are not in the other set."""
    return cells[0] & ~others[0], cells[1] & ~others[1]


@compiled
def is_empty(cells: Cells) -> bool:
    return not (cells[0] | cells[1])


@compiled
def count_cells(cells: Cells) -> np.int64:
    return count_bits(cells[0]) + count_bits(cells[1])


@compiled
def has_cell(cells: Cells, cell: Any) -> bool:
    return bool(((cells[0] if cell < 64 else cells[1]) >> np.uint64(cell & 63)) & ONE)


@compiled
def with_cell(cells: Cells, cell: Any) -> Cells:
    """The set and a cell."""
    bit = ONE << np.uint64(cell & 63)
    return (cells[0] | bit, cells[1]) if cell < 64 else (cells[0], cells[1] | bit)


@compiled
def take_first(cells: Cells) -> tuple[Any, Cells]:
    """The first of some cells, and the others."""
    low, high = cells
    if low:
        return first_bit(low), (low & (low - ONE), high)
    return 64 + first_bit(high), (low, high & (high - ONE))


@compiled
def write_set(members: Any, bits: Array, values: Array) -> None:
    """Write which of these bits a set has: float32 [N], 1 or 0."""
    for number in range(len(bits)):  # a loop with one result becomes vector instructions
        values[number] = np.float32(1) if members & bits[number] else np.float32(0)


@compiled
def mix(bits: Any) -> Any:
    """64 bits that each depend on all of these: the finalizer of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def next_random(rng: Array) -> Any:
    """64 random bits from the state at rng[0], which changes (SplitMix64)."""
    rng[np.uint64(0)] += GOLDEN_RATIO
    return mix(rng[np.uint64(0)])


@compiled
def random_below(rng: Array, limit: Any) -> Any:
    """A uniformly random integer from 0 to limit - 1, which is below 2^32."""
    return np.int64(((next_random(rng) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))
