"""Games on one board, only from scalar rules: everything batched follows from them.

A game file defines the functions of rlgames/kernels/rules.py for one position, and a class derived
from BoardGame. Positions are on the CPU. Letters in shapes: B games, W words, N cells, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from rlgames.games import board_text
from rlgames.games.board_text import Board
from rlgames.games.capabilities import Capability, CellBoard, ExactKey, InvertibleKey
from rlgames.games.game import NOTHING, Game
from rlgames.games.numbering import TOO_MANY_POSITIONS, decode_digits, encode_digits, fits_in_key
from rlgames.games.state import State, Wants
from rlgames.kernels import stepping
from rlgames.kernels.stepping import Games
from rlgames.kernels.words import Words
from rlgames.rng import CHANCE, Rng

MOVER_NOT_SHOWN = "its cells do not show which seat is to move"
"""Why such a game is not a CellBoard, unless the number of stones tells."""

GAME_OVER = "game over"
"""The caption of a finished game, where captions say who is to move."""

CPU = torch.device("cpu")

NOT_WANTED, NO_MASK = np.empty((0, 0), np.float32), np.empty((0, 0), np.bool_)
NO_KEYS = np.empty(0, np.uint64)
"""In place of what a step does not read or write."""


class Views(NamedTuple):
    """What a step has written about positions: their fields as arrays and, if it was asked to,
    legal, bool [B, A], and planes, float32 [B, O], as the seats to move see them."""

    games: Games
    legal: Tensor | None = None
    planes: Tensor | None = None


@dataclass(frozen=True)
class BoardState(State):
    """words: int64 [B, W], laid out as the rules of the game say."""

    words: Tensor

    __slots__ = ("_views",)

    @classmethod
    def of(cls, games: Games, legal: Tensor | None = None, planes: Tensor | None = None) -> Self:
        """The positions whose fields are these arrays, with what a step has written about them."""
        state = cls(*map(torch.from_numpy, games))
        object.__setattr__(state, "_views", Views(games, legal, planes))
        return state

    @property
    def views(self) -> Views:
        """No field: other rows, and copies, have none."""
        views: Views | None = getattr(self, "_views", None)
        if views is not None:
            return views
        columns = (self.done, self.current_seat, self.turn, self.score, self.words)
        return Views(Games(*(column.numpy() for column in columns)))

    def without_views(self) -> Self:
        return type(self)(**vars(self))

    def __getstate__(self) -> dict[str, Tensor]:
        return vars(self)

    def games(self) -> Games:
        """The fields as arrays that share their memory."""
        return self.views.games


class BoardGame(Game[BoardState], CellBoard, InvertibleKey):
    """A game whose position is the stones of both seats and, unless the stones tell, the seat to
    move. A game of one seat defines its own text.

    rules: the table of the rules, of a class that `implement` binds to play, is_legal, write_cells
        and set_up.
    second_view: int64 [N], the cell that the second seat sees at each cell, if it sees the board
        turned or mirrored, by a permutation that is its own inverse; None: as the first seat.
    opened_by: int64 [N], the cell above each one, or -1, where stones fall and empty cells that can
        be taken have a value of their own; None: all empty cells are alike.
    shows_mover: whether the caption says who is to move, because the stones do not tell. They do if
        every move adds stones_per_move stones of its seat, and takes none away.
    has_draws: a game may end without a winner.
    """

    rules: Any
    second_view: Tensor | None = None
    opened_by: Tensor | None = None
    seat_marks = "XO"
    shows_mover = True
    stones_per_move = 1
    num_cell_values = 3
    has_draws = True

    def to(self, device: torch.device | str) -> Self:
        return self

    # Rules

    def initial(self, batch: int, rng: Rng) -> BoardState:
        # Torch's repeat takes ten times as long.
        words = self._start.index_select(0, torch.zeros(batch, dtype=torch.int64))
        return BoardState.start(batch, self.spec.seats, CPU, words=words)

    @cached_property
    def _start(self) -> Tensor:
        return torch.tensor([self.rules.start])

    def legal_action_mask(self, state: BoardState) -> Tensor:
        views = state.views
        if views.legal is not None:
            return views.legal
        legal = torch.empty(len(state), self.spec.actions, dtype=torch.bool)
        stepping.write_views(self.rules, views.games, legal.numpy(), NOT_WANTED)
        return legal

    def sample_legal_action(self, state: BoardState, u: Tensor) -> Tensor:
        action = torch.empty(len(state), dtype=torch.int64)
        stepping.sample_rows(self.rules, state.games(), u.numpy(), action.numpy())
        return action

    def apply_action(self, state: BoardState, action: Tensor) -> BoardState:
        """An illegal action changes nothing. Raises IndexError for one that does not exist."""
        return self._step(state, action, NO_KEYS, NOTHING)

    def step(
        self, state: BoardState, action: Tensor, rng: Rng, wants: Wants = NOTHING
    ) -> BoardState:
        keys = NO_KEYS
        if self.spec.num_chance_inputs:
            keys = rng.rows(len(state)).fold_in(CHANCE).keys
        return self._step(state, action, keys, wants)

    def _step(self, state: BoardState, action: Tensor, keys: Words, wants: Wants) -> BoardState:
        """The positions after action and the chance of these keys, uint64 [B]; [0] for none."""
        games, batch = Games(*map(np.copy, state.games())), len(state)
        legal = torch.empty(batch, self.spec.actions, dtype=torch.bool) if wants.legal else None
        planes = torch.empty(batch, *self.spec.observation) if wants.planes else None
        mask = NO_MASK if legal is None else legal.numpy()
        flat = NOT_WANTED if planes is None else planes.flatten(1).numpy()
        stepping.step_rows(self.rules, games, action.numpy(), keys, mask, flat)
        return BoardState.of(games, legal, planes)

    def apply_chance(self, state: BoardState, u: Tensor) -> BoardState:
        """Like Chance.apply_chance, for games whose rules define it."""
        games = Games(*map(np.copy, state.games()))
        stepping.add_chance_to_rows(self.rules, games, u.numpy())
        return BoardState.of(games)

    def observe(self, state: BoardState) -> Tensor:
        views = state.views
        if views.planes is not None:
            return views.planes
        planes = torch.empty(len(state), *self.spec.observation)
        stepping.write_views(self.rules, views.games, NO_MASK, planes.flatten(1).numpy())
        return planes

    def is_valid(self, state: BoardState) -> Tensor:
        """Live positions are those that their cells set up again."""
        cells, seat = self.cells(state).flatten(1), state.current_seat.clamp(0, self.spec.seats - 1)
        again = self.state_from_cells(cells, seat)
        is_over = again.done | self.state_from_cells(cells, self.spec.seats - 1 - seat).done
        is_same = (again.words == state.words).all(1) & (again.turn <= state.turn)
        return super().is_valid(state) & (state.done | (is_same & ~is_over))

    # Cells

    def relative_cells(self, state: BoardState) -> Tensor:
        """Int64 [B, rows, columns]: as write_cells, 1 for the seat to move and 2 for the other."""
        return self._as_boards(self._written_cells(state, 0))

    def cells(self, state: BoardState) -> Tensor:
        """Int64 [B, rows, columns] from the top: 0 empty, 1 of the first seat, 2 of the second."""
        return self._as_boards(
            self.from_seats(state.current_seat, self._written_cells(state, 0).long())
        )

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> BoardState:
        """The inverse of cells, from int64 [B, N], with the seats to move, int64 [B]; the turn is
        the lowest number that agrees."""
        zeros = torch.zeros_like(seat)
        state = BoardState(
            done=zeros.bool(),
            current_seat=seat.clone(),
            turn=self.turns(cells, seat),
            score=torch.zeros(len(seat), self.spec.seats),
            words=zeros[:, None].repeat(1, len(self.rules.start)),
        )
        relative = self.from_seats(seat, cells).contiguous()
        stepping.set_up_rows(self.rules, state.games(), relative.numpy())
        return state

    def turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        """Int64 [B]: the lowest turn that agrees with the cells, [B, N], and the seats to move."""
        return (cells > 0).sum(1) // self.stones_per_move

    def _written_cells(self, state: BoardState, open_value: int) -> Tensor:
        """Float32 [B, N]: as write_cells."""
        values = torch.empty(len(state), prod(self.spec.observation[1:]))
        words = state.words.numpy()
        stepping.write_cell_rows(self.rules, words, open_value, values.numpy())
        return values

    def _as_boards(self, cells: Tensor) -> Tensor:
        return cells.long().view(-1, *self.spec.observation[1:])

    def from_seats(self, seat: Tensor, cells: Tensor) -> Tensor:
        """Cells as the seats to move see them from absolute ones, int64 [B, N], and the other way
        around."""
        if self.spec.seats == 1:
            return cells
        seen = cells if self.second_view is None else cells[:, self.second_view]
        return torch.where(seat[:, None] == 1, (3 - seen) * (seen > 0), cells)

    # Keys and views

    @cached_property
    def _key_bases(self) -> list[int]:
        cells = prod(self.spec.observation[1:])
        return [self.num_cell_values] * cells + [2] * self.shows_mover

    def lacks(self, capability: type[Capability]) -> str:
        if capability is CellBoard and self.shows_mover:
            return MOVER_NOT_SHOWN
        is_too_large = issubclass(capability, ExactKey) and not fits_in_key(self._key_bases)
        return TOO_MANY_POSITIONS if is_too_large else ""

    def key(self, state: BoardState) -> Tensor:
        digits = self.cells(state).flatten(1)
        if self.shows_mover:
            digits = torch.cat([digits, state.current_seat[:, None]], 1)
        return encode_digits(digits, self._key_bases)

    def state_from_key(self, key: Tensor) -> BoardState:
        digits = decode_digits(key, self._key_bases)
        if self.shows_mover:
            return self.state_from_cells(digits[:, :-1], digits[:, -1])
        return self.state_from_cells(digits, (digits > 0).sum(1) // self.stones_per_move % 2)

    def view_from_seat(self, state: BoardState, seat: int) -> BoardState:
        if self.spec.seats == 1:
            return state
        seats = torch.full_like(state.current_seat, seat)
        view = self.state_from_cells(self.cells(state).flatten(1), seats)
        return replace(view, done=state.done, turn=state.turn, score=state.score)

    # Text

    def boards(self, state: BoardState, row: int, reveal: bool = False) -> list[Board]:
        cells = self.cells(state[row : row + 1])[0].tolist()
        return [[[f".{self.seat_marks}"[cell] for cell in line] for line in cells]]

    def caption(self, state: BoardState, row: int) -> str:
        if not self.shows_mover:
            return ""
        return GAME_OVER if bool(state.done[row]) else self._captions[int(state.current_seat[row])]

    @property
    def _captions(self) -> list[str]:
        return [*(f"{mark} to move" for mark in self.seat_marks), GAME_OVER]

    def parse_all(self, texts: Sequence[str]) -> BoardState:
        cells, seat = self._read_stones(texts)
        state, other = (self.state_from_cells(cells, s) for s in (seat % 2, 1 - seat % 2))
        self.check_parsed(cells, state, other)
        # The game may be over by the last move of the seat that the text has to move.
        rows = (other.done & ~state.done).nonzero()[:, 0]
        state = state.put(rows, other[rows])
        if bool(((seat == 2) & ~state.done).any()):
            raise ValueError(f"the first line is {GAME_OVER!r}, but the game is not over")
        return state

    def check_parsed(self, cells: Tensor, state: BoardState, other: BoardState) -> None:
        """Raises ValueError, with the reason, for positions that games do not reach.

        cells: int64 [B, N]. state: the positions. other: the same with the other seat to move.
        """
        if bool((state.done & other.done & (state.score != other.score).any(1)).any()):
            raise ValueError("only one seat can win")

    def _read_stones(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Cells, int64 [B, N], and the seats to move, int64 [B], from rendered positions; 2 if the
        caption says that the game is over.

        Raises ValueError, with the reason, for other text. If the stones tell who is to move, their
        numbers are correct for seats that take turns.
        """
        seats, boards, marks = [], [], f".{self.seat_marks}"
        for text in texts:
            seat, drawing = -1, text
            if self.shows_mover:
                caption, _, drawing = text.strip().partition("\n")
                if caption.strip() not in self._captions:
                    valid = f"{', '.join(self._captions[:-1])} or {GAME_OVER}"
                    raise ValueError(f"the first line is {caption.strip()!r}, not {valid}")
                seat = self._captions.index(caption.strip())
            stones = [*map(marks.index, board_text.read(drawing, self.board_format, marks)[0])]
            if not self.shows_mover:
                first, second = stones.count(1), stones.count(2)
                if first - second not in (0, self.stones_per_move):
                    raise ValueError(
                        f"{first} {marks[1]} and {second} {marks[2]}: the seats did not take turns"
                    )
                seat = int(first > second)
            seats.append(seat)
            boards.append(stones)
        return torch.tensor(boards), torch.tensor(seats)

    # Whole games in kernels

    def play_with(
        self, state: BoardState, play: Callable[[Games], tuple[int, Any]]
    ) -> tuple[BoardState, int]:
        """The positions after a kernel has played on from these, and the number of moves.

        play: plays the games in place; its first result is the number of moves.
        """
        games = Games(*map(np.copy, state.games()))
        num_moves, _ = play(games)
        return BoardState.of(games), num_moves
