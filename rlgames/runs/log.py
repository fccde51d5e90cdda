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
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlgames.core.callbacks import Callback
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.core.version import __version__
from rlgames.runs import storage
from rlgames.runs.checkpoint import read_identity
from rlgames.runs.directory import DirectoryLock
from rlgames.runs.files import read_metrics, read_run
from rlgames.runs.loggers import Loggers, RunStart, build_loggers
from rlgames.runs.reports import BEST_REPORT, OF_TRAINING, REPORTS, metrics_of, save_report

VERSIONED_PACKAGES = ("torch", "numpy", "hydra-core", "omegaconf", "tensorboard")

ID_PATTERN = re.compile(r"[0-9a-f]{8}")
"""Of a run's id in trackers. A run.json that resumes may come from a stranger."""

GIT_SECONDS = 5


class RunLog(Callback):
    """The files of one run, locked for this process until close. Metrics are indexed by games.

    lock: of the directory, claimed for a new run. metric: of the game; best_by: the metric that
        selects the best checkpoint. resumed_at: games played before, None for a new run; num_lines:
        lines of metrics.jsonl that belong to them. Later ones are removed.
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
        resumed_at: int | None = None,
        num_lines: int = 0,
    ) -> None:
        self.directory, self._lock = lock.directory, lock
        self._run = _started(self.directory, config, resumed_at)
        self._run |= {"metric": metric, "best_by": best_by}
        self._write_run()  # first: a directory with it can be started again
        for name in OF_TRAINING:
            storage.remove_file(self.directory, f"{REPORTS}/{name}.json")
        storage.make_directory(self.directory / "checkpoints")
        storage.write_file(self.directory, "config.yaml", yaml)
        self.num_lines = _cut_lines(self.directory, num_lines)
        self._references: dict[str, float] = {}
        with contextlib.ExitStack() as stack:
            self._metrics, self._notes = (
                stack.enter_context(storage.open_to_append(self.directory, name))
                for name in ("metrics.jsonl", "train.log")
            )
            self._loggers = Loggers(build_loggers(config), self.warn, interrupts)
            run = RunStart(
                self.directory, self._run["id"], config, yaml, metric, resumed_at, self.warn
            )
            self._loggers.call("start", run)
            self._open_files = stack.pop_all()

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        """Write what random play and the optimum reach."""
        reached = self._run["references"] = {"random": random, "optimal": optimal}
        self._references = {
            f"reference/{name}": value for name, value in reached.items() if value is not None
        }
        self._write_run()

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        """Write a line of metrics.jsonl, and the same metrics to the loggers."""
        with storage.errors_name(self.directory / "metrics.jsonl"):
            self._metrics.write(json.dumps({"games": games, **metrics}).encode() + b"\n")
            self._metrics.flush()
        self.num_lines += 1
        is_evaluation = any(name.startswith("eval/") for name in metrics)
        self._loggers.call("scalars", games, metrics | (self._references if is_evaluation else {}))

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF."""
        self._loggers.call("picture", games, name, encoded)

    def flush(self) -> None:
        """Force metrics to the disk."""
        with storage.errors_name(self.directory / "metrics.jsonl"):
            storage.sync_file(self._metrics)

    def finish(
        self,
        status: str,
        games: int,
        seconds: float,
        reports: Mapping[str, tuple[str, dict[str, Any]]] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Write how the run ended; nothing is logged after it. Raises OSError.

        seconds: wall-clock time of all processes of the run. reports: of a run that is done, the
        checkpoint and the result of each evaluation that ends it; config: of these.
        """
        if reports is not None:
            for name, (checkpoint, result) in reports.items():
                digest = read_identity(self.directory / "checkpoints" / checkpoint)
                save_report(self.directory, name, "train", config, {"run": digest}, result)
            best = metrics_of(reports[BEST_REPORT][1])
            logged = {f"result/{name}": value for name, value in best.items()}
            self._loggers.call("scalars", games, logged)
            self.flush()  # before run.json counts on it
        self._loggers.close(status)
        self._run |= {"end": timestamp(), "status": status, "games": games, "seconds": seconds}
        self._write_run()

    def close(self) -> None:
        """Close the files and release the lock. What cannot be written is dropped."""
        with contextlib.suppress(OSError):
            self._open_files.close()
        self._lock.release()

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


def _started(directory: Path, config: dict[str, Any], resumed_at: int | None) -> dict[str, Any]:
    """What run.json says once the run has started or resumed."""
    run = _provenance(config) if resumed_at is None else read_run(directory)
    if resumed_at is not None:
        earlier = run.get("resumed")
        resumed = {"games": resumed_at, "at": timestamp()}
        run["resumed"] = [*(earlier if isinstance(earlier, list) else []), resumed]
    run.pop("seconds", None)  # of a run with fewer games
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
        "versions": {"python": platform.python_version(), "rlgames": __version__} | versions,
        "commit": _commit(),
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
        found = re.search(
            r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M
        )
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def _commit() -> str | None:
    """The commit of the package's repository, with -dirty if something is changed since; None if
    the package does not lie in its own repository."""
    commit = _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    # An installed copy may lie inside another project's repository.
    return commit if _git("ls-files", "--error-unmatch", Path(__file__).name) else None


def _git(*words: str) -> str | None:
    """What git prints, None where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
