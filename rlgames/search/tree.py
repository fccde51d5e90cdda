"""The nodes of many search trees, as tensors, and an index that finds them.

Letters in shapes: T trees, M nodes of all trees together, A actions, R descents side by side.
"""

from __future__ import annotations

import torch
from torch import Tensor


class SearchTree:
    """T trees of at most so many nodes each, numbered together; the roots are 0 to T - 1.

    prior: float32 [M, A], the policy's probabilities, minus infinity for what is not legal.
    visits: float32 [M, A], how many descents took each action. worth: float32 [M, A], the sum of
    what they came to, for seat 0. side: float32 [M, 1], 1 where seat 0 is to move, otherwise -1.
    """

    def __init__(self, trees: int, nodes: int, actions: int, device: torch.device) -> None:
        most = trees * nodes
        self.count, self.actions = trees, actions
        self.prior = torch.empty(most, actions, device=device)
        self.visits = torch.zeros(most, actions, device=device)
        self.worth = torch.zeros(most, actions, device=device)
        self.side = torch.ones(most, 1, device=device)
        # Open addressing: half of the slots at least stay empty, so that searches are short.
        slots = 1 << (2 * most - 1).bit_length()
        self._key = torch.zeros(slots, dtype=torch.int64, device=device)
        self._node = torch.full((slots,), -1, dtype=torch.int64, device=device)

    def child(self, node: Tensor, action: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor]:
        """Int64 [R], where this outcome of these actions leads; bool [R], whether it is new.

        Equal rows get the same new node, and only for the first of them it counts as new.
        """
        slot = self._slot(_mixed(_mixed(outcome) + node * self.actions + action))
        child = self._node[slot]
        rows = (child < 0).nonzero()[:, 0]
        new = torch.zeros_like(slot, dtype=torch.bool)
        if len(rows):
            fresh, where = slot[rows].unique(return_inverse=True)
            stop = self.count + len(fresh)
            self._node[fresh] = torch.arange(self.count, stop, device=slot.device)
            self.count = stop
            child = self._node[slot]
            first = torch.full_like(fresh, len(slot)).scatter_reduce_(0, where, rows, "amin")
            new[first] = True
        return child, new

    def back_up(self, edge: Tensor, worth: Tensor) -> None:
        """Count descents; edge: int64 [E], node * A + action, worth: float32 [E], for seat 0."""
        self.visits.view(-1).index_add_(0, edge, torch.ones_like(worth))
        self.worth.view(-1).index_add_(0, edge, worth)

    def _slot(self, key: Tensor) -> Tensor:
        """Int64 [R]: the slot that holds each key, a free one where none did."""
        last = len(self._key) - 1
        slot = key & last
        waiting = torch.arange(len(key), device=key.device)
        while len(waiting):
            at, wanted = slot[waiting], key[waiting]
            free = (self._key[at] == 0).nonzero()[:, 0]
            # Of several keys that want a free slot one gets it, and the others look further.
            self._key[at[free]] = wanted[free]
            waiting = waiting[self._key[at] != wanted]
            slot[waiting] = (slot[waiting] + 1) & last
        return slot


def _mixed(number: Tensor) -> Tensor:
    """Int64 shaped like number: well spread over 64 bits, never 0 (the end of splitmix64)."""
    number = number * -7046029254386353131
    number = (number ^ (number >> 32)) * -4658895280553007687
    number = (number ^ (number >> 29)) * -7723592293110705685
    return (number ^ (number >> 32)) | -(2**63)
