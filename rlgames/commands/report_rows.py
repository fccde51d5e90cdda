"""Compares runs: those that differ only in their seeds form one row, with means."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from rlgames.config.schema import as_typed
from rlgames.core.metrics import Rank, direction, gap_to_optimum, goal_of
from rlgames.core.text import printable
from rlgames.evaluation.estimates import Estimate
from rlgames.runs.files import FINAL_PREFIX, as_text
from rlgames.runs.find import RunSummary

REFERENCES = ("random", "optimal", "held_out_optimal")
"""Results that are references for the metrics of a run."""


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seeds, the best first."""

    runs: list[RunSummary]
    _results: dict[str, Estimate | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def first(self) -> RunSummary:
        return self.runs[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the best run."""
        return self.first.settings

    @cached_property
    def by_seed(self) -> list[list[RunSummary]]:
        """The runs of each seed; a repeated run adds nothing to a mean over seeds."""
        seeds: dict[str, list[RunSummary]] = {}
        for run in self.runs:
            seeds.setdefault(as_text(run.settings.get("seed")), []).append(run)
        return list(seeds.values())

    def values(self, name: str) -> list[float]:
        """A result of the seeds that have it."""
        by_seed = (
            [run.results[name] for run in seed if name in run.results] for seed in self.by_seed
        )
        return [fmean(values) for values in by_seed if values]

    def mean(self, name: str) -> float | None:
        """The mean of a result over the seeds that have it; None without one."""
        values = self.values(name)
        return float(np.mean(values)) if values else None

    def result(self, name: str) -> Estimate | None:
        """The same with its interval."""
        if name not in self._results:
            values = self.values(name)
            self._results[name] = Estimate.of_seeds([np.array(values)]) if values else None
        return self._results[name]

    def so_far(self, name: str) -> float | None:
        """The mean of a result over the runs while none of them is done; None once one is."""
        known = [run.so_far[name] for run in self.runs if name in run.so_far]
        return fmean(known) if known and self.result(name) is None else None

    def gap(self, prefix: str = "") -> float | None:
        """How much worse than the optimum the best checkpoint is, as a fraction of the optimum.

        prefix: FINAL_PREFIX: the same of the final network.
        """
        mean, optimum = map(self.mean, (prefix + self.first.metric, "optimal"))
        if mean is None or optimum is None:
            return None
        return gap_to_optimum(goal_of(self.first.metric), mean, optimum)

    @property
    def seconds(self) -> float | None:
        """The mean time of a run."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        return fmean(known) if known else None

    @property
    def status(self) -> str:
        names = [run.status for run in self.runs]
        if len(names) == 1:
            return self.first.status_in_words
        kinds = sorted(set(names))
        return kinds[0] if len(kinds) == 1 else ", ".join(f"{names.count(k)} {k}" for k in kinds)

    @property
    def rank(self) -> tuple[bool, Any, Any]:
        values = {name: self.values(name) for name in (self.first.best_by, "points")}
        return sort_key(self.first, {name: fmean(of) for name, of in values.items() if of})

    def record(self, keys: Sequence[str], metrics: Sequence[str]) -> dict[str, Any]:
        """The values by the names of columns; an interval takes two of them. None: unknown."""
        record = {key: self.settings.get(key) for key in keys}
        record |= {"status": self.status, "runs": len(self.runs)}
        for name in metrics:
            mean = self.result(name)
            record[name] = self.so_far(name) if mean is None else mean.value
            ends = None if mean is None else mean.interval
            record[f"{name} low"], record[f"{name} high"] = ends or (None, None)
        for name in REFERENCES:
            record[name] = self.mean(name)
        record |= {"gap": self.gap(), "final/gap": self.gap(FINAL_PREFIX)}
        times = {"seconds": self.seconds, "started": self.first.start}
        return record | times | {"run": str(self.first.path)}

    @property
    def order(self) -> tuple[bool, str, tuple[bool, Any, Any]]:
        """A sort key: by game, then the best first; damaged runs come last."""
        return bool(self.first.damage), self.first.game, self.rank


def sort_key(run: RunSummary, results: dict[str, float]) -> tuple[bool, Any, Any]:
    """A key by which the best sorts first, by the run's best_by and then by points; runs without a
    metric that ranks them come last."""
    sign = direction(goal_of(run.metric), run.best_by)
    if run.best_by not in results or not sign:
        return True, Rank(0.0), Rank(0.0)
    return False, Rank(-sign * results[run.best_by]), Rank(-results.get("points", 0.0))


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as one types them, without a name for the option of a game."""
    words = [f"{key}={as_typed(value)}" for key, value in settings.items() if key != "name"]
    return printable(" ".join([*([settings["name"]] if "name" in settings else []), *words]))


def print_csv(records: Sequence[dict[str, Any]]) -> None:
    """Records with full numbers."""
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(printable, names))
    writer.writerows([typed_text(record.get(name)) for name in names] for record in records)


def typed_text(value: Any) -> str:
    """A value as one types it; nothing in it controls a terminal."""
    return "" if value is None else printable(as_typed(value))
