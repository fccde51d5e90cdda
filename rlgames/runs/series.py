"""What a run's files say about its training: settings, and metrics over time; imports nothing
heavy."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rlgames.core.metrics import direction, goal_of
from rlgames.core.untrusted import finite_numbers, finite_or_none, parse_object, sanitized
from rlgames.runs import storage
from rlgames.runs.files import (
    MAX_FILE_BYTES,
    MAX_METRICS_BYTES,
    DamagedRun,
    damage_in,
    read_run,
)
from rlgames.runs.table import Run

MAX_LINES = 2000
"""Of more lines of training games, so many are read."""

MULTIPLE = re.compile(r"(\S+)\*(\S+)")

NAMES = {
    **{"returns": "train/return", "updates": "time/updates", "moves": "time/moves"},
    **{"result": "eval/{}", "gain": "eval/{}", "std_error": "eval/{}_std_error"},
    "exploitability": "eval/exploitability",
}
"""Of metrics that have shorter names here."""


@dataclass(frozen=True)
class Series:
    """A metric over time. Without values every statistic is NaN, so that no comparison holds.

    start, end: the first and the last value. first, last, later: the medians of the first and the
    last quarter, and of all but the first quarter. growth: last as a multiple of first.
    """

    values: Sequence[float] = ()
    start: float = math.nan
    end: float = math.nan
    first: float = math.nan
    last: float = math.nan
    later: float = math.nan
    lowest: float = math.nan
    highest: float = math.nan
    growth: float = math.nan

    @classmethod
    def of(cls, values: Sequence[float]) -> Series:
        if not values:
            return cls()
        size = max(1, len(values) // 4)
        first, last, later = map(median, (values[:size], values[-size:], values[size:] or values))
        growth = last / first if first and len(values) > 1 else math.nan
        ends = values[0], values[-1], first, last, later
        return cls(values, *ends, min(values), max(values), growth)

    def share_below(self, limit: float) -> float:
        """The fraction of the values that are at most the limit."""
        return sum(value <= limit for value in self.values) / max(len(self.values), 1)


@dataclass(frozen=True)
class Training:
    """The training of a run: its metrics over time are attributes, by their names in the log.

    lines: of the log. references: what "random" and "optimal" play reach, as far as known. failure:
    the error that ended a failed run.
    """

    run: Run
    lines: Sequence[dict[str, float]]
    references: dict[str, float]
    failure: str = ""

    @classmethod
    def read(cls, directory: Path) -> Training:
        """The run in a directory. Raises DamagedRun, ConfigError and OSError."""
        run = Run.read(directory, reports={}, has_metrics=False)
        if run.damage:
            raise DamagedRun(run.damage)
        early = read_run(directory).get("references")
        references = (finite_numbers(early) if isinstance(early, dict) else {}) | run.results
        failure = _failure(directory) if run.status == "failed" else ""
        return cls(run, _read_lines(directory), references, failure)

    def __getattr__(self, name: str) -> Series:
        """A metric of training or, by NAMES, another one; result and std_error: the metric of the
        game in each evaluation, and its standard error; gain: by how much the result is better than
        random play."""
        if name.startswith("_"):
            raise AttributeError(name)
        full = NAMES.get(name, f"train/{name}").format(self.metric)
        values = [line[full] for line in self.lines if full in line]
        if name == "gain":
            values = [self.sign * (value - self.random) for value in values]
        return Series.of(values)

    @property
    def status(self) -> str:
        return self.run.status

    @property
    def metric(self) -> str:
        """The metric of the game."""
        return self.run.metric

    def setting(self, key: str) -> Any:
        """A setting; None without it."""
        return self.run.settings.get(key)

    def number(self, key: str) -> float:
        """A setting that is a number, or the lowest of a list of them; else NaN."""
        value = self.setting(key)
        numbers = map(finite_or_none, value if isinstance(value, list) else [value])
        return min((each for each in numbers if each is not None), default=math.nan)

    def typed(self, words: str) -> str:
        """Words as they are typed: KEY*NUMBER is a multiple of a setting."""

        def scaled(multiple: re.Match[str]) -> str:
            value = self.number(multiple[1]) * float(multiple[2])
            return f"{multiple[1]}={value:.2g}" if abs(value) < 1 else f"{multiple[1]}={value:.0f}"

        return MULTIPLE.sub(scaled, words)

    @property
    def random(self) -> float:
        """What random play reaches in the metric of the game."""
        return self.references.get("random", math.nan)

    @property
    def sign(self) -> int:
        """+1 if higher values of this metric are better, -1 if lower ones are."""
        return direction(goal_of(self.metric), self.metric) or 1

    @property
    def margin(self) -> float:
        """Smaller differences of results say nothing."""
        return max(0.05 * abs(self.random), 3 * self.std_error.highest)

    @property
    def largest_return(self) -> float:
        """The largest size of a return, as far as the reward tells, else NaN."""
        scored, scale = self.setting("reward.scored"), self.number("reward.scale")
        goals = {"points": "outcome", "turns": "turns"}
        scored = goals.get(self.metric) if scored == "goal" else scored
        if scored == "outcome":
            return scale * max(abs(self.number("reward.win")), abs(self.number("reward.loss")))
        return 2 * scale * self.turns.highest if scored == "turns" else math.nan

    @property
    def is_weak(self) -> bool:
        """Whether the last evaluation leaves something to learn, as far as is known."""
        exploitability = self.exploitability
        if exploitability.values:
            return exploitability.end > 0.1
        if self.metric == "points":
            return not self.result.end >= 0.97
        optimum = self.references.get("optimal", math.nan)
        return not abs(self.result.end - optimum) <= 0.05 * abs(optimum)


def _read_lines(directory: Path) -> list[dict[str, float]]:
    """The lines of metrics.jsonl without damaged ones: all evaluations, and of many others some."""
    with damage_in("metrics.jsonl"):
        content = storage.read_file(directory, "metrics.jsonl", MAX_METRICS_BYTES)
    every, lines = content.split(b"\n")[:-1], []
    step = len(every) // MAX_LINES + 1
    for number, line in enumerate(every):
        if b'"eval/' in line or number % step == 0:
            with suppress(ValueError):
                lines.append(finite_numbers(parse_object(line)))
    return lines


def _failure(directory: Path) -> str:
    """The last error in train.log, without the time."""
    with suppress(OSError, ValueError):
        log = storage.read_file(directory, "train.log", MAX_FILE_BYTES).decode(errors="replace")
        errors = [line for line in log.splitlines() if "Error: " in line]
        return sanitized(errors[-1].split(maxsplit=2)[-1]) if errors else ""
    return ""
