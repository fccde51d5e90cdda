"""Recorded games to learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import sanitized
from rlgames.games.game import Game
from rlgames.rollouts import records
from rlgames.rollouts.trajectories import FinalStates, Trajectories

HELD_OUT_DIVISOR = 10
"""One recorded game in this many is held out to tell when behavior cloning has converged."""

MAX_NAMED_PLAYERS = 20
"""A hint names at most this many players of a record."""


class Demonstrations:
    """Recorded games, each sampled as often as any other."""

    def __init__(
        self, trajectories: Trajectories, final_states: FinalStates, rng: torch.Generator
    ) -> None:
        self.trajectories, self.final_states, self.rng = trajectories, final_states, rng

    @classmethod
    def read(
        cls,
        path: Path,
        game: Game[Any],
        rules: dict[str, Any],
        demonstrator: str | None,
        rng: torch.Generator,
    ) -> Demonstrations:
        """Read a record of a game with these rules; of one player if demonstrator is not None.

        Raises ConfigError for a file that is not a record of this game or has no such player.
        """
        record = records.read(path, game, rules)
        trajectories, state = record.trajectories, game.public(record.final_states.state)
        if demonstrator is not None:
            if demonstrator not in record.players:
                names = [sanitized(name, 40) for name in record.players[:MAX_NAMED_PLAYERS]]
                raise ConfigError(
                    f"{path} holds no moves of demonstrator={demonstrator}",
                    nearest(demonstrator, names),
                )
            trajectories = trajectories.by_player(record.players.index(demonstrator))
        trajectories = replace(trajectories, player=torch.zeros_like(trajectories.player))
        final_states = FinalStates(state.to(rng.device), record.final_states.num_moves)
        every = cls(trajectories.to(rng.device), final_states, rng)
        num_moves = torch.bincount(every.trajectories.game, minlength=every.trajectories.num_games)
        if bool(num_moves.all()):
            return every
        # Games without a move of the demonstrator teach nothing.
        return cls(*every._select(num_moves.nonzero()[:, 0]), rng)

    def sample(self, count: int) -> tuple[Trajectories, FinalStates]:
        """Random games; none is repeated before all of them were sampled."""
        num_games = self.trajectories.num_games
        num_rounds = -(-count // num_games)
        order = torch.cat([self._shuffled() for _ in range(num_rounds)])
        return self._select(order[:count])

    def hold_out(self) -> tuple[Demonstrations, Trajectories]:
        """All games but a random tenth, and the trajectories of that tenth."""
        num_games = self.trajectories.num_games
        if num_games < 2:
            raise ConfigError(
                "learner=behavior_cloning holds out recorded games, and there is only one",
                "record two games or more",
            )
        order = self._shuffled()
        count = max(1, num_games // HELD_OUT_DIVISOR)
        training = Demonstrations(*self._select(order[count:]), self.rng)
        return training, self._select(order[:count])[0]

    def _shuffled(self) -> Tensor:
        """Int64 [G]: all games in random order."""
        num_games, device = self.trajectories.num_games, self.rng.device
        return torch.randperm(num_games, generator=self.rng, device=device)

    def _select(self, games: Tensor) -> tuple[Trajectories, FinalStates]:
        trajectories = self.trajectories.select_games(games)
        return trajectories, FinalStates(self.final_states.state[games], len(trajectories))
