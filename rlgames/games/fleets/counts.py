"""Exact counts of a fleet's layouts where they are too many to list."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.core.bits import WORD, pack_bits
from rlgames.games.fleets.count_layouts import Position, Stack
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.occupancy import Counting, set_position, write_occupancy
from rlgames.games.fleets.rollouts import NUM_WORDS, Layouts, list_layouts
from rlgames.games.fleets.sunk_ships import Seen, ShipSlots
from rlgames.kernels.words import Integers, Words

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

T = TypeVar("T", bound=np.generic)

MAX_HITS = 64
"""Sets of hits are words."""

MAX_MEMO = 4096
"""Positions whose results a memo keeps."""

MAX_FLEETS = 1 << 20
"""Ships left of a fleet, with an estimate for each. Equal ships that are announced have more."""


MAX_UNNAMED_SHIPS = 6
"""Announcements that do not name the ships are explained in all orders, up to this many ships."""


def recall(
    memo: OrderedDict[bytes, NDArray[T]],
    keys: list[bytes],
    compute: Callable[[list[int]], Iterable[NDArray[T]]],
) -> list[NDArray[T]]:
    """What belongs to each key. compute: gives it for those, by number, that memo does not have."""
    missing = {key: number for number, key in enumerate(keys) if key not in memo}
    new = dict(zip(missing, compute(list(missing.values())), strict=True))
    result = [new[key] if key in new else memo[key] for key in keys]
    memo.update(new)
    while len(memo) > MAX_MEMO:
        memo.popitem(last=False)
    return result


class LayoutCounter:
    """How many layouts that agree with hits and misses have a ship on each cell.

    Every layout counts once: ships of equal length are interchangeable. They are of one type,
    unless sunk ships are announced: then each ship is a type, as one may have sunk and another not.
    A type is counted as often as such ships are in the same state.

    slots: None if no sunk ships are announced. can_count: whether the fleet is small enough;
    otherwise nothing is counted.
    """

    def __init__(self, fleet: Fleet, slots: ShipSlots | None = None) -> None:
        self._fleet = Counter(fleet.ships)
        self._lengths = sorted(fleet.ships if slots else self._fleet)
        self._announces = slots is not None
        self._tables = [fleet.placements[length].numpy() for length in self._lengths]
        self._max_ships = [self._fleet[length] for length in self._lengths]
        if slots:  # the first of several equal ships may represent all of them
            self._max_ships = [
                self._lengths[at:].count(length) for at, length in enumerate(self._lengths)
            ]
        is_named = slots is None or slots.names_length
        self.can_count = math.prod(count + 1 for count in self._max_ships) <= MAX_FLEETS and (
            is_named or len(fleet) <= MAX_UNNAMED_SHIPS
        )
        self._memo: OrderedDict[bytes, Floats] = OrderedDict()

    def occupancy(self, seen: Seen, max_steps: int) -> tuple[Floats, Floats]:
        """Float64 [B, N]: the probability that each cell has a ship; float64 [B]: how many layouts
        agree.

        max_steps: the most ways to look at to place all ships but two. NaN in rows where there are
        more, where no layout agrees, and in all rows if the fleet is too large.
        """
        if not (max_steps and self.can_count):
            nan = np.full((len(seen), seen.shot.shape[1] + 1), np.nan)
            return nan[:, 1:], nan[:, 0]
        limit = max_steps.to_bytes(8, "little")
        known = recall(
            self._memo,
            [key + limit for key in seen.position_keys()],
            lambda rows: self._count(seen[torch.tensor(rows, dtype=torch.int64)], max_steps),
        )
        result = np.array(known).reshape(len(seen), seen.shot.shape[1] + 1)
        return result[:, :-1], result[:, -1]

    def _count(self, seen: Seen, max_steps: int) -> Floats:
        """Float64 [B, N + 1]: as occupancy, without a memory of earlier positions."""
        row, possible, fleets = self._cases(seen)
        fractions, totals = np.empty((len(row), seen.shot.shape[1])), np.empty(len(row), np.int64)
        shot, hit, counting = seen.shot.numpy()[row], seen.hit.numpy()[row], self._counting
        write_occupancy(shot, hit, possible, fleets, counting, max_steps, totals, fractions)
        weight = np.where(totals < 0, np.nan, totals)
        covered, total = np.zeros(seen.shot.shape), np.zeros((len(seen), 1))
        np.add.at(covered, row, weight[:, None] * fractions)
        np.add.at(total[:, 0], row, weight)
        total[total == 0] = np.nan
        return np.concatenate([covered / total, total], 1)

    def make_list(self, max_layouts: int) -> Layouts:
        """Room for a list of layouts."""
        cells = self._counting.cells
        covered = np.zeros((len(cells), WORD * NUM_WORDS), bool)
        placement, place = (cells >= 0).nonzero()
        covered[placement, cells[placement, place]] = True
        num_ships = self._fleet.total()
        lengths = sorted(self._fleet)
        # Sums of these tell how many ships of each length have sunk.
        codes = [(num_ships + 1) ** lengths.index(length) for length in self._lengths]
        return Layouts(
            cells=np.zeros((max_layouts, NUM_WORDS), np.uint64),
            number=np.zeros(max_layouts, np.int64),
            placements=np.zeros((max_layouts, num_ships), np.int64),
            masks=pack_bits(covered),
            codes=np.array(codes)[self._counting.position.types][: None if self._announces else 0],
        )

    def write_list(self, seen: Seen, layouts: Layouts) -> int:
        """List the layouts that agree with the observations of one game; returns their number, or
        -1 if not all of them fit. Announcements have to name the ships."""
        counting = self._counting
        _, possible, fleets = self._cases(seen)
        if set_position(seen.shot.numpy()[0], seen.hit.numpy()[0], possible[0], counting) < 0:
            return -1
        counting.stack.ships[0] = fleets[0]
        return int(list_layouts(counting.position, counting.stack, layouts))

    def _cases(self, seen: Seen) -> tuple[Integers, Words, Integers]:
        """The row of each case, int64 [C]; and in each case the placements that agree with the
        announced ones, uint64 [C, W], and the number of ships of each type, int64 [C, types]."""
        tables, position = self._counting, self._counting.position
        batch, sunk_ships = len(seen), seen.sunk_ships
        if sunk_ships is None:
            fleets = np.tile([self._fleet[length] for length in self._lengths], (batch, 1))
            return np.arange(batch), np.tile(tables.placements, (batch, 1)), fleets
        cells = np.where(tables.cells < 0, tables.cells[:, :1], tables.cells)
        completed = sunk_ships.completed(torch.from_numpy(cells)).numpy()
        cases = [
            np.array(sunk_ships.slots.list_cases(turns)) for turns in sunk_ships.turns.tolist()
        ]
        row = np.repeat(np.arange(batch), [len(each) for each in cases])
        possible = [
            pack_bits(sunk_turn[:, position.types] == placements)
            for sunk_turn, placements in zip(cases, completed, strict=True)
        ]
        sunk_turn = np.concatenate([np.zeros((0, len(self._lengths)), int), *cases])
        fleets = np.ones_like(sunk_turn)
        for ship in reversed(range(1, len(self._lengths))):
            if self._lengths[ship] == self._lengths[ship - 1]:
                is_same = sunk_turn[:, ship] == sunk_turn[:, ship - 1]
                fleets[:, ship - 1] += np.where(is_same, fleets[:, ship], 0)
                fleets[is_same, ship] = 0
        words = np.concatenate([np.zeros((0, len(tables.placements)), np.uint64), *possible])
        return row, words & tables.placements, fleets

    @cached_property
    def _counting(self) -> Counting:
        """The tables of the kernel, and room to count in."""
        num_types, num_cells = len(self._tables), self._tables[0].shape[1]
        # The placements of each length fill whole words.
        words = [-(-len(table) // WORD) for table in self._tables]
        starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        num_words = int(starts[-1])
        covered = np.zeros((WORD * num_words, num_cells), bool)
        is_placement = np.zeros(len(covered), bool)
        cells = np.full((len(covered), max(self._lengths)), -1)
        for table, length, start in zip(
            self._tables, self._lengths, starts[:-1] * WORD, strict=True
        ):
            rows = slice(start, start + len(table))
            covered[rows], is_placement[rows] = table, True
            cells[rows, :length] = table.nonzero()[1].reshape(-1, length)
        meets = covered.astype(np.float32) @ covered.T.astype(np.float32) > 0
        max_ships, num_rows = np.array(self._max_ships), self._fleet.total() + 1
        radix = np.concatenate([[1], np.cumprod(max_ships + 1)])
        return Counting(
            placements=pack_bits(is_placement),
            on_cell=pack_bits(covered.T),
            cells=cells,
            max_ships=max_ships,
            radix=radix[:-1].copy(),
            position=Position(
                disjoint=pack_bits(~meets & is_placement),
                covers=np.zeros((MAX_HITS, num_words), np.uint64),
                hit_sets=np.zeros(len(covered), np.uint64),
                types=np.repeat(np.arange(num_types), WORD * np.array(words)),
                starts=starts,
                order=np.arange(num_types),
            ),
            stack=Stack(
                available=np.zeros((num_rows, num_words), np.uint64),
                candidates=np.zeros((num_rows, num_words), np.uint64),
                open_hits=np.zeros(num_rows, np.uint64),
                ships=np.zeros((num_rows, num_types), np.int64),
                placed=np.zeros(num_rows, np.int64),
                totals=np.zeros(num_rows, np.int64),
            ),
            counts=np.zeros(len(covered), np.int64),
            sizes=np.zeros(num_types),
            on_hit=np.zeros(num_types),
            ways=np.zeros(radix[-1]),
        )
