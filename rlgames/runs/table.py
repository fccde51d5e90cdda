"""Runs as a table: what is known of each by dotted names, rows of seeds, and the text of cells.

A run has values by these names: its settings, as they are typed; `status`, `path`, `started`,
`played` and `seconds`; the results of its best checkpoint (`turns`) and of its final network
(`final.turns`); every number of its reports (`REPORT.PATH`, as in `eval_exact.win.rate`); what was
logged (`train.turns.last2000`: the mean over the last 2,000 games); and `train.seconds`,
`train.total_seconds` and `train.ms_per_game`. A row pools runs that differ in their seeds. Nothing
heavy is imported.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import Rank, are_equal, direction, gap_to_optimum, goal_of
from rlgames.core.untrusted import finite_numbers, finite_or_none
from rlgames.evaluation.curves import Curve, moving_mean, points
from rlgames.evaluation.estimates import Estimate
from rlgames.runs import storage
from rlgames.runs.directory import has_owner
from rlgames.runs.files import (
    FINAL_PREFIX,
    DamagedRun,
    RunInfo,
    as_text,
    damage_in,
    flatten,
    metric_lines,
    parse_info,
    read_metrics,
    varying_settings,
)
from rlgames.runs.find import find_runs
from rlgames.runs.reports import (
    OF_TRAINING,
    REPORTS,
    Number,
    Report,
    read_report,
    report_names,
)

T = TypeVar("T")

LOGGED = re.compile(r"(train|eval|time)\.([\w/]+)\.(first|last)([1-9]\d*)?")
"""A logged metric: its mean over the first or the last games, or its first or last value."""

TIMES = ("train.seconds", "train.total_seconds", "train.ms_per_game")
"""What training took, by the log: without the evaluation at its end; with the runs that it starts
from; for each game."""

REACHED = re.compile(r"([^.]+)\.reach\.\d+\.(rate|count)")
"""Of a tile that no game reached, which reports do not list, both are 0."""

OPTIONS = ("by seed", "highest", "mean")
"""What a column may say after its metric and its format: the values of all seeds, the highest of
them, or the mean without its interval."""

FORMAT = re.compile(r"((?P<factor>\d+(\.\d+)?)\*)?(?P<spec>\+?z?,?(\.\d{1,2})?[efg%]?)")


@dataclass(frozen=True, kw_only=True)
class Run(RunInfo):
    """A run by its files.

    status: also "died" for a run that was killed. damage: why the run is damaged; nothing else is
    then known. settings: the config, flattened. so_far: the results of a run that is not done, by
    evaluations during training: the best one by best_by and, as final.NAME, the last. reports: by
    their names.
    """

    path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    so_far: dict[str, float] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict, repr=False)
    damage: str = ""

    @classmethod
    def read(
        cls, path: Path, reports: dict[str, Report] | None = None, has_metrics: bool = True
    ) -> Run:
        """The run as it is now; nothing of a damaged one is used.

        reports: None: all. has_metrics: False: metrics.jsonl, which may be long, is not read.
        """
        try:
            with damage_in("run.json"):
                storage.check_plain(path)
            info = parse_info(path)
            if not info.config:
                reason = "is empty" if info.status == "waiting" else "has no config"
                raise DamagedRun(f"run.json: it {reason}")
            values = vars(info) | {"settings": flatten(info.config), "reports": reports or {}}
            for name in report_names(path) if reports is None else ():
                if info.status == "done" or name not in OF_TRAINING:
                    with damage_in(f"{REPORTS}/{name}.json"):
                        values["reports"][name] = read_report(path, name)
            with damage_in("metrics.jsonl"), contextlib.suppress(FileNotFoundError):
                if info.status == "done":
                    storage.open_to_read(path, "metrics.jsonl").close()  # curves read it
                elif has_metrics:
                    values |= _so_far(info, metric_lines(path))
        except ConfigError as error:
            return cls(path=path, status="damaged", damage=error.error)
        if info.status == "running" and not has_owner(path):
            values["status"] = "died"
        return cls(**values, path=path)

    @cached_property
    def game(self) -> str:
        """The game with its rules, as text: metrics of different games cannot be compared."""
        return as_text(self.config.get("game"))

    @property
    def status_in_words(self) -> str:
        """The status; of a run that is not done, with the fraction of its games that is played."""
        games = finite_or_none(self.settings.get("games")) or 0.0
        if self.status in ("done", "damaged") or games <= 0:
            return self.status
        return f"{self.status} at {min(self.games / games, 1):.0%}"

    @cached_property
    def lines(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl. Raises OSError."""
        return read_metrics(self.path / "metrics.jsonl")

    @cached_property
    def origins(self) -> list[Run]:
        """The run that this one starts from, and those that this one starts from in turn."""
        found, places = [self], {os.path.realpath(self.path)}
        while (run := found[-1]._origin()) is not None and str(run.path) not in places:
            found.append(run)
            places.add(str(run.path))
        return found[1:]

    def _origin(self) -> Run | None:
        """The run that this one starts from; both may have been moved together."""
        if not self.settings.get("init_from"):
            return None
        start = Path(str(self.settings["init_from"]))
        former = Path(str(self.config.get("out")))
        for path in (self.path / os.path.relpath(start, former), start):
            for folder in (path, *path.parents[:2]):
                if (folder / "run.json").is_file():
                    return Run.read(Path(os.path.realpath(folder)))
        return None

    @cached_property
    def measured(self) -> dict[str, Number]:
        """The numbers that were measured, each with half of its interval over games or None."""
        found: dict[str, Number] = {}
        if self.seconds is not None:
            found["seconds"] = self.seconds, None
        for name, report in self.reports.items():
            prefix = name.removeprefix("train_") if name in OF_TRAINING else name
            found |= {f"{prefix}.{path}": number for path, number in report.numbers.items()}
        return found | {name: (each, None) for name, each in (self.results | self._gaps).items()}

    @property
    def _gaps(self) -> dict[str, float]:
        """How much worse than the optimum both networks are, as a fraction of the optimum."""
        goal, optimum, gaps = goal_of(self.metric), self.results.get("optimal"), {}
        for prefix in ("", FINAL_PREFIX):
            value = self.results.get(prefix + self.metric)
            if value is not None and optimum is not None:
                gaps[f"{prefix}gap"] = gap_to_optimum(goal, value, optimum)
        return {name: gap for name, gap in gaps.items() if gap is not None}

    @cached_property
    def values(self) -> dict[str, Any]:
        """All values that a condition may name: settings before metrics before the others."""
        fields = {"status": self.status, "path": str(self.path), "played": self.games}
        known = {name: value for name, (value, _) in self.measured.items() if value == value}
        return {"started": self.start} | fields | self.so_far | known | self.settings

    def number(self, name: str) -> Number:
        """A number that was measured or logged, NaN if it is not known, and half of its interval
        over games. Raises OSError."""
        if name in self.measured:
            return self.measured[name]
        if (reach := REACHED.fullmatch(name)) and reach[1] in self.reports:
            return 0.0, None
        if name in TIMES:
            return self._time(name), None
        return (self._logged(match) if (match := LOGGED.fullmatch(name)) else math.nan), None

    def knows(self, name: str) -> bool:
        """Whether the run has a value of this name."""
        if match := LOGGED.fullmatch(name):
            return any(f"{match[1]}/{match[2]}" in line for line in self.lines)
        return name in TIMES or name in self.measured or name in self.values

    def value(self, name: str) -> Any:
        """A value by its name; None if it is not known."""
        if name in self.values:
            return self.values[name]
        number, _ = self.number(name)
        return None if math.isnan(number) else number

    def _time(self, name: str) -> float:
        seconds = max((line.get("time/seconds", math.nan) for line in self.lines), default=math.nan)
        if name == "train.ms_per_game":
            games = max((line["games"] for line in self.lines), default=0)
            return 1000 * seconds / games if games else math.nan
        before = self.origins if name == "train.total_seconds" else ()
        return seconds + sum(run._time("train.seconds") for run in before)

    def points(self, name: str) -> Curve:
        """The finite values of a metric of the log, by its name there, over games."""
        known = [line for line in self.lines if math.isfinite(line.get(name, math.nan))]
        return points([line["games"] for line in known], [line[name] for line in known])

    def _logged(self, match: re.Match[str]) -> float:
        """If there were fewer games, NaN; if lines of the log cover more games, the value of the
        first or the last line."""
        group, name, end, count = match.groups()
        games, values = self.points(f"{group}/{name}")
        curve = games[games > 0], values[games > 0]
        try:
            means = curve[1] if count is None else moving_mean(curve, int(count))[1]
        except ConfigError:
            means = curve[1]
        return float(means[0 if end == "first" else -1]) if len(means) else math.nan


