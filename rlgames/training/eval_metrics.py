"""What an evaluation measures.

To add a metric, add it to EVAL_METRICS, to core/metrics.py and to docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlgames.core.metrics import has_metric
from rlgames.evaluation.evaluate import Evaluation
from rlgames.games.capabilities import measures
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.rollouts.holdout import Split
from rlgames.solvers.graph import Graph, exploitability


class Evaluated(Protocol):
    """What is evaluated: a greedy agent in a game, and what there is to compare it with."""

    game: Game[Any]
    greedy: Agent
    opponent: Player | None
    split: Split | None
    graph: Graph | None


@dataclass(frozen=True)
class EvaluationResult:
    """The games of an evaluation, those on held-out layouts if there are any, and the metrics.

    opponent_statistics: of its play in these games, see Player.statistics.
    """

    evaluation: Evaluation
    held_out: Evaluation | None
    metrics: dict[str, float]
    opponent_statistics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EvalMetric:
    """A number that each evaluation logs as eval/NAME.

    core/metrics.py says which games have it, and whether higher or lower is better there.
    is_measured: whether an evaluation of such a game computes it.
    """

    name: str
    compute: Callable[[Evaluated, EvaluationResult], float]
    is_measured: Callable[[Evaluated], bool] = lambda subject: True

    def applies(self, subject: Evaluated) -> bool:
        return has_metric(subject.game.spec.goal, self.name) and self.is_measured(subject)


def _share(name: str) -> EvalMetric:
    return EvalMetric(name, lambda subject, result: result.evaluation.outcome_rate(name).rate)


def _held_out_turns(subject: Evaluated, result: EvaluationResult) -> float:
    assert result.held_out is not None
    return result.held_out.turns.mean


def _exploitability(subject: Evaluated, result: EvaluationResult) -> float:
    assert subject.graph is not None
    return exploitability(subject.graph, subject.greedy.probabilities)[0]


EVAL_METRICS = (
    EvalMetric("points", lambda subject, result: result.evaluation.points),
    *map(_share, ("win", "draw", "loss")),
    EvalMetric("turns", lambda subject, result: result.evaluation.turns.mean),
    EvalMetric("score", lambda subject, result: result.evaluation.score.mean),
    EvalMetric(
        "grid_sum",
        lambda subject, result: result.evaluation.measures["grid_sum"].mean,
        lambda subject: "grid_sum" in measures(subject.game, subject.game.example_state()),
    ),
    EvalMetric("held_out_turns", _held_out_turns, lambda subject: subject.split is not None),
    EvalMetric("exploitability", _exploitability, lambda subject: subject.graph is not None),
)
