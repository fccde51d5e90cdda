"""Cursors on boards: one for the cells of a move, one for a ship that is placed."""

from __future__ import annotations

from rlgames.games.notation import takes_columns
from rlgames.games.placement import Placement
from rlgames.players.human import Position

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

CURSOR_STYLE, MARKED_STYLE = "reverse", "black on yellow"


class Cursor:
    """A cursor on the cells of the first board, or on its columns where actions are columns.

    marked: the cells of a turn that takes several.
    """

    def __init__(self, position: Position, is_by_column: bool) -> None:
        self.position, self.is_by_column = position, is_by_column
        form = position.game.board_format
        self.rows, self.columns = form.rows, form.columns
        self.row, self.column = (0 if is_by_column else self.rows // 2), self.columns // 2
        self.marked: list[int] = []

    @classmethod
    def of(cls, position: Position) -> Cursor | None:
        """A cursor for a position whose actions take cells; None for any other."""
        if position.game.action_cells(position.state, 0) is None:
            return None
        return cls(position, takes_columns(position.game, position.state))

    def move(self, direction: str) -> None:
        """Move a step, around the edges of the board."""
        down, right = STEPS[direction]
        if not self.is_by_column:
            self.row = (self.row + down) % self.rows
        self.column = (self.column + right) % self.columns

    def toggle(self) -> None:
        """Mark the cell, or unmark it."""
        cell = self.row * self.columns + self.column
        if not self.is_by_column:
            self.marked = [*({*self.marked} ^ {cell})]

    def chosen(self) -> str:
        """The move as a person writes it: the cells that are marked, or the one at the cursor."""
        if self.is_by_column:
            return str(self.column + 1)
        cells = sorted(self.marked) or [self.row * self.columns + self.column]
        return " ".join(map(self.position.game.board_format.cell_name, cells))

    def highlights(self) -> dict[int, str]:
        """The styles of the cells that are marked and of the one below the cursor."""
        cell = self.row * self.columns + self.column
        if self.is_by_column:
            cells = self.position.game.action_cells(self.position.state, 0)
            assert cells is not None
            lands = cells[self.column].nonzero()[:, 0].tolist()
            cell = lands[0] if lands else self.column
        return dict.fromkeys(self.marked, MARKED_STYLE) | {cell: CURSOR_STYLE}

    def help(self, are_several: bool) -> str:
        """What the keys do."""
        if self.is_by_column:
            return "left, right and Enter, or type a column"
        if are_several:
            return "arrows: move, Space: mark, Enter: shoot, or type cells as in A1 B2"
        return "arrows and Enter, or type a cell"


class ShipCursor:
    """The next ship of a placement, moved and turned."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.length = placement.next_length or 1
        self.row = self.column = 0
        self.is_down = self.length > placement.fleet.columns

    @property
    def cells(self) -> list[int]:
        step = self.placement.fleet.columns if self.is_down else 1
        first = self.row * self.placement.fleet.columns + self.column
        return [first + step * number for number in range(self.length)]

    def move(self, direction: str) -> None:
        """Move a step, not beyond the board."""
        down, right = STEPS[direction]
        self.row, self.column = self.row + down, self.column + right
        self._keep_inside()

    def _keep_inside(self) -> None:
        fleet = self.placement.fleet
        last_row = fleet.rows - (self.length if self.is_down else 1)
        last_column = fleet.columns - (1 if self.is_down else self.length)
        self.row, self.column = (
            min(max(0, self.row), last_row),
            min(max(0, self.column), last_column),
        )

    def toggle(self) -> None:
        """Turn the ship, if it then fits the board."""
        fleet = self.placement.fleet
        if self.length <= (fleet.columns if self.is_down else fleet.rows):
            self.is_down = not self.is_down
            self._keep_inside()

    def chosen(self) -> str:
        """The two ends of the ship."""
        return "-".join(map(self.placement.board_format.cell_name, (self.cells[0], self.cells[-1])))

    def picture(self) -> str:
        """The board with the ships placed and, as +, the one that is being placed."""
        return self.placement.draw(self.cells)