def _so_far(info: RunInfo, lines: Iterator[dict[str, float]]) -> dict[str, Any]:
    """What the metrics of a run that is not done say about it."""
    last, latest, best = dict[str, float](), dict[str, float](), dict[str, float]()
    sign = direction(goal_of(info.metric), info.best_by)

    def rank(metrics: dict[str, float]) -> tuple[Any, Any]:
        return Rank(sign * metrics[info.best_by]), Rank(metrics.get("points", 0.0))

    for line in lines:
        known = finite_numbers(line)
        last |= known
        metrics = {name[5:]: value for name, value in known.items() if name[:5] == "eval/"}
        latest |= metrics
        if sign and info.best_by in metrics and (not best or rank(metrics) >= rank(best)):
            best = metrics
    return {
        "games": int(last.get("games", info.games)),
        "seconds": info.seconds or last.get("time/seconds") or None,
        "so_far": best | {FINAL_PREFIX + name: value for name, value in latest.items()},
    }


def read_runs(directories: list[str]) -> list[Run]:
    """The runs in some directories. Raises ConfigError as find_runs."""
    return [Run.read(path) for path in find_runs(directories)]


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Items by a key, in the order of their first appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seeds, the best first; of an agent, the runs of all games.

    parts: rows of runs that differ only in their seeds, if the row pools several configs.
    """

    runs: Sequence[Run]
    label: str = ""
    parts: Sequence[Row] = ()
    _estimates: dict[str, Estimate | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the best run."""
        return self.first.settings

    @cached_property
    def games(self) -> dict[str, Row]:
        """The runs of each game."""
        of_games = grouped(self.runs, lambda run: run.game)
        return {game: Row(runs, self.label) for game, runs in of_games.items()}

    @cached_property
    def by_seed(self) -> list[list[Run]]:
        """The runs of each seed, in their order; a repeated run adds nothing to a mean over
        seeds."""
        ordered = sorted(self.runs, key=lambda run: finite_or_none(run.settings.get("seed")) or 0)
        return [*grouped(ordered, lambda run: as_text(run.settings.get("seed"))).values()]

    def values(self, name: str) -> list[float]:
        """A number of the seeds that have it, in the order of the seeds."""
        if self.parts:
            return [value for part in self.parts for value in part.values(name)]
        by_seed = ([run.number(name)[0] for run in seed] for seed in self.by_seed)
        known = ([value for value in values if value == value] for values in by_seed)
        return [fmean(values) for values in known if values]

    def estimate(self, name: str) -> Estimate | None:
        """The mean over seeds with its interval; of a single run, its interval over games. None if
        no run has the number."""
        if name not in self._estimates:
            scores = [np.array(part.values(name)) for part in self.parts or [self]]
            scores = [values for values in scores if len(values)]
            estimate = Estimate.of_seeds(scores) if scores else None
            known = [number for run in self.runs if (number := run.number(name))[0] == number[0]]
            if len(known) == 1:
                ((value, half),) = known
                interval = None if half is None else (value - half, value + half)
                estimate = Estimate(value, interval, 1)
            self._estimates[name] = estimate
        return self._estimates[name]

    def value(self, name: str) -> Any:
        """A value of the row by its name; None if it is not known.

        Numbers are means over seeds, or so far while no run is done; NAME low and NAME high are the
        ends of an interval. Settings come from the best run.
        """
        if name in OF_ROWS:
            return OF_ROWS[name](self)
        if name in self.settings:
            return self.settings[name]
        for place, end in enumerate((" low", " high")):
            if name.endswith(end):
                found = self.estimate(name.removesuffix(end))
                return None if found is None or found.interval is None else found.interval[place]
        mean = self.mean(name)
        return self.so_far(name) if mean is None else mean

    def mean(self, name: str) -> float | None:
        """The mean over the seeds that have it; None without one."""
        found = self.estimate(name)
        return None if found is None else found.value

    def so_far(self, name: str) -> float | None:
        """The mean of a result over the runs while none of them is done; None once one is."""
        known = [run.so_far[name] for run in self.runs if name in run.so_far]
        return fmean(known) if known and self.estimate(name) is None else None

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

    @property
    def order(self) -> tuple[bool, str, tuple[bool, Any, Any]]:
        """A sort key: by game, then the best first; damaged runs come last."""
        return bool(self.first.damage), self.first.game, self.rank


