"""`rlgames report`: runs beside each other, from their files alone; nothing heavy is imported."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from omegaconf import DictConfig

from rlgames import config, errors
from rlgames.errors import ConfigError
from rlgames.run_files import (
    LOWER_IS_BETTER,
    flatten,
    last_metrics,
    number,
    read_config,
    read_run,
)

REFERENCES = ("random", "optimal")
"""Results that are no figures of the run, but what its figure is held against."""

COLUMNS = ("status", "runs", "random", "optimal", "gap", "seconds", "run")
"""What a row has beside its keys and its figures."""


@dataclass(frozen=True)
class Run:
    """What the files of a run say. settings: its flattened config. games: played so far.

    figure: what its game is about, and best_by what the run is judged by, None where not known.
    results: its final figures, empty unless it is done. seconds: None where not known.
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
        """The game with its rules: figures of different games cannot be compared."""
        return _text(self.config.get("game"))

    @property
    def rank(self) -> tuple[bool, float, float]:
        """The smallest is the best."""
        return rank(self.best_by, self.results)


@dataclass(frozen=True)
class Mean:
    """The mean over seeds, and half of its 95 % interval by Student's t, None for a single one."""

    mean: float
    half: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        half = None
        if len(values) > 1:
            half = student(len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return cls(fmean(values), half, len(values))

    def as_dict(self) -> dict[str, Any]:
        wide = None if self.half is None else [self.mean - self.half, self.mean + self.half]
        return {"mean": self.mean, "ci95": wide, "n": self.count}


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seeds only, the best first."""

    runs: list[Run]

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def by_seed(self) -> list[list[Run]]:
        """A run that is repeated with the same seed tells nothing new."""
        seeds: dict[str, list[Run]] = {}
        for run in self.runs:
            seeds.setdefault(_text(run.settings.get("seed")), []).append(run)
        return list(seeds.values())

    @property
    def results(self) -> dict[str, Mean]:
        """The means over seeds of the final figures, of the runs that have them."""
        names = dict.fromkeys(name for run in self.runs for name in run.results)
        found = {}
        for name in names:
            each = [[run.results[name] for run in of if name in run.results] for of in self.by_seed]
            found[name] = Mean.of([fmean(values) for values in each if values])
        return found

    @property
    def gap(self) -> float | None:
        """How much worse than the optimum, as a share of it."""
        figure, found = self.first.figure or "", self.results
        if figure not in found or "optimal" not in found or not found["optimal"].mean:
            return None
        optimal = found["optimal"].mean
        worse = found[figure].mean - optimal
        return (worse if figure in LOWER_IS_BETTER else -worse) / abs(optimal)

    @property
    def seconds(self) -> float | None:
        """The mean time of a run."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        return fmean(known) if known else None

    @property
    def status(self) -> str:
        names = [run.status for run in self.runs]
        if len(names) == 1:
            run, games = self.first, number(self.first.settings.get("games"))
            share = f" at {min(run.games / games, 1):.0%}" if games and games > 0 else ""
            return names[0] if names[0] in ("done", "unknown") else names[0] + share
        kinds = sorted(set(names))
        return kinds[0] if len(kinds) == 1 else ", ".join(f"{names.count(k)} {k}" for k in kinds)

    @property
    def rank(self) -> tuple[bool, float, float]:
        means = {name: found.mean for name, found in self.results.items()}
        return rank(self.first.best_by, means)

    @property
    def order(self) -> tuple[bool, str, tuple[bool, float, float]]:
        """Game by game, the best first; what cannot be read comes last."""
        return not self.first.config, self.first.game, self.rank


@dataclass(frozen=True)
class Report:
    """keys: the settings that differ between the runs. figures: the results that are shown, what
    the runs are judged by first. best: the best run of each game."""

    runs: list[Run]
    rows: list[Row]
    keys: list[str]
    figures: list[str]
    best: list[Run]

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
                    "results": {name: found.as_dict() for name, found in row.results.items()},
                    "gap_to_optimal": row.gap,
                    "seconds": row.seconds,
                }
                for row in self.rows
            ],
            "best": [str(run.path) for run in self.best],
        }


