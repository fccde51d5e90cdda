"""A sweep: a directory with a manifest of its jobs, and a directory for each of them.

A job's progress is recorded only in its own files. A job's directory is named by the overrides that
not all jobs have, because TensorBoard shows runs by their paths.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

from rlgames.config.words import quoted
from rlgames.core.errors import ConfigError, report_error
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.core.text import printable
from rlgames.core.untrusted import parse_json, sanitized
from rlgames.runs import storage
from rlgames.runs.directory import DirectoryLock, lock_directory
from rlgames.runs.files import LATEST, differing, flatten
from rlgames.runs.hyperparameters import MANIFEST, MAX_MANIFEST_BYTES
from rlgames.runs.run_info import read_info
from rlgames.sweeps import launchers
from rlgames.sweeps.evaluations import JobEvaluation
from rlgames.sweeps.jobs import STOP_FILE, run_job, this_process

SHUTDOWN_SECONDS = 20.0
"""Seconds that the jobs of a killed sweep have to save and exit."""

MAX_BATCH_SIZE = "hydra.sweeper.max_batch_size"
"""Hydra's key for the number of jobs that a launcher gets at once."""

OPTIONS = ("plugins=", "--config-dir=")
"""What the words begin with that have to be typed again where a sweep is resumed."""

QUOTES = "[]'\""

MAX_REASON_BYTES = 1 << 16
"""Of a job's log only the end is read."""

MAX_NAME_LENGTH = 100
"""The longest name of a job's directory."""


@dataclass(frozen=True)
class Job:
    """A job: a training, evaluations, or a training and then its evaluations.

    Args:
        overrides: as a person reads them.
        config: the complete plain config of the training; empty without one.
        directory: inside the sweep, None for one named by its number and its own overrides.
        after: the directories of the jobs that must be done first.
        links: keys of the config that name such a directory, or a file in it, by its path there.
    """

    overrides: list[str]
    config: dict[str, Any]
    directory: str | None = None
    evaluations: list[JobEvaluation] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)