OF_ROWS: dict[str, Callable[[Row], Any]] = {
    "status": lambda row: row.status,
    "runs": lambda row: len(row.runs),
    "started": lambda row: row.first.start,
    "run": lambda row: str(row.first.path),
}
"""Values that only rows have, or have otherwise than runs."""


def sort_key(run: RunInfo, results: dict[str, float]) -> tuple[bool, Any, Any]:
    """A sort key: the best run first, by its best_by, then by points; runs without it last."""
    sign = direction(goal_of(run.metric), run.best_by)
    if run.best_by not in results or not sign:
        return True, Rank(0.0), Rank(0.0)
    return False, Rank(-sign * results[run.best_by]), Rank(-results.get("points", 0.0))


def rows_of(runs: Sequence[Run], by: str = "config") -> list[Row]:
    """A row for each config, run, or value of the setting `by`, the best of each game first.

    The row of a value pools configs of the other settings, each run counting the same: those that
    every value has, if there are any.
    """
    runs = sorted(runs, key=lambda run: sort_key(run, run.results))
    varying = varying_settings(run.settings for run in runs)
    if by == "run":
        rows = [Row([run]) for run in runs]
    elif by == "config":
        of_configs = grouped(runs, lambda run: (frozenset(run.settings), _config(run, varying)))
        rows = [Row(own) for own in of_configs.values()]
    else:
        of_values = grouped(
            runs, lambda run: (run.settings["game"], as_text(run.settings.get(by)))
        ).values()
        others = {name for own in of_values for name in varying_settings(r.settings for r in own)}
        config = partial(_config, names=others)
        rows = []
        for of_game in grouped(of_values, lambda own: own[0].settings["game"]).values():
            shared = set.intersection(*({*map(config, own)} for own in of_game))
            for own in of_game:
                kept = [run for run in own if config(run) in shared or not shared]
                rows.append(Row(kept, parts=[Row(of) for of in grouped(kept, config).values()]))
    return sorted(rows, key=lambda row: row.order)


