"""What an evaluation measures.

To add a metric, add it to EVAL_METRICS, to core/metrics.py and to docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlgames.core.metrics import has_metric
from rlgames.evaluation.evaluate import Evaluation
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.rollouts.holdout import Split
from rlgames.solvers.exploitability import exploitability
from rlgames.solvers.graph import Graph


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


def _always(subject: Evaluated) -> bool:
    return True


@dataclass(frozen=True)
class EvalMetric:
    """A number that each evaluation logs as eval/NAME.

    core/metrics.py says which games have it, and whether higher or lower is better there.
    is_measured: whether an evaluation of such a game computes it.
    """

    name: str
    compute: Callable[[Evaluated, EvaluationResult], float]
    is_measured: Callable[[Evaluated], bool] = _always

    def applies(self, subject: Evaluated) -> bool:
        return has_metric(subject.game.spec.goal, self.name) and self.is_measured(subject)


def _points(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.points


def _share(name: str) -> Callable[[Evaluated, EvaluationResult], float]:
    return lambda subject, result: result.evaluation.outcome_rate(name).rate


def _turns(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.turns.mean


def _score(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.score.mean


def _grid_sum(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.measures["grid_sum"].mean


def _has_grid_sum(subject: Evaluated) -> bool:
    return "grid_sum" in subject.game.measures(subject.game.example_state())


def _held_out_turns(subject: Evaluated, result: EvaluationResult) -> float:
    assert result.held_out is not None
    return result.held_out.turns.mean


def _holds_layouts_out(subject: Evaluated) -> bool:
    return subject.split is not None


def _exploitability(subject: Evaluated, result: EvaluationResult) -> float:
    assert subject.graph is not None
    return exploitability(subject.graph, subject.greedy.probabilities)[0]


def _has_graph(subject: Evaluated) -> bool:
    return subject.graph is not None


EVAL_METRICS = (
    EvalMetric("points", _points),
    EvalMetric("win", _share("win")),
    EvalMetric("draw", _share("draw")),
    EvalMetric("loss", _share("loss")),
    EvalMetric("turns", _turns),
    EvalMetric("score", _score),
    EvalMetric("grid_sum", _grid_sum, _has_grid_sum),
    EvalMetric("held_out_turns", _held_out_turns, _holds_layouts_out),
    EvalMetric("exploitability", _exploitability, _has_graph),
)
