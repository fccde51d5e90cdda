"""Announced sunk ships: for each turn, how many ships sank, or their lengths.

Letters in shapes: B games, N cells, S ships, P placements of single ships.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.games.state import Tables


class ShipSlots(Tables):
    """One slot per ship for the turn, from 1, when a ship sank; int16 [B, S], 0 if none has.

    An announcement does not tell ships of one group apart: ships of equal length if names_length,
    otherwise all. The slots of a group are filled in the order they sank, so they do not say
    which of its ships sank. names: what is announced for each.
    """

    def __init__(self, lengths: list[int], names_length: bool) -> None:
        self.names_length = names_length
        self.lengths = torch.tensor(lengths)
        self.names = [str(length) if names_length else "ship" for length in lengths]
        self._numbers = torch.arange(1, len(lengths) + 1, dtype=torch.uint8)[:, None]
        self.group = self.group_of(self.lengths)
        self.is_same_group = self.group[:, None] == self.group
        self._shares_group = self.is_same_group.float()
        groups, self._group_index, counts = self.group.unique(
            return_inverse=True, return_counts=True
        )
        self.num_groups = len(groups)
        self._share = 1.0 / counts[self._group_index]  # of each ship in its group, [S]
        self._rank = self._shares_group.tril(-1).sum(1)  # the number of earlier slots of the group

    def group_of(self, length: Tensor) -> Tensor:
        """Int64: the group of ships of these lengths."""
        return length if self.names_length else torch.zeros_like(length)

    def sunk(self, layouts: Tensor, hit: Tensor) -> Tensor:
        """Bool [B, S]: the ships with all cells hit, from numbered layouts, uint8 [B, N], and bool
        [B, N]."""
        return ((layouts * hit)[:, None, :] == self._numbers).sum(2) == self.lengths

    def sinking_turns(self, layouts: Tensor, hit_turn: Tensor) -> Tensor:
        """Int16 [B, S]: the turn when each ship sank, 0 for those afloat.

        hit_turn: int16 [B, N], 0 for no hit.
        """
        turns = (layouts[:, None, :] == self._numbers) * hit_turn[:, None, :]
        return torch.where(self.sunk(layouts, hit_turn > 0), turns.amax(2), 0)

    def record(self, slots: Tensor, sunk: Tensor, turn: Tensor) -> Tensor:
        """The slots after a turn, int64 [B], when these ships, bool [B, S], have sunk."""
        is_filled = self._rank < sunk.float() @ self._shares_group
        now = turn.to(torch.int16)[:, None]
        return torch.where(is_filled & (slots == 0), now, slots)

    def per_hit(self, slots: Tensor, hit_turn: Tensor, max_turns: int) -> Tensor:
        """Float32 [B, G, N]: for each group, the share of its ships that sank in the turn when
        a cell was hit; 0 where there was no hit. hit_turn: int16 [B, N], 0 for no hit."""
        # A table of all turns is several times as fast as comparing slots with cells.
        share = slots.new_zeros(len(slots), self.num_groups * (max_turns + 1), dtype=torch.float)
        first = (max_turns + 1) * self._group_index
        share.scatter_add_(1, first + slots, self._share.expand(slots.shape))
        share = share.view(len(slots), self.num_groups, max_turns + 1)
        share[:, :, 0] = 0  # ships afloat, and cells without a hit
        cells = hit_turn.long()[:, None].expand(-1, self.num_groups, -1)
        return share.gather(2, cells)

    def list_cases(self, slots: list[int]) -> list[tuple[int, ...]]:
        """Each way to assign the turns in the slots of one game to the ships.

        The ships are in ascending order of their lengths, and so are the turns of equal ships.
        """
        if self.names_length:
            pairs = sorted(zip(self.lengths.tolist(), slots, strict=True))
            return [tuple(turn for _, turn in pairs)]
        lengths = sorted(self.lengths.tolist())
        orders = itertools.permutations(slots)
        pairs_of_cases = (sorted(zip(lengths, turns, strict=True)) for turns in orders)
        return sorted({tuple(turn for _, turn in pairs) for pairs in pairs_of_cases})

    def are_valid(self, slots: Tensor, hit_turn: Tensor) -> Tensor:
        """Bool [B]: whether the slots are in order and each ship sank in the turn of a hit.

        hit_turn: int16 [B, N], 0 for no hit.
        """
        is_earlier = self.is_same_group.tril(-1)
        later, earlier = slots[:, :, None], slots[:, None, :]
        is_ordered = (later == 0) | ((earlier > 0) & (earlier <= later))
        has_hit = (slots[:, :, None] == hit_turn[:, None, :]).any(2) | (slots == 0)
        num_cells = (self.lengths * (slots > 0)).sum(1)
        return (
            (slots >= 0).all(1)
            & (is_ordered | ~is_earlier).flatten(1).all(1)
            & has_hit.all(1)
            & ((num_cells <= (hit_turn > 0).sum(1)) | (not self.names_length))
        )


@dataclass(frozen=True)
class SunkShips(Rows):
    """The announcements to the seat to move about the ships that it shoots at.

    hit_turn: int16 [B, N], the turn, from 1, when each cell was hit; 0: it was not. turns:
    int16 [B, S], the slots, as in ShipSlots.
    """

    slots: ShipSlots
    hit_turn: Tensor
    turns: Tensor

    def cpu(self) -> SunkShips:
        if self.turns.device.type == "cpu":
            return self
        slots = ShipSlots(self.slots.lengths.tolist(), self.slots.names_length)
        return SunkShips(slots, self.hit_turn.cpu(), self.turns.cpu())

    def agree(self, layouts: Tensor) -> Tensor:
        """Bool [B]: whether the ships of numbered layouts, uint8 [B, N], sank as announced."""
        ship_turns = self.slots.sinking_turns(layouts, self.hit_turn)
        recorded, sunk = (
            ((self.turns[:, :, None] == turns[:, None, :]) & self.slots.is_same_group).sum(2)
            for turns in (self.turns, ship_turns)
        )
        return (recorded == sunk).all(1)

    def turn_ranks(self) -> tuple[Tensor, Tensor]:
        """Int64 [B, N] and [B, S]: hit_turn and turns, renumbered by what they say about ships.

        Each turn when a ship sank has its own number, and all turns between two of them have one
        number, in the order of time. 0 stays 0.
        """
        is_first = (self.turns[:, :, None] == self.turns[:, None, :]).int().argmax(2)
        is_first = is_first == torch.arange(self.turns.shape[1])
        sank = torch.where(is_first & (self.turns > 0), self.turns, torch.iinfo(torch.int16).max)

        def ranks(turn: Tensor) -> Tensor:
            earlier = (sank[:, None, :] < turn[:, :, None]).sum(2)
            is_sinking = (sank[:, None, :] == turn[:, :, None]).any(2)
            return torch.where(turn > 0, 2 * earlier + 1 + is_sinking, 0)

        return ranks(self.hit_turn), ranks(self.turns)

    def completed(self, cells: Tensor) -> Tensor:
        """Int16 [B, P]: the turn when the last cell of each placement was hit, 0 for none.

        cells: int64 [P, K], the cells of each placement, repeated up to the longest ship.
        """
        turns = self.hit_turn[:, cells]
        return torch.where(turns.amin(2) > 0, turns.amax(2), 0)

    def slot_of_placement(self, cells: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The slot that each placement of a ship would fill, and how many ships fill each slot.

        cells: see completed. lengths: int64 [P]. Returns int64 [B, P], S where the placement
        contradicts the announcements, and int64 [B, S]; slots of one group and turn are counted in
        the first of them.
        """
        same_kind = self.slots.group_of(lengths)[:, None] == self.slots.group
        fits = (self.completed(cells)[:, :, None] == self.turns[:, None, :]) & same_kind
        slot = torch.where(fits.any(2), fits.int().argmax(2), self.turns.shape[1])
        same_slot = self.turns[:, :, None] == self.turns[:, None, :]
        same_slot &= self.slots.is_same_group
        return slot, same_slot.sum(2)


@dataclass(frozen=True)
class Seen(Rows):
    """What the seat to move knows of the fleet that it shoots at, of B games.

    shot, hit: bool [B, N], the cells shot at, and the cells hit. sunk_ships: None where
    nothing is announced.
    """

    shot: Tensor
    hit: Tensor
    sunk_ships: SunkShips | None = None

    def cpu(self) -> Seen:
        sunk_ships = None if self.sunk_ships is None else self.sunk_ships.cpu()
        return Seen(self.shot.cpu(), self.hit.cpu(), sunk_ships)

    def position_keys(self) -> list[bytes]:
        """A key of each game, on the CPU; the same for games that the same layouts agree with."""
        shot = self.shot.numpy()
        if self.sunk_ships is None:
            hit = self.hit.numpy()
            return [bytes(s) + bytes(h) for s, h in zip(shot, hit, strict=True)]
        hit_turn, slots = (ranks.short().numpy() for ranks in self.sunk_ships.turn_ranks())
        return [b"".join(map(bytes, row)) for row in zip(shot, hit_turn, slots, strict=True)]
