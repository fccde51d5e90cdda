"""Picking the n-th member of a set that is encoded as the bits of a number."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

MAX_SET_SIZE = 16
"""The most elements of a set with tables, which have a row for each of the 2^n sets."""


class Subsets:
    """All subsets of n elements, n at most 16, by code: bit i is set if element i is a member."""

    def __init__(self, size: int, device: torch.device) -> None:
        codes = torch.arange(2**size)
        members = ((codes[:, None] >> torch.arange(size)) & 1).to(torch.uint8)
        count = members.sum(1)
        order = members.argsort(dim=1, descending=True, stable=True)
        # A random number times the count may be rounded up to the count: the last member again.
        nth = torch.arange(size + 1).minimum((count - 1).clamp(min=0)[:, None])
        self._row_length = size + 1
        self._order = order.gather(1, nth).to(torch.uint8).reshape(-1).to(device)
        self._count = count.float().to(device)
        self._powers = (2.0 ** torch.arange(size)).to(device)

    def code(self, member: Tensor) -> Tensor:
        """Int32 [B] from bool or uint8 [B, n] of zeros and ones."""
        # Bytes are converted to floats several times as fast as bools.
        return (member.view(torch.uint8).float() @ self._powers).int()

    def pick(self, code: Tensor, u: Tensor) -> Tensor:
        """Int64 [B]: a uniformly random member of each set, from u, float32 [B] in [0, 1).

        code: int32 or int64 [B]. The member has the number floor(u * count); for the empty set it
        is element 0.
        """
        code = code.int()  # sums of two integer types take several times as long
        nth = self._count.index_select(0, code).mul_(u).int()
        return self._order.index_select(0, nth.add_(code, alpha=self._row_length)).long()


@cache
def all_subsets(size: int, device: torch.device) -> Subsets:
    """The tables, made on first use."""
    return Subsets(size, device)


def pick_member(member: Tensor, u: Tensor) -> Tensor:
    """Int64 [B]: as in Subsets.pick, from bool or uint8 [B, n], for any number of elements."""
    if member.shape[1] > MAX_SET_SIZE:  # without a table
        so_far = member.view(torch.uint8).cumsum(1, dtype=torch.int32)
        count = so_far[:, -1]
        nth = (u * count).int().minimum(count - 1)
        return torch.searchsorted(so_far, nth[:, None], right=True)[:, 0]
    subsets = all_subsets(member.shape[1], member.device)
    return subsets.pick(subsets.code(member), u)
