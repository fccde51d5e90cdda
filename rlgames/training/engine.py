"""Engines: where the games of a training are played, by default in the process that learns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlgames.core.signals import Interrupts
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.rollouts.holdout import Split, sampled_from
from rlgames.rollouts.play import collect_games
from rlgames.rollouts.trajectories import FinalStates, Trajectories


@dataclass(frozen=True)
class EngineContext:
    """What every engine is built from.

    Args:
        players: as GamePool takes them.
        split: of the hidden layouts, or None.
        batch: games between two updates.
        threads: CPU threads of torch in each process that plays.
        join_seconds: how long to wait for such processes.
        config: the plain config of the training, from which they build the same parts.
    """

    game: Game[Any]
    agent: Agent
    players: Sequence[Player]
    split: Split | None
    batch: int
    threads: int = 1
    join_seconds: float = 0.0
    config: Mapping[str, Any] | None = None


class Engine(ABC):
    """Plays whole games with the weights of the agent in training.

    last_words: what to say if the process ends at once, without an exception; empty where nothing
    in the engine does that.
    """

    last_words = ""

    def __init__(self, context: EngineContext) -> None:
        self.game, self.agent = context.game, context.agent
        self.players, self.split = context.players, context.split
        split = context.split
        self.initial_states = None if split is None else sampled_from(split.trained_on)

    def start(self, games_played: int, interrupts: Interrupts) -> None:  # noqa: B027
        """Prepare for play, once and before it. interrupts: the run's.

        Raises ConfigError or ConnectionError where there is nobody to play.
        """

    @abstractmethod
    def play(
        self, num_games: int, games_played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates]:
        """Games to learn from; the weights may have changed since the last call.

        games_played: in the run before these. rng: of the process that learns.
        """

    def metrics(self) -> dict[str, float]:
        """What else there is to log of the games of the last call of play."""
        return {}

    def close(self) -> None:  # noqa: B027
        """End what start has started; more than one call does no harm."""


class LocalEngine(Engine):
    """Plays in this process: the games come from the current weights."""

    def play(
        self, num_games: int, games_played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates]:
        seating = None
        if len(self.players) == 2:
            # The first player has seat 0 in every other game, counted from the start of the run.
            games = torch.arange(num_games, device=rng.device) + games_played
            seating = torch.stack([games % 2, 1 - games % 2], 1)
        starts = self.initial_states
        return collect_games(
            self.game, self.players, num_games, rng, initial_states=starts, seating=seating
        )
