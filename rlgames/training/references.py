"""What a run is compared with: random play and the exact optimum."""

from __future__ import annotations

from typing import Any

from rlgames.core.rng import make_generator
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate, random_play_mean
from rlgames.games.capabilities import expected_random_turns
from rlgames.games.game import Game
from rlgames.players.player import Player, Random
from rlgames.rollouts.holdout import Split
from rlgames.solvers.optimum import find_optimum

EARLY_SOLVE_SECONDS = 3.0
"""Limit on solving the game before training; solve_seconds= limits it at the end."""

MAX_QUICK_PLIES = 200
"""Games with an opponent have random play measured before training if they have at most this many
plies: that takes 0.1 s on one core."""

NUM_QUICK_GAMES = 500


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
