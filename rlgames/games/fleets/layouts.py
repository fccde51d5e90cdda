"""The fleet of a game: the placements of its ships, and its layouts, listed or sampled.

Letters in shapes: B games, N cells in row-major order, K placements of one ship, L layouts of the
whole fleet, S ships.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlgames.games.state import Tables
from rlgames.rng import Rng

MAX_TABLE_CELLS = 20_000_000
"""Layouts are listed while the list has at most this many cells."""

MAX_ATTEMPTS = 2_000_000
"""Random placements of a fleet that are tried before it counts as impossible."""

MIN_ATTEMPTS = 1024
"""At least about as many are tried at once."""

MAX_OPERATIONS = 1_000_000_000
"""Cells that are filled at most in these attempts."""


def placements(rows: int, columns: int, length: int) -> Tensor:
    """Uint8 [K, N]: the K ways to place one ship, across or down, each once."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    lines = [grid[r, c : c + length] for r in range(rows) for c in range(columns - length + 1)]
    if length > 1:
        lines += [grid[r : r + length, c] for r in range(rows - length + 1) for c in range(columns)]
    table = torch.zeros(len(lines), rows * columns, dtype=torch.uint8)
    return table.scatter_(1, torch.tensor(np.array(lines), dtype=torch.int64), 1)


class Fleet(Tables):
    """Straight ships on a rectangle of N cells; every layout of them is equally likely.

    ships: their lengths. placements: by length, on the CPU. layouts:
    uint8 [L, N], every layout once, 0 for sea and 1, 2, ... for the ships; None if there are too
    many to list. Raises ValueError, with the reason, for a fleet that cannot be placed.
    """

    def __init__(self, rows: int, columns: int, ships: list[int]) -> None:
        _check_ships(rows, columns, ships)
        self.rows, self.columns, self.ships = rows, columns, ships
        self.num_cells, self.ship_cells = rows * columns, sum(ships)
        self.placements = {length: placements(rows, columns, length) for length in {*ships}}
        self.layouts = self._list_layouts()
        if self.layouts is None:
            self.sample(1, Rng())
        elif not len(self.layouts):
            raise ValueError(f"ships={ships} cannot be placed on {rows}x{columns} cells")

    def __len__(self) -> int:
        return len(self.ships)

    def sample(self, batch: int, rng: Rng) -> Tensor:
        """Uint8 [B, N]: random layouts, the ships numbered from 1.

        Raises ValueError if MAX_ATTEMPTS random placements of the fleet, or as many as
        MAX_OPERATIONS allows, all overlap.
        """
        if self.layouts is not None:
            return self.layouts[rng.integers(len(self.layouts), batch)]
        rng = rng.rows(batch)
        tables = [self.placements[ship].to(rng.device) for ship in self.ships]
        max_attempts = min(MAX_ATTEMPTS, MAX_OPERATIONS // (self.num_cells * len(tables)))
        layouts = torch.zeros(batch, self.num_cells, dtype=torch.uint8, device=rng.device)
        missing, attempts, tried = torch.arange(batch, device=rng.device), 0, 0
        while len(missing):
            # Several attempts of each game at once. The first valid one counts.
            count = max(4, MIN_ATTEMPTS // len(missing))
            game = missing.repeat_interleave(count)
            attempt = tried + torch.arange(count, device=rng.device).repeat(len(missing))
            places = rng[game].fold_in(attempt)
            covered = torch.zeros(len(game), self.num_cells, dtype=torch.uint8, device=rng.device)
            number = torch.zeros_like(covered)
            for ship, table in enumerate(tables):
                placement = table[places.fold_in(ship).integers(len(table), len(game))]
                covered += placement
                number += (ship + 1) * placement
            # Rejecting layouts whose ships overlap keeps all layouts equally likely.
            is_valid = (covered.amax(1) == 1).view(-1, count)
            first = is_valid.byte().argmax(1)
            found = is_valid.any(1)
            rows = (torch.arange(len(missing), device=rng.device) * count + first)[found]
            layouts[missing[found]] = number[rows]
            missing, attempts, tried = missing[~found], attempts + len(game), tried + count
            if attempts > max_attempts and len(missing) == batch:
                raise ValueError(
                    f"ships={self.ships} could not be placed on {self.rows}x{self.columns} cells: "
                    f"{attempts:,} random placements all overlapped; use fewer or shorter ships"
                )
        return layouts

    def _list_layouts(self) -> Tensor | None:
        """Ships of equal length are interchangeable: the earlier one has the earlier placement."""
        layouts = torch.zeros(1, self.num_cells, dtype=torch.uint8)
        last: dict[int, Tensor] = {}  # by length, the last placement in each layout
        order = sorted(range(len(self)), key=lambda ship: -self.ships[ship])
        for ship in order:
            length = self.ships[ship]
            table = self.placements[length]
            if len(layouts) * len(table) * self.num_cells > 20 * MAX_TABLE_CELLS:
                return None
            free = ((layouts > 0).float() @ table.T.float()) == 0
            if length in last:
                free &= torch.arange(len(table)) > last[length][:, None]
            layout, placement = free.nonzero().T
            if len(layout) * self.num_cells > MAX_TABLE_CELLS:
                return None
            layouts = layouts[layout] + (ship + 1) * table[placement]
            last = {length: previous[layout] for length, previous in last.items()}
            last[length] = placement
        return layouts


def _check_ships(rows: int, columns: int, ships: list[int]) -> None:
    if not ships:
        raise ValueError("ships=[] is empty; give at least one length, as in ships=[3]")
    longest = max(rows, columns)
    if max(ships) > longest:
        raise ValueError(
            f"a ship of {max(ships)} is longer than a board of {rows}x{columns}; "
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
