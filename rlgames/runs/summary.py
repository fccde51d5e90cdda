"""Compares runs: those that differ only in their seeds form one row, with means."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rlgames.runs.files import LOWER_IS_BETTER, finite_or_none


@dataclass(frozen=True)
class RunSummary:
    """What the files of a run say. settings: its flattened config. games: played so far.

    figure: the metric of its game; best_by: the one that selects its best checkpoint. results: its
    final metrics, empty unless it is done. figure, best_by and seconds are None if unknown.
    """

    path: Path
    status: str
    config: dict[str, Any]
    settings: dict[str, Any]
    figure: str | None
    best_by: str | None
    results: dict[str, float]
    games: int
    seconds: float | None

    @property
    def game(self) -> str:
        """The game with its rules, as text: metrics of different games cannot be compared."""
        return as_text(self.config.get("game"))

    @property
    def rank(self) -> tuple[bool, float, float]:
        """A sort key: the best run comes first."""
        return sort_key(self.best_by, self.results)


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds.

    half: half the width of its 95 % interval by Student's t, None for a single seed. count: the
    number of seeds.
    """

    mean: float
    half: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> SeedMean:
        half = None
        if len(values) > 1:
            half = student_t(len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return cls(fmean(values), half, len(values))

    def as_dict(self) -> dict[str, Any]:
        interval = None
        if self.half is not None:
            interval = [self.mean - self.half, self.mean + self.half]
        return {"mean": self.mean, "ci95": interval, "n": self.count}


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seeds, the best first."""

    runs: list[RunSummary]

    @property
    def first(self) -> RunSummary:
        return self.runs[0]

    @property
    def by_seed(self) -> list[list[RunSummary]]:
        """The runs of each seed; a repeated run adds nothing to a mean over seeds."""
        seeds: dict[str, list[RunSummary]] = {}
        for run in self.runs:
            seeds.setdefault(as_text(run.settings.get("seed")), []).append(run)
        return list(seeds.values())

    @property
    def results(self) -> dict[str, SeedMean]:
        """Means over seeds of the final metrics, of those runs that have them."""
        names = dict.fromkeys(name for run in self.runs for name in run.results)
        means = {}
        for name in names:
            values_by_seed = [
                [run.results[name] for run in runs if name in run.results] for runs in self.by_seed
            ]
            means[name] = SeedMean.of([fmean(values) for values in values_by_seed if values])
        return means

    @property
    def gap(self) -> float | None:
        """How much worse than the optimum, as a fraction of it."""
        figure, results = self.first.figure or "", self.results
        if figure not in results or "optimal" not in results or not results["optimal"].mean:
            return None
        optimal = results["optimal"].mean
        excess = results[figure].mean - optimal
        return (excess if figure in LOWER_IS_BETTER else -excess) / abs(optimal)

    @property
    def seconds(self) -> float | None:
        """The mean time of a run."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        return fmean(known) if known else None

    @property
    def status(self) -> str:
        names = [run.status for run in self.runs]
        if len(names) == 1:
            run, games = self.first, finite_or_none(self.first.settings.get("games"))
            fraction = f" at {min(run.games / games, 1):.0%}" if games and games > 0 else ""
            return names[0] if names[0] in ("done", "unknown") else names[0] + fraction
        kinds = sorted(set(names))
        return kinds[0] if len(kinds) == 1 else ", ".join(f"{names.count(k)} {k}" for k in kinds)

    @property
    def rank(self) -> tuple[bool, float, float]:
        means = {name: result.mean for name, result in self.results.items()}
        return sort_key(self.first.best_by, means)

    @property
    def order(self) -> tuple[bool, str, tuple[bool, float, float]]:
        """A sort key: by game, then the best first; unreadable runs come last."""
        return not self.first.config, self.first.game, self.rank


@dataclass(frozen=True)
class Report:
    """A comparison of runs. keys: the settings that differ between them. figures: the results that
    are shown, those that select checkpoints first. best: the best run of each game."""

    runs: list[RunSummary]
    rows: list[Row]
    keys: list[str]
    figures: list[str]
    best: list[RunSummary]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        return {
            "runs": [
                {
                    "path": str(run.path),
                    "status": run.status,
                    "config": run.config,
                    "results": run.results,
                    "games": run.games,
                    "seconds": run.seconds,
                }
                for run in self.runs
            ],
            "rows": [
                {
                    "config": {key: row.first.settings.get(key) for key in self.keys},
                    "runs": [str(run.path) for run in row.runs],
                    "status": row.status,
                    "results": {name: mean.as_dict() for name, mean in row.results.items()},
                    "gap_to_optimal": row.gap,
                    "seconds": row.seconds,
                }
                for row in self.rows
            ],
            "best": [str(run.path) for run in self.best],
        }


def sort_key(best_by: str | None, results: dict[str, float]) -> tuple[bool, float, float]:
    """A key by which the best sorts first, by best_by and then by points; runs without that metric
    come last."""
    if best_by not in results:
        return True, 0.0, 0.0
    value = results[best_by]
    return False, value if best_by in LOWER_IS_BETTER else -value, -results.get("points", 0.0)


def as_text(value: Any) -> str:
    """A value as text, equal for equal values."""
    return json.dumps(value, sort_keys=True)


@lru_cache
def student_t(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with this many degrees of freedom, at least 1.

    By bisection of its exact distribution, Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    low, high = 0.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _probability_within(middle, freedom) < 0.95 else (low, middle)
    return high


def _probability_within(t: float, freedom: int) -> float:
    """The probability that Student's t lies between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    term, total = (1.0, 0.0) if freedom % 2 == 0 else (math.cos(angle), 0.0)
    for power in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    if freedom % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)