def report_command(where: list[str], words: list[str]) -> tuple[Report, DictConfig]:
    """The runs found in the directories beside each other, and the checked config.

    Writes the picture of curves=. Raises ConfigError where there is no run, and OSError.
    """
    cfg = config.load("report", words)
    if not where:
        raise ConfigError("report needs a directory", "as in: rlgames report outputs")
    runs = [read(path) for path in find(where)]
    rows = sorted(_rows(runs, cfg.by), key=lambda row: row.order)
    keys = _differing(runs, cfg.by)
    figures = _figures(runs)
    found = Report(runs, _sorted(rows, cfg.sort, keys, figures), keys, figures, _best(rows))
    if cfg.curves is not None:
        from rlgames.commands.curves import draw

        draw(found, rows, Path(cfg.curves), cfg.metric)
    return found, cfg


def find(where: list[str]) -> list[Path]:
    """The runs in directories, each directory's own first, by name; each run once.

    Raises ConfigError for a directory that is not there or has no run in it.
    """
    found: dict[Path, Path] = {}
    for name in where:
        top = Path(name)
        if not top.exists():
            beside = top.parent
            names = [str(p) for p in beside.iterdir() if p.is_dir()] if beside.is_dir() else []
            names = names if len(names) <= 20 else []
            raise ConfigError(
                f"there is no directory {name}", errors.nearest(name, names) if names else ""
            )
        own = list(_inside(top))
        if not own:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        found |= {path.resolve(): path for path in own if path.resolve() not in found}
    return list(found.values())


def _inside(top: Path) -> Iterator[Path]:
    """By name, numbers by size; hidden directories and links are left out, and runs hold no runs.

    What may not be looked into is told as a run that cannot be read.
    """
    waiting = [top]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                inside = list(entries)
        except NotADirectoryError:
            continue
        except OSError:
            yield here
            continue
        if any(entry.name == "run.json" for entry in inside):
            yield here
            continue
        folders = [entry.name for entry in inside if entry.is_dir(follow_symlinks=False)]
        folders = [name for name in folders if not name.startswith(".")]
        waiting += [here / name for name in sorted(folders, key=_by_number, reverse=True)]


def _by_number(name: str) -> tuple[int, str]:
    """Job 10 comes after job 9, whatever stands behind the number."""
    number = re.match(r"[0-9]{1,9}", name)
    return (int(number[0]) if number else -1), name


def read(path: Path) -> Run:
    """Whatever a run's files hold."""
    facts, settings = read_run(path), read_config(path)
    status = facts.get("status")
    status = status if isinstance(status, str) and facts else "unknown"
    results = facts.get("results")
    results = results if isinstance(results, dict) and status == "done" else {}
    figures = {name: number(value) for name, value in results.items()}
    seconds, games = number(facts.get("seconds")), number(facts.get("games"))
    if status != "done" or seconds is None:
        last = last_metrics(path)
        seconds = number(last.get("time/seconds")) if seconds is None else seconds
        games = number(last.get("games")) if status == "running" or games is None else games
    if status == "running" and _has_ended(facts):
        status = "died"
    figure, best_by = facts.get("figure"), facts.get("best_by")
    own = _plain(settings)
    return Run(
        path=path,
        status=status,
        config=own,
        settings=flatten(own),
        figure=figure if isinstance(figure, str) else None,
        best_by=best_by if isinstance(best_by, str) else None,
        results={name: value for name, value in figures.items() if value is not None},
        games=int(games or 0),
        seconds=seconds,
    )


