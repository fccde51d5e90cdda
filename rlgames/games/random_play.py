"""Uniformly random play in compiled kernels, for games that offer it.

Letters in shapes: G games, N cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from rlgames.games.state import State

S = TypeVar("S", bound=State)

Array = np.ndarray[Any, Any]

MAX_PLIES = 1 << 62
"""As a number of plies: play every game to its end."""


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


def copied_state(state: S) -> S:
    """A state whose fields share no memory; several may be the same tensor."""
    return replace(state, **{name: column.clone() for name, column in vars(state).items()})
