"""Uniformly random play in compiled kernels, for games that offer it.

Letters in shapes: G games, N cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

from rlgames.games.state import State

if TYPE_CHECKING:
    from rlgames.games.game_2048 import Game2048, Game2048State
    from rlgames.games.k_in_a_row import KInARow, KInARowState

S = TypeVar("S", bound=State)

Array = np.ndarray[Any, Any]

MAX_PLIES = 1 << 62
"""As a number of plies: play every game to its end."""

MAX_PACKED_LENGTH, MAX_EXPONENT = 4, 15
"""Rows and columns of a board of 2048, and exponents of its tiles, that fit in 64 bits."""


class CompiledRandomPlay(ABC, Generic[S]):
    """Plays games on the CPU, where every legal action is equally likely and chance is the game's.

    min_games: fewer take less time than loading the kernel, which the first call of play does.
    max_batch: more games side by side are played faster without the kernel; None: they are not.
    observations: float32 [batch, O], where the kernel writes the observations of each ply.
    """

    min_games: int
    max_batch: int | None = None

    def __init__(self, observation_size: int) -> None:
        self._observation_size = observation_size
        self.observations: Array = np.zeros((0, observation_size), np.float32)

    def play(
        self, state: S, batch: int, seed: int, *, plies: int | None = None, observe: bool = False
    ) -> tuple[S, int]:
        """Play on from positions [G], `batch` of them side by side; the last positions, and the
        number of moves.

        Each game that ends makes room for the next one. plies: the most moves of each game, at
        least 1; None: no limit. observe: compute the observation of each position in which a move
        is made. Equal seeds, from 0 to 2^63 - 1, give equal games.
        """
        size = min(batch, len(state))
        num_observed = size if observe else 0
        if len(self.observations) != num_observed:
            self.observations = np.zeros((num_observed, self._observation_size), np.float32)
        return self._play(state, size, MAX_PLIES if plies is None else plies, np.uint64(seed))

    @abstractmethod
    def _play(self, state: S, size: int, plies: int, seed: np.uint64) -> tuple[S, int]:
        """As play, with `size` games side by side."""


class KInARowRandomPlay(CompiledRandomPlay["KInARowState"]):
    """Any board and line, with gravity and without."""

    min_games = 30_000

    def __init__(self, game: KInARow) -> None:
        super().__init__(2 * game.rows * game.columns)
        self._game = game
        if game.layout.has_line_table is not None:  # small boards, whose moves are table lookups
            self.max_batch = 8192

    @cached_property
    def rules(self) -> Any:
        """Rules of kernels/random_lines.py."""
        from rlgames.kernels.lines import line_argument
        from rlgames.kernels.random_lines import Rules

        game, layout = self._game, self._game.layout
        table = layout.has_line_table
        length = game.rows if game.gravity else game.columns  # cells between spare bits
        return Rules(
            cell_bits=layout.cell_bits.numpy().astype(np.int64),
            line_table=np.zeros(0, np.bool_) if table is None else table.numpy(),
            line=line_argument(length, game.line),
            stride=length + 1,
            columns=game.columns if game.gravity else 0,
        )

    def _play(
        self, state: KInARowState, size: int, plies: int, seed: np.uint64
    ) -> tuple[KInARowState, int]:
        from rlgames.kernels.random_lines import Games, play

        last = _copied(state)
        games = Games(**{name: column.numpy() for name, column in vars(last).items()})
        return last, play(games, self.rules, size, plies, self.observations, seed)[0]


class Game2048RandomPlay(CompiledRandomPlay["Game2048State"]):
    """Boards of up to 4×4 cells. Tiles of 2^15, which random play does not reach, stay 2^15."""

    min_games = 3_000

    def __init__(self, game: Game2048) -> None:
        planes = game.spec.observation[0]
        super().__init__(planes * game.num_cells)
        self._game = game

    @cached_property
    def _rules(self) -> Any:
        from rlgames.kernels.packed_2048 import slide_table
        from rlgames.kernels.random_2048 import Rules

        game = self._game
        cells, columns = np.arange(game.num_cells, dtype=np.uint64), np.uint64(game.columns)
        shifts = np.uint64(16) * (cells // columns) + np.uint64(4) * (cells % columns)
        return Rules(
            rows=slide_table(game.rows, game.columns),
            shifts=shifts,
            cells=np.bitwise_or.reduce(np.uint64(1) << shifts),
            fours=np.uint64(round(game.fours * 2**32)),
            planes=game.spec.observation[0],
        )

    def _play(
        self, state: Game2048State, size: int, plies: int, seed: np.uint64
    ) -> tuple[Game2048State, int]:
        from rlgames.kernels.random_2048 import Games, play

        last, shifts = _copied(state), self._rules.shifts
        exponents = state.tiles.clamp(max=MAX_EXPONENT).numpy().astype(np.uint64)
        boards: Array = np.bitwise_or.reduce(exponents << shifts, axis=1)
        games = Games(last.done.numpy(), last.turn.numpy(), last.score[:, 0].numpy(), boards)
        num_moves, _ = play(games, self._rules, size, plies, self.observations, seed)
        exponents = (boards[:, None] >> shifts) & np.uint64(MAX_EXPONENT)
        return replace(last, tiles=torch.from_numpy(exponents.astype(np.uint8))), num_moves


def _copied(state: S) -> S:
    """A state whose fields share no memory; several may be the same tensor."""
    return replace(state, **{name: column.clone() for name, column in vars(state).items()})
