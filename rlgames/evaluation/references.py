"""What a player is compared with: random play and the exact optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlgames.core.metrics import gap_to_optimum
from rlgames.core.rng import make_generator
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.capabilities import KnownRandomPlay, expected_random_turns, find
from rlgames.games.game import Game, State
from rlgames.players.player import HasProbabilities, Player, Random
from rlgames.rollouts.holdout import Split
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.optimum import find_graph, find_optimum, on_cpu

EARLY_SOLVE_SECONDS = 3.0
"""Limit on solving the game before training; solve_seconds= limits it at the end."""

MAX_QUICK_PLIES = 200
"""Games with an opponent have random play measured before training if they have at most this many
plies: that takes 0.1 s on one core."""

NUM_QUICK_GAMES = 500

MAX_RANDOM_PLAY_POSITIONS = 1e40
"""Random play is not a reference for games with more positions than this, such as 2048 on 6×6."""

RANDOM_PLAY_GAMES = 1000

ROUNDING_ERROR = 1e-12
"""A smaller gap to the optimum is the rounding of sums."""

GRAPH_SECONDS, MAX_GRAPH_POSITIONS = 3.0, 100_000
"""Limits on listing all positions to compute the mean of random play."""


def random_play_mean(game: Game[Any]) -> float | None:
    """The mean of random play in a one-player game: exact if known, else the score of 1,000 games.
    None if that takes too long, and in two-player games."""
    if game.spec.goal == "outcome" or game.spec.max_positions > MAX_RANDOM_PLAY_POSITIONS:
        return None
    cpu_game = on_cpu(game)
    # A game with far more positions than can be listed would only fill memory until time is up.
    seconds = GRAPH_SECONDS if game.spec.max_positions <= MAX_POSITIONS else 0.0
    graph = find_graph(game, seconds, max_positions=MAX_GRAPH_POSITIONS)
    exact = exact_mean(cpu_game, Random(cpu_game), graph)
    if exact is not None or game.spec.goal == "turns":
        return exact
    rng = torch.Generator().manual_seed(0)
    settings = EvaluationSettings(games=RANDOM_PLAY_GAMES)
    return evaluate(cpu_game, Random(cpu_game), settings, rng).score.value


def exact_mean(game: Game[Any], player: Player, graph: Graph | None) -> float | None:
    """The exact mean of a player's turns or score in a one-player game: from theory, or from all
    positions, the graph, if they are listed. None if it is not known."""
    if isinstance(player, Random) and game.spec.goal == "turns":
        return expected_random_turns(game)
    if graph is None or game.spec.goal != "score" or not isinstance(player, HasProbabilities):
        return None
    return graph.solve([player.probabilities]).mean


@dataclass(frozen=True)
class Reference:
    """The mean of random and of optimal play in a one-player game; None: not known.

    random_std: the standard deviation of random play.
    """

    random: float | None
    random_std: float | None
    optimal: float | None

    @classmethod
    def of(
        cls,
        game: Game[Any],
        seconds: float,
        layouts: State | None = None,
        graph: Graph | None = None,
    ) -> Reference:
        """layouts: those that are played, None for all of the game. seconds: limits solving it.
        graph: all positions, if they are listed."""
        optimal, known = None, None
        random = exact_mean(game, Random(game), graph)
        if graph is not None:
            optimal = graph.solve([None]).mean
        elif game.spec.goal == "turns":
            optimum = find_optimum(game, seconds, layouts=layouts)
            optimal = None if optimum is None else optimum.value
            known = find(game, KnownRandomPlay)
        return cls(
            random_play_mean(game) if random is None else random,
            None if known is None else known.random_turns_std(),
            optimal,
        )

    def gap(self, goal: str, mean: float) -> float | None:
        """The relative gap of a mean to the optimum, positive where play is worse."""
        gap = None if self.optimal is None else gap_to_optimum(goal, mean, self.optimal)
        return 0.0 if gap is not None and abs(gap) < ROUNDING_ERROR else gap


class References:
    """What random and optimal play reach in the metric of the game; None: not known (yet).

    is_quick: the opponent moves at once.
    optimal: on the layouts that are played, the training layouts if others are held out.
    held_out_optimal: on those held out. random needs no such distinction, because random shots take
    the same time on every layout: the order of the cells is random, and each layout has as many
    ship cells.
    """

    def __init__(
        self,
        game: Game[Any],
        opponent: Player | None,
        is_quick: bool,
        split: Split | None,
        seed: int,
    ) -> None:
        self.game, self.opponent, self.is_quick = game, opponent, is_quick
        self.split, self.seed = split, seed
        self.random: float | None = None
        self.optimal: float | None = None
        self.held_out_optimal: float | None = None

    @property
    def is_solvable(self) -> bool:
        """Whether optimal play has a value to compare with: in games of one seat."""
        return self.game.spec.seats == 1

    def compute_early_random(self) -> None:
        """Compute random play's value if that is quick."""
        game, opponent = self.game, self.opponent
        if opponent is None:
            if game.spec.goal == "turns":
                self.random = expected_random_turns(game)
        elif self.is_quick and game.spec.max_plies <= MAX_QUICK_PLIES:
            rng = make_generator(self.seed, "random", game.device)
            settings = EvaluationSettings(games=NUM_QUICK_GAMES)
            self.random = evaluate(game, Random(game), settings, rng, opponent).points

    def compute_random(self) -> None:
        """Compute random play's value, if it is not known and the game is small enough."""
        if self.random is None:
            self.random = random_play_mean(self.game)

    def solve(self, seconds: float) -> None:
        """Compute the optimum, unless it is known or takes longer than this."""
        layouts = None if self.split is None else self.split.trained_on
        if self.optimal is None:
            optimum = find_optimum(self.game, seconds, layouts=layouts)
            self.optimal = None if optimum is None else optimum.value

    def solve_held_out(self, seconds: float) -> None:
        """Compute the optimum on the held-out layouts, if there are any, in at most this time."""
        if self.split is not None:
            optimum = find_optimum(self.game, seconds, layouts=self.split.held_out)
            self.held_out_optimal = None if optimum is None else optimum.value

    def as_dict(self) -> dict[str, float]:
        """Those that are known, by name."""
        names = ("random", "optimal", "held_out_optimal")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
