"""Numbers with their 95% intervals. docs/statistics.md explains them, and says how often each
contains the truth.

Agarwal et al. (NeurIPS 2021) and Patterson et al. (JMLR 25, 2024) give the reasons for the
statistics over seeds. Reports use this file, which therefore does not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Interval = tuple[float, float]

Scores = Sequence[Floats]
"""For each game one number per seed, float64 [N]."""

Z_95 = 1.959964
"""The two-sided 95% quantile of the normal distribution."""

MIN_GAMES = 20
"""Means of fewer games have no interval: none contains the truth often enough when few games of a
skewed distribution are known."""

NUM_RESAMPLES = 2000

CALIBRATION_SETS, CALIBRATION_RESAMPLES = 2000, 200
"""How many simulated experiments calibrate an interval, and the resamples of each."""

MAX_CALIBRATED_RUNS = 60
"""With more runs Student's t is accurate enough."""


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


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval.

    interval: None if the value is exact, and if the games or seeds do not show how much it varies.
    count: the games, seeds or moves that it is of. is_exact: all ways the games can go were played.
    spread: of a mean of games, the median, the lowest and the highest value.
    """

    value: float
    interval: Interval | None
    count: int
    is_exact: bool = False
    spread: tuple[float, float, float] | None = None

    @classmethod
    def of_games(
        cls,
        value: Tensor,
        weight: Tensor,
        stratum: Tensor | None = None,
        is_exact: bool = False,
    ) -> Estimate:
        """The mean of one number per game; value, weight, stratum: as in mean_interval."""
        values, weights = np.asarray(value), np.asarray(weight)
        strata = None if stratum is None else np.asarray(stratum)
        order = values.argsort(kind="stable")
        place = int((weights[order].cumsum() < 0.5 - 1e-12).sum())
        median = float(values[order[min(place, len(values) - 1)]])
        return cls(
            value=float((weight * value).sum()),
            interval=None if is_exact else mean_interval(values, weights, strata),
            count=len(values),
            is_exact=is_exact,
            spread=(median, float(values.min()), float(values.max())),
        )

    @classmethod
    def of_rate(cls, *parts: tuple[int, int], is_exact: bool = False) -> Estimate:
        """The mean rate, correctly rounded, of several parts, such as the two seats, whose numbers
        of games were fixed in advance.

        parts: how many games count, and of how many. Parts without games are left out.

        Wilson's intervals of the parts, combined by the squares of their widths (Zou and Donner
        2008, Statistics in Medicine 27, 1693). A Wilson interval of all games would be too wide if
        the parts differ: a player who wins all games in one seat varies in the other only.
        """
        parts = tuple(part for part in parts if part[1])
        share = 1 / len(parts)
        rate = float(sum((Fraction(*part) for part in parts), Fraction()) / len(parts))
        interval, below, above = wilson_interval(*parts[0]), 0.0, 0.0
        if len(parts) > 1:
            for count, games in parts:
                low, high = wilson_interval(count, games)
                below += (share * (count / games - low)) ** 2
                above += (share * (high - count / games)) ** 2
            interval = max(0.0, rate - math.sqrt(below)), min(1.0, rate + math.sqrt(above))
        games = sum(part[1] for part in parts)
        return cls(rate, None if is_exact else interval, games, is_exact)

    @classmethod
    def of_moves(cls, counted: Floats, total: Floats, is_exact: bool = False) -> Estimate:
        """The rate of moves whose games are independent, though the moves of one game may not be.

        counted, total: [G], the moves that count and all moves of each game, one at least.

        Wilson's interval for as many moves as would vary like that if they were independent. If no
        game differs from another, each counts as one move. None for fewer than two games.
        """
        hits, moves = float(counted.sum()), float(total.sum())
        rate, games, interval = hits / moves, len(total), None
        if games > 1 and (total == 1).all():
            interval = wilson_interval(int(hits), games)
        elif games > 1:
            square = float(((counted - rate * total) ** 2).sum())
            variance = square * games / (games - 1) / moves**2
            size = min(moves, rate * (1 - rate) / variance) if variance > 0 else float(games)
            interval = wilson_interval(size if hits == moves else rate * size, size)
        return cls(rate, None if is_exact else interval, int(moves), is_exact)

    @classmethod
    def of_seeds(cls, scores: Scores, statistic: str = "mean") -> Estimate:
        """One of STATISTICS over the runs of all games, each run counting the same.

        The mean has Student's interval, from how much the seeds of each game differ, and the
        interquartile mean a bootstrap interval; none if a game has one seed.
        """
        value = float(STATISTICS[statistic](np.concatenate(scores)))
        find_interval = _student_interval if statistic == "mean" else _bootstrap_interval
        return cls(value, find_interval(value, scores), sum(map(len, scores)))

    @classmethod
    def difference(cls, first: Scores, second: Scores) -> Estimate:
        """The mean of the first agent's runs minus the second's, with Welch's interval."""
        value = float(np.concatenate(first).mean() - np.concatenate(second).mean())
        count = sum(map(len, (*first, *second)))
        return cls(value, _student_interval(value, first, second), count)

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def as_dict(self, name: str = "mean") -> dict[str, Any]:
        """The value, by its name in JSON, its interval, and the spread if it has one."""
        spread = zip(("median", "min", "max"), self.spread or (), strict=False)
        interval = None if self.interval is None else list(self.interval)
        return {name: self.value, "ci95": interval, **dict(spread)}


