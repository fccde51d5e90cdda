"""A hash table in torch, for n-tuples with very many contents."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SLOTS_PER_BUCKET = 4
"""Slots of a bucket: full buckets are rare, and a bucket fits in one cache line."""


class HashedTable(nn.Module):
    """A hash table from contents to slots, for tuples with too many contents for one slot each.

    A content gets one of the slots of its bucket when it is first updated; before that its slot is
    missing_slot, the one after all buckets. In a full bucket it replaces another content.

    keys: int64 [buckets, SLOTS_PER_BUCKET], the content of each slot + 1; 0 for a free slot.
    """

    def __init__(self, table_size: int) -> None:
        super().__init__()
        buckets = max(1, table_size // SLOTS_PER_BUCKET)
        self.missing_slot = buckets * SLOTS_PER_BUCKET
        self.keys: Tensor
        self._slot_numbers: Tensor
        self.register_buffer("keys", torch.zeros(buckets, SLOTS_PER_BUCKET, dtype=torch.int64))
        slot_numbers = torch.arange(1.0, SLOTS_PER_BUCKET + 1)
        self.register_buffer("_slot_numbers", slot_numbers, persistent=False)

    def lookup(self, content: Tensor) -> Tensor:
        """Int64 [B]: the slots of contents, int64 [B]."""
        bucket = self._bucket(content)
        is_match = self.keys.index_select(0, bucket) == content[:, None] + 1
        slot_number = (is_match.float() @ self._slot_numbers).long()  # from 1; 0: no match
        slot = bucket * SLOTS_PER_BUCKET + slot_number - 1
        return torch.where(slot_number > 0, slot, self.missing_slot)

    def allocate(self, content: Tensor) -> tuple[Tensor, Tensor]:
        """The slots of contents, int64 [B], that are about to be updated; and the new slots."""
        missing = (self.lookup(content) == self.missing_slot).nonzero()[:, 0]
        pending, keys = content.index_select(0, missing).unique(), self.keys.view(-1)
        new_slots = [pending[:0]]
        # Of several contents that choose one slot, one gets it and the others try again.
        for attempt in range(2 * SLOTS_PER_BUCKET):
            bucket = self._bucket(pending)
            is_free = self.keys.index_select(0, bucket) == 0
            victim = (pending + attempt) % SLOTS_PER_BUCKET
            chosen = torch.where(is_free.any(1), is_free.byte().argmax(1), victim)
            slot = bucket * SLOTS_PER_BUCKET + chosen
            keys.scatter_(0, slot, pending + 1)
            new_slots.append(slot)
            pending = pending[keys[slot] != pending + 1]
            if not len(pending):
                break
        slots = self.lookup(content)
        # Contents replaced within this call share their slot: missing_slot must not be updated.
        shared = self._bucket(content) * SLOTS_PER_BUCKET + content % SLOTS_PER_BUCKET
        return torch.where(slots == self.missing_slot, shared, slots), torch.cat(new_slots)

    def _bucket(self, content: Tensor) -> Tensor:
        # The product's upper bits depend on all bits of the content (Fibonacci hashing).
        return ((content * -7046029254386353131) >> 24) % len(self.keys)
