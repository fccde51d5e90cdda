"""The nodes of many search trees, as tensors, and a hash table that finds them.

Letters in shapes: T trees, N nodes of all trees together, A actions, S simulations side by side.
"""

from __future__ import annotations

import torch
from torch import Tensor


class SearchTree:
    """T trees with a fixed capacity of nodes per tree, numbered together; roots are 0 to T - 1.

    prior: float32 [N, A], the policy's probabilities, minus infinity for illegal actions.
    visit_counts: float32 [N, A], how many simulations took each action. value_sums: float32
    [N, A], the sum of their values for seat 0. sign: float32 [N, 1], 1 where seat 0 is to move,
    otherwise -1.
    """

    def __init__(self, trees: int, capacity: int, actions: int, device: torch.device) -> None:
        max_nodes = trees * capacity
        self.num_nodes, self.num_actions = trees, actions
        self.prior = torch.empty(max_nodes, actions, device=device)
        self.visit_counts = torch.zeros(max_nodes, actions, device=device)
        self.value_sums = torch.zeros(max_nodes, actions, device=device)
        self.sign = torch.ones(max_nodes, 1, device=device)
        # Open addressing. At least half of the slots stay empty, which keeps the probing short.
        slots = 1 << (2 * max_nodes - 1).bit_length()
        self._slot_key = torch.zeros(slots, dtype=torch.int64, device=device)
        self._slot_node = torch.full((slots,), -1, dtype=torch.int64, device=device)

    def find_or_add_child(
        self, node: Tensor, action: Tensor, outcome: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Int64 [S], the node that an action leads to with this outcome; bool [S], if it is new.

        Equal rows get the same new node, and only the first of them counts as new.
        """
        slot = self._find_slot(_hash(_hash(outcome) + node * self.num_actions + action))
        child = self._slot_node[slot]
        missing = (child < 0).nonzero()[:, 0]
        is_new = torch.zeros_like(slot, dtype=torch.bool)
        if len(missing):
            new_slots, position = slot[missing].unique(return_inverse=True)
            stop = self.num_nodes + len(new_slots)
            self._slot_node[new_slots] = torch.arange(self.num_nodes, stop, device=slot.device)
            self.num_nodes = stop
            child = self._slot_node[slot]
            first = torch.full_like(new_slots, len(slot))
            is_new[first.scatter_reduce_(0, position, missing, "amin")] = True
        return child, is_new

    def back_up(self, edge: Tensor, value: Tensor) -> None:
        """Add visits; edge: int64 [E], node * A + action, value: float32 [E], for seat 0."""
        self.visit_counts.view(-1).index_add_(0, edge, torch.ones_like(value))
        self.value_sums.view(-1).index_add_(0, edge, value)

    def _find_slot(self, key: Tensor) -> Tensor:
        """Int64 [S]: the slot that holds each key, or a free one that now does."""
        mask = len(self._slot_key) - 1
        slot = key & mask
        pending = torch.arange(len(key), device=key.device)
        while len(pending):
            pending_slot, pending_key = slot[pending], key[pending]
            free = (self._slot_key[pending_slot] == 0).nonzero()[:, 0]
            # If several keys compete for a free slot, one gets it and the others probe on.
            self._slot_key[pending_slot[free]] = pending_key[free]
            pending = pending[self._slot_key[pending_slot] != pending_key]
            slot[pending] = (slot[pending] + 1) & mask
        return slot


def _hash(number: Tensor) -> Tensor:
    """Int64 shaped like number: spread over 64 bits, never 0 (the finalizer of splitmix64)."""
    number = number * -7046029254386353131
    number = (number ^ (number >> 32)) * -4658895280553007687
    number = (number ^ (number >> 29)) * -7723592293110705685
    return (number ^ (number >> 32)) | -(2**63)
