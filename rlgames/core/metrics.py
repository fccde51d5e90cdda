"""The metrics of evaluations: which games have them, and whether higher or lower values are better.

Everything that ranks agents asks here: the selection of checkpoints, searches, reports and views.
Values that differ by rounding only are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from rlgames.core.errors import ConfigError
from rlgames.core.text import kind_of_value


@dataclass(frozen=True)
class Metric:
    """A metric of an evaluation.

    directions: by the goal of the game (Spec.goal) +1 where higher is better, -1 where lower is
        better and 0 where neither is; games with another goal do not have the metric.
    label: the metric with its unit, for the axis of a figure.
    is_headline: it may select the best checkpoint, and is shown while a run trains.
    """

    directions: Mapping[str, int]
    label: str
    is_headline: bool = False


METRICS = {
    # 2048 ends when no move is left, so a longer game is a better one.
    "turns": Metric({"turns": -1, "score": 1, "outcome": 0}, "turns per game", is_headline=True),
    "score": Metric({"score": 1}, "score per game", is_headline=True),
    "grid_sum": Metric({"score": 1}, "sum of the final grid"),
    "held_out_turns": Metric({"turns": -1}, "turns per held-out game"),
    "points": Metric({"outcome": 1}, "fraction of points won", is_headline=True),
    "win": Metric({"outcome": 1}, "fraction of games won"),
    "draw": Metric({"outcome": 0}, "fraction of games drawn"),
    "loss": Metric({"outcome": -1}, "fraction of games lost"),
    "regret": Metric({"turns": -1, "score": -1, "outcome": -1}, "value lost per move"),
    "exploitability": Metric({"outcome": -1}, "exploitability (points per game)", is_headline=True),
}

GOAL_METRICS = {"turns": "turns", "score": "score", "outcome": "points"}
"""The metric that a game is about, by its goal."""

TOLERANCE = 1e-9
"""Relative to a value plus 1: smaller differences are the rounding of sums."""

HEADLINES = tuple(name for name, metric in METRICS.items() if metric.is_headline)


def has_metric(goal: str, name: str) -> bool:
    """Whether games with this goal have a metric."""
    return name in METRICS and goal in METRICS[name].directions


def direction(goal: str, name: str) -> int:
    """+1 where higher values are better, -1 where lower are, 0 where neither or unknown."""
    return METRICS[name].directions[goal] if has_metric(goal, name) else 0


def goal_of(metric: object) -> str:
    """The goal of games that are about a metric; empty for anything else."""
    return next((goal for goal, name in GOAL_METRICS.items() if name == metric), "")


def are_equal(first: Any, second: Any) -> Any:
    """Whether two finite values differ by rounding only, by element for arrays and tensors."""
    return abs(first - second) < TOLERANCE * (1 + abs(second))


def _compare(first: float, second: float) -> int:
    return 0 if are_equal(first, second) else (first > second) - (first < second)


Rank = cmp_to_key(_compare)
"""A sort key of a number: values that differ only by rounding are equal."""


def gap_to_optimum(goal: str, value: float, optimum: float) -> float | None:
    """How much worse than the optimum a game's own metric is, as a fraction of the optimum.

    None for an optimum of 0 and for an unknown goal.
    """
    sign = direction(goal, GOAL_METRICS.get(goal, ""))
    if not sign or not optimum:
        return None
    return 0.0 if are_equal(value, optimum) else sign * (optimum - value) / abs(optimum)


def as_metrics(name: str, returned: Any) -> dict[str, float]:
    """What a user's part returned, as numbers by name; a tensor or an array of one number counts as
    this number. name: of the part. Raises ConfigError for anything else."""
    if not isinstance(returned, dict):
        shown = kind_of_value(returned)
        raise ConfigError(f"{name} returned {shown} as metrics", "expected a dict of numbers")
    return {key: _as_number(name, key, value) for key, value in returned.items()}


def _as_number(name: str, key: Any, value: Any) -> float:
    if not isinstance(key, str):
        raise ConfigError(f"{name} returned a metric with the name {key!r}", "names are texts")
    if type(value) is float:
        return value
    shape = getattr(value, "shape", None)
    if shape is not None and math.prod(shape) == 1:
        value = value.item()
    if isinstance(value, bool | int | float):
        return float(value)
    shown = f"the shape {list(shape)}" if shape else repr(value)[:40]
    raise ConfigError(f"{name} returned {shown} as the metric {key!r}", "expected a number")
