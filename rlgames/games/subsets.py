"""Picking the n-th member of a set that is coded as the bits of a number."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_SET_SIZE = 16
"""Tables have a row for each of 2^n sets."""


class Subsets:
    """All sets of n things, n at most 16, by code: bit i says whether thing i is in the set."""

    def __init__(self, things: int, device: torch.device) -> None:
        codes = torch.arange(2**things)
        members = ((codes[:, None] >> torch.arange(things)) & 1).to(torch.uint8)
        count = members.sum(1)
        order = members.argsort(dim=1, descending=True, stable=True)
        # A random number times the count may be rounded up to it: that is the last member too.
        nth = torch.arange(things + 1).minimum((count - 1).clamp(min=0)[:, None])
        self._row = things + 1
        self._order = order.gather(1, nth).to(torch.uint8).reshape(-1).to(device)
        self._count = count.float().to(device)
        self._powers = (2.0 ** torch.arange(things)).to(device)
        self.device = device

    def code(self, member: Tensor) -> Tensor:
        """Int32 [B] from bool or uint8 [B, n] of zeros and ones."""
        # As bytes they become floats several times as fast as bool does.
        return (member.view(torch.uint8).float() @ self._powers).int()

    def pick(self, code: Tensor, u: Tensor) -> Tensor:
        """Int64 [B]: a uniformly random member of each set, from u, float32 [B] in [0, 1).

        code: int32 or int64 [B]. It is member floor(u * count); the first of all things for the
        empty set.
        """
        code = code.int()  # sums of two types of whole numbers take several times as long
        nth = self._count.index_select(0, code).mul_(u).int()
        return self._order.index_select(0, nth.add_(code, alpha=self._row)).long()


def nth_member(member: Tensor, u: Tensor) -> Tensor:
    """Int64 [B]: as Subsets.pick does, from bool or uint8 [B, n], of any number of things."""
    so_far = member.view(torch.uint8).cumsum(1, dtype=torch.int32)
    count = so_far[:, -1]
    nth = (u * count).int().minimum(count - 1)
    return torch.searchsorted(so_far, nth[:, None], right=True)[:, 0]
