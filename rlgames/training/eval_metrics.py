"""What an evaluation measures: to add a metric, add it to EVAL_METRICS and to docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

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
    """The games of an evaluation, those on held-out layouts if there are any, and the metrics."""

    evaluation: Evaluation
    held_out: Evaluation | None
    metrics: dict[str, float]


def _always(subject: Evaluated) -> bool:
    return True


def _never(subject: Evaluated) -> bool:
    return False


@dataclass(frozen=True)
class EvalMetric:
    """A number that each evaluation logs as eval/NAME, and the final one as final/NAME.

    applies: whether the game has it. lower_is_better: in that game, for a search of
    hyperparameters.
    """

    name: str
    compute: Callable[[Evaluated, EvaluationResult], float]
    applies: Callable[[Evaluated], bool] = _always
    lower_is_better: Callable[[Evaluated], bool] = _never


def _has_opponent(subject: Evaluated) -> bool:
    return subject.opponent is not None


def _points(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.points


def _share(name: str) -> Callable[[Evaluated, EvaluationResult], float]:
    return lambda subject, result: result.evaluation.outcome_rate(name).rate


def _turns(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.turns.mean


def _are_fewer_turns_better(subject: Evaluated) -> bool:
    return subject.game.spec.goal != "score"  # longer games have higher scores


def _score(subject: Evaluated, result: EvaluationResult) -> float:
    return result.evaluation.score.mean


def _has_score(subject: Evaluated) -> bool:
    return subject.opponent is None and subject.game.spec.goal != "turns"


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
    EvalMetric("points", _points, _has_opponent),
    EvalMetric("win", _share("win"), _has_opponent),
    EvalMetric("draw", _share("draw"), _has_opponent),
    EvalMetric("loss", _share("loss"), _has_opponent, _always),
    EvalMetric("turns", _turns, _always, _are_fewer_turns_better),
    EvalMetric("score", _score, _has_score),
    EvalMetric("held_out_turns", _held_out_turns, _holds_layouts_out, _always),
    EvalMetric("exploitability", _exploitability, _has_graph, _always),
)
