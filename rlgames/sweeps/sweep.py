"""A sweep: a directory with a manifest of its jobs, and a directory for each of them.

How far a job is stands in its own files only, so that nothing can disagree with them. A job's
directory is named by what tells it from the others, for TensorBoard shows runs by their paths.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from rlgames.config.compose import quoted
from rlgames.core.errors import ConfigError, report_error
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.core.text import printable
from rlgames.runs.checkpoint import LATEST
from rlgames.runs.directory import lock_directory, write_atomically
from rlgames.runs.files import read_run
from rlgames.sweeps import jobs as sweeps_jobs
from rlgames.sweeps import launchers

MANIFEST = "sweep.json"
SHUTDOWN_SECONDS = 20.0
"""Seconds in which the jobs of a sweep that was killed save and end."""

QUOTES = "[]'\""

MAX_NAME_LENGTH = 100
"""No job's directory has a longer name."""


@dataclass(frozen=True)
class Job:
    """overrides: what a person reads. config: plain and whole, what is trained."""

    overrides: list[str]
    config: dict[str, Any]


@dataclass
class Sweep:
    """words: as they were typed. launcher: those of them for Hydra's launcher. jobs: in order.

    search: what rlgames.hparams goes on from, None where all jobs are known from the beginning.
    """

    directory: Path
    words: list[str]
    launcher: list[str]
    jobs: list[Job] = field(default_factory=list)
    search: dict[str, Any] | None = None

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises ConfigError for a directory without a manifest that can be read."""
        path = directory / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            entries = [
                Job([str(word) for word in job["overrides"]], dict(job["config"]))
                for job in found["jobs"]
            ]
            words, launcher = (
                [str(word) for word in found[name]] for name in ("words", "launcher")
            )
            search = None if found["search"] is None else dict(found["search"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise ConfigError(f"{path} is no manifest of a sweep ({error})") from None
        return cls(directory, words, launcher, entries, search)

    def write(self) -> None:
        told = {name: value for name, value in asdict(self).items() if name != "directory"}
        write_atomically(self.directory / MANIFEST, json.dumps(told, indent=1) + "\n")

    def path(self, number: int) -> Path:
        """The directory of a job: its number and the words that not all jobs have."""
        own = [word for word in self.jobs[number].overrides if word not in self._shared]
        name = f"{number}_{','.join(map(_readable, own))}" if own else str(number)
        return self.directory / name[:MAX_NAME_LENGTH]

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The words of every job; none in a search, where each job has those proposed for it."""
        if self.search is not None or not self.jobs:
            return frozenset()
        return frozenset.intersection(*(frozenset(job.overrides) for job in self.jobs))

    def status(self, number: int) -> str:
        """done, broken off (there is a checkpoint to go on from) or not begun."""
        path = self.path(number)
        if read_run(path).get("status") == "done":
            return "done"
        return "broken off" if (path / "checkpoints" / LATEST).exists() else "not begun"

    @property
    def left(self) -> list[int]:
        """The numbers of the jobs that are not done."""
        return [number for number in range(len(self.jobs)) if self.status(number) != "done"]

    def why(self, number: int) -> str:
        """What the files of a job that is not done say about that."""
        status = read_run(self.path(number)).get("status")
        if status in ("running", "interrupted"):
            return "killed" if status == "running" else "interrupted"
        try:
            log = (self.path(number) / "train.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "not begun"
        return f"failed: {(log.strip().splitlines() or ['without a word'])[-1]}"

    def how_to_go_on(self) -> str:
        return shlex.join(["rlgames", "resume", str(self.directory), *self.launcher])

    @contextmanager
    def owned(self) -> Iterator[Interrupts]:
        """Have the sweep for this process, in which signals make the jobs save and end.

        Raises ConfigError where another process has it, or one of its jobs, and Interrupted, with
        how to go on, at the end of the block if there was a signal.
        """
        stop = self.directory / sweeps_jobs.STOP_FILE
        lock = lock_directory(self.directory)
        try:
            with Interrupts(on_first_signal=stop.touch) as interrupts:
                self._wait()
                stop.unlink(missing_ok=True)
                yield interrupts
        except Interrupted as end:
            raise Interrupted(end.number, f"go on with: {self.how_to_go_on()}") from None
        finally:
            stop.unlink(missing_ok=True)
            lock.release()

    def _wait(self) -> None:
        """Until the jobs of a sweep that was killed have saved. Raises ConfigError."""
        until = time.monotonic() + SHUTDOWN_SECONDS
        for number in self.left:
            path = self.path(number)
            if (path / "lock").exists():
                lock_directory(path, max(0.0, until - time.monotonic())).release()

    def launch(self, numbers: Sequence[int], options: list[str], interrupts: Interrupts) -> None:
        """Do these jobs, each in a process of its own. options: words that those need, too."""
        if not numbers:
            return
        words = [
            f"directory={quoted(str(self.directory.absolute()))}",
            f"job={','.join(quoted(self.path(number).name) for number in numbers)}",
            f"owner={quoted(sweeps_jobs.this_process())}",
            f"options=[{','.join(map(quoted, options))}]",
        ]
        if "hydra/launcher=submitit_local" in self.launcher:  # which begins all of a batch at once
            words.append(f"hydra.sweeper.max_batch_size={os.cpu_count()}")
        with interrupts.shielded():
            try:
                launchers.launch(sweeps_jobs.run_job, [*words, *self.launcher])
            except Exception as error:
                told = f"{type(error).__name__}: {' '.join(str(error).split())}"
                report_error(ConfigError(f"the launcher failed: {told}"), False)

    def tell(self) -> int:
        """Say what is done and name what is not; the exit code."""
        left = self.left
        for number in left:
            report_error(ConfigError(f"{self.path(number)}: {self.why(number)}"), False)
        told = f"{len(self.jobs) - len(left)} of {len(self.jobs)} jobs done, in {self.directory}"
        print(printable(told), flush=True)
        if left:
            report_error(ConfigError(f"go on with: {self.how_to_go_on()}"), False)
        return 3 if left else 0

    def list_left(self) -> None:
        """What would run."""
        for number in self.left:
            words = " ".join(self.jobs[number].overrides)
            print(printable(f"{number}: {self.status(number)}: {words}"))
        told = f"{len(self.left)} of {len(self.jobs)} jobs would run, in {self.directory}"
        print(printable(told))


def _readable(word: str) -> str:
    """A word of a job as a part of a file's name, its number to four digits."""
    name, _, value = word.partition("=")
    with contextlib.suppress(ValueError):
        value = value if value.isdecimal() else f"{float(value):.4g}"
    return re.sub(r"[^\w.+=-]+", "-", f"{name}={value.strip(QUOTES)}", flags=re.ASCII)
