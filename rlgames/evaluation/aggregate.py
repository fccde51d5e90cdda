"""Statistics of agents over seeds and games; docs/statistics.md explains when to use each.

Scores are a list with one array for each game, float64 [N], one number for each seed. Agarwal et
al. (NeurIPS 2021) and Patterson et al. (JMLR 25, 2024) give the reasons for these statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.core.intervals import Interval, student_t, welch_interval

Floats = NDArray[np.float64]
Scores = Sequence[Floats]

NUM_RESAMPLES = 2000

CALIBRATION_SETS, CALIBRATION_RESAMPLES = 2000, 200
"""How many simulated experiments calibrate an interval, and the resamples of each."""

MAX_CALIBRATED_RUNS = 60
"""With more runs Student's t is accurate enough."""


@dataclass(frozen=True)
class Statistic:
    """A value with its 95% interval, None where the seeds do not say how much it varies."""

    value: float
    interval: Interval | None

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def as_dict(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "ci95": None if self.interval is None else list(self.interval),
        }


def interquartile_mean(values: Floats) -> Floats:
    """The mean [...] of the values [..., N] without the lowest and the highest quarter, rounded
    down: of fewer than four values it is the mean."""
    count = values.shape[-1]
    cut = count // 4
    return np.sort(values, -1)[..., cut : count - cut].mean(-1)


STATISTICS: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda values: values.mean(-1),
    "iqm": interquartile_mean,
}
"""Functions from the pooled scores of all runs, [..., N], to [...]."""


def aggregate(scores: Scores) -> dict[str, Statistic]:
    """The STATISTICS of the runs of all games, each run counting the same.

    The mean has Student's interval, the interquartile mean the interval of bootstrapped.
    """
    return {"mean": mean_of_runs(scores), "iqm": bootstrapped("iqm", scores)}


def mean_of_runs(scores: Scores) -> Statistic:
    """The mean of all runs, with an interval from how much the seeds of each game differ."""
    value = float(np.concatenate(scores).mean())
    return Statistic(value, _interval_of_means(value, scores))


def _interval_of_means(value: float, *agents: Scores) -> Interval | None:
    """The interval of a sum or a difference of the agents' means; None if a game has one seed."""
    variances, freedoms = [], []
    for scores in agents:
        count = sum(map(len, scores))
        for game in scores:
            if len(game) < 2:
                return None
            variances.append((len(game) / count) ** 2 * float(game.var(ddof=1)) / len(game))
            freedoms.append(len(game) - 1)
    return welch_interval(value, variances, freedoms)


def bootstrapped(name: str, scores: Scores) -> Statistic:
    """A statistic with its stratified bootstrap interval: seeds are resampled within each game.

    The interval is symmetric. Its width in standard errors of the bootstrap is the one that
    simulated normal scores with as many seeds and games need (Beran 1987, Biometrika 74, 457). The
    usual percentile interval is too short for a few seeds: with three it covers 74%.
    """
    function = STATISTICS[name]
    value = float(function(np.concatenate(scores)))
    counts = tuple(len(game) for game in scores)
    if min(counts) < 2 or all(np.ptp(game) < 1e-12 * max(1.0, abs(value)) for game in scores):
        return Statistic(value, None)
    rng = np.random.default_rng(0)
    resampled = [game[rng.integers(len(game), size=(NUM_RESAMPLES, len(game)))] for game in scores]
    error = float(function(np.concatenate(resampled, 1)).std())
    if error == 0:
        return Statistic(value, None)
    half = _standard_errors(name, counts) * error
    return Statistic(value, (value - half, value + half))


@lru_cache
def _standard_errors(name: str, counts: tuple[int, ...]) -> float:
    """Half the width of an interval in standard errors of the bootstrap; counts: seeds by game."""
    function, freedom = STATISTICS[name], sum(counts) - len(counts)
    # The bootstrap divides a variance by the number of seeds, Student's t by one less.
    shrinkage = math.sqrt(freedom / sum(counts))
    if sum(counts) > MAX_CALIBRATED_RUNS:
        return student_t(freedom) / shrinkage
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((CALIBRATION_SETS, count)) for count in counts]
    total = np.zeros(CALIBRATION_SETS)
    total_of_squares = np.zeros(CALIBRATION_SETS)
    for _ in range(CALIBRATION_RESAMPLES):
        resampled = [
            np.take_along_axis(game, rng.integers(game.shape[1], size=game.shape), 1)
            for game in sets
        ]
        values = function(np.concatenate(resampled, 1))
        total += values
        total_of_squares += values**2
    mean = total / CALIBRATION_RESAMPLES
    error = np.sqrt(np.maximum(total_of_squares / CALIBRATION_RESAMPLES - mean**2, 1e-30))
    return float(np.quantile(np.abs(function(np.concatenate(sets, 1))) / error, 0.95))


def difference_of_means(first: Scores, second: Scores) -> Statistic:
    """The mean of the first agent's runs minus the second's, with Welch's interval."""
    value = float(np.concatenate(first).mean() - np.concatenate(second).mean())
    return Statistic(value, _interval_of_means(value, first, second))


def normalized(values: Floats, random: float, optimum: float) -> Floats:
    """0 is random play, 1 the optimum, whether higher or lower values are better."""
    return (values - random) / (optimum - random)
