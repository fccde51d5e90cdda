"""The jobs of a study: each is a run that must exist, with its reports; what is missing is typed.

Only the files of the runs show what is done: a training counts if its run has the settings
of the study, a report if it answers the question of the study about the checkpoints of today. A
copy of the directory on another machine counts the same.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from rlgames.build.agents import checkpoint_digest
from rlgames.commands.study_file import Study, StudyRun
from rlgames.config.commands import MOVABLE_PLAYERS
from rlgames.config.schema import as_typed
from rlgames.core import jobs as processes
from rlgames.core.errors import ConfigError, nearest, report_error
from rlgames.core.jobs import OUTPUT, Runner, Task
from rlgames.core.signals import Interrupted
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.directory import lock_directory
from rlgames.runs.files import LATEST, flatten, read_info
from rlgames.runs.reports import Report, read_report
from rlgames.terminal.jobs import jobs_view

RECORDS, OWNER = "records", "study.txt"
"""The folder of records in a study's directory; the file that tells whose directory it is."""

MAX_BYTES = 1 << 16

REFERENCE = re.compile(r"\{(?:([\w.-]+)(?:/(\d+))?)?\}")
"""The directory of a run in a word: {RUN}, with the same seed, {RUN/SEED}, or {}: its own."""

REPLACED = ".replaced"
"""The folder of runs that were trained with other settings."""

PLAYERS = ("player", *MOVABLE_PLAYERS)


def refer(words: Iterable[str], seed: int | str, own: str, top: str = "") -> list[str]:
    """Words with the directories of runs: TOP, then RUN/SEED, or `own` for the own one."""

    def directory(match: re.Match[str]) -> str:
        return f"{top}{match[1]}/{match[2] or seed}" if match[1] else f"{top}{own}"

    return [REFERENCE.sub(directory, word) for word in words]


def jobs_in(words: Iterable[str], seed: int | str) -> set[str]:
    """The jobs whose directories are in words."""
    found = REFERENCE.finditer(" ".join(words))
    return {f"{match[1]}/{match[2] or seed}" for match in found if match[1]}


@dataclass(frozen=True)
class JobReport:
    """A report of a job. words: the command and its words, as the study has them. config: the plain
    config of the question, without the game of a run's checkpoint."""

    name: str
    words: list[str]
    config: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A training, reports, or a training and then its reports.

    Args:
        run, seed: the job's directory inside the study's is RUN/SEED.
        words: of `rlgames train`, as the study has them; empty without a training.
        config: the plain config of the training; empty without one.
        nbytes: the size of its first checkpoint; 0 without a training, and if that needs another
            run.
    """

    run: str
    seed: int
    words: list[str]
    config: dict[str, Any]
    reports: list[JobReport] = field(default_factory=list)
    nbytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.run}/{self.seed}"

    @property
    def starts_from(self) -> set[str]:
        """The jobs that its training needs."""
        return jobs_in(self.words, self.seed)

    @property
    def after(self) -> set[str]:
        """The jobs that must be done first."""
        played = jobs_in((word for each in self.reports for word in each.words), self.seed)
        return self.starts_from | (played - {self.name})

    def links(self, words: Sequence[str]) -> dict[str, str]:
        """Keys that name the directory of a job, or a file in it, by its path in the study's."""
        pairs = (word.partition("=")[::2] for word in words)
        return {
            key: refer([value], self.seed, self.name)[0]
            for key, value in pairs
            if REFERENCE.match(value)
        }

    def difference(
        self, words: Sequence[str], wanted: dict[str, Any], there: dict[str, Any]
    ) -> tuple[str, Any, Any] | None:
        """The first setting that differs between two flat configs, the one there and the wanted
        one; None for none. words: that wanted is of."""
        links = self.links(words)
        for key, value in wanted.items():
            former = there.get(key, value)  # an older version may lack it
            link = None if key in PLAYERS else links.get(key.removesuffix(".path"))
            # The directory may have been moved since.
            is_same = former == value if link is None else f"/{link}/" in f"{former}/"
            if not is_same:
                return key, former, value if link is None else link
        return None