def normalized(values: Floats, random: float, optimum: float) -> Floats:
    """0 is random play, 1 the optimum, whether higher or lower values are better."""
    return (values - random) / (optimum - random)


def mean_interval(
    value: Floats, weight: Floats | None = None, stratum: NDArray[np.int64] | None = None
) -> Interval | None:
    """The interval of a mean of independent values [N], such as the lengths of games.

    weight: [N], adds up to 1; equal by default. stratum: [N], numbers from 0; the values of a
    stratum, such as the games in one seat, have one distribution, and their number was fixed in
    advance. By default all values are of one stratum.

    Student's t with the degrees of freedom of Satterthwaite (1946), and the correction for
    skewness of Hall (1992, JRSS B 54, 221), without which the lengths of 20 games of battleship
    are covered in 92% of cases. None for fewer than MIN_GAMES values, for a stratum with a single
    value, and if all values of each stratum are equal: then nothing is known of how they vary.
    """
    if len(value) < MIN_GAMES:
        return None
    stratum = np.zeros(len(value), np.int64) if stratum is None else stratum
    count = np.bincount(stratum)
    if (count == 1).any():
        return None
    weight = np.full(len(value), 1 / len(value)) if weight is None else weight
    mean = float((weight * value).sum())
    is_used = count > 0
    count = np.maximum(count, 1)
    share = np.bincount(stratum, weight)
    deviation = value - (np.bincount(stratum, value) / count)[stratum]
    square = np.bincount(stratum, deviation**2) / np.maximum(count - 1, 1)
    variances = (share**2 * square / count)[is_used]
    variance = float(variances.sum())
    if _is_zero(variance, mean):
        return None
    freedom = variance**2 / float((variances**2 / (count[is_used] - 1)).sum())
    cube = np.bincount(stratum, deviation**3) / count
    skewness = float((share**3 * cube / count**2).sum()) / variance**1.5
    t, error = student_t(freedom), math.sqrt(variance)
    return mean - error * _unskewed(t, skewness), mean - error * _unskewed(-t, skewness)


def _unskewed(t: float, skewness: float) -> float:
    """The inverse of Hall's x + s x²/3 + s² x³/27 + s/6 at t, where s is the skewness of the
    mean: the mean's error in standard errors that a symmetric statistic would show as t."""
    if abs(skewness) < 1e-9:
        return t
    return 3 / skewness * float(np.cbrt(1 + skewness * (t - skewness / 6)) - 1)


