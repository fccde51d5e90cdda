"""The minimum expected number of turns of battleship when sinkings are announced.

What was seen rules layouts out; what is left of the game depends only on the set W of layouts that
agree and on the cells shot at. With n(W) layouts, all equally likely,

    V(W, shot) = min over sets of cells A of 1 + Σ over results of n(W_result) / n(W) · V(W_result,
    shot ∪ A),

where a result says which cells of A were hit and the lengths of the ships that sank. Sets of
layouts and of cells are integers with a bit for each. A branch is left as soon as it cannot be the
best, by the bound that a turn hits as many cells as it has shots.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rlgames.games.battleship import Battleship
from rlgames.games.symmetry import preserving
from rlgames.solvers.budget import Budget, OutOfBudget

BYTES_PER_STATE = 300
"""Memory of a table entry, with its key."""

MAX_TURNS = 20_000
"""The most sets of cells that a turn may choose from; with more a solution is out of reach."""

CHECK_INTERVAL = 64
"""States between looks at the clock."""


@dataclass(frozen=True)
class _Ship:
    """One placement of a ship: its cells, and the layouts that have it."""

    cells: int
    length: int
    layouts: int


class AnnouncedSolution:
    """Values and best turns; positions are solved on demand.

    optimal: the expected number of turns of a game. seconds: wall-clock time that it took.
    ships: uint8 [L, N], the layouts that are played, all equally likely; None: the game's.
    Raises OutOfBudget beyond the limits and for fleets whose layouts are too many to list.
    """

    def __init__(
        self,
        game: Battleship,
        seconds: float | None,
        memory_bytes: int | None,
        ships: Tensor | None = None,
    ) -> None:
        numbered = game.fleet.layouts if ships is None else ships
        if numbered is None:
            raise OutOfBudget("the fleet has too many layouts")
        if math.comb(game.num_cells, game.shots) > MAX_TURNS:
            raise OutOfBudget("a turn has too many sets of cells")
        self._budget = Budget(seconds, memory_bytes)
        self._num_cells, self._shots = game.num_cells, game.shots
        self._ship_cells = game.ship_cells
        symmetries = game.symmetries()
        if ships is not None:
            symmetries = preserving(symmetries, ships.cpu())
        layouts = np.asarray(numbered.cpu())
        self.num_layouts = len(layouts)
        self._has_ship = [_pack(column > 0) for column in layouts.T]
        self._cells = [_pack(layout > 0) for layout in layouts]
        placements = _list_ships(layouts, game.fleet.ships)
        self._ships_at = [
            [ship for ship in placements if ship.cells >> cell & 1]
            for cell in range(game.num_cells)
        ]
        self._representative = _representatives(game, symmetries.tolist())
        self._table: dict[tuple[int, int], float] = {}
        # A turn of the game is a level of recursion.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * game.num_cells + 1000))
        self.optimal = self._value((1 << self.num_layouts) - 1, 0) / self.num_layouts
        self.seconds = self._budget.elapsed()

    @property
    def states(self) -> int:
        """Positions valued so far."""
        return len(self._table)

    def turn_value(
        self, agrees: NDArray[np.bool_], shot: NDArray[np.bool_], cells: NDArray[np.int64]
    ) -> float:
        """The expected number of turns left if the next turn shoots at these cells, int64 [k].

        agrees: bool [L], the layouts that agree with the observations. shot: bool [N].
        """
        layouts = _pack(agrees)
        turn = tuple(cells.tolist())
        return self._turn_value(layouts, _pack(shot), turn, math.inf) / layouts.bit_count()

    def choose(self, agrees: NDArray[np.bool_], shot: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Bool [N]: the cells of a best turn, min(shots, cells left) of them; see turn_value.

        Raises ValueError if no layout agrees, and OutOfBudget.
        """
        layouts = _pack(agrees)
        if not layouts:
            raise ValueError("no layout agrees with the observations")
        _, turn = self._best(layouts, _pack(shot))
        chosen = np.zeros(self._num_cells, bool)
        chosen[list(turn)] = True
        # A turn has its full number of shots, also where fewer cells matter.
        missing = min(self._shots, int((~shot).sum())) - len(turn)
        chosen[np.flatnonzero(~shot & ~chosen)[:missing]] = True
        return chosen

    def _value(self, layouts: int, shot: int) -> float:
        """n(W) · V(W, shot)."""
        if layouts & (layouts - 1) == 0:  # a single layout: every shot hits
            return float(-(-(self._ship_cells - self._num_hits(layouts, shot)) // self._shots))
        relevant = 0
        for cell, having in enumerate(self._has_ship):
            if having & layouts:
                relevant |= 1 << cell
        # Shots at cells that no agreeing layout has a ship on make no difference.
        key = (layouts, shot & relevant)
        known = self._table.get(key)
        if known is not None:
            return known
        best, _ = self._best(layouts, shot)
        self._table[key] = best
        self._budget.bytes_in_use += BYTES_PER_STATE + layouts.bit_length() // 8
        if len(self._table) % CHECK_INTERVAL == 0:
            self._budget.states_found = len(self._table)
            self._budget.check()
        return best

    def _best(self, layouts: int, shot: int) -> tuple[float, tuple[int, ...]]:
        """n(W) · V(W, shot) and the first best turn, the likeliest hits first."""
        num_hits = {
            cell: (having & layouts).bit_count()
            for cell, having in enumerate(self._has_ship)
            if not shot >> cell & 1 and having & layouts
        }
        count = layouts.bit_count()
        left = self._ship_cells - self._num_hits(layouts, shot)
        turns = itertools.combinations(num_hits, min(self._shots, len(num_hits)))
        best = math.inf
        best_turn: tuple[int, ...] = ()
        for hits, turn in sorted(
            ((sum(num_hits[cell] for cell in turn), turn) for turn in turns),
            key=lambda each: -each[0],
        ):
            # After this turn every layout still has (left - its hits) ÷ shots turns to go, or more.
            if count + (count * left - hits) / self._shots >= best:
                break
            # Held-out layouts may have ships on fewer cells than a turn has shots.
            if shot or turn == self._representative.get(turn, turn):
                value = self._turn_value(layouts, shot, turn, best)
                if value < best:
                    best, best_turn = value, turn
        return best, best_turn

    def _num_hits(self, layouts: int, shot: int) -> int:
        """The ship cells hit so far: the same in all layouts that agree."""
        first = (layouts & -layouts).bit_length() - 1
        return (self._cells[first] & shot).bit_count()

    def _turn_value(self, layouts: int, shot: int, turn: tuple[int, ...], limit: float) -> float:
        """The sum of the turns left over the layouts; infinite where it is not less than limit."""
        after = shot | sum(1 << cell for cell in turn)
        open_parts: list[tuple[int, int]] = []
        total = float(layouts.bit_count())
        for part in self._results(layouts, turn, after):
            # All layouts of a part have been hit in the same cells, so they end together.
            left = self._ship_cells - self._num_hits(part, after)
            if left:
                bound = part.bit_count() * -(-left // self._shots)
                open_parts.append((part, bound))
                total += bound
        for part, bound in open_parts:
            if total >= limit:
                return math.inf
            total += self._value(part, after) - bound
        return total

    def _results(self, layouts: int, turn: tuple[int, ...], after: int) -> Iterator[int]:
        """The sets of layouts that answer a turn alike; after: all cells shot at by then."""
        parts = [(layouts, 0)]
        for cell in turn:
            having = self._has_ship[cell]
            parts = [
                each
                for part, hits in parts
                for each in ((part & having, hits | 1 << cell), (part & ~having, hits))
                if each[0]
            ]
        for part, hits in parts:
            by_lengths: dict[tuple[int, ...], int] = {(): part}
            ships = {ship for cell in turn if hits >> cell & 1 for ship in self._ships_at[cell]}
            for ship in ships:
                if not ship.cells & ~after:
                    by_lengths = _split(by_lengths, ship)
            yield from by_lengths.values()


def _split(by_lengths: dict[tuple[int, ...], int], ship: _Ship) -> dict[tuple[int, ...], int]:
    """Sets of layouts by the lengths that sank, after one more ship that sinks where it lies."""
    split: dict[tuple[int, ...], int] = {}
    for lengths, part in by_lengths.items():
        longer = tuple(sorted((*lengths, ship.length)))
        for key, members in ((longer, part & ship.layouts), (lengths, part & ~ship.layouts)):
            if members:
                split[key] = split.get(key, 0) | members
    return split


def _list_ships(layouts: NDArray[np.uint8], lengths: list[int]) -> list[_Ship]:
    """All placements of ships, from numbered layouts, uint8 [L, N]."""
    having: dict[int, list[int]] = {}
    for number, layout in enumerate(layouts):
        for ship in range(1, len(lengths) + 1):
            having.setdefault(_pack(layout == ship), []).append(number)
    return [
        _Ship(cells, cells.bit_count(), sum(1 << number for number in numbers))
        for cells, numbers in having.items()
    ]


def _representatives(
    game: Battleship, symmetries: list[list[int]]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """For each set of cells the first of those that a symmetry makes of it: only these need to be
    tried in the first turn."""
    turns = itertools.combinations(range(game.num_cells), game.shots)
    return {
        turn: min(tuple(sorted(symmetry[cell] for cell in turn)) for symmetry in symmetries)
        for turn in turns
    }


def _pack(bits: NDArray[np.bool_]) -> int:
    """An integer with a bit for each of these."""
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
