"""Compares runs: those that differ only in their seeds form one row, with means."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rlgames.core.intervals import student_t
from rlgames.core.metrics import direction, gap_to_optimum, goal_of
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.runs.run_info import RunInfo

FINAL_PREFIX = "final/"
"""Before the name of a figure: that of the final network, not of the best checkpoint."""


@dataclass(frozen=True, kw_only=True)
class RunSummary(RunInfo):
    """A run by its files.

    status: also "died" for a run that was killed. damage: why the run is damaged; nothing else is
    then known. settings: the flattened config. log: the lines of metrics.jsonl, empty if they were
    not read. best_so_far, latest: of the evaluations of a run that is not done, the best one by
    best_by and the last.
    """

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, float]] = field(default_factory=list)
    best_so_far: dict[str, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    damage: str = ""

    @cached_property
    def game(self) -> str:
        """The game with its rules, as text: metrics of different games cannot be compared."""
        return as_text(self.config.get("game"))

    @property
    def rank(self) -> tuple[bool, float, float]:
        """A sort key: the best run comes first."""
        return sort_key(self, self.results)


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds.

    half: half the width of its 95% interval by Student's t. None for a single seed, and if all
    seeds have the same value: they may all have reached the optimum, or be alike by chance, and an
    interval without a width would claim to know. count: the number of seeds.
    """

    mean: float
    half: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> SeedMean:
        half = None
        if len(values) > 1 and not math.isclose(min(values), max(values), rel_tol=1e-12):
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
        """Means over seeds of the results of the best checkpoints, of those runs that have them."""
        return self._means(lambda run: run.results)

    @property
    def final_results(self) -> dict[str, SeedMean]:
        """The same of the final networks."""
        return self._means(lambda run: run.final_results)

    def mean_of(self, figure: str) -> SeedMean | None:
        """The mean of a figure of the best checkpoints or, as final/NAME, of the final networks."""
        if figure.startswith(FINAL_PREFIX):
            return self.final_results.get(figure.removeprefix(FINAL_PREFIX))
        return self.results.get(figure)

    def so_far(self, figure: str) -> float | None:
        """The mean of a figure over the runs while none of them is done; None once one is.

        It is taken from the best evaluations during training or, for final/NAME, the latest ones.
        """
        is_final, name = figure.startswith(FINAL_PREFIX), figure.removeprefix(FINAL_PREFIX)
        if self.mean_of(figure) is not None:
            return None
        values = [run.latest if is_final else run.best_so_far for run in self.runs]
        known = [value[name] for value in values if name in value]
        return fmean(known) if known else None

    def _means(self, results_of: Callable[[RunSummary], dict[str, float]]) -> dict[str, SeedMean]:
        names = dict.fromkeys(name for run in self.runs for name in results_of(run))
        means = {}
        for name in names:
            values_by_seed = [
                [results_of(run)[name] for run in runs if name in results_of(run)]
                for runs in self.by_seed
            ]
            means[name] = SeedMean.of([fmean(values) for values in values_by_seed if values])
        return means

    @property
    def gap(self) -> float | None:
        """How much worse than the optimum the best checkpoint is, as a fraction of the optimum."""
        return self._gap(self.results)

    @property
    def final_gap(self) -> float | None:
        """The same of the final network."""
        return self._gap(self.final_results)

    def _gap(self, results: dict[str, SeedMean]) -> float | None:
        figure, optimal = self.first.figure, self.results.get("optimal")
        if figure not in results or optimal is None:
            return None
        return gap_to_optimum(goal_of(figure), results[figure].mean, optimal.mean)

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
            return names[0] if names[0] in ("done", "damaged") else names[0] + fraction
        kinds = sorted(set(names))
        return kinds[0] if len(kinds) == 1 else ", ".join(f"{names.count(k)} {k}" for k in kinds)

    @property
    def rank(self) -> tuple[bool, float, float]:
        means = {name: result.mean for name, result in self.results.items()}
        return sort_key(self.first, means)

    @property
    def order(self) -> tuple[bool, str, tuple[bool, float, float]]:
        """A sort key: by game, then the best first; damaged runs come last."""
        return bool(self.first.damage), self.first.game, self.rank


@dataclass(frozen=True)
class Report:
    """A comparison of runs.

    runs: without the damaged ones. rows: damaged runs have a row each, at the end. keys: the
    settings that differ between runs. figures: the results that are shown, named as in Row.mean_of,
    those that select checkpoints first. best: the best run of each game.
    """

    runs: list[RunSummary]
    damaged: list[RunSummary]
    rows: list[Row]
    keys: list[str]
    figures: list[str]
    best: list[RunSummary]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        return {
            "checkpoints": {"results": BEST_IN_WORDS, "final_results": FINAL_IN_WORDS},
            "runs": [
                {
                    "path": str(run.path),
                    "status": run.status,
                    "config": run.config,
                    "results": run.results,
                    "final_results": run.final_results,
                    "best_games": run.best_games,
                    "games": run.games,
                    "seconds": run.seconds,
                    "best_so_far": run.best_so_far,
                    "latest": run.latest,
                }
                for run in self.runs
            ],
            "damaged": [{"path": str(run.path), "reason": run.damage} for run in self.damaged],
            "rows": [
                {
                    "config": {key: row.first.settings.get(key) for key in self.keys},
                    "runs": [str(run.path) for run in row.runs],
                    "status": row.status,
                    "results": _as_dicts(row.results),
                    "final_results": _as_dicts(row.final_results),
                    "gap_to_optimal": row.gap,
                    "final_gap_to_optimal": row.final_gap,
                    "seconds": row.seconds,
                }
                for row in self.rows
            ],
            "best": [str(run.path) for run in self.best],
        }


def _as_dicts(means: dict[str, SeedMean]) -> dict[str, Any]:
    return {name: mean.as_dict() for name, mean in means.items()}


def sort_key(run: RunSummary, results: dict[str, float]) -> tuple[bool, float, float]:
    """A key by which the best sorts first, by the run's best_by and then by points; runs without a
    metric that ranks them come last."""
    sign = direction(goal_of(run.figure), run.best_by)
    if run.best_by not in results or not sign:
        return True, 0.0, 0.0
    return False, -sign * results[run.best_by], -results.get("points", 0.0)


def as_text(value: Any) -> str:
    """A value as text, equal for equal values."""
    return json.dumps(value, sort_keys=True)
