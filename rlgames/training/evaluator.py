"""Evaluates the greedy policy; EVAL_METRICS lists the metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from rlgames.core.errors import ConfigError
from rlgames.core.metrics import GOAL_METRICS, Rank, direction, has_metric
from rlgames.evaluation.evaluate import Evaluation, EvaluationSettings, evaluate
from rlgames.games.capabilities import InvertibleKey, find
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.rng import Rng
from rlgames.sampling import Sampling
from rlgames.solvers.graph import MAX_GRAPH_POSITIONS, Graph, exploitability, find_graph

if TYPE_CHECKING:
    from rlgames.rollouts.holdout import Split
    from rlgames.solvers.position import Solver

FINAL_EVAL_FACTOR = 4
"""The final evaluation plays this many times the games of one during training."""

REGRET_GAMES, REGRET_POSITIONS = 100, 20_000
"""Of a measurement of mistakes: games, and positions searched for each exact value."""

WHY_NO_REGRET = (
    f"eval/regret is missing: the solver knows no value after {REGRET_POSITIONS:,} positions"
)


@dataclass(frozen=True)
class EvaluationResult:
    """The games of an evaluation, those on held-out layouts if there are any, and the metrics.

    opponent_statistics: of its play in these games, see Player.statistics.
    """

    evaluation: Evaluation
    held_out: Evaluation | None
    metrics: dict[str, float]
    opponent_statistics: dict[str, float] = field(default_factory=dict)

    def as_dict(self, games: int) -> dict[str, Any]:
        """The result of a report of the training: the metrics, and of what games they are. games:
        played before the checkpoint was saved."""
        return {
            **self.metrics,
            "exact": self.evaluation.is_exact,
            "checkpoint_games": games,
            "opponent_statistics": self.opponent_statistics,
        }


class Evaluator:
    """Evaluates the greedy policy, during training and at its end.

    opponent: in the other seat, None in a one-player game. greedy_rule: how it picks an action.
    goal_metric: what the game is about, "turns", "score" or "points". best_by: the metric that
    selects the best checkpoint: exploitability where all positions can be listed, otherwise
    goal_metric. Held-out layouts do not count for it. metrics: those that are measured.
    """

    def __init__(
        self,
        game: Game[Any],
        opponent: Player | None,
        split: Split | None,
        greedy_rule: Sampling,
        best_by: str | None,
        seed: int,
        regret_every: int | None = None,
    ) -> None:
        """Raises ConfigError if best_by is not a metric that ranks agents in the game, and for
        regret_every, games between two measurements of mistakes, without an exact solver."""
        self.game, self.opponent, self.split = game, opponent, split
        self.greedy_rule, self.seed = greedy_rule, seed
        self.graph: Graph | None = None
        is_listed = find(game, InvertibleKey) is not None and not game.spec.hidden
        if opponent is not None and is_listed and game.device.type == "cpu":
            self.graph = find_graph(game, max_positions=MAX_GRAPH_POSITIONS)
        self.goal_metric = GOAL_METRICS[game.spec.goal]
        self.best_by = best_by or ("exploitability" if self.graph else self.goal_metric)
        is_measured = {
            "grid_sum": "grid_sum" in game.measures(game.example_state()),
            "held_out_turns": split is not None,
            "exploitability": self.graph is not None,
        }
        self.metrics = tuple(
            name
            for name in EVAL_METRICS
            if has_metric(game.spec.goal, name) and is_measured.get(name, True)
        )
        self._check_best_by()
        self._solver: Solver[Any, Any] | None = None
        if regret_every:
            from rlgames.solvers.optimum import position_solver

            self._solver = position_solver(game, max_positions=REGRET_POSITIONS)
            if self._solver is None:
                raise ConfigError(
                    f"no exact solver supports these rules of game={game.spec.name}",
                    f"remove analyze_every={regret_every}",
                )

    def _check_best_by(self) -> None:
        name, hint = self.game.spec.name, f"use best_by={self.goal_metric}"
        if self.best_by == "exploitability" and self.opponent and self.graph is None:
            raise ConfigError(f"{name} is too large for best_by=exploitability", hint)
        reason = ""
        if self.best_by not in self.metrics:
            reason = f"{self.best_by} is not measured there"
        elif not direction(self.game.spec.goal, self.best_by):
            reason = f"neither more nor less {self.best_by} is better there"
        if reason:
            raise ConfigError(f"best_by={self.best_by} is not supported in {name}: {reason}", hint)

    def evaluate(self, greedy: Agent, num_games: int, stream: str) -> EvaluationResult:
        """Play games drawn from the named stream, on the layouts of training and on those held
        out."""
        split, opponent = self.split, self.opponent
        rng = Rng(self.seed, stream, self.game.device)
        layouts = None if split is None else split.trained_on
        settings = EvaluationSettings(sampled_games=num_games, layouts=layouts)
        if opponent is not None:
            opponent.reset_statistics()
        evaluation = evaluate(self.game, greedy, settings, rng, opponent)
        held_out = None
        if split is not None:
            settings = EvaluationSettings(sampled_games=num_games, layouts=split.held_out)
            held_out = evaluate(self.game, greedy, settings, rng)
        statistics = {} if self.opponent is None else self.opponent.statistics()
        result = EvaluationResult(evaluation, held_out, {}, statistics)
        result.metrics.update(
            {name: EVAL_METRICS[name](self, greedy, result) for name in self.metrics}
        )
        return result

    def regret(self, greedy: Agent) -> float | None:
        """The mean value that a move of the greedy policy loses against perfect play, as `rlgames
        analyze` counts it, with its own random stream; None if the solver knows none."""
        from rlgames.evaluation.analysis import played_moves, with_values

        assert self._solver is not None
        rng = Rng(self.seed, "regret", self.game.device)
        settings = EvaluationSettings(sampled_games=REGRET_GAMES)
        with torch.inference_mode():
            moves, _ = played_moves(self.game, greedy, self.opponent, settings, rng)
        loss = with_values(moves, self.game, self._solver).loss
        known = loss[~loss.isnan()]
        return float(known.mean()) if len(known) else None

    def better(self, metrics: dict[str, float], best: list[float] | None) -> list[float] | None:
        """The highest evaluation so far, by best_by and then by points, if this checkpoint is the
        one to select; None if an earlier one is better.

        Of equals the later one is selected: many checkpoints win all games against a weak player,
        and the last of them has learned most. Points are equal up to one standard error (Breiman et
        al. 1984), because the highest of many sampled values is chosen by luck otherwise.
        """
        sign = direction(self.game.spec.goal, self.best_by)
        candidate = [sign * metrics[self.best_by], metrics.get("points", 0.0)]
        if best is None:
            return candidate
        margin = metrics.get("points_std_error", 0.0) if self.best_by == "points" else 0.0
        is_as_good = [Rank(value + margin) for value in candidate] >= [*map(Rank, best)]
        return max(candidate, best) if is_as_good else None


def _held_out_turns(evaluator: Evaluator, greedy: Agent, result: EvaluationResult) -> float:
    assert result.held_out is not None
    return result.held_out.turns.value


def _exploitability(evaluator: Evaluator, greedy: Agent, result: EvaluationResult) -> float:
    assert evaluator.graph is not None
    return exploitability(evaluator.graph, greedy.probabilities)[0]


EVAL_METRICS: dict[str, Callable[[Evaluator, Agent, EvaluationResult], float]] = {
    "points": lambda evaluator, greedy, result: result.evaluation.points,
    "win": lambda evaluator, greedy, result: result.evaluation.outcome_rate("win").value,
    "draw": lambda evaluator, greedy, result: result.evaluation.outcome_rate("draw").value,
    "loss": lambda evaluator, greedy, result: result.evaluation.outcome_rate("loss").value,
    "turns": lambda evaluator, greedy, result: result.evaluation.turns.value,
    "score": lambda evaluator, greedy, result: result.evaluation.score.value,
    "grid_sum": lambda evaluator, greedy, result: result.evaluation.measures["grid_sum"].value,
    "held_out_turns": _held_out_turns,
    "exploitability": _exploitability,
}
"""How each evaluation computes the numbers that it logs as eval/NAME.

To add one, add it here, to core/metrics.py, which says which games have it and whether higher or
lower is better there, and to docs/metrics.md.
"""
