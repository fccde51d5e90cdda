"""Sets of up to 64 things as words, and how kernels on them are compiled."""

import numpy as np

from rlgames.kernels.jit import jit

compiled = jit(_nrt=False)
"""For kernels that allocate nothing: counting references to arrays would take most of the time."""

ONE, TWO, ZERO = np.uint64(1), np.uint64(2), np.uint64(0)


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
