"""Placing a fleet by hand, ship by ship."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from rlgames.games import board_text
from rlgames.games.fleets.layouts import Fleet


class Placement:
    """A fleet on its way to the board. cells: the cells of each ship placed, by its index."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.board_format = board_text.lettered_format(fleet.rows, fleet.columns)
        self.cells: dict[int, list[int]] = {}

    @property
    def next_length(self) -> int | None:
        """The length of the longest ship yet to be placed, None once all are."""
        lengths = [n for ship, n in enumerate(self.fleet.ships) if ship not in self.cells]
        return max(lengths, default=None)

    def open_places(self) -> dict[str, list[int]]:
        """By name, as in A1-A3: the cells of each place for the next ship."""
        places = self._list_places(self.next_length) if self.next_length else []
        name, taken = self.board_format.cell_name, self._taken()
        return {
            "-".join(map(name, (cells[0], cells[-1])[: len(cells)])): cells
            for cells in places
            if not taken & {*cells}
        }

    def place_text(self, text: str) -> None:
        """Place a ship by the cells at its ends, as in A1-A4 or A1 A4; one cell for a ship of one.

        Raises ValueError with the reason.
        """
        columns = self.fleet.columns
        names = {self.board_format.cell_name(cell): cell for cell in range(self.fleet.num_cells)}
        ends = [word.upper() for word in re.split(r"[-\s,]+", text.strip()) if word]
        unknown = [word for word in ends if word not in names]
        if unknown or len(ends) not in (1, 2):
            what = f"{unknown[0]!r} is not a cell" if unknown else f"{text!r} is not a ship"
            raise ValueError(f"{what}; write its two ends, as in A1-A{self.next_length or 2}")
        first, last = sorted((names[ends[0]], names[ends[-1]]))
        is_across = first // columns == last // columns
        if not is_across and first % columns != last % columns:
            raise ValueError("a ship lies on adjacent cells of one row or column")
        cells = [*range(first, last + 1, 1 if is_across else columns)]
        if taken := self._taken() & {*cells}:
            raise ValueError(
                f"another ship lies on {' '.join(map(self.board_format.cell_name, sorted(taken)))}"
            )
        for ship, length in enumerate(self.fleet.ships):
            if length == len(cells) and ship not in self.cells:
                self.cells[ship] = cells
                return
        raise ValueError(f"no ship of {len(cells)} is left to place")

    def remove_last(self) -> None:
        """Take back the ship that was placed last, if any."""
        if self.cells:
            self.cells.popitem()

    def draw(self) -> str:
        """The board with the ships that are placed."""
        marks = ["#" if ship else "." for ship in self.layout().tolist()]
        return board_text.draw([board_text.split(marks, self.fleet.columns)], self.board_format)

    def layout(self) -> Tensor:
        """Uint8 [N]: the ships placed so far, numbered from 1 as the rules number them.

        Ships of equal length are numbered in the order of their placements.
        """
        cells = torch.zeros(self.fleet.num_cells, dtype=torch.uint8)
        for length in {*self.fleet.ships}:
            ships = [n for n, each in enumerate(self.fleet.ships) if each == length]
            places = [self.cells[n] for n in ships if n in self.cells]
            for ship, where in zip(
                ships, sorted(places, key=self._list_places(length).index), strict=False
            ):
                cells[where] = ship + 1
        return cells

    def _taken(self) -> set[int]:
        return {cell for ship in self.cells.values() for cell in ship}

    def _list_places(self, length: int) -> list[list[int]]:
        """The cells of each placement."""
        return [row.nonzero()[:, 0].tolist() for row in self.fleet.placements[length]]
