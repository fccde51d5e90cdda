"""What a run leaves on disk: its config, its provenance, its metrics, its log."""

from __future__ import annotations

import datetime
import json
import logging
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rlgames import checkpoint
from rlgames.charts import Charts
from rlgames.config import ConfigError

PARTS = ("rlgames", "torch", "numpy", "hydra-core", "omegaconf", "tensorboard", "safetensors")


def fresh_directory(parent: Path) -> Path:
    """Make a new directory named by date, time and a counter; two runs never get the same one."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    for counter in range(10_000):
        path = parent / f"{stamp}_{counter}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent} has 10 000 runs of this second")


class RunLog:
    """The files of one run, which has them for itself until finish. Metrics are indexed by games.

    goes_on: None for a new run, otherwise how many games it goes on from and how many lines of
        metrics belong to them; whatever came after is forgotten.
    Raises ConfigError for a directory that holds a run already, or that another process runs in,
    and OSError.
    """

    def __init__(
        self,
        directory: Path,
        config: dict[str, Any],
        yaml: str,
        goes_on: tuple[int, int] | None = None,
    ) -> None:
        self.directory, self._config = directory, config
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = locked(directory)
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
        checkpoint.sweep(directory / "checkpoints")
        write_whole(directory / "config.yaml", yaml)
        self._run = _provenance(self._config) if goes_on is None else before
        if goes_on is not None:
            self._run["resumed"] = [*before.get("resumed", []), {"games": first, "at": _now()}]
        self._run |= {"end": None, "status": "running", "pid": os.getpid()}
        self._write_run()
        kept = _keep_lines(directory / "metrics.jsonl", goes_on[1] if goes_on else 0)
        self.lines = len(kept)
        self._metrics = open(directory / "metrics.jsonl", "a", encoding="utf-8")  # noqa: SIM115
        self.log = logging.getLogger(f"rlgames.run.{directory}")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        self._handler = _Handler(directory / "train.log", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.log.addHandler(self._handler)
        self._charts = Charts(directory, first, self._complain)
        self._charts.text(first, "config", yaml)
        for line in kept:
            if line["games"] == first:  # forgotten with what came after
                self._charts.scalars(first, _metrics_of(line))

    def add(self, games: int, metrics: dict[str, float]) -> None:
        """One line of metrics.jsonl, and the same numbers for TensorBoard."""
        self._metrics.write(json.dumps({"games": games, **metrics}) + "\n")
        self._metrics.flush()
        self.lines += 1
        self._charts.scalars(games, metrics)

    def spread(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """How numbers are spread, as a histogram of TensorBoard."""
        self._charts.spread(games, name, values)

    def picture(self, games: int, name: str, picture: NDArray[np.uint8]) -> None:
        """uint8 [H, W, 3], for TensorBoard and as pictures/<name>.png, the latest one."""
        self._charts.picture(games, name, picture)
        path = self.directory / "pictures" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(picture).save(path)

    def flush(self) -> None:
        """Hand everything to the system, so that a checkpoint is never ahead of the metrics."""
        self._metrics.flush()
        self._charts.flush()

    def finish(self, status: str, games: int, results: dict[str, float]) -> None:
        """Close the run: hyper-parameters beside its final figures, status and end."""
        if status == "done":
            self._charts.final(games, self._config, results)
        self._charts.close()
        try:
            self._metrics.close()
            self._run |= {"end": _now(), "status": status, "games": games, "results": results}
            self._write_run()
        finally:
            self.log.removeHandler(self._handler)
            self._handler.close()
            self._lock.release()

    def _complain(self, what: str) -> None:
        self.log.warning(what)
        print(f"rlgames: {what}", file=sys.stderr)

    def _write_run(self) -> None:
        write_whole(self.directory / "run.json", json.dumps(self._run, indent=2) + "\n")


class _Handler(logging.FileHandler):
    """What cannot be logged is not worth a traceback: whatever fails is told by its own error."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


def read_run(directory: Path) -> dict[str, Any]:
    """What run.json says; empty where there is none that can be read."""
    try:
        found = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return {"status": "unknown"}
    return found if isinstance(found, dict) else {"status": "unknown"}


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a metrics.jsonl, first to last, up to one that was torn."""
    found: list[dict[str, float]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            break
        if not isinstance(value, dict) or not isinstance(value.get("games"), int):
            break
        found.append(value)
    return found


def _keep_lines(path: Path, count: int) -> list[dict[str, float]]:
    """Cut the file after so many lines; what is kept."""
    kept = read_metrics(path)[:count] if count and path.exists() else []
    write_whole(path, "".join(json.dumps(line) + "\n" for line in kept))
    return kept


def _metrics_of(line: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name != "games"}


def write_whole(path: Path, text: str) -> None:
    """Write beside path, then rename: whoever reads it finds the old or the new, whole."""
    aside = path.with_name(path.name + ".tmp")
    aside.unlink(missing_ok=True)
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def locked(directory: Path, seconds: float = 0) -> filelock.BaseFileLock:
    """The lock of a run or a sweep, which the system takes back when its owner dies.

    seconds: how long to wait for it.
    Raises ConfigError where another process has it.
    """
    lock = filelock.FileLock(directory / "lock")
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout:
        owner = read_run(directory).get("pid")
        raise ConfigError(
            f"another process{f' ({owner})' if owner else ''} is running in {directory}",
            "wait for its end, or name another directory",
        ) from None
    return lock


def _provenance(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": sys.argv,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PARTS},
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