def wilson_interval(count: float, games: float) -> Interval:
    """The interval of a rate, by Wilson (1927): within [0, 1], with a width even for none or all
    of the games."""
    z, n, p = Z_95, games, count / games
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if count == 0 else center - half_width
    high = 1.0 if count == games else center + half_width
    return low, high


def _student_interval(value: float, *agents: Scores) -> Interval | None:
    """The interval of a sum or a difference of the agents' means, by Student's t with the degrees
    of freedom of Welch (1947) and Satterthwaite (1946); None if a game has one seed."""
    variance, terms = 0.0, 0.0
    for scores in agents:
        count = sum(map(len, scores))
        for game in scores:
            if len(game) < 2:
                return None
            part = (len(game) / count) ** 2 * float(game.var(ddof=1)) / len(game)
            variance, terms = variance + part, terms + part**2 / (len(game) - 1)
    if _is_zero(variance, value):
        return None
    half = student_t(variance**2 / terms) * math.sqrt(variance)
    return value - half, value + half


def _is_zero(variance: float, mean: float) -> bool:
    """Whether a variance is only rounding."""
    return variance <= 1e-24 * max(1.0, mean**2)


def student_t(freedom: float) -> float:
    """The 97.5% quantile of Student's t with this many degrees of freedom, at least 1, to five
    digits."""
    # t = √freedom · tan(angle), where the density of the angle is cos(angle)^(freedom - 1).
    angles = np.linspace(0.0, min(math.pi / 2, 12 / math.sqrt(freedom)), 4001)
    share = np.cumsum(np.cos((angles[1:] + angles[:-1]) / 2) ** (freedom - 1))
    angle = float(np.interp(0.95 * share[-1], share, angles[1:]))
    return math.sqrt(freedom) * math.tan(angle)


def _bootstrap_interval(value: float, scores: Scores) -> Interval | None:
    """The stratified bootstrap interval of an interquartile mean: seeds are resampled within each
    game.

    The interval is symmetric. Its width in standard errors of the bootstrap is the one that
    simulated normal scores with as many seeds and games need (Beran 1987, Biometrika 74, 457). The
    usual percentile interval is too short for a few seeds: with three it covers 74%.
    """
    counts = tuple(len(game) for game in scores)
    if min(counts) < 2 or all(np.ptp(game) < 1e-12 * max(1.0, abs(value)) for game in scores):
        return None
    rng = np.random.default_rng(0)
    resampled = [game[rng.integers(len(game), size=(NUM_RESAMPLES, len(game)))] for game in scores]
    error = float(interquartile_mean(np.concatenate(resampled, 1)).std())
    if error == 0:
        return None
    half = _standard_errors(counts) * error
    return value - half, value + half


@lru_cache
def _standard_errors(counts: tuple[int, ...]) -> float:
    """Half the width of an interval in standard errors of the bootstrap; counts: seeds by game."""
    freedom = sum(counts) - len(counts)
    if sum(counts) > MAX_CALIBRATED_RUNS:
        # The bootstrap divides a variance by the number of seeds, Student's t by one less.
        return student_t(freedom) / math.sqrt(freedom / sum(counts))
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((CALIBRATION_SETS, count)) for count in counts]
    total = np.zeros(CALIBRATION_SETS)
    total_of_squares = np.zeros(CALIBRATION_SETS)
    for _ in range(CALIBRATION_RESAMPLES):
        resampled = [
            np.take_along_axis(game, rng.integers(game.shape[1], size=game.shape), 1)
            for game in sets
        ]
        values = interquartile_mean(np.concatenate(resampled, 1))
        total += values
        total_of_squares += values**2
    mean = total / CALIBRATION_RESAMPLES
    error = np.sqrt(np.maximum(total_of_squares / CALIBRATION_RESAMPLES - mean**2, 1e-30))
    scores = interquartile_mean(np.concatenate(sets, 1))
    return float(np.quantile(np.abs(scores) / error, 0.95))
