"""What a run writes besides checkpoints: config, provenance, metrics, log messages, pictures."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import secrets
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlgames.core.callbacks import Callback
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.runs import storage
from rlgames.runs.directory import DirectoryLock
from rlgames.runs.files import BEST, read_metrics, read_run
from rlgames.runs.loggers import (
    Loggers,
    ResumePoint,
    RunStart,
    Table,
    build_loggers,
    event_files,
)

RESULT_FIELDS = ("results", "final_results", "best_games", "exact", "opponent_statistics")
"""The fields of run.json that a run has when it is done; `results` is about its best checkpoint."""

VERSIONED_PACKAGES = ("torch", "numpy", "hydra-core", "omegaconf", "tensorboard")

ID_PATTERN = re.compile(r"[0-9a-f]{8}")
"""Of a run's id in trackers. A run.json that resumes may come from a stranger."""

GIT_SECONDS = 5


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
    def table(self) -> Table:
        """Each metric, and its values for the best and for the final network. References have one
        value, in the first column."""
        best = self.best | {f"reference {name}": value for name, value in self.references.items()}
        names = dict.fromkeys((*best, *self.final))
        return [(name, best.get(name), self.final.get(name)) for name in names]


class RunLog(Callback):
    """The files of one run, locked for this process until close. Metrics are indexed by games.

    lock: of the directory, claimed for a new run. metric: of the game; best_by: the metric that
        selects the best checkpoint. resumed_at: None for a new run; whatever was logged after it is
        removed. num_lines: lines of metrics.jsonl.
    Raises OSError. All files are then closed; the lock stays.
    """

    def __init__(
        self,
        lock: DirectoryLock,
        config: dict[str, Any],
        yaml: str,
        metric: str,
        best_by: str,
        interrupts: Interrupts,
        resumed_at: ResumePoint | None = None,
    ) -> None:
        self.directory, self._lock = lock.directory, lock
        self._random: float | None = None
        self._metric, self._cannot_draw = metric, False
        point = resumed_at or ResumePoint(0, 0)
        self._run = _started(self.directory, config, resumed_at)
        self._run |= {"metric": metric, "best_by": best_by}
        self._write_run()  # first: a directory with it can be started again
        storage.make_directory(self.directory / "checkpoints")
        storage.write_file(self.directory, "config.yaml", yaml)
        self.num_lines = _cut_lines(self.directory, point.num_lines)
        with contextlib.ExitStack() as stack:
            self._metrics = storage.open_to_append(self.directory, "metrics.jsonl")
            stack.callback(self._metrics.close)
            self._notes = storage.open_to_append(self.directory, "train.log")
            stack.callback(self._close_notes)
            self._loggers = Loggers(build_loggers(config), self.warn, interrupts)
            stack.callback(self._loggers.abandon)
            facts = (self._run["id"], config, yaml, metric, best_by, point, self.warn)
            self._loggers.call("start", RunStart(self.directory, *facts))
            self._open_files = stack.pop_all()

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        """Write what random play and the optimum reach, and draw the first next to the metric."""
        self._random = random
        self._run["references"] = {"random": random, "optimal": optimal}
        self._write_run()
        if random is None:
            self.note("random play takes too long to be measured before the end")

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        """Write a line of metrics.jsonl, the same metrics to the loggers, and evaluations to
        train.log."""
        with storage.errors_name(self.directory / "metrics.jsonl"):
            self._metrics.write(json.dumps({"games": games, **metrics}).encode() + b"\n")
            self._metrics.flush()
        self.num_lines += 1
        self._loggers.call("scalars", games, metrics)
        evaluated = [
            f"{name.removeprefix('eval/')} {value:z.4f}"
            for name, value in metrics.items()
            if name.startswith("eval/")
        ]
        if evaluated:
            self.note(f"games {games}, greedy: {', '.join(evaluated)}")
            if self._random is not None:
                self._log_reference(games, "random", self._random)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF for the loggers and, only the latest, as pictures/NAME.

        If that cannot be written, this is reported once, and no more are written.
        """
        self._loggers.call("picture", games, name, encoded)
        suffix = "gif" if encoded.startswith(b"GIF") else "png"
        name = f"pictures/{name.replace('/', '_')}.{suffix}"
        if self._cannot_draw:
            return
        try:
            storage.make_directory(self.directory / "pictures")
            storage.write_file(self.directory, name, encoded)
        except OSError as error:
            self._cannot_draw = True
            reason = getattr(error, "strerror", None) or error
            path = self.directory / name
            self.warn(f"{path} cannot be written ({reason}); the run goes on without pictures")

    @property
    def num_event_bytes(self) -> int:
        """The size of TensorBoard's files, of all processes of the run. Raises OSError."""
        return sum(path.stat().st_size for path in event_files(self.directory))

    def flush(self) -> None:
        """Force metrics and what loggers wrote to the disk."""
        self._loggers.call("sync")
        with storage.errors_name(self.directory / "metrics.jsonl"):
            storage.sync_file(self._metrics)

    def finish(
        self, status: str, games: int, seconds: float, results: RunResults | None = None
    ) -> None:
        """Write how the run ended; nothing is logged after it. Raises OSError.

        seconds: wall-clock time of all processes of the run. results: of a run that is done.
        """
        if results is not None:
            self._write_results(games, results)
            self.flush()  # before run.json counts on it
        self._loggers.close(status)
        ending = {"end": timestamp(), "status": status, "games": games, "seconds": seconds}
        self._run |= ending
        self._write_run()

    def close(self) -> None:
        """Close the files and release the lock. What cannot be written is dropped."""
        with contextlib.suppress(OSError):
            self._open_files.close()
        self._lock.release()

    def _log_reference(self, games: int, name: str, value: float) -> None:
        """A point of a flat line in the chart of the game's metric."""
        self._loggers.call("scalars", games, {f"reference/{self._metric}/{name}": value})

    def _write_results(self, games: int, results: RunResults) -> None:
        for name, value in results.references.items():
            # TensorBoard forgets those points of a line that come after its newest one.
            if name != "random" or self._random is None:
                self._log_reference(0, name, value)
                self._log_reference(games, name, value)
        best = self.directory / "checkpoints" / BEST
        self._loggers.call("results", games, results.best, results.table, best)
        self._run |= {
            "results": results.best | results.references,
            "final_results": results.final,
            "best_games": results.best_games,
            "exact": results.is_exact,
            "opponent_statistics": results.opponent_statistics,
        }

    def _write_run(self) -> None:
        storage.write_file(self.directory, "run.json", json.dumps(self._run, indent=2) + "\n")

    def warn(self, message: str) -> None:
        """A line in train.log and on standard error."""
        self.note(message)
        print(f"rlgames: {message}", file=sys.stderr)

    def note(self, message: str) -> None:
        """A line in train.log, in printable characters, because files may have put anything into
        the message. It is dropped if it cannot be written: the cause is reported elsewhere."""
        line = f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S} {printable(message)}\n"
        with contextlib.suppress(OSError, ValueError):  # ValueError: the file is closed
            self._notes.write(line.encode())
            self._notes.flush()

    def _close_notes(self) -> None:
        with contextlib.suppress(OSError):
            self._notes.close()


