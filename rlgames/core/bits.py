"""Sets as words: one bit for each element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = 64
"""The bits of a word."""


def pack_bits(bits: NDArray[Any]) -> NDArray[np.uint64]:
    """Sets, bool [..., N], as uint64 [..., ceil(N / 64)]: element n is bit n % 64 of word
    n // 64."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    words = np.zeros((*bits.shape[:-1], -(-bits.shape[-1] // WORD)), np.uint64)
    words.view(np.uint8)[..., : packed.shape[-1]] = packed
    return words


def unpack_bits(words: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Bool [..., count], the inverse of pack_bits."""
    parts = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(parts, axis=-1, count=count, bitorder="little").view(np.bool_)
