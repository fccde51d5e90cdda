"""The jobs of a study: each trains a run, unless that is done, and makes its evaluations.

A job runs commands, each in its own process. Its progress is recorded only in the run's files. An
evaluation is saved in the job's directory under a digest of the command, its config, the
checkpoints that it reads and VERSION, so it is never made twice; a copy of the directory on another
machine has the same digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from rlgames.commands.study_file import Study, StudyRun
from rlgames.config.commands import MOVABLE_PLAYERS
from rlgames.config.schema import as_typed
from rlgames.core.errors import ConfigError, nearest, report_error
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.core.untrusted import parse_json, parse_object, sanitized
from rlgames.runs import storage
from rlgames.runs.checkpoint import read_identity
from rlgames.runs.directory import lock_directory
from rlgames.runs.files import BEST, LATEST, RunInfo, flatten, read_info

VERSION = 1
"""Of the rules by which evaluations count; the next one makes all of them again."""

RECORDS, FOLDER, OWNER = "records", "evaluations", "study.txt"
"""The folders of records, in a study's directory, and of evaluations, in a job's; the file that
tells whose directory it is."""

MAX_BYTES = 1 << 24

REFERENCE = re.compile(r"\{(?:([\w.-]+)(?:/(\d+))?)?\}")
"""The directory of a run in a word: {RUN}, with the same seed, {RUN/SEED}, or {} for the own one.
Those of jobs have their seeds."""

REPLACED = ".replaced"
"""The folder of runs that were trained with other settings."""

OUTPUT = "output.log"
"""What the commands of a job print."""

POLL_SECONDS = 0.2


def jobs_in(words: Iterable[str]) -> set[str]:
    """The jobs whose directories are in words."""
    return {f"{run}/{seed}" for run, seed in REFERENCE.findall(" ".join(words)) if run}


@dataclass(frozen=True)
class JobEvaluation:
    """An evaluation of a job. words: the command and its words, with references to directories in
    braces. config: the plain config of the command, for the digest."""

    name: str
    words: list[str]
    config: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A training, evaluations, or a training and then its evaluations.

    Args:
        name: the job's directory inside the study's, RUN/SEED.
        words: of `rlgames train`, with references in braces; empty without a training.
        config: the plain config of the training; empty without one.
    """

    name: str
    words: list[str]
    config: dict[str, Any]
    evaluations: list[JobEvaluation] = field(default_factory=list)

    @property
    def links(self) -> dict[str, str]:
        """Keys of the config that name another job, or a file in it, by its path there."""
        pairs = (word.partition("=")[::2] for word in self.words)
        return {key: re.sub("[{}]", "", value) for key, value in pairs if REFERENCE.match(value)}

    @property
    def after(self) -> set[str]:
        """The jobs that must be done first."""
        played = jobs_in(word for each in self.evaluations for word in each.words)
        return jobs_in(self.words) | (played - {self.name})


def _difference(job: Job, info: RunInfo) -> str:
    """What differs between the settings of a job and those of a run, in words; empty for none."""
    if info.status == "damaged":
        return "its run.json is damaged"
    there, links = flatten(info.config), job.links
    for key, value in flatten(job.config).items():
        former = there.get(key, value)  # an older version may lack it
        link = None if key in MOVABLE_PLAYERS else links.get(key.removesuffix(".path"))
        # The directory may have been moved since.
        is_same = former == value if link is None else f"/{link}/" in f"{former}/"
        if not is_same:
            wanted = as_typed(value if link is None else link)
            return f"it was trained with {key}={as_typed(former)}, not {wanted}"
    return ""


