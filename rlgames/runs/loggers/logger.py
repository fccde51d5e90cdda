"""The contract of loggers, and the loggers of a run as one that never fails."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partialmethod
from inspect import isfunction
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.config.registry import check_installed, load_option
from rlgames.core.signals import Interrupts
from rlgames.core.untrusted import sanitized
from rlgames.runs.hyperparameters import SWEEP_FILE

TAGGED = ("game", "learner", "policy")
"""Groups whose options are tags of a run."""

MAX_REASON_LENGTH = 300
"""Characters of a library's error that a warning repeats."""

ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A tracker's ids of runs; run.json, which holds them, may come from a stranger."""


class TrackedRun(NamedTuple):
    """A run in a tracker: its id, and the path of the local store that has it, relative to the
    run's directory; None for a server, or for a tracker that needs none."""

    id: str
    store: str | None = None


class ResumePoint(NamedTuple):
    """Where a run resumes: games played, and lines of metrics.jsonl that belong to them.

    num_event_bytes: of TensorBoard's files that belong to them. is_changed: the run resumes with
    another config.
    """

    games: int
    num_lines: int
    num_event_bytes: int = 0
    is_changed: bool = False


@dataclass(frozen=True)
class RunResults:
    """The final evaluations of a run that is done.

    best, final: the metrics of the checkpoint that was selected and of the final network.
    best_games: games played before the best checkpoint was saved. is_exact: all ways the games can
    go were played. references: random and optimal play, as far as known. opponent_statistics: of
    the opponent's play against the best checkpoint, see Player.statistics.
    """

    best: dict[str, float]
    final: dict[str, float]
    best_games: int
    is_exact: bool
    references: dict[str, float]
    opponent_statistics: dict[str, float]

    @property
    def table(self) -> list[tuple[str, float | None, float | None]]:
        """Each metric, and its values for the best and for the final network; None: not measured.
        References have one value, in the first column."""
        best = self.best | {f"reference {name}": value for name, value in self.references.items()}
        names = dict.fromkeys((*best, *self.final))
        return [(name, best.get(name), self.final.get(name)) for name in names]


TABLE_COLUMNS = ("metric", "best checkpoint", "final network")
"""The columns of RunResults.table."""


@dataclass(frozen=True)
class RunStart:
    """What a logger is given when a process of a run starts.

    config: plain; yaml: the same as text. settings: those that distinguish the run from others.
    resume_point: where it resumes; of 0 games for a new run. earlier: the run in this tracker, from
    an earlier process; None without one. commit: of rlgames' repository; None if unknown.
    """

    directory: Path
    config: dict[str, Any]
    yaml: str
    settings: dict[str, Any]
    resume_point: ResumePoint = ResumePoint(0, 0)
    earlier: TrackedRun | None = None
    commit: str | None = None

    @property
    def sweep(self) -> str | None:
        """The name of the sweep that the run is a job of."""
        folder = self.directory.absolute().parent
        return folder.name if os.path.lexists(folder / SWEEP_FILE) else None

    @property
    def label(self) -> str:
        """A name for the run: its directory's, with the game if that is only a date."""
        game, name = self.config["game"]["name"], self.directory.name
        return name if self.sweep or not name[:4].isdecimal() else f"{game} {name}"

    @property
    def tags(self) -> list[str]:
        """The options that people look for."""
        return list(dict.fromkeys(self.config[group]["name"] for group in TAGGED))


