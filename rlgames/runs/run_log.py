"""What a run writes besides checkpoints: config, provenance, metrics, log messages."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
from numpy.typing import NDArray

from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupts
from rlgames.runs.checkpoint import remove_leftovers
from rlgames.runs.directory import lock_directory, write_atomically
from rlgames.runs.files import metric_lines, read_run
from rlgames.runs.provenance import provenance, timestamp
from rlgames.runs.tensorboard import TensorBoardLogger

MAX_REPEATED_LINES = 100
"""Lines of the last checkpoint's games that TensorBoard is sent again when a run resumes."""


class ResumePoint(NamedTuple):
    """Where a run resumes: games played, and lines of metrics.jsonl that belong to them."""

    games: int
    num_lines: int


class RunLog:
    """The files of one run, locked for this process until finish. Metrics are indexed by games.

    resumed_at: None for a new run; whatever was logged after it is removed. lock: of the directory,
        if the caller has it. num_lines: lines of metrics.jsonl.
    Raises ConfigError for a directory that already holds a run, or that another process uses, and
    OSError.
    """

    def __init__(
        self,
        directory: Path,
        config: dict[str, Any],
        yaml: str,
        interrupts: Interrupts,
        resumed_at: ResumePoint | None = None,
        lock: filelock.BaseFileLock | None = None,
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = lock or lock_directory(directory)
        try:
            self._claim(config, yaml, resumed_at)
            resume_point = resumed_at or ResumePoint(0, 0)
            self._metrics_path = directory / "metrics.jsonl"
            self.num_lines, repeated = _cut_lines(self._metrics_path, resume_point)
            self._metrics = open(self._metrics_path, "a", encoding="utf-8")  # noqa: SIM115
            self.logger, self._handler = _open_logger(directory)
            self._random: float | None = None
            first_games = resume_point.games
            self._tensorboard = TensorBoardLogger(directory, first_games, self._warn, interrupts)
            self._tensorboard.text(first_games, "config", yaml)
            self._tensorboard.hyperparameters(config)
            for line in repeated:  # TensorBoard forgets them with what came after
                metrics = {name: value for name, value in line.items() if name != "games"}
                self._tensorboard.scalars(first_games, metrics)
        except BaseException:
            self._lock.release()
            raise

    def add(self, games: int, metrics: dict[str, float]) -> None:
        """Write a line of metrics.jsonl, and the same metrics to TensorBoard."""
        self._metrics.write(json.dumps({"games": games, **metrics}) + "\n")
        self._metrics.flush()
        self.num_lines += 1
        self._tensorboard.scalars(games, metrics)
        if self._random is not None and any(name.startswith("eval/") for name in metrics):
            self._tensorboard.reference("random", self._random, (games,))

    def set_references(self, games: int, metric: str, best_by: str, random: float | None) -> None:
        """Record the metric of the game, the one that selects the best checkpoint, and what random
        play reaches, which is drawn beside the metric."""
        self._run |= {"figure": metric, "best_by": best_by}
        self._write_run()
        self._tensorboard.layout(metric, best_by)
        self._random = random
        if random is not None:
            self._tensorboard.reference("random", random, (games,))

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """A histogram in TensorBoard."""
        self._tensorboard.histogram(games, name, values)

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF, in TensorBoard and, only the latest, as pictures/NAME."""
        self._tensorboard.image(games, name, encoded)
        suffix = "gif" if encoded.startswith(b"GIF") else "png"
        path = self.directory / "pictures" / f"{name.replace('/', '_')}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded)

    def flush(self) -> None:
        """Force the metrics to the disk."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())

    def finish(self, status: str, games: int, results: dict[str, float], seconds: float) -> None:
        """Close the files and release the lock.

        results: the final metrics of a run that is done. seconds: wall-clock time of all processes
        of the run.
        """
        if status == "done":
            self._write_results(games, results)
        self._tensorboard.close()
        try:
            self._metrics.close()
            ending = {"end": timestamp(), "status": status, "games": games, "seconds": seconds}
            self._run |= ending
            self._write_run()
        finally:
            self.logger.removeHandler(self._handler)
            self._handler.close()
            self._lock.release()

    def _claim(self, config: dict[str, Any], yaml: str, resumed_at: ResumePoint | None) -> None:
        """Make the directory that of this run and process."""
        directory = self.directory
        run = read_run(directory)
        if resumed_at is None:
            if run and any((directory / "checkpoints").glob("*.safetensors")):
                raise ConfigError(
                    f"{directory} already holds a run",
                    f"name another out=, or resume it: rlgames resume {directory}",
                )
            run = provenance(config)
        else:
            earlier = run.get("resumed")
            resumed = {"games": resumed_at.games, "at": timestamp()}
            run["resumed"] = [*(earlier if isinstance(earlier, list) else []), resumed]
        (directory / "checkpoints").mkdir(exist_ok=True)
        remove_leftovers(directory / "checkpoints")
        write_atomically(directory / "config.yaml", yaml)
        for name in ("results", "seconds"):  # of a run with fewer games
            run.pop(name, None)
        run |= {"end": None, "status": "running", "pid": os.getpid(), "host": platform.node()}
        self._run = run
        self._write_run()

    def _write_results(self, games: int, results: dict[str, float]) -> None:
        for name in ("random", "optimal"):
            # TensorBoard forgets those points of a line that come after its newest one.
            is_drawn = name == "random" and self._random is not None
            if name in results and not is_drawn:
                self._tensorboard.reference(name, results[name], (0, games))
        self._tensorboard.final(games, results)
        self._run["results"] = results

    def _write_run(self) -> None:
        write_atomically(self.directory / "run.json", json.dumps(self._run, indent=2) + "\n")

    def _warn(self, message: str) -> None:
        self.logger.warning(message)
        print(f"rlgames: {message}", file=sys.stderr)


class _QuietFileHandler(logging.FileHandler):
    """Prints no traceback where a message cannot be written: the cause is reported elsewhere."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


def _open_logger(directory: Path) -> tuple[logging.Logger, logging.Handler]:
    """A logger that writes to train.log only, and its handler."""
    logger = logging.getLogger(f"rlgames.run.{directory}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = _QuietFileHandler(directory / "train.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    return logger, handler


def _cut_lines(path: Path, resumed_at: ResumePoint) -> tuple[int, list[dict[str, float]]]:
    """Remove all lines after a resume point. Returns how many are left, and the last of those that
    were logged at its games."""
    num_lines, repeated = 0, deque[dict[str, float]](maxlen=MAX_REPEATED_LINES)
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    with open(temporary, "x", encoding="utf-8") as new:
        if resumed_at.num_lines and path.exists():
            with open(path, "rb") as file:
                for line in islice(metric_lines(file), resumed_at.num_lines):
                    new.write(json.dumps(line) + "\n")
                    num_lines += 1
                    if line["games"] == resumed_at.games:
                        repeated.append(line)
    os.replace(temporary, path)
    return num_lines, [*repeated]
