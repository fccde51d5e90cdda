"""The fleet of a game with hidden ships, and what such games have in common."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.games.layouts import enumerate_layouts, sample_layouts
from rlgames.games.posterior import Posterior
from rlgames.games.state import State, Tables

SAMPLES = 64
"""A hidden layout is chosen from this many samples if the layouts are not listed."""

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
        return sunk_ships(layouts, hit, self.lengths)

    def are_layouts(self, cells: Tensor) -> Tensor:
        """Bool [B]: whether all ships have their lengths in uint8 [B, N]."""
        lengths = (cells[:, None] == _numbers(cells, self.lengths)).sum(2)
        return (lengths == self.lengths).all(1) & ((cells > 0).sum(1) == self.ship_cells)


class FleetGame(Game[S]):
    """A game in which the seat to move shoots at a hidden fleet."""

    fleet: Fleet

    @abstractmethod
    def shots_and_hits(self, state: S) -> tuple[Tensor, Tensor]:
        """Bool [B, N] twice: where the seat to move has shot at, and what it has hit."""

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


def _check_ships(rows: int, columns: int, ships: list[int]) -> None:
    if not ships:
        raise ValueError("ships=[] names no ship; give at least one length, as in ships=[3]")
    longest = max(rows, columns)
    if max(ships) > longest:
        raise ValueError(
            f"a ship of {max(ships)} does not fit on a board of {rows}x{columns}; "
            f"the longest that does is {longest}"
        )
    if sum(ships) > rows * columns:
        raise ValueError(f"ships={ships} fill {sum(ships)} cells; the board has {rows * columns}")


def sunk_ships(layouts: Tensor, hit: Tensor, lengths: Tensor) -> Tensor:
    """Bool [B, S]: the ships with all cells hit, from uint8 [B, N], bool [B, N] and int64 [S]."""
    parts = (layouts * hit)[:, None, :] == _numbers(layouts, lengths)
    return parts.sum(2) == lengths


def _numbers(layouts: Tensor, lengths: Tensor) -> Tensor:
    """Uint8 [S, 1]: the numbers of the ships."""
    number = torch.arange(1, len(lengths) + 1, dtype=torch.uint8, device=layouts.device)
    return number[:, None]


def encode_cells(cells: Tensor) -> Tensor:
    """Int64 [B] from bool [B, N]: a number for a set of cells; beyond 62 cells a hash."""
    count = cells.shape[1]
    if count <= 62:
        weight = torch.ones((), dtype=torch.int64) << torch.arange(count)
    else:
        weight = torch.randint(2**62, (count,), generator=torch.Generator().manual_seed(0))
    return (cells * weight.to(cells.device)).sum(1)