class Logger:
    """Where a run is logged. Each method may raise; the run then continues without the logger.

    A logger is made with the keys of its option. start is called first, close or abandon last.
    tracked: the run in the tracker once it is started, given back to start when the run resumes;
    None without any.
    """

    tracked: TrackedRun | None = None

    def start(self, run: RunStart) -> None:
        """Create or continue the run in the tracker, and log its config."""

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        """Metrics by name after this many games."""

    def reference(self, games: int, name: str, value: float) -> None:
        """A point of the flat line of random or optimal play, named reference/METRIC/PLAYER."""
        self.scalars(games, {name: value})

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """The distribution of values [count]."""

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF."""

    def layout(self, metric: str, best_by: str) -> None:
        """The metric of the game, and the one that selects the best checkpoint, to chart first."""

    def results(self, games: int, results: RunResults) -> None:
        """The final evaluations of a run that is done."""

    def artifact(self, path: Path) -> None:
        """The best checkpoint of a run that is done."""

    def sync(self) -> None:
        """Force what was logged to the disk."""

    def close(self, status: str) -> None:
        """The run ends: "done", "interrupted" or "failed"."""

    def abandon(self) -> None:
        """Let go of everything at once, writing nothing more."""


class Loggers(Logger):
    """The loggers of a run as one: each gets every call. One that fails is reported once, by warn,
    and skipped from then on.

    interrupts: a second Ctrl-C may have torn a record; nothing is logged after it.
    """

    def __init__(
        self, loggers: Mapping[str, Logger], warn: Callable[[str], None], interrupts: Interrupts
    ) -> None:
        self._loggers, self._warn, self._interrupts = dict(loggers), warn, interrupts

    @property
    def tracked_runs(self) -> dict[str, TrackedRun]:
        """The run in the trackers that have it, by the name of the logger."""
        runs = {name: logger.tracked for name, logger in self._loggers.items()}
        return {name: run for name, run in runs.items() if run is not None}

    def start_all(self, run: RunStart, earlier: Mapping[str, TrackedRun]) -> None:
        """Start each logger, and warn if a tracker has lost the run.

        earlier: the run in the trackers, from earlier processes, by the name of the logger.
        """
        for name in [*self._loggers]:
            before = earlier.get(name)
            self._guard(name, methodcaller("start", replace(run, earlier=before)))
            now = self._loggers[name].tracked
            if before is not None and now is not None and before.id != now.id:
                self._warn(f"logger={name} no longer finds run {before.id}; it starts a new run")

    def close(self, status: str) -> None:
        self._call_each("close", status)
        self._loggers.clear()

    def abandon(self) -> None:
        """Let go of loggers that were not closed."""
        for logger in self._loggers.values():
            with contextlib.suppress(Exception):
                logger.abandon()

    def _call_each(self, method: str, *args: Any, **options: Any) -> None:
        for name in [*self._loggers]:
            self._guard(name, methodcaller(method, *args, **options))

    def _guard(self, name: str, call: Callable[[Logger], None]) -> None:
        if self._interrupts.is_forced:
            return
        try:
            with self._interrupts.shielded():
                call(self._loggers[name])
        except Exception as error:
            logger, self._loggers[name] = self._loggers[name], Logger()  # which does nothing
            self._loggers[name].tracked = logger.tracked
            reason = sanitized(error, MAX_REASON_LENGTH) or type(error).__name__
            self._warn(f"logger={name} failed ({reason}); the run continues without it")
            logger.abandon()


for _method, _value in vars(Logger).items():
    if isfunction(_value) and _method not in vars(Loggers):
        setattr(Loggers, _method, partialmethod(Loggers._call_each, _method))


def build_loggers(config: Mapping[str, Any]) -> dict[str, Logger]:
    """The loggers that a training's plain config names. Raises ConfigError for one whose package is
    not installed."""
    loggers = {}
    for name, node in config["logger"].items():
        check_installed("logger", name)
        keys = {key: value for key, value in node.items() if key != "name"}
        loggers[name] = load_option("logger", name)(**keys)
    return loggers


def valid_tracked_runs(trackers: Any) -> dict[str, TrackedRun]:
    """The runs in run.json's field `trackers`, untrusted: those whose ids have the form of ids."""
    runs = {}
    for name, node in trackers.items() if isinstance(trackers, dict) else ():
        run_id, store = (node.get("id"), node.get("store")) if isinstance(node, dict) else (0, 0)
        if isinstance(run_id, str) and ID_PATTERN.fullmatch(run_id):
            runs[str(name)] = TrackedRun(run_id, store if isinstance(store, str) else None)
    return runs
