"""Finds and summarizes runs by their files; imports nothing heavy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.metrics import direction, goal_of
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.files import FINAL_PREFIX, as_text, flatten
from rlgames.runs.run_info import DamagedRun, MetricsFollower, RunInfo, check_log, parse_info


@dataclass(frozen=True, kw_only=True)
class RunSummary(RunInfo):
    """A run by its files.

    status: also "died" for a run that was killed. damage: why the run is damaged; nothing else is
    then known. config: its game and plugins; settings: all of it, flattened. so_far: the results of
    a run that is not done, by evaluations during training: the best one by best_by and, as
    final/NAME, the last.
    """

    path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    so_far: dict[str, float] = field(default_factory=dict)
    damage: str = ""

    @cached_property
    def game(self) -> str:
        """The game with its rules, as text: metrics of different games cannot be compared."""
        return as_text(self.config.get("game"))


def find_runs(directories: list[str]) -> list[Path]:
    """The runs in each of the directories in turn, sorted by name; each run once.

    Raises ConfigError for a directory that does not exist or contains no run.
    """
    runs: dict[str, Path] = {}
    for name in directories:
        top = Path(name)
        if not top.exists():
            raise ConfigError(
                f"there is no directory {name}", nearest_path(name, is_directory=True)
            )
        inside = list(_runs_inside(str(top)))
        if not inside:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        real = os.path.realpath(top)  # no link is followed below it
        for path in inside:
            runs.setdefault(real + path[len(str(top)) :], Path(path))
    return list(runs.values())


def newest_run(top: Path) -> Path | None:
    """The run inside a directory with the newest checkpoint, None if there is none."""
    runs = [Path(run) for run in _runs_inside(str(top))]
    runs = [run for run in runs if any((run / "checkpoints").glob("*.safetensors"))]
    return max(runs, key=lambda run: (run / "checkpoints").stat().st_mtime, default=None)


def _runs_inside(top: str) -> Iterator[str]:
    """Sorted by name, with numbers by size. Hidden directories and links are skipped, and so is
    what lies inside a run. A directory without permission counts as an unreadable run."""
    stack = [top]
    while stack:
        directory = stack.pop()
        if os.path.lexists(os.path.join(directory, "run.json")):  # faster than listing it
            yield directory
            continue
        try:
            with os.scandir(directory) as scan:
                entries = list(scan)
        except NotADirectoryError:
            continue
        except OSError:
            yield directory
            continue
        if any(entry.name == "run.json" for entry in entries):  # it may be listed, not entered
            yield directory
            continue
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders = [name for name in folders if not name.startswith(".")]
        folders.sort(key=_number_first, reverse=True)
        stack += [os.path.join(directory, name) for name in folders]


def _number_first(name: str) -> tuple[int, str]:
    """A sort key by which 10_lr=1 comes after 9_lr=2."""
    match = re.match(r"[0-9]{1,9}", name)
    return (int(match[0]) if match else -1), name


def read_summaries(directories: list[str]) -> list[RunSummary]:
    """The runs in some directories. Raises ConfigError as find_runs."""
    return [read_summary(path) for path in find_runs(directories)]


def read_summary(path: Path) -> RunSummary:
    """Summarize a run; nothing of a damaged one is used."""
    try:
        info = parse_info(path)
        if not info.config:
            reason = "is empty" if info.status == "waiting" else "has no config"
            raise DamagedRun(f"run.json: it {reason}")
        if info.status == "done":
            check_log(path)  # curves read it
            so_far = {}
        else:
            so_far = _read_log(path, info)
    except DamagedRun as error:
        return RunSummary(path=path, status="damaged", damage=str(error))
    config = {name: info.config[name] for name in ("game", "plugins") if name in info.config}
    values = vars(info) | so_far | {"config": config}
    return RunSummary(**values, path=path, settings=flatten(info.config))


def _read_log(path: Path, info: RunInfo) -> dict[str, Any]:
    """What the log of a run that is not done says: the last line, the latest evaluation, and the
    best one by best_by. Raises DamagedRun."""
    sign = direction(goal_of(info.figure), info.best_by)
    last: dict[str, float] = {}
    latest: dict[str, float] = {}
    best: dict[str, float] = {}
    for line in MetricsFollower(path).new_lines()[1]:
        numbers = {name: finite_or_none(value) for name, value in line.items()}
        known = {name: number for name, number in numbers.items() if number is not None}
        last |= known
        metrics = {name[5:]: number for name, number in known.items() if name[:5] == "eval/"}
        latest |= metrics
        value, so_far = metrics.get(info.best_by), best.get(info.best_by, -sign * inf)
        if value is not None and sign * (value - so_far) > 0:
            best = metrics
    return {
        "status": "died" if info.is_process_gone else info.status,
        "games": int(last.get("games", info.games)),
        "seconds": info.seconds or last.get("time/seconds") or None,
        "so_far": best | {FINAL_PREFIX + name: value for name, value in latest.items()},
    }
