"""Layouts: the ways to place a fleet of straight ships on a rectangle.

Letters in shapes: B games, N cells in row-major order, K placements of one ship, L layouts of the
whole fleet, S ships.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MAX_TABLE_CELLS = 20_000_000
"""Layouts are listed while the list has at most this many cells."""

MAX_ATTEMPTS = 2_000_000
"""Random placements of a fleet that are tried before it counts as impossible."""

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


def enumerate_layouts(rows: int, columns: int, ships: list[int]) -> Tensor | None:
    """Uint8 [L, N]: every layout once, 0 for sea and 1, 2, ... for the ships in their order.

    Ships of equal length are interchangeable: the earlier one has the earlier placement. None if
    there are too many layouts to list.
    """
    cells = rows * columns
    layouts = torch.zeros(1, cells, dtype=torch.uint8)
    last: dict[int, Tensor] = {}  # by length, the last placement in each layout
    order = sorted(range(len(ships)), key=lambda ship: -ships[ship])
    for ship in order:
        table = placements(rows, columns, ships[ship])
        if len(layouts) * len(table) * cells > 20 * MAX_TABLE_CELLS:
            return None
        free = ((layouts > 0).float() @ table.T.float()) == 0
        if ships[ship] in last:
            free &= torch.arange(len(table)) > last[ships[ship]][:, None]
        layout, placement = free.nonzero().T
        if len(layout) * cells > MAX_TABLE_CELLS:
            return None
        layouts = layouts[layout] + (ship + 1) * table[placement]
        last = {length: previous[layout] for length, previous in last.items()}
        last[ships[ship]] = placement
    return layouts


def sample_layouts(
    rows: int, columns: int, ships: list[int], batch: int, rng: torch.Generator
) -> Tensor:
    """Uint8 [B, N], numbered as in enumerate_layouts: all layouts equally likely.

    Raises ValueError if MAX_ATTEMPTS random placements of the fleet, or as many as
    MAX_OPERATIONS allows, all overlap.
    """
    by_length = {ship: placements(rows, columns, ship).to(rng.device) for ship in {*ships}}
    tables = [by_length[ship] for ship in ships]
    max_attempts = min(MAX_ATTEMPTS, MAX_OPERATIONS // (rows * columns * len(ships)))
    accepted: list[Tensor] = []
    missing, attempts = batch, 0
    while missing > 0:
        count = max(4 * missing, 1024)
        covered = torch.zeros(count, rows * columns, dtype=torch.uint8, device=rng.device)
        number = torch.zeros_like(covered)
        for ship, table in enumerate(tables):
            row = torch.randint(len(table), (count,), generator=rng, device=rng.device)
            placement = table[row]
            covered += placement
            number += (ship + 1) * placement
        # Rejecting layouts whose ships overlap keeps all layouts equally likely.
        valid = number[covered.amax(1) == 1][:missing]
        accepted.append(valid)
        missing -= len(valid)
        attempts += count
        if attempts > max_attempts and missing == batch:
            raise ValueError(
                f"ships={ships} could not be placed on {rows}x{columns} cells: {attempts:,} random "
                "placements all overlapped; use fewer or shorter ships"
            )
    return torch.cat(accepted)
