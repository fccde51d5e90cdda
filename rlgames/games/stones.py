"""Games of two seats whose stones lie on the cells of one board."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TypeVar

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.board import Board
from rlgames.games.capabilities import CellBoard, ExactKey
from rlgames.games.compiled import CompiledRules, pack_cells, unpack_cells
from rlgames.games.game import Game
from rlgames.games.numbering import TOO_MANY_POSITIONS, decode_digits, encode_digits, fits_in_key
from rlgames.games.state import State

S = TypeVar("S", bound=State)

MOVER_NOT_SHOWN = "its cells do not show which seat is to move"
"""Why such a game is not a CellBoard, unless the number of stones tells."""


GAME_OVER = "game over"
"""The caption of a finished game, where captions say who is to move."""


class StoneGame(Game[S]):
    """A game whose positions are the stones of both seats and, unless the stones tell, the seat to
    move: its text, keys and views follow from these.

    shows_mover: whether the caption says who is to move, because the stones do not tell. They do if
        every move adds stones_per_move stones of its seat, and takes none away.
    """

    seat_marks = "XO"
    shows_mover = True
    stones_per_move = 1
    num_cell_values = 3

    @abstractmethod
    def cells(self, state: S) -> Tensor:
        """Int64 [B, rows, columns] from the top: 0 empty, 1 of the first seat, 2 of the second."""

    @abstractmethod
    def state_from_cells(self, cells: Tensor, seat: Tensor) -> S:
        """The inverse of cells, from int64 [B, N], with the seats to move, int64 [B]; the turn is
        the lowest number that fits."""

    @cached_property
    def _key_bases(self) -> list[int]:
        return [3] * prod(self.spec.observation[1:]) + [2] * self.shows_mover

    @cached_property
    def lacks(self) -> dict[type, str]:  # type: ignore[override]
        lacks: dict[type, str] = {CellBoard: MOVER_NOT_SHOWN} if self.shows_mover else {}
        if type(self).key is StoneGame.key and not fits_in_key(self._key_bases):
            lacks[ExactKey] = TOO_MANY_POSITIONS
        return lacks

    def key(self, state: S) -> Tensor:
        digits = self.cells(state).flatten(1)
        if self.shows_mover:
            digits = torch.cat([digits, state.current_seat[:, None]], 1)
        return encode_digits(digits, self._key_bases)

    def state_from_key(self, key: Tensor) -> S:
        digits = decode_digits(key, self._key_bases)
        if self.shows_mover:
            return self.state_from_cells(digits[:, :-1], digits[:, -1])
        return self.state_from_cells(digits, (digits > 0).sum(1) // self.stones_per_move % 2)

    def view_from_seat(self, state: S, seat: int) -> S:
        seats = torch.full_like(state.current_seat, seat)
        view = self.state_from_cells(self.cells(state).flatten(1), seats)
        fields = {"done": state.done, "turn": state.turn, "score": state.score}
        return replace(view, current_seat=seats, **fields)

    def parse_all(self, texts: Sequence[str]) -> S:
        cells, seat = self.read_stones(texts)
        state = self.state_from_cells(cells, seat % 2)
        check_game_over(seat, state.done)
        return state

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
        if first - second not in (0, self.stones_per_move):
            marks = self.seat_marks
            raise ValueError(
                f"{first} {marks[0]} and {second} {marks[1]}: the seats did not take turns"
            )
        return int(first > second)


class CompiledStones(CompiledRules[S]):
    """The positions of a StoneGame; its words are the cells with stones of the seat to move, those
    with stones of the other seat, and the seat to move."""

    def pack(self, state: S) -> Tensor:
        cells, seat = self.game.cells(state).flatten(1), state.current_seat[:, None]
        sets = [pack_cells(cells == value) for value in (seat + 1, 2 - seat)]
        return torch.cat([*sets, seat], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> S:
        size, seat = words.shape[1] // 2, fields["current_seat"]
        num_cells = prod(self.game.spec.observation[1:])
        own, other = (unpack_cells(each, num_cells) for each in words[:, : 2 * size].split(size, 1))
        cells = own * (seat[:, None] + 1) + other * (2 - seat[:, None])
        return replace(self.game.state_from_cells(cells, seat), **fields)


def check_game_over(seat: Tensor, done: Tensor) -> None:
    """Raises ValueError if read_stones returned 2, int64 [B], for a game that is not over."""
    if bool(((seat == 2) & ~done).any()):
        raise ValueError(f"the first line is {GAME_OVER!r}, but the game is not over")