def _started(
    directory: Path, config: dict[str, Any], resumed_at: ResumePoint | None
) -> dict[str, Any]:
    """What run.json says once the run has started or resumed."""
    run = _provenance(config) if resumed_at is None else read_run(directory)
    if resumed_at is not None:
        earlier = run.get("resumed")
        resumed = {"games": resumed_at.games, "at": timestamp()}
        run["resumed"] = [*(earlier if isinstance(earlier, list) else []), resumed]
    for name in (*RESULT_FIELDS, "seconds"):  # of a run with fewer games
        run.pop(name, None)
    if not ID_PATTERN.fullmatch(str(run.get("id"))):
        run["id"] = secrets.token_hex(4)
    state = {"end": None, "status": "running", "pid": os.getpid(), "host": platform.node()}
    return run | state | {"config": config}


def _cut_lines(directory: Path, num_lines: int) -> int:
    """Keep the first lines of metrics.jsonl, up to an invalid one. Returns how many are left."""
    lines = read_metrics(directory / "metrics.jsonl")[:num_lines] if num_lines else []
    storage.write_file(
        directory, "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines)
    )
    return len(lines)


def _provenance(config: dict[str, Any]) -> dict[str, Any]:
    """The part of run.json on how a run was started. config: of the run."""
    versions = {name: version(name) for name in VERSIONED_PACKAGES}
    return {
        "command": sys.argv,
        "versions": {"python": platform.python_version(), "rlgames": version("rlgames")} | versions,
        **_commit(),
        "processor": processor(),
        "threads": config["threads"],
        "seed": config["seed"],
        "start": timestamp(),
    }


def timestamp() -> str:
    """The time in UTC, in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def processor() -> str:
    """The name of the processor, as the system has it, and its cores."""
    found = None
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.M)
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def _commit() -> dict[str, Any]:
    """The commit of the package's repository, and whether nothing is changed since; None each if
    the package does not lie in its own repository."""
    commit = _git("rev-parse", "HEAD")
    # An installed copy may lie inside another project's repository.
    if commit is None or _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {"commit": None, "clean": None}
    return {"commit": commit, "clean": _git("status", "--porcelain") == ""}


def _git(*words: str) -> str | None:
    """What git prints, None where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *words],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
