"""Finds and summarizes runs by their files; imports nothing heavy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.metrics import direction, goal_of
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.files import FINAL_PREFIX, as_text, flatten
from rlgames.runs.run_info import DamagedRun, RunInfo, parse_info, read_log


@dataclass(frozen=True, kw_only=True)
class RunSummary(RunInfo):
    """A run by its files.

    status: also "died" for a run that was killed. damage: why the run is damaged; nothing else is
    then known. settings: the flattened config. log: the lines of metrics.jsonl, empty if they were
    not read. so_far: the results of a run that is not done, by evaluations during training: the
    best one by best_by and, as final/NAME, the last.
    """

    path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, float]] = field(default_factory=list)
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
    runs: dict[Path, Path] = {}
    for name in directories:
        top = Path(name)
        if not top.exists():
            raise ConfigError(
                f"there is no directory {name}", nearest_path(name, is_directory=True)
            )
        inside = list(_runs_inside(top))
        if not inside:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        for path in inside:
            runs.setdefault(path.resolve(), path)
    return list(runs.values())


def newest_run(top: Path) -> Path | None:
    """The run inside a directory with the newest checkpoint, None if there is none."""
    runs = [run for run in _runs_inside(top) if any((run / "checkpoints").glob("*.safetensors"))]
    return max(runs, key=lambda run: (run / "checkpoints").stat().st_mtime, default=None)


def _runs_inside(top: Path) -> Iterator[Path]:
    """Sorted by name, with numbers by size. Hidden directories and links are skipped, and so is
    what lies inside a run. A directory without permission counts as an unreadable run."""
    stack = [top]
    while stack:
        directory = stack.pop()
        try:
            with os.scandir(directory) as scan:
                entries = list(scan)
        except NotADirectoryError:
            continue
        except OSError:
            yield directory
            continue
        if any(entry.name == "run.json" for entry in entries):
            yield directory
            continue
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders = [name for name in folders if not name.startswith(".")]
        stack += [directory / name for name in sorted(folders, key=_number_first, reverse=True)]


def _number_first(name: str) -> tuple[int, str]:
    """A sort key by which 10_lr=1 comes after 9_lr=2."""
    match = re.match(r"[0-9]{1,9}", name)
    return (int(match[0]) if match else -1), name


def read_summary(path: Path, with_log: bool = False) -> RunSummary:
    """Summarize a run; nothing of a damaged one is used.

    with_log: read metrics.jsonl also of a run that is done.
    """
    try:
        info = parse_info(path)
        if not info.config:
            raise DamagedRun(
                f"run.json: it {'is empty' if info.status == 'waiting' else 'has no config'}"
            )
        log = read_log(path) if with_log or info.status != "done" else []
    except DamagedRun as error:
        return RunSummary(path=path, status="damaged", damage=str(error))
    seconds = (finite_or_none(line.get("time/seconds")) for line in reversed(log))
    so_far = {
        "status": "died" if info.is_process_gone else info.status,
        "games": int(log[-1]["games"]) if log and info.status != "done" else info.games,
        "seconds": info.seconds or next(filter(None, seconds), None),
    }
    return RunSummary(
        **vars(info) | so_far,
        path=path,
        settings=flatten(info.config),
        log=log,
        so_far=_evaluations(log, info) if info.status != "done" else {},
    )


def _evaluations(log: Sequence[dict[str, float]], info: RunInfo) -> dict[str, float]:
    """The best evaluation of a run that is not done, by best_by, and as final/NAME the last."""
    by = info.best_by
    sign = direction(goal_of(info.figure), by)
    best: dict[str, float] = {}
    latest: dict[str, float] = {}
    for line in log:
        values = {name[5:]: finite_or_none(line[name]) for name in line if name.startswith("eval/")}
        metrics = {name: value for name, value in values.items() if value is not None}
        latest = metrics or latest
        if by in metrics and sign * (metrics[by] - best.get(by, -sign * inf)) > 0:
            best = metrics
    return best | {FINAL_PREFIX + name: value for name, value in latest.items()}