def _config(run: Run, names: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The settings that distinguish the config of a run."""
    known = (name for name in names if name in run.settings and name != "seed")
    return frozenset((name, as_text(run.settings[name])) for name in known)


@dataclass(frozen=True)
class ColumnText:
    """A column as METRIC | FORMAT | OPTION describes it.

    metric: a name of values. factor: what values are multiplied by, as 100 for percentages.
    format: of Python, as .2f; empty for the usual one. option: one of OPTIONS, or empty.
    """

    heading: str
    metric: str
    factor: float = 1.0
    format: str = ""
    option: str = ""

    @property
    def source(self) -> str:
        """The report that the metric is of, as far as its name tells."""
        return self.metric.partition(".")[0]

    @classmethod
    def parse(cls, heading: str, text: str) -> ColumnText:
        """A column from its text. Raises ConfigError."""
        metric, format, option, *rest = [*(part.strip() for part in text.split("|")), "", ""]
        if any(rest) or not re.fullmatch(r"\S+", metric):
            raise ConfigError(f"{text!r} is not a column", "as in REPORT.PATH | 100*.1f | by seed")
        match = FORMAT.fullmatch(format)
        if match is None:
            raise ConfigError(f"{text!r}: {format} is not a format", "as in .2f or 100*.1f")
        if option and option not in OPTIONS:
            hint = nearest(option, list(OPTIONS))
            raise ConfigError(f"{text!r}: {option} is not an option", hint)
        return cls(heading, metric, float(match["factor"] or 1), match["spec"], option)

    def text(self, value: float, usual: str = ",.4g") -> str:
        """A number of the column; usual: the format without one."""
        return f"{self.factor * value:{self.format or usual}}"

    def cell(
        self, mean: float, half: float | None, values: Sequence[float], usual: str = ",.4g"
    ) -> str:
        """A mean, half of its interval or None, and the values of the seeds that it is of.

        Of two seeds, both values are in parentheses, and three or more equal ones are counted,
        because they say nothing of how much others would differ.
        """
        text, format = self.text(mean, usual), self.format or usual
        if self.option == "by seed":
            return ", ".join(self.text(value, usual) for value in values)
        if self.option == "highest":
            return self.text(max(values), usual)
        if self.option == "mean":
            return text
        if len(values) == 2:
            return f"{text} ({', '.join(self.text(each, usual) for each in sorted(values))})"
        if half is None:
            is_equal = len(values) > 2 and are_equal(min(values), max(values))
            return f"{text} ({len(values)} equal)" if is_equal else text
        return f"{text} ± {abs(self.factor) * half:{format.replace('+', '')}}"
