"""Finds and summarizes runs by their files; imports nothing heavy."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.metrics import direction, goal_of
from rlgames.core.untrusted import finite_or_none
from rlgames.runs import storage
from rlgames.runs.files import FINAL_PREFIX, as_text, flatten
from rlgames.runs.run_info import DamagedRun, MetricsFollower, RunInfo, damage_in, parse_info


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

    @property
    def status_in_words(self) -> str:
        """The status; of a run that is not done, with the fraction of its games that is played."""
        games = finite_or_none(self.settings.get("games")) or 0.0
        if self.status in ("done", "damaged") or games <= 0:
            return self.status
        return f"{self.status} at {min(self.games / games, 1):.0%}"


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


class RunReader:
    """Summarizes a run again and again, and reads only what is new in its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamps: list[tuple[int, ...] | None] = []
        self._summary: RunSummary | None = None
        self._log = MetricsFollower(path)
        self._best: dict[str, float] = {}
        self._latest: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def read(self) -> RunSummary:
        """The run as it is now; nothing of a damaged one is used."""
        stamps = [storage.stamp(f"{self._path}/{name}") for name in ("run.json", "metrics.jsonl")]
        if self._summary is None or stamps != self._stamps or self._summary.status == "running":
            try:
                self._summary = self._read()
            except DamagedRun as error:
                self._summary = RunSummary(path=self._path, status="damaged", damage=str(error))
            self._stamps = stamps
        return self._summary

    def _read(self) -> RunSummary:
        try:
            storage.check_plain(self._path)
        except ConfigError as error:
            raise DamagedRun(error.error) from None
        except OSError as error:
            raise DamagedRun(f"run.json: {error.strerror}") from None
        info = parse_info(self._path)
        if not info.config:
            reason = "is empty" if info.status == "waiting" else "has no config"
            raise DamagedRun(f"run.json: it {reason}")
        so_far: dict[str, Any] = {}
        if info.status == "done":
            with damage_in("metrics.jsonl"), contextlib.suppress(FileNotFoundError):
                storage.open_to_read(self._path, "metrics.jsonl").close()  # curves read it
        else:
            self._follow(info)
            best = {FINAL_PREFIX + name: value for name, value in self._latest.items()}
            so_far = {
                "status": "died" if info.is_process_gone else info.status,
                "games": int(self._last.get("games", info.games)),
                "seconds": info.seconds or self._last.get("time/seconds") or None,
                "so_far": self._best | best,
            }
        config = {name: info.config[name] for name in ("game", "plugins") if name in info.config}
        values = vars(info) | so_far | {"config": config}
        return RunSummary(**values, path=self._path, settings=flatten(info.config))

    def _follow(self, info: RunInfo) -> None:
        """Read the new lines of the log: the last one, the latest evaluation, and the best one by
        best_by."""
        is_replaced, lines = self._log.new_lines()
        if is_replaced:
            self._best, self._latest, self._last = {}, {}, {}
        sign = direction(goal_of(info.metric), info.best_by)

        def rank(metrics: dict[str, float]) -> tuple[float, float]:  # as Evaluator.better
            return sign * metrics[info.best_by], metrics.get("points", 0.0)

        for line in lines:
            numbers = {name: finite_or_none(value) for name, value in line.items()}
            known = {name: number for name, number in numbers.items() if number is not None}
            self._last |= known
            metrics = {name[5:]: number for name, number in known.items() if name[:5] == "eval/"}
            self._latest = self._latest | metrics
            if sign and info.best_by in metrics:
                is_better = not self._best or rank(metrics) >= rank(self._best)
                self._best = metrics if is_better else self._best


def read_summaries(directories: list[str], readers: dict[Path, RunReader]) -> list[RunSummary]:
    """The runs in some directories. readers: of an earlier call; new ones are added.

    Raises ConfigError as find_runs.
    """
    return [readers.setdefault(path, RunReader(path)).read() for path in find_runs(directories)]