@dataclass
class StudyJobs:
    """The jobs of a study by their names, each after those that it needs.

    options: words that every command gets. commands: what evaluations type, by their runs and
    names, with RUN for the run's directory.
    """

    study: Study
    directory: Path
    options: list[str]
    jobs: dict[str, Job] = field(default_factory=dict)
    commands: dict[tuple[str, str], str] = field(default_factory=dict)

    def jobs_of(self, run: StudyRun) -> list[Job]:
        """The jobs of a run, in the order of its seeds."""
        return [self.jobs[f"{run.name}/{seed}"] for seed in run.seeds]

    def selected(self, only: str | None) -> list[Job]:
        """The jobs that only= names, with those that they need. Raises ConfigError."""
        listed = re.fullmatch(r"\[(.*)\]", only or "*")
        chosen = set[str]()
        for word in map(str.strip, (listed[1] if listed else only or "*").split(",")):
            runs = [run for run in self.study.runs.values() if fnmatch(run.name, word)]
            if not runs:
                raise ConfigError(f"only={word} names no run", nearest(word, [*self.study.runs]))
            chosen |= {job.name for run in runs for job in self.jobs_of(run)}
        for job in reversed(self.jobs.values()):  # before those that it needs
            chosen |= job.after if job.name in chosen else set()
        return [job for job in self.jobs.values() if job.name in chosen]

    def path(self, job: Job) -> Path:
        """The directory of a job."""
        return self.directory / job.name

    def status(self, job: Job) -> str:
        """done, unfinished (it has a checkpoint to resume from), not started, or replaced: trained
        with other settings."""
        if self.difference(job):
            return "replaced"
        if self.is_trained(job) and not self.missing(job):
            return "done"
        return "unfinished" if self._has_begun(job) else "not started"

    def _has_begun(self, job: Job) -> bool:
        return (self.path(job) / "checkpoints" / LATEST).exists()

    def is_trained(self, job: Job) -> bool:
        """Whether the training of a job is done, or it has none."""
        is_done = not job.config or read_info(self.path(job)).status == "done"
        return is_done and not self.difference(job)

    def difference(self, job: Job) -> str:
        """Why the training in a job's directory does not count, in words; empty if it does, and if
        there is none."""
        info = read_info(self.path(job))
        if not job.config or info.status == "waiting":
            return ""
        # What others need of a player is its evaluations.
        for other in map(self.jobs.__getitem__, sorted(jobs_in(job.words))):
            if self.difference(other) if other.config else self.missing(other):
                return _difference(job, info) or f"{other.name}, which it needs, does not count"
        return _difference(job, info)

    def saved(self, job: Job, evaluation: JobEvaluation) -> dict[str, Any] | None:
        """The report of an evaluation of a job, its date and how long it took; None if it was not
        made, or if a run that it needs does not count."""
        name = self._file(job, evaluation)
        used = (self.jobs[each] for each in {job.name, *jobs_in(evaluation.words)})
        if name is None or any(map(self.difference, used)):
            return None
        try:
            saved = parse_json(storage.read_file(self.path(job), name, MAX_BYTES))
            return saved if isinstance(saved["report"], dict) else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def save(self, job: Job, evaluation: JobEvaluation, saved: dict[str, Any]) -> None:
        """Keep what `saved` returns."""
        name = self._file(job, evaluation)
        assert name is not None
        storage.make_directory(self.path(job) / FOLDER)
        content = {"name": evaluation.name, "words": evaluation.words} | saved
        storage.write_file(self.path(job), name, json.dumps(content) + "\n")

    def _file(self, job: Job, evaluation: JobEvaluation) -> str | None:
        """The file of a report in the job's directory; None while a checkpoint is missing."""
        is_best = evaluation.config.get("checkpoint") in (None, "best")
        checkpoints = []
        for run, seed in REFERENCE.findall(" ".join(evaluation.words)):
            name = f"{run}/{seed}" if run else job.name
            folder = self.directory / name / "checkpoints"
            if folder.is_dir():
                files = (BEST, LATEST) if is_best else (LATEST,)
                known = [each for file in files if (each := read_identity(folder / file))]
                if not known:
                    return None
                checkpoints.append(known[0])
        parts = [VERSION, evaluation.words, evaluation.config, checkpoints]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        return f"{FOLDER}/{digest}.json"

    def missing(self, job: Job) -> list[JobEvaluation]:
        """The evaluations of a job that are still to be made."""
        return [each for each in job.evaluations if self.saved(job, each) is None]

    def needed(self, job: Job) -> list[str]:
        """The jobs that a job needs and that are not done."""
        return [name for name in sorted(job.after) if self.status(self.jobs[name]) != "done"]

    def replaced(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of these jobs that were trained with other settings, and all that start from them,
        which come first: if the study is killed between two of them, it knows the others."""
        names = {job.name for job in jobs if self.difference(job)}
        for job in self.jobs.values():
            if jobs_in(job.words) & names:
                names.add(job.name)
        found = [job for job in self.jobs.values() if job.name in names and self.path(job).exists()]
        return found[::-1]

    def set_aside(self, jobs: Sequence[Job]) -> None:
        """Move the directories of replaced jobs."""
        for job in self.replaced(jobs):
            number = 0
            while os.path.lexists(self.directory / (target := f"{REPLACED}/{job.name}-{number}")):
                number += 1
            storage.move_folder(self.directory, job.name, target)
            there = self.directory / target
            print(printable(f"{job.name} is replaced; the former run is in {there}"))

    def check_owner(self) -> None:
        """Raises ConfigError if the runs in the directory are of another file."""
        try:
            text = storage.read_file(self.directory, OWNER, MAX_BYTES).decode().strip()
            there = os.path.normpath(self.directory.resolve() / text)
            is_other = not os.path.samefile(there, self.study.path)
        except (OSError, ValueError):  # it is new, or the file was moved
            return
        if is_other:
            hint = f"use another out= for {self.study.path}"
            raise ConfigError(f"{self.directory} has the runs of {there}", hint)

    def complete(self, jobs: Sequence[Job], parallel: int) -> int:
        """Run what is missing, several jobs at a time, and say what is not done; the exit code.
        Raises ConfigError and Interrupted."""
        storage.make_directory(self.directory)
        lock = lock_directory(self.directory)
        try:
            own = os.path.relpath(self.study.path.resolve(), self.directory.resolve())
            storage.write_file(self.directory, OWNER, f"{own}\n")
            self.set_aside(jobs)
            self.run(jobs, parallel)
        finally:
            lock.release()
        return self.report(jobs)

    def run(self, jobs: Sequence[Job], parallel: int) -> None:
        """Run these jobs, each after those that it needs, several at a time; not those that need a
        job that is not done.

        Raises Interrupted, after the commands have saved.
        """
        stop, order = threading.Event(), TopologicalSorter({job.name: job.after for job in jobs})
        order.prepare()
        with Interrupts(on_first_signal=stop.set) as interrupts:
            while order.is_active() and not stop.is_set():
                ready = order.get_ready()
                with interrupts.shielded(), ThreadPoolExecutor(parallel) as pool:
                    for job in map(self.jobs.__getitem__, ready):
                        if self.status(job) != "done" and not self.needed(job):
                            pool.submit(self._run, job, stop)
                order.done(*ready)

    def _run(self, job: Job, stop: threading.Event) -> None:
        """Type the commands of a job, until one fails or the study stops."""
        if stop.is_set():
            return
        try:
            storage.make_directory(self.path(job))
            print(printable(f"{job.name}: starts"), flush=True)
            if not self.is_trained(job) and self._type(job, self._training(job), stop)[0]:
                return
            for evaluation in self.missing(job):
                if not self._evaluate(job, evaluation, stop):
                    return
            print(printable(f"{job.name}: done"), flush=True)
        except (ConfigError, OSError, ValueError) as error:
            report_error(ConfigError(f"{self.path(job)}: {sanitized(error)}"))

    def _training(self, job: Job) -> list[str]:
        """The command that trains a job, from its checkpoint if it has one."""
        path = self.path(job).absolute()
        if self._has_begun(job):
            return ["resume", str(path)]
        return ["train", *self._placed(job, job.words), f"out={path}"]

    def _placed(self, job: Job, words: list[str]) -> list[str]:
        """Words with the paths of directories."""
        top = self.directory.absolute()
        return [
            REFERENCE.sub(lambda m: str(top / (m[0][1:-1] or job.name)), word) for word in words
        ]

    def _evaluate(self, job: Job, evaluation: JobEvaluation, stop: threading.Event) -> bool:
        """Make an evaluation and keep its report; whether it succeeded."""
        words = self._placed(job, evaluation.words)
        for word in words:
            if word.startswith("record="):  # which holds the games of one evaluation, played once
                storage.remove_file(self.path(job), Path(word).name)
        started = time.perf_counter()
        code, printed = self._type(job, [*words, "format=json"], stop)
        if code == 0:
            times = {"date": time.strftime("%Y-%m-%d"), "seconds": time.perf_counter() - started}
            self.save(job, evaluation, {"report": parse_object(printed)} | times)
        return code == 0

    def _type(self, job: Job, words: list[str], stop: threading.Event) -> tuple[int, str]:
        """Run a command, which saves and ends when the study stops; its exit code and output."""
        command = [*words, *self.options]
        with storage.open_to_append(self.directory, f"{job.name}/{OUTPUT}") as output:
            output.write(f"rlgames {shlex.join(command)}\n".encode())
            output.flush()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlgames", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if words[-1] == "format=json" else output,
                stderr=output,
                env={"OMP_NUM_THREADS": "1", **os.environ},
                start_new_session=True,  # so that the terminal sends it no second signal
            )
            while True:
                try:
                    printed, _ = process.communicate(timeout=POLL_SECONDS)
                    return process.returncode, (printed or b"").decode(errors="replace")
                except subprocess.TimeoutExpired:
                    if stop.is_set():
                        process.terminate()

    def reason_unfinished(self, job: Job) -> str:
        """Why a job is not done, by its files."""
        if needed := self.needed(job):
            return f"it needs {', '.join(needed)}"
        try:
            lines = (self.path(job) / OUTPUT).read_text(errors="replace").split("\n")
        except OSError:
            return "not started"
        return sanitized(next((line for line in lines[::-1] if line.strip()), "no message"))

    def report(self, jobs: Sequence[Job]) -> int:
        """Print how many jobs are done, and why the others are not; the exit code."""
        unfinished = [job for job in jobs if self.status(job) != "done"]
        for job in unfinished:
            report_error(ConfigError(f"{self.path(job)}: {self.reason_unfinished(job)}"))
        count = len(jobs) - len(unfinished)
        print(printable(f"{count} of {len(jobs)} jobs done, in {self.directory}"), flush=True)
        return 3 if unfinished else 0