@dataclass
class Sweep:
    """A sweep and its manifest.

    words: as they were typed. launcher: those for Hydra's launcher. jobs: in order.
    search: the settings of a hyperparameter search (see hparam_search), None without one.
    """

    directory: Path
    words: list[str]
    launcher: list[str]
    jobs: list[Job] = field(default_factory=list)
    search: dict[str, Any] | None = None

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises ConfigError for a directory without a manifest that can be read, and as
        storage.check_plain."""
        storage.check_plain(directory)
        return cls._parse(
            directory, lambda: storage.read_file(directory, MANIFEST, MAX_MANIFEST_BYTES)
        )

    @classmethod
    def read_job(cls, directory: Path, number: int) -> Self:
        """The sweep with this job alone, of which no other is read. Raises ConfigError."""

        def content() -> bytes:
            with storage.open_to_read(directory, MANIFEST) as file:
                head, *lines = islice(file, number + 2)
                return head + lines[number].rstrip(b",\n") + b"]}"

        return cls._parse(directory, content)

    @classmethod
    def _parse(cls, directory: Path, content: Callable[[], bytes]) -> Self:
        """A manifest. Raises ConfigError where it is none, or cannot be read."""
        path = directory / MANIFEST
        try:
            manifest = parse_json(content())
            jobs = [
                Job(
                    [str(word) for word in job["overrides"]],
                    dict(job["config"]),
                    _checked_name(job.get("directory")),
                    [JobEvaluation(**each) for each in job.get("evaluations", [])],
                    [str(_checked_name(name)) for name in job.get("after", [])],
                    {str(k): str(_checked_name(n)) for k, n in dict(job.get("links", {})).items()},
                )
                for job in manifest["jobs"]
            ]
            if not all(job.config or job.evaluations for job in jobs):
                raise ValueError("a job has neither a config nor evaluations")
            words, launcher = (
                [str(word) for word in manifest[name]] for name in ("words", "launcher")
            )
            search = None if manifest["search"] is None else dict(manifest["search"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            reason = sanitized(error)
            raise ConfigError(f"{path} is not the manifest of a sweep ({reason})") from None
        return cls(directory, words, launcher, jobs, search)

    def write(self) -> None:
        """Write the manifest, a line for each job, of which its process reads no other."""
        names = [self.name(number) for number in range(len(self.jobs))]
        jobs = [
            json.dumps(asdict(job) | {"directory": name})
            for job, name in zip(self.jobs, names, strict=True)
        ]
        head = {"words": self.words, "launcher": self.launcher, "search": self.search}
        head["listed"] = self._listed()
        text = json.dumps(head)[:-1] + ', "jobs": [\n' + ",\n".join(jobs) + "\n]}\n"
        storage.write_file(self.directory, MANIFEST, text)

    def _listed(self) -> list[str]:
        """The settings that distinguish the jobs. Not all jobs of a search are known when the first
        one starts; its space shows what it varies."""
        if self.search is not None:
            return [word.partition("=")[0] for word in self.search["space"]]
        return differing([flatten(job.config) for job in self.jobs])

    def path(self, number: int) -> Path:
        """The directory of a job."""
        return self.directory / self.name(number)

    def name(self, number: int) -> str:
        """The directory of a job inside the sweep: the one that hydra.sweep.subdir names, or its
        number and the overrides that not all jobs have."""
        directory = self.jobs[number].directory
        if directory is not None:
            return directory
        words = [word for word in self.jobs[number].overrides if word not in self._shared]
        name = f"{number}_{','.join(map(_file_name, words))}" if words else str(number)
        return name[:MAX_NAME_LENGTH]

    def setting(self, number: int) -> str:
        """The overrides of a job that not all jobs have, as a person reads them."""
        words = [word for word in self.jobs[number].overrides if word not in self._shared]
        return " ".join(words)

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The overrides that every job has; none in a search, whose jobs are not all known."""
        if self.search is not None or not self.jobs:
            return frozenset()
        return frozenset.intersection(*(frozenset(job.overrides) for job in self.jobs))

    def status(self, number: int) -> str:
        """done, unfinished (it has a checkpoint to resume from) or not started."""
        if not self.is_trained(number):
            latest = self.path(number) / "checkpoints" / LATEST
            return "unfinished" if latest.exists() else "not started"
        if not self.missing(number):
            return "done"
        return "unfinished" if self.jobs[number].config else "not started"

    def is_trained(self, number: int) -> bool:
        """Whether the training of a job is done, or it has none."""
        is_done = read_info(self.path(number)).status == "done"
        return is_done or not self.jobs[number].config

    def missing(self, number: int) -> list[JobEvaluation]:
        """The evaluations of a job that are still to be made."""
        own, evaluations = self.name(number), self.jobs[number].evaluations
        return [each for each in evaluations if each.read(self.directory, own) is None]

    @property
    def unfinished(self) -> list[int]:
        """The numbers of the jobs that are not done."""
        return [number for number in range(len(self.jobs)) if self.status(number) != "done"]

    def reason_unfinished(self, number: int) -> str:
        """Why a job is not done, by its files."""
        if needed := self.needed(number):
            return f"it needs {', '.join(needed)}"
        status = read_info(self.path(number)).status
        if status in ("running", "interrupted"):
            from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint  # which import torch

            latest = self.path(number) / "checkpoints" / LATEST
            try:
                if latest.exists():
                    Checkpoint.read(latest)
            except BadCheckpoint as error:
                return f"cannot resume: {error.error}"
            return "killed" if status == "running" else "interrupted"
        log = "train.log" if self.jobs[number].config and status != "done" else "output.log"
        try:
            end = storage.read_end(self.path(number), log, MAX_REASON_BYTES)
        except OSError:
            return "not started"
        lines = end.decode(errors="replace").strip().splitlines()
        return f"failed: {sanitized((lines or ['no message'])[-1])}"

    def resume_command(self) -> str:
        """The command line that resumes this sweep."""
        options = [word for word in self.words if word.startswith(OPTIONS)]
        return shlex.join(["rlgames", "resume", str(self.directory), *self.launcher, *options])

    @contextmanager
    def owned(self, lock: DirectoryLock) -> Iterator[Interrupts]:
        """A block in which signals make the jobs save and exit. It ends by releasing the lock.

        Raises ConfigError where another process holds one of the jobs, and Interrupted, with the
        command that resumes, at the end of the block after a signal.
        """
        try:
            with Interrupts(on_first_signal=self._stop_jobs) as interrupts:
                self._wait_for_jobs()
                storage.remove_file(self.directory, STOP_FILE)
                yield interrupts
        except Interrupted as end:
            raise Interrupted(end.number, f"resume with: {self.resume_command()}") from None
        finally:
            with contextlib.suppress(OSError):  # the next process also removes it
                storage.remove_file(self.directory, STOP_FILE)
            lock.release()

    def _stop_jobs(self) -> None:
        with contextlib.suppress(FileExistsError):
            storage.create_file(self.directory, STOP_FILE).close()

    def _wait_for_jobs(self) -> None:
        """Wait until the jobs of a killed sweep have saved. Raises ConfigError."""
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for number in self.unfinished:
            path = self.path(number)
            if (path / "lock").exists():
                lock_directory(path, max(0.0, deadline - time.monotonic())).release()

    def launch(self, numbers: Sequence[int], options: list[str], interrupts: Interrupts) -> None:
        """Run these jobs, each in its own process and after those that it needs; not those that
        need a job that is not done.

        options: further words for these processes.
        """
        left = list(numbers)
        while left and interrupts.pending is None:
            ready = [number for number in left if not self.needed(number)]
            if not ready:
                return
            left = [number for number in left if number not in ready]
            self._launch(ready, options, interrupts)

    def needed(self, number: int) -> list[str]:
        """The jobs that a job needs and that are not done."""
        after = self.jobs[number].after
        others = {self.name(other): other for other in range(len(self.jobs))} if after else {}
        return [name for name in after if name in others and self.status(others[name]) != "done"]

    def _launch(self, numbers: Sequence[int], options: list[str], interrupts: Interrupts) -> None:
        words = [
            f"directory={quoted(str(self.directory.absolute()))}",
            f"job={','.join(quoted(f'{number}:{self.name(number)}') for number in numbers)}",
            f"owner={quoted(this_process())}",
            f"options=[{','.join(map(quoted, options))}]",
        ]
        is_limited = any(word.startswith(MAX_BATCH_SIZE) for word in self.launcher)
        # submitit_local starts a whole batch at once.
        if "hydra/launcher=submitit_local" in self.launcher and not is_limited:
            words.append(f"{MAX_BATCH_SIZE}={os.cpu_count()}")
        with interrupts.shielded():
            try:
                launchers.launch(run_job, [*words, *self.launcher])
            except Interrupted:  # in a job, because the sweep stops
                if interrupts.is_forced:
                    raise
                self._wait_for_jobs()
            except Exception as error:
                message = f"{type(error).__name__}: {' '.join(str(error).split())}"
                report_error(ConfigError(f"the launcher failed: {message}"))

    def report(self, numbers: Sequence[int] | None = None) -> int:
        """Print how many jobs are done, and why the others are not; the exit code.

        numbers: the jobs that count; None: all.
        """
        jobs = range(len(self.jobs)) if numbers is None else numbers
        unfinished = [number for number in self.unfinished if number in jobs]
        for number in unfinished:
            report_error(ConfigError(f"{self.path(number)}: {self.reason_unfinished(number)}"))
        count = len(jobs) - len(unfinished)
        print(printable(f"{count} of {len(jobs)} jobs done, in {self.directory}"), flush=True)
        if unfinished:
            report_error(ConfigError(f"resume with: {self.resume_command()}"))
        else:
            command = shlex.join(["rlgames", "report", str(self.directory)])
            print(printable(f"next: {command}"), flush=True)
        return 3 if unfinished else 0

    def print_unfinished(self) -> None:
        """Print the jobs that would run."""
        for number in self.unfinished:
            words = " ".join(self.jobs[number].overrides)
            print(printable(f"{number}: {self.status(number)}: {words}"))
        count = len(self.unfinished)
        print(printable(f"{count} of {len(self.jobs)} jobs would run, in {self.directory}"))


def _checked_name(name: Any) -> str | None:
    """The directory of a job in a manifest; ValueError for one outside the sweep."""
    if name is None:
        return None
    parts = name.split("/") if isinstance(name, str) else [""]
    if {*parts} & {"", ".", ".."} or any(len(os.fsencode(part)) > 255 for part in parts):
        raise ValueError(f"{sanitized(name, 40)} is not a directory of a sweep")
    return str(name)


def _file_name(word: str) -> str:
    """An override as a part of a file name, its number with four digits."""
    name, _, value = word.partition("=")
    with contextlib.suppress(ValueError):
        value = value if value.isdecimal() else f"{float(value):.4g}"
    return re.sub(r"[^\w.+=-]+", "-", f"{name}={value.strip(QUOTES)}", flags=re.ASCII)
