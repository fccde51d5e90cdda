"""Numbers for sets of cells and for digits: exact where they fit in 62 bits, otherwise a hash.

Letters in shapes: B rows, N cells, D digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from operator import mul

import torch
from torch import Tensor

TOO_MANY_POSITIONS = "its positions are too many to number them in 62 bits"
"""Why a game has no exact key."""


def fits_in_key(bases: Sequence[int]) -> bool:
    """Whether encode_digits gives different digits different numbers."""
    return math.prod(bases) <= 2**62


def encode_digits(digits: Tensor, bases: Sequence[int]) -> Tensor:
    """Int64 [B] from integers [B, D], each in [0, base): their value in mixed radix if it fits in
    62 bits; otherwise a hash."""
    return (digits * _weights(tuple(bases)).to(digits.device)).sum(1)


def decode_digits(number: Tensor, bases: Sequence[int]) -> Tensor:
    """Int64 [B, D]: the digits of numbers, int64 [B], that encode_digits made without a hash."""
    device = number.device
    digits: Tensor = number[:, None] // _weights(tuple(bases)).to(device)
    return digits % torch.tensor(bases, device=device)


def encode_cells(cells: Tensor) -> Tensor:
    """Int64 [B] from bool [B, N]: a number for a set of cells, as in encode_digits."""
    return encode_digits(cells, [2] * cells.shape[1])


@cache
def _weights(bases: tuple[int, ...]) -> Tensor:
    """Int64 [D]: the factor of each digit."""
    if fits_in_key(bases):
        return torch.tensor([*accumulate(bases[:-1], mul, initial=1)], dtype=torch.int64)
    return torch.randint(2**62, (len(bases),), generator=torch.Generator().manual_seed(0))
