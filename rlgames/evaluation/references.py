"""What a player is compared with: random play and the exact optimum."""

from __future__ import annotations

from typing import Any

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.capabilities import expected_random_turns
from rlgames.games.game import Game, State
from rlgames.players.player import HasProbabilities, Player, Random
from rlgames.rng import Rng
from rlgames.solvers.graph import MAX_GRAPH_POSITIONS, Graph, find_graph

EARLY_SOLVE_SECONDS = 3.0
"""Limit on solving the game before training; solve_seconds= limits it at the end."""

MAX_QUICK_PLIES = 200
"""Games with an opponent have random play measured before training if they have at most this many
plies: that takes 0.1 s on one core."""

NUM_QUICK_GAMES = 500

MAX_RANDOM_PLAY_POSITIONS = 1e40
"""Random play is not a reference for games with more positions than this, such as 2048 on 6×6."""

RANDOM_PLAY_GAMES = 1000


def exact_mean(game: Game[Any], player: Player, graph: Graph | None) -> float | None:
    """The exact mean of a player's turns or score in a one-player game: from theory, or from all
    positions, the graph, if they are listed. None if it is not known."""
    if isinstance(player, Random) and game.spec.goal == "turns":
        return expected_random_turns(game)
    if graph is None or game.spec.goal != "score" or not isinstance(player, HasProbabilities):
        return None
    return graph.solve([player.probabilities]).mean


class References:
    """What random and optimal play reach in the metric of the game; None: not known (yet).

    optimal: on the layouts that are played, None: all of the game. held_out_optimal: on those held
    out. random needs no such distinction, because random shots take the same time on every layout:
    the order of the cells is random, and each layout has as many ship cells.
    """

    def __init__(
        self, game: Game[Any], layouts: State | None = None, held_out: State | None = None
    ) -> None:
        self.game, self._layouts, self._held_out = game, layouts, held_out
        self.random: float | None = None
        self.optimal: float | None = None
        self.held_out_optimal: float | None = None

    def compute_early_random(self, opponent: Player | None, seed: int) -> None:
        """Compute random play's value if that is quick; opponent: one that moves at once."""
        game = self.game
        if game.spec.goal == "turns":
            self.random = expected_random_turns(game)
        elif opponent is not None and game.spec.max_plies <= MAX_QUICK_PLIES:
            rng = Rng(seed, "random", game.device)
            settings = EvaluationSettings(games=NUM_QUICK_GAMES)
            self.random = evaluate(game, Random(game), settings, rng, opponent).points

    def compute_random(self, graph: Graph | None = None) -> None:
        """Compute random play's value in a one-player game, if it is not known and the game is
        small enough: exactly if possible, else the mean score of 1,000 games.

        graph: all positions, if they are listed.
        """
        game, spec = self.game.on_cpu(), self.game.spec
        if self.random is not None or spec.goal == "outcome":
            return
        if graph is None and spec.goal == "score":
            graph = find_graph(game, max_positions=MAX_GRAPH_POSITIONS)
        self.random = exact_mean(game, Random(game), graph)
        is_sampled = spec.goal == "score" and spec.max_positions <= MAX_RANDOM_PLAY_POSITIONS
        if self.random is None and is_sampled:
            rng = Rng()
            settings = EvaluationSettings(games=RANDOM_PLAY_GAMES)
            self.random = evaluate(game, Random(game), settings, rng).score.value

    def solve(self, seconds: float, graph: Graph | None = None) -> None:
        """Compute the optimum of a one-player game, unless it is known or takes longer than this.

        graph: all positions, if they are listed.
        """
        if self.optimal is not None or self.game.spec.seats == 2:
            return
        if graph is not None:
            self.optimal = graph.solve([None]).mean
        else:
            self.optimal = _find_optimum(self.game, seconds, self._layouts)

    def solve_held_out(self, seconds: float) -> None:
        """Compute the optimum on the held-out layouts, if there are any, in at most this time."""
        if self._held_out is not None:
            self.held_out_optimal = _find_optimum(self.game, seconds, self._held_out)

    def as_dict(self) -> dict[str, float]:
        """Those that are known, by name."""
        names = ("random", "optimal", "held_out_optimal")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _find_optimum(game: Game[Any], seconds: float, layouts: State | None) -> float | None:
    from rlgames.solvers.optimum import find_optimum

    optimum = find_optimum(game, seconds, layouts=layouts)
    return None if optimum is None else optimum.value
