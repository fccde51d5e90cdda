"""What an evaluation measures: to add a metric, add it to EVAL_METRICS and to docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlgames.evaluation.evaluate import Evaluation
from rlgames.solvers.exploitability import exploitability

if TYPE_CHECKING:
    from rlgames.training.evaluator import Evaluator


@dataclass(frozen=True)
class EvaluationResult:
    """The games of an evaluation, those on held-out layouts if there are any, and the metrics."""

    evaluation: Evaluation
    held_out: Evaluation | None
    metrics: dict[str, float]


def _always(evaluator: Evaluator) -> bool:
    return True


def _never(evaluator: Evaluator) -> bool:
    return False


@dataclass(frozen=True)
class EvalMetric:
    """A number that each evaluation logs as eval/NAME, and the final one as final/NAME.

    applies: whether the evaluator's game has it. lower_is_better: in that game, for a search of
    hyperparameters.
    """

    name: str
    compute: Callable[[Evaluator, EvaluationResult], float]
    applies: Callable[[Evaluator], bool] = _always
    lower_is_better: Callable[[Evaluator], bool] = _never


def _has_opponent(evaluator: Evaluator) -> bool:
    return evaluator.opponent is not None


def _points(evaluator: Evaluator, result: EvaluationResult) -> float:
    return result.evaluation.points


def _share(name: str) -> Callable[[Evaluator, EvaluationResult], float]:
    return lambda evaluator, result: result.evaluation.outcome_rate(name).rate


def _turns(evaluator: Evaluator, result: EvaluationResult) -> float:
    return result.evaluation.turns.mean


def _are_fewer_turns_better(evaluator: Evaluator) -> bool:
    return evaluator.game.spec.goal != "score"  # longer games have higher scores


def _score(evaluator: Evaluator, result: EvaluationResult) -> float:
    return result.evaluation.score.mean


def _has_score(evaluator: Evaluator) -> bool:
    return evaluator.opponent is None and evaluator.game.spec.goal != "turns"


def _held_out_turns(evaluator: Evaluator, result: EvaluationResult) -> float:
    assert result.held_out is not None
    return result.held_out.turns.mean


def _holds_layouts_out(evaluator: Evaluator) -> bool:
    return evaluator.split is not None


def _exploitability(evaluator: Evaluator, result: EvaluationResult) -> float:
    assert evaluator.graph is not None
    return exploitability(evaluator.graph, evaluator.greedy.probabilities)[0]


def _has_graph(evaluator: Evaluator) -> bool:
    return evaluator.graph is not None


EVAL_METRICS = (
    EvalMetric("points", _points, _has_opponent),
    EvalMetric("win", _share("win"), _has_opponent),
    EvalMetric("draw", _share("draw"), _has_opponent),
    EvalMetric("loss", _share("loss"), _has_opponent, _always),
    EvalMetric("turns", _turns, _always, _are_fewer_turns_better),
    EvalMetric("score", _score, _has_score),
    EvalMetric("held_out_turns", _held_out_turns, _holds_layouts_out, _always),
    EvalMetric("exploitability", _exploitability, _has_graph, _always),
)