@dataclass
class StudyJobs:
    """The jobs of a study by their names, each after those that it needs.

    options: words that every command gets.
    """

    study: Study
    directory: Path
    options: list[str]
    jobs: dict[str, Job] = field(default_factory=dict)

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
        if info.status == "damaged":
            return "its run.json is damaged"
        found = job.difference(job.words, flatten(job.config), flatten(info.config))
        if found:
            key, former, wanted = found
            return f"it was trained with {key}={as_typed(former)}, not {as_typed(wanted)}"
        # What others need of a player is its reports.
        for other in map(self.jobs.__getitem__, sorted(job.starts_from)):
            if self.difference(other) if other.config else self.missing(other):
                return f"{other.name}, which it needs, does not count"
        return ""

    def saved(self, job: Job, wanted: JobReport) -> Report | None:
        """A report of a job; None if it was not made, answers another question or is about other
        checkpoints, or if a run that it needs does not count."""
        used = (self.jobs[each] for each in {job.name, *jobs_in(wanted.words, job.seed)})
        if any(map(self.difference, used)):
            return None
        try:
            report = read_report(self.path(job), wanted.name)
        except (OSError, ValueError):
            return None
        config = flatten(json.loads(json.dumps(wanted.config)))
        if job.config:  # a run plays the game of its checkpoint
            del config["game"]
        is_same = (
            report.command == wanted.words[0]
            and job.difference(wanted.words, config, flatten(report.config)) is None
            and report.checkpoints == self.checkpoints(job, wanted)
        )
        return report if is_same else None

    def checkpoints(self, job: Job, wanted: JobReport) -> dict[str, str | None]:
        """The checksums of the checkpoints that a report is about, as reports have them."""
        found = {}
        if job.config and wanted.words[0] != "solve":
            found["run"] = checkpoint_digest(self.path(job), wanted.config.get("checkpoint"))
        links = job.links(wanted.words)
        for seat in ("player", "opponent"):
            option = wanted.config.get(seat) or {}
            if option.get("name") == "run":
                there = self.directory / links[seat] if seat in links else Path(option["path"])
                found[seat] = checkpoint_digest(there)
        return found

    def missing(self, job: Job) -> list[JobReport]:
        """The reports of a job that are still to be made."""
        return [each for each in job.reports if self.saved(job, each) is None]

    def needed(self, job: Job) -> list[str]:
        """The jobs that a job needs and that are not done."""
        return [name for name in sorted(job.after) if self.status(self.jobs[name]) != "done"]

    def replaced(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of these jobs that were trained with other settings, and all that start from them,
        which come first: if the study is killed between two of them, it knows the others."""
        names = {job.name for job in jobs if self.difference(job)}
        for job in self.jobs.values():
            if job.starts_from & names:
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
        job that is not done. Raises Interrupted, after the commands have saved."""
        missing: dict[str, processes.Job] = {}
        order = TopologicalSorter({job.name: job.after for job in jobs})
        for job in map(self.jobs.__getitem__, order.static_order()):
            if self.status(job) != "done":
                needs = [missing[name] for name in sorted(job.after) if name in missing]
                missing[job.name] = processes.Job(job.name, partial(self._task, job), needs)
        if not missing:
            return
        try:
            with jobs_view() as view, Runner(parallel, view) as runner:
                runner.run([*missing.values()])
        except Interrupted as signal:
            raise Interrupted(signal.number, "the same command goes on") from None

    def _task(self, job: Job) -> Task:
        games = None if self.is_trained(job) else job.config.get("games")
        return Task(type_commands, (self.commands(job),), self.path(job), games)

    def commands(self, job: Job) -> list[list[str]]:
        """What is to be typed for a job: its training, from its checkpoint if it has one, and the
        reports that are missing."""
        path, top = str(self.path(job).absolute()), f"{self.directory.absolute()}/"
        training, reports = list[list[str]](), self.missing(job)
        if not self.is_trained(job):
            words = refer(job.words, job.seed, job.name, top)
            begun = self._has_begun(job)
            training = [["resume", path] if begun else ["train", *words, f"out={path}"]]
            reports = job.reports
        typed = []
        for each in reports:
            words = refer(each.words, job.seed, job.name, top)
            for word in words:  # a record holds the games of one evaluation, played once
                if word.startswith("record="):
                    storage.remove_file(self.path(job), Path(word).name)
            typed.append([*words, f"name={each.name}", f"out={path}"])
        return [[*words, *self.options] for words in (*training, *typed)]

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


def type_commands(commands: Sequence[Sequence[str]]) -> None:
    """Run commands in this process, one after another, until one fails.

    commands: the words behind `rlgames`. Raises ConfigError if one fails, and Interrupted.
    """
    from rlgames.commands.app import answer

    for words in commands:
        sys.argv = ["rlgames", *words]
        print(shlex.join(sys.argv), flush=True)
        code = answer([*words])
        if code > 128:
            raise Interrupted(code - 128, "saved")
        if code:
            raise ConfigError(f"rlgames {words[0]} ended with exit code {code}")
