"""Uniformly random play in a compiled kernel, for games with compiled rules.

Letters in shapes: G games.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

import numpy as np

from rlgames.games.compiled import CompiledRules, play_packed
from rlgames.games.game import Game
from rlgames.games.state import State

S = TypeVar("S", bound=State)

MAX_PLIES = 1 << 62
"""As a number of plies: play every game to its end."""


class CompiledRandomPlay(Generic[S]):
    """Plays games on the CPU, where every legal action is equally likely and chance is the game's.

    observations: float32 [batch, O], where the kernel writes the observations of each ply.
    """

    def __init__(self, game: Game[S], compiled: CompiledRules[S]) -> None:
        self._compiled, self._observation_size = compiled, math.prod(game.spec.observation)
        self.observations = np.zeros((0, self._observation_size), np.float32)

    def play(
        self, state: S, batch: int, seed: int, *, plies: int | None = None, observe: bool = False
    ) -> tuple[S, int]:
        """Play on from positions [G], `batch` of them side by side; the last positions, and the
        number of moves.

        Each game that ends makes room for the next one. plies: the most moves of each game, at
        least 1; None: no limit. observe: compute the observation of each position in which a move
        is made. Equal seeds, from 0 to 2^63 - 1, give equal games.
        """
        from rlgames.kernels.random_play import play_games

        size = min(batch, len(state))
        num_observed = size if observe else 0
        if len(self.observations) != num_observed:
            self.observations = np.zeros((num_observed, self._observation_size), np.float32)
        max_plies = MAX_PLIES if plies is None else plies
        settings = size, max_plies, self.observations, np.uint64(seed)
        return play_packed(
            self._compiled, state, lambda games: play_games(games, self._compiled.rules, *settings)
        )