def _has_ended(facts: dict[str, Any]) -> bool:
    """Whether a run's process is known to be gone, without a word: killed, say."""
    pid = facts.get("pid")
    if facts.get("host") != platform.node() or type(pid) is not int or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _plain(value: Any) -> Any:
    """A value of YAML as JSON can have it."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # Python refuses to write the longest ones as decimals
    known = value is None or isinstance(value, bool | int | float | str)
    return value if known else str(value)


def rank(best_by: str | None, results: dict[str, float]) -> tuple[bool, float, float]:
    """Smaller is better: by best_by and then by points; runs without figures come last."""
    if best_by not in results:
        return True, 0.0, 0.0
    value = results[best_by]
    return False, value if best_by in LOWER_IS_BETTER else -value, -results.get("points", 0.0)


def _rows(runs: list[Run], by: str) -> list[Row]:
    """A run whose config cannot be read is a row of its own."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        alike = {name: value for name, value in run.settings.items() if name != "seed"}
        alone = by == "run" or not run.config
        groups.setdefault(str(run.path) if alone else _text(alike), []).append(run)
    return [Row(sorted(group, key=lambda run: run.rank)) for group in groups.values()]


def _differing(runs: list[Run], by: str) -> list[str]:
    """The settings that have two values or more, among the runs that have them."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.settings.items() if run.config else ():
            values.setdefault(name, set()).add(_text(value))
    return [
        name for name, found in values.items() if len(found) > 1 and (name != "seed" or by == "run")
    ]


def _figures(runs: list[Run]) -> list[str]:
    """Those by which a run is judged first; of the others those that are not always the same."""
    first = dict.fromkeys(run.best_by for run in runs if run.best_by in run.results)
    values: dict[str, set[float]] = {}
    for run in runs:
        for name, value in run.results.items():
            values.setdefault(name, set()).add(value)
    others = [name for name in values if name not in first and name not in REFERENCES]
    few = sum(bool(run.results) for run in runs) < 2
    return [*map(str, first), *(name for name in others if few or len(values[name]) > 1)]


def _best(rows: list[Row]) -> list[Run]:
    """Of each game the best run of the best row; rows: the best of each game first."""
    best: dict[str, Run] = {}
    for row in rows:
        if row.first.config and not row.rank[0]:
            best.setdefault(row.first.game, row.first)
    return list(best.values())


def _sorted(rows: list[Row], sort: str, keys: list[str], figures: list[str]) -> list[Row]:
    """rows: the best first. Raises ConfigError for a column that there is not."""
    if sort == "best":
        return rows
    name = sort.removeprefix("-")
    names = [*keys, *figures, *COLUMNS]
    if name not in names:
        raise ConfigError(f"sort={sort} is no column", errors.nearest(name, ["best", *names]))
    values = {id(row): cell(row, name) for row in rows}
    known = [row for row in rows if values[id(row)] is not None]

    def key(row: Row) -> tuple[bool, float, str]:
        value = values[id(row)]
        found = number(value)
        return found is None, found or 0.0, "" if found is not None else _text(value)

    known.sort(key=key, reverse=sort.startswith("-"))
    return known + [row for row in rows if values[id(row)] is None]


def cell(row: Row, name: str) -> Any:
    """What a row has in a column, None for nothing; of a figure its mean."""
    own: dict[str, Callable[[], Any]] = {
        "status": lambda: row.status,
        "runs": lambda: len(row.runs),
        "gap": lambda: row.gap,
        "seconds": lambda: row.seconds,
        "run": lambda: str(row.first.path),
    }
    if name in own:
        return own[name]()
    return row.results[name].mean if name in row.results else row.first.settings.get(name)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@lru_cache
def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with so many degrees of freedom, 1 or more.

    By bisection of its exact distribution, Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    low, high = 0.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 0.95 else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The probability that Student's t lies between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    term, total = (1.0, 0.0) if freedom % 2 == 0 else (math.cos(angle), 0.0)
    for power in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    if freedom % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)
