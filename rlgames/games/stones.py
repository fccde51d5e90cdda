"""Games of two seats whose stones lie on the cells of one board."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.board import Board
from rlgames.games.game import Game
from rlgames.games.state import State

S = TypeVar("S", bound=State)

MOVER_NOT_SHOWN = "its cells do not show which seat is to move"
"""Why such a game is not a CellBoard, unless the number of stones tells."""


GAME_OVER = "game over"
"""The caption of a finished game, where captions say who is to move."""


class StoneGame(Game[S]):
    """Draws the stones of both seats. shows_mover: whether the caption says who is to move, because
    the stones do not tell."""

    seat_marks = "XO"
    shows_mover = True

    @abstractmethod
    def cells(self, state: S) -> Tensor:
        """Int64 [B, rows, columns] from the top: 0 empty, 1 of the first seat, 2 of the second."""

    def boards(self, state: S, row: int, reveal: bool = False) -> list[Board]:
        cells = self.cells(state[row : row + 1])[0].tolist()
        return [[[f".{self.seat_marks}"[cell] for cell in line] for line in cells]]

    def caption(self, state: S, row: int) -> str:
        if not self.shows_mover:
            return ""
        return GAME_OVER if bool(state.done[row]) else self._captions[int(state.current_seat[row])]

    @property
    def _captions(self) -> list[str]:
        return [*(f"{mark} to move" for mark in self.seat_marks), GAME_OVER]

    def read_stones(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Stones, int64 [B, N], as in cells, and the seats to move, int64 [B], from rendered
        positions; 2 if the caption says that the game is over.

        Raises ValueError, with the reason, for other text. If the stones tell who is to move, their
        numbers are correct for seats that take turns.
        """
        seats, boards, marks = [], [], f".{self.seat_marks}"
        for text in texts:
            seat, drawing = self._read_caption(text) if self.shows_mover else (None, text)
            stones = [*map(marks.index, board.read(drawing, self.board_format, marks)[0])]
            seats.append(self._count_turns(stones) if seat is None else seat)
            boards.append(stones)
        return torch.tensor(boards), torch.tensor(seats)

    def _read_caption(self, text: str) -> tuple[int, str]:
        """The seat to move, or 2, and the text below."""
        caption, _, drawing = text.strip().partition("\n")
        if caption.strip() not in self._captions:
            valid = f"{', '.join(self._captions[:-1])} or {GAME_OVER}"
            raise ValueError(f"the first line is {caption.strip()!r}, not {valid}")
        return self._captions.index(caption.strip()), drawing

    def _count_turns(self, stones: list[int]) -> int:
        """The seat to move, by the numbers of stones."""
        first, second = stones.count(1), stones.count(2)
        if first - second not in (0, 1):
            marks = self.seat_marks
            raise ValueError(
                f"{first} {marks[0]} and {second} {marks[1]}: the seats did not take turns"
            )
        return first - second


def check_game_over(seat: Tensor, done: Tensor) -> None:
    """Raises ValueError if read_stones returned 2, int64 [B], for a game that is not over."""
    if bool(((seat == 2) & ~done).any()):
        raise ValueError(f"the first line is {GAME_OVER!r}, but the game is not over")
