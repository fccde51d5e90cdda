"""The fleet of a game with hidden ships, and what such games have in common.

docs/games/battleship.md explains how layouts are counted, and the words for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from rlgames.games.fleets.counts import LayoutCounter
from rlgames.games.fleets.layouts import enumerate_layouts, sample_layouts
from rlgames.games.fleets.posterior import Posterior
from rlgames.games.fleets.sunk_ships import Seen, ship_numbers
from rlgames.games.game import Game
from rlgames.games.state import State, Tables

SAMPLES = 64
"""A hidden layout is chosen from this many samples if the layouts are not listed."""

MAX_UNNAMED_SHIPS = 6
"""Announcements that do not name the ships are explained in all orders, up to this many ships."""

S = TypeVar("S", bound=State)


class Fleet(Tables):
    """Straight ships on a rectangle of N cells; every layout of them is equally likely.

    ships: their lengths. lengths: the same, int64 [S]. layouts: uint8 [L, N], every layout once,
    0 for sea and 1, 2, ... for the ships; None if there are too many to list.
    Raises ValueError, with the reason, for a fleet that cannot be placed.
    """

    def __init__(self, rows: int, columns: int, ships: list[int]) -> None:
        _check_ships(rows, columns, ships)
        self.rows, self.columns, self.ships = rows, columns, ships
        self.num_cells, self.ship_cells = rows * columns, sum(ships)
        self.lengths = torch.tensor(ships)
        self.layouts = enumerate_layouts(rows, columns, ships)
        if self.layouts is None:
            self.sample(1, torch.Generator().manual_seed(0))
        elif not len(self.layouts):
            raise ValueError(f"ships={ships} cannot be placed on {rows}x{columns} cells")

    def __len__(self) -> int:
        return len(self.ships)

    def sample(self, batch: int, rng: torch.Generator) -> Tensor:
        """Uint8 [B, N]: random layouts, the ships numbered from 1."""
        if self.layouts is None:
            return sample_layouts(self.rows, self.columns, self.ships, batch, rng)
        row = torch.randint(len(self.layouts), (batch,), generator=rng, device=rng.device)
        return self.layouts[row]

    def sunk(self, layouts: Tensor, hit: Tensor) -> Tensor:
        """Bool [B, S]: the ships with all cells hit, from uint8 [B, N] and bool [B, N]."""
        parts = (layouts * hit)[:, None, :] == ship_numbers(layouts, self.lengths)
        return parts.sum(2) == self.lengths

    def list_hits(self, hit_turn: Tensor, cell_name: Callable[[int], str]) -> list[tuple[str, int]]:
        """The name and the turn of each hit in the order of time, from int16 [N]."""
        turns = {cell: int(turn) for cell, turn in enumerate(hit_turn.tolist()) if turn}
        return [(cell_name(cell), turns[cell]) for cell in sorted(turns, key=lambda c: turns[c])]

    def parse_hits(self, hits: list[tuple[str, int]], cell_name: Callable[[int], str]) -> Tensor:
        """Int16 [N], the inverse of list_hits. Raises ValueError for an unknown cell."""
        cells = {cell_name(cell): cell for cell in range(self.num_cells)}
        hit_turn = torch.zeros(self.num_cells, dtype=torch.int16)
        for name, turn in hits:
            if name not in cells:
                raise ValueError(f"{name!r} is not a cell of the board")
            hit_turn[cells[name]] = turn
        return hit_turn

    def are_layouts(self, cells: Tensor) -> Tensor:
        """Bool [B]: whether all ships have their lengths in uint8 [B, N]."""
        lengths = (cells[:, None] == ship_numbers(cells, self.lengths)).sum(2)
        return (lengths == self.lengths).all(1) & ((cells > 0).sum(1) == self.ship_cells)


class FleetGame(Game[S]):
    """A game in which the seat to move shoots at a hidden fleet.

    announces_sinkings: whether `seen` tells of sinkings.
    """

    fleet: Fleet
    announces_sinkings: bool

    @abstractmethod
    def seen(self, state: S) -> Seen:
        """What the seat to move knows of the fleet that it shoots at."""

    @property
    def target_planes(self) -> list[int]:
        """The planes of an observation that tell of the fleet that the seat to move shoots at."""
        return list(range(self.spec.observation[0]))

    @abstractmethod
    def score_actions(self, cells: Tensor) -> Tensor:
        """Float32 [B, A]: the sum over the cells of each action, from float [B, N]."""

    def layouts(self) -> Tensor | None:
        """Bool [L, N]: every layout of the fleet once, or None if there are too many to list."""
        return None if self.fleet.layouts is None else self.fleet.layouts > 0

    @cached_property
    def posterior(self) -> Posterior:
        """The distribution of the fleet given shots and hits; on the CPU."""
        fleet = self.fleet
        layouts = None if fleet.layouts is None else fleet.layouts.cpu()
        return Posterior(fleet.rows, fleet.columns, fleet.ships, layouts)

    @cached_property
    def layout_counter(self) -> LayoutCounter:
        """What counts and lists the layouts that agree."""
        fleet = self.fleet
        return LayoutCounter(fleet.rows, fleet.columns, fleet.ships, self.announces_sinkings)

    def occupancy(self, state: S, samples: int = 0, rng: torch.Generator | None = None) -> Tensor:
        """Float32 [B, N]: the probability that each cell of the hidden fleet has a ship, given all
        that the seat to move has seen; see Posterior."""
        occupancy = self.posterior.occupancy(self.seen(state).cpu(), samples, rng)
        return occupancy.to(state.done.device)

    def exact_occupancy(self, state: S, max_steps: int) -> Tensor:
        """As occupancy, from all layouts that agree; NaN in rows where they are not known.

        max_steps: layouts that are too many to list are counted where there are at most about this
        many ways to place all ships but two.
        """
        if self.posterior.exact:
            return self.occupancy(state)
        return self.count_layouts(state, max_steps)[0]

    def count_layouts(self, state: S, max_steps: int) -> tuple[Tensor, Tensor]:
        """Float32 [B, N], as exact_occupancy, and float64 [B], how many layouts agree; both are
        counted even if the layouts are few enough to list."""
        seen, device = self.seen(state).cpu(), state.done.device
        is_named = seen.sinkings is None or seen.sinkings.slots.names_length
        if not max_steps or not (is_named or len(self.fleet) <= MAX_UNNAMED_SHIPS):
            nan = torch.full(seen.shot.shape, torch.nan, device=device)
            return nan, nan[:, 0].double()
        counted = self.layout_counter.occupancy(seen, max_steps)
        occupancy, total = map(torch.from_numpy, counted)
        return occupancy.to(device).float(), total.to(device)

    def agreeing_layouts(self, state: S) -> Tensor:
        """Bool [B, L]: the listed layouts that agree with all that the seat to move has seen."""
        return self.posterior.agreeing(self.seen(state).cpu()) > 0

    def sample_layouts(self, state: S, rng: torch.Generator) -> Tensor:
        """Uint8 [B, N]: for each position a hidden fleet that agrees with all that was seen."""
        layouts = self.posterior.sample(self.seen(state).cpu(), SAMPLES, rng)
        return layouts.to(state.done.device)


def _check_ships(rows: int, columns: int, ships: list[int]) -> None:
    if not ships:
        raise ValueError("ships=[] names no ship; give at least one length, as in ships=[3]")
    longest = max(rows, columns)
    if max(ships) > longest:
        raise ValueError(
            f"a ship of {max(ships)} does not fit on a board of {rows}x{columns}; "
            f"the longest that does is {longest}"
        )
    if rows == 1 < columns < sum(ships):
        square = f"game=salvo shots=1 board={columns} ships={ships}".replace(", ", ",")
        raise ValueError(
            f"ships={ships} fill {sum(ships)} cells, and battleship is a line of {columns} cells; "
            f"for a square board use {square}"
        )
    if sum(ships) > rows * columns:
        raise ValueError(f"ships={ships} fill {sum(ships)} cells; the board has {rows * columns}")
