"""What a run leaves on disk: its config, its provenance, its metrics, its log."""

from __future__ import annotations

import datetime
import json
import logging
import os
import platform
import subprocess
import sys
from collections import deque
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import filelock
import numpy as np
from numpy.typing import NDArray

from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupts
from rlgames.runs.checkpoint import remove_leftovers
from rlgames.runs.directory import lock_directory, write_atomically
from rlgames.runs.files import metric_lines, read_run
from rlgames.runs.tensorboard import TensorBoardLogger

VERSIONED_PACKAGES = (
    "rlgames",
    "torch",
    "numpy",
    "hydra-core",
    "omegaconf",
    "tensorboard",
    "safetensors",
)


class RunLog:
    """The files of one run, which has them for itself until finish. Metrics are indexed by games.

    goes_on: None for a new run, otherwise how many games it goes on from and how many lines of
        metrics belong to them; whatever came after is forgotten. lock: of the directory, if the
        caller has it.
    Raises ConfigError for a directory that holds a run already, or that another process runs in,
    and OSError.
    """

    def __init__(
        self,
        directory: Path,
        config: dict[str, Any],
        yaml: str,
        interrupts: Interrupts,
        goes_on: tuple[int, int] | None = None,
        lock: filelock.BaseFileLock | None = None,
    ) -> None:
        self.directory, self._config, self._interrupts = directory, config, interrupts
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = lock or lock_directory(directory)
        try:
            self._open(yaml, goes_on)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, yaml: str, goes_on: tuple[int, int] | None) -> None:
        directory, first = self.directory, goes_on[0] if goes_on else 0
        before = read_run(directory)
        if before and goes_on is None and any((directory / "checkpoints").glob("*.safetensors")):
            raise ConfigError(
                f"{directory} already holds a run",
                f"name another out=, or go on with it: rlgames resume {directory}",
            )
        (directory / "checkpoints").mkdir(exist_ok=True)
        remove_leftovers(directory / "checkpoints")
        write_atomically(directory / "config.yaml", yaml)
        self._run = _provenance(self._config) if goes_on is None else before
        if goes_on is not None:
            resumed = before.get("resumed")
            earlier = resumed if isinstance(resumed, list) else []
            self._run["resumed"] = [*earlier, {"games": first, "at": _now()}]
        for name in ("results", "seconds"):  # they were of a run with fewer games
            self._run.pop(name, None)
        self._run |= {"end": None, "status": "running", "pid": os.getpid()}
        self._run |= {"host": platform.node()}
        self._write_run()
        self.lines, latest = _keep_lines(directory / "metrics.jsonl", *(goes_on or (0, 0)))
        self._metrics = open(directory / "metrics.jsonl", "a", encoding="utf-8")  # noqa: SIM115
        self.log = logging.getLogger(f"rlgames.run.{directory}")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        self._handler = _Handler(directory / "train.log", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.log.addHandler(self._handler)
        self._charts = TensorBoardLogger(directory, first, self._complain, self._interrupts)
        self._random: float | None = None
        self._charts.text(first, "config", yaml)
        self._charts.settings(self._config)
        for line in latest:  # forgotten with what came after
            self._charts.scalars(first, _metrics_of(line))

    def add(self, games: int, metrics: dict[str, float]) -> None:
        """One line of metrics.jsonl, and the same numbers for TensorBoard."""
        self._metrics.write(json.dumps({"games": games, **metrics}) + "\n")
        self._metrics.flush()
        self.lines += 1
        self._charts.scalars(games, metrics)
        if self._random is not None and any(name.startswith("eval/") for name in metrics):
            self._charts.reference("random", self._random, (games,))

    def judge(self, games: int, figure: str, best_by: str, random: float | None) -> None:
        """Say how the run is judged: by which figure of its game, by which its best checkpoint is
        chosen, and what random play comes to, which is drawn beside the figure."""
        self._run |= {"figure": figure, "best_by": best_by}
        self._write_run()
        self._charts.layout(figure, best_by)
        self._random = random
        if random is not None:
            self._charts.reference("random", random, (games,))

    def spread(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """How numbers are spread, as a histogram of TensorBoard."""
        self._charts.spread(games, name, values)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF, for TensorBoard and as pictures/<name>, the latest one."""
        self._charts.picture(games, name, encoded)
        kind = "gif" if encoded.startswith(b"GIF") else "png"
        path = self.directory / "pictures" / f"{name.replace('/', '_')}.{kind}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded)

    def flush(self) -> None:
        """Force the metrics to the disk and hand the charts to the system, so that a checkpoint is
        never ahead of them."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._charts.flush()

    def finish(self, status: str, games: int, results: dict[str, float], seconds: float) -> None:
        """Close the run: its final figures, if it is done, how long it took, status and end.

        seconds: of all the processes that it ran in.
        """
        if status == "done":
            for name in ("random", "optimal"):
                # TensorBoard forgets the points of a line that come after its newest one.
                drawn = name == "random" and self._random is not None
                if name in results and not drawn:
                    self._charts.reference(name, results[name], (0, games))
            self._charts.final(games, results)
            self._run["results"] = results
        self._charts.close()
        try:
            self._metrics.close()
            self._run |= {"end": _now(), "status": status, "games": games, "seconds": seconds}
            self._write_run()
        finally:
            self.log.removeHandler(self._handler)
            self._handler.close()
            self._lock.release()

    def _complain(self, what: str) -> None:
        self.log.warning(what)
        print(f"rlgames: {what}", file=sys.stderr)

    def _write_run(self) -> None:
        write_atomically(self.directory / "run.json", json.dumps(self._run, indent=2) + "\n")


class _Handler(logging.FileHandler):
    """What cannot be logged is not worth a traceback: whatever fails is told by its own error."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


def _keep_lines(path: Path, games: int, count: int) -> tuple[int, list[dict[str, float]]]:
    """Cut the file after so many lines; how many there are, and those of so many games,
    the last hundred of them."""
    kept, latest = 0, deque[dict[str, float]](maxlen=100)
    aside = path.with_name(path.name + ".tmp")
    aside.unlink(missing_ok=True)
    with open(aside, "x", encoding="utf-8") as new:
        if count and path.exists():
            with open(path, "rb") as file:
                for line in islice(metric_lines(file), count):
                    new.write(json.dumps(line) + "\n")
                    kept += 1
                    latest.extend([line] if line["games"] == games else [])
    os.replace(aside, path)
    return kept, [*latest]


def _metrics_of(line: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name != "games"}


def _provenance(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": sys.argv,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in VERSIONED_PACKAGES},
        **_commit(),
        "processor": _processor(),
        "threads": config["threads"],
        "seed": config["seed"],
        "start": _now(),
    }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    except OSError:
        pass
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _commit() -> dict[str, Any]:
    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(Path(__file__).parent), *words],
                capture_output=True,
                text=True,
                timeout=5,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    # An installed copy may lie inside somebody else's repository.
    if commit is None or git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {"commit": None, "clean": None}
    return {"commit": commit, "clean": git("status", "--porcelain") == ""}
