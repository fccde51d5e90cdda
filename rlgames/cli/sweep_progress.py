"""The progress of a sweep, read from the files of its jobs, whatever launched these."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rlgames.cli.progress import ProgressView, clock_text, number_text
from rlgames.core.errors import detach_stdout
from rlgames.core.text import printable
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.files import MetricsFollower
from rlgames.runs.run_info import read_info
from rlgames.sweeps.jobs import STOP_FILE
from rlgames.sweeps.sweep import Sweep

POLL_SECONDS = 1.0
"""Seconds between two looks at the files of the jobs."""

MAX_POLL_FRACTION = 0.02
"""The most of one core's time that looking may take; a large sweep is looked at less often."""


@dataclass(frozen=True)
class JobView:
    """The progress of a job. setting: what distinguishes it. status: waiting, running, done,
    failed, interrupted or died."""

    number: int
    setting: str
    status: str
    run: ProgressView

    @property
    def fraction(self) -> float:
        """The fraction of its games that is played."""
        return 1.0 if self.status == "done" else min(1.0, self.run.games / self.run.total)

    @property
    def figure(self) -> str:
        """The latest value of the figure that the game is about, with its name."""
        if not self.run.curve:
            return ""
        return f"{self.run.metric} {number_text(self.run.curve[-1][1])}"


@dataclass(frozen=True)
class SweepView:
    """The progress of a sweep. total: its jobs, with those that a search has yet to propose.
    work: the jobs done since it was started or resumed, a started one in part. seconds: since then.
    """

    jobs: tuple[JobView, ...]
    total: int
    work: float
    seconds: float
    is_stopping: bool = False

    @property
    def fraction(self) -> float:
        return sum(job.fraction for job in self.jobs) / max(1, self.total)

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the average speed; None before anything is done."""
        left = self.total - sum(job.fraction for job in self.jobs)
        return left * self.seconds / self.work if self.work > 0 else None

    def count(self, status: str) -> int:
        return sum(job.status == status for job in self.jobs)

    def summary(self) -> str:
        """How many jobs are done, running and so on, and the time left, in words."""
        parts = [f"{self.count('done')} of {self.total} jobs done"]
        names = ("running", "failed", "interrupted", "died")
        parts += [f"{self.count(name)} {name}" for name in names if self.count(name)]
        if self.is_stopping:
            return ", ".join([*parts, "stopping: jobs save and exit"])
        if self.seconds_left:
            parts.append(f"{clock_text(self.seconds_left)} left")
        return ", ".join(parts)


class _JobReader:
    """Reads the files of one job, what is new in them only."""

    def __init__(self, sweep: Sweep, number: int) -> None:
        self.path = sweep.path(number)
        games = finite_or_none(sweep.jobs[number].config.get("games"))
        empty = ProgressView(max(1, int(games or 1)), 0.0, phase="")
        self.view = JobView(number, sweep.setting(number), "waiting", empty)
        self._empty, self._metrics = empty, MetricsFollower(self.path)

    def read(self) -> None:
        if self.view.status == "done":
            return
        info = read_info(self.path)
        view, metric = self.view.run, info.figure
        if metric != view.metric:
            self._metrics = MetricsFollower(self.path)
            view = replace(self._empty, metric=metric)
        is_replaced, lines = self._metrics.new_lines()
        if is_replaced:
            view = replace(self._empty, metric=metric)
        for line in lines:
            view = view.with_metrics(int(line["games"]), line)
        status = "died" if info.is_process_gone else info.status
        if status == "waiting" and (self.path / "train.log").exists():
            status = "failed"  # its config was refused
        if metric in info.results:
            view = view.with_metrics(view.total, {f"eval/{metric}": info.results[metric]})
        self.view = replace(self.view, status=status, run=view)


class SweepReader:
    """Reads the progress of a sweep. A search may add jobs meanwhile."""

    def __init__(self, sweep: Sweep, clock: Callable[[], float] = time.monotonic) -> None:
        self._sweep, self._clock, self._readers = sweep, clock, list[_JobReader]()
        self._begun, self._work_before = clock(), 0.0
        self.view = self.read()
        self._work_before = sum(job.fraction for job in self.view.jobs)

    def read(self) -> SweepView:
        """The progress now."""
        begun = self._clock()
        sweep = self._sweep
        for number in range(len(self._readers), len(sweep.jobs)):
            self._readers.append(_JobReader(sweep, number))
        for reader in self._readers:
            reader.read()
        jobs = tuple(reader.view for reader in self._readers)
        trials = finite_or_none((sweep.search or {}).get("trials")) or 0
        self.view = SweepView(
            jobs=jobs,
            total=max(len(jobs), int(trials)),
            work=sum(job.fraction for job in jobs) - self._work_before,
            seconds=self._clock() - self._begun,
            is_stopping=(sweep.directory / STOP_FILE).exists(),
        )
        self.interval = max(POLL_SECONDS, (self._clock() - begun) / MAX_POLL_FRACTION)
        self._next = self._clock() + self.interval
        return self.view

    def latest(self) -> SweepView:
        """The progress as it was not long ago: files are read from time to time only."""
        return self.read() if self._clock() >= self._next else self.view


class PlainSweepProgress:
    """Prints a line where a job starts and where it ends, and at each tenth of the sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep, self._reader = sweep, SweepReader(sweep)
        self._status = {job.number: job.status for job in self._reader.view.jobs}
        self._tenth = int(self._reader.view.fraction * 10)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Print in this context, from another thread."""
        end = threading.Event()
        thread = threading.Thread(target=self._follow, args=(end,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
            self.print_news()

    def _follow(self, end: threading.Event) -> None:
        while not end.wait(self._reader.interval):
            self.print_news()

    def print_news(self) -> None:
        """Print what has happened since the last call."""
        view = self._reader.read()
        lines = []
        for job in view.jobs:
            before = self._status.get(job.number, "waiting")
            self._status[job.number] = job.status
            if job.status in (before, "waiting"):
                continue
            if before != "running":
                lines.append(f"job {job.number}, in {self._sweep.path(job.number)}")
            if job.status != "running":
                lines.append(f"job {job.number} {_ending(job)}")
        tenth = int(view.fraction * 10)
        if tenth > self._tenth and view.fraction < 1:
            lines.append(f"{view.fraction:.0%} of the sweep: {view.summary()}")
        self._tenth = tenth
        try:
            for line in lines:
                print(printable(line), flush=True)
        except BrokenPipeError:  # nobody reads standard output; the sweep continues
            detach_stdout()


def _ending(job: JobView) -> str:
    seconds = job.run.latest.get("time/seconds")
    time_spent = "" if seconds is None else f" in {clock_text(seconds)}"
    figure = job.figure and f", {job.figure}"
    return f"{job.status} after {job.run.games:,} games{time_spent}{figure}"
