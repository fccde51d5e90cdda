"""The live table of a sweep on a terminal, a line for each job; plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rlgames.cli.live_view import blocks, can_draw, progress_bar
from rlgames.cli.progress import Progress, clock_text, print_line
from rlgames.core.text import number_text, printable
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.run_info import DamagedRun, MetricsFollower, read_info
from rlgames.sweeps.jobs import STOP_FILE
from rlgames.sweeps.sweep import Sweep

POLL_SECONDS = 1.0
"""Seconds between two looks at the files of the jobs."""

MAX_POLL_FRACTION = 0.02
"""The most of one core's time that looking may take; a large sweep is looked at less often."""

STATUS_STYLES = {"running": "cyan", "done": "green", "failed": "red", "died": "red"}
STATUS_STYLES |= {"evaluating": "cyan", "interrupted": "yellow", "waiting": "dim"}

MIN_BAR_WIDTH, MIN_CURVE_WIDTH = 44, 64
"""Columns of the terminal that bars and curves need."""

BAR_COLUMNS, CURVE_COLUMNS = 10, 16


@dataclass
class JobProgress:
    """The progress of a job.

    Args:
        setting: what distinguishes it.
        status: waiting, running, evaluating, done, failed, interrupted or died.
    """

    number: int
    setting: str
    status: str
    run: Progress

    @property
    def fraction(self) -> float:
        """The fraction of its games that is played."""
        return 1.0 if self.status == "done" else min(1.0, self.run.games / self.run.total)

    @property
    def headline(self) -> str:
        """The latest value of the metric that the game is about, with its name."""
        if not self.run.curve:
            return ""
        return f"{self.run.metric} {number_text(self.run.curve[-1][1])}"


@dataclass
class SweepProgress:
    """The progress of a sweep.

    Args:
        total: its jobs, with those that a search has yet to propose.
        work: the jobs done since it was started or resumed, a started one in part.
        seconds: since then.
    """

    jobs: list[JobProgress]
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

    def summary(self) -> str:
        """How many jobs are done, running and so on, and the time left, in words."""
        statuses = [job.status for job in self.jobs]
        parts = [f"{statuses.count('done')} of {self.total} jobs done"]
        names = ("running", "evaluating", "failed", "interrupted", "died")
        parts += [f"{statuses.count(name)} {name}" for name in names if name in statuses]
        if self.is_stopping:
            return ", ".join([*parts, "stopping: jobs save and exit"])
        if self.seconds_left:
            parts.append(f"{clock_text(self.seconds_left)} left")
        return ", ".join(parts)


class SweepReader:
    """Reads the progress of a sweep. A search may add jobs meanwhile."""

    def __init__(self, sweep: Sweep, clock: Callable[[], float] = time.monotonic) -> None:
        self._sweep, self._clock, self._begun = sweep, clock, clock()
        self._followers: list[MetricsFollower] = []
        self._log_sizes: list[int] = []  # before a job starts
        self.progress = SweepProgress([], 0, 0.0, 0.0)
        self.read()
        self._work_before, self.progress.work = self.progress.work, 0.0

    _work_before = 0.0

    def read(self) -> None:
        """Bring the progress up to date with the new lines in the files of the jobs."""
        begun, jobs = self._clock(), self.progress.jobs
        for number in range(len(jobs), len(self._sweep.jobs)):
            setting = self._sweep.setting(number)
            jobs.append(JobProgress(number, setting, "waiting", self._empty(number)))
            self._followers.append(MetricsFollower(self._sweep.path(number)))
            self._log_sizes.append(_log_size(self._sweep.path(number)))
        for job in jobs:
            if job.status != "done":
                self._read(job)
        trials = finite_or_none((self._sweep.search or {}).get("trials")) or 0
        self.progress = SweepProgress(
            jobs=jobs,
            total=max(len(jobs), int(trials)),
            work=sum(job.fraction for job in jobs) - self._work_before,
            seconds=self._clock() - self._begun,
            is_stopping=(self._sweep.directory / STOP_FILE).exists(),
        )
        self.interval = max(POLL_SECONDS, (self._clock() - begun) / MAX_POLL_FRACTION)

    def _empty(self, number: int, metric: str = "") -> Progress:
        games = finite_or_none(self._sweep.jobs[number].config.get("games"))
        return Progress(max(1, int(games or 1)), phase="", metric=metric)

    def _read(self, job: JobProgress) -> None:
        path = self._sweep.path(job.number)
        info = read_info(path)
        metric = info.metric
        if metric != job.run.metric:
            self._followers[job.number] = MetricsFollower(path)
        is_replaced, lines = False, list[dict[str, float]]()
        with suppress(DamagedRun):
            is_replaced, lines = self._followers[job.number].new_lines()
        if is_replaced or metric != job.run.metric:
            job.run = self._empty(job.number, metric)
        for line in lines:
            job.run.on_metrics(int(line["games"]), line)
        job.status = "died" if info.is_process_gone else info.status
        if job.status in ("done", "waiting") and self._sweep.jobs[job.number].evaluations:
            has_started = _log_size(path) > self._log_sizes[job.number]
            is_evaluating = has_started and self._sweep.is_trained(job.number)
            is_done = self._sweep.status(job.number) == "done"
            job.status = "done" if is_done else "evaluating" if is_evaluating else "waiting"
        elif job.status == "waiting" and (path / "train.log").exists():
            job.status = "failed"  # before its first game
        result = info.results.get(metric)
        if result is not None and job.run.curve[-1:] != [(job.run.total, result)]:
            job.run.on_metrics(job.run.total, {f"eval/{metric}": result})


def _log_size(path: Path) -> int:
    """The bytes of output that a job has written."""
    log = path / "output.log"
    return log.stat().st_size if log.exists() else 0


class PlainSweepProgress:
    """Prints a line when a job starts and when it ends, and at each tenth of the sweep."""

    def __init__(self, sweep: Sweep, reader: SweepReader) -> None:
        self._sweep, self._reader = sweep, reader
        self._status = {job.number: job.status for job in reader.progress.jobs}
        self._tenth = int(reader.progress.fraction * 10)

    def print_news(self) -> None:
        """Print what has happened since the last call."""
        progress = self._reader.progress
        lines = []
        for job in progress.jobs:
            before = self._status.get(job.number, "waiting")
            self._status[job.number] = job.status
            if job.status in (before, "waiting"):
                continue
            if before not in ("running", "evaluating"):
                lines.append(f"job {job.number}, in {self._sweep.path(job.number)}")
            if job.status != "running":
                lines.append(f"job {job.number} {_ending(job)}")
        tenth = int(progress.fraction * 10)
        if tenth > self._tenth and progress.fraction < 1:
            lines.append(f"{progress.fraction:.0%} of the sweep: {progress.summary()}")
        self._tenth = tenth
        for line in lines:
            print_line(line)


def _ending(job: JobProgress) -> str:
    seconds = job.run.latest.get("time/seconds")
    time_spent = "" if seconds is None else f" in {clock_text(seconds)}"
    headline = job.headline and f", {job.headline}"
    return f"{job.status} after {job.run.games:,} games{time_spent}{headline}"


@contextmanager
def sweep_view(sweep: Sweep) -> Iterator[None]:
    """Show the progress of a sweep in this context."""
    console, reader, end = Console(), SweepReader(sweep), threading.Event()
    plain = None if can_draw(console) else PlainSweepProgress(sweep, reader)

    def read() -> None:
        reader.read()
        if plain is not None:
            plain.print_news()

    def follow() -> None:
        while not end.wait(reader.interval):
            read()

    thread = threading.Thread(target=follow, name="progress", daemon=True)
    with nullcontext() if plain else Live(RenderedSweep(reader), console=console):
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
            read()


class RenderedSweep:
    """A sweep as it is rendered now: a line for each job and one for all of them."""

    def __init__(self, reader: SweepReader) -> None:
        self.reader = reader

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        view = self.reader.progress
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), expand=False)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for justify in ("right", "left", "left", "left"):
            table.add_column(justify=justify, no_wrap=True)
        shown = shown_jobs(view.jobs, max(1, console.height - 4))
        for job in shown:
            table.add_row(*_cells(job, width))
        yield table
        if len(shown) < len(view.jobs):
            yield Text(f"{len(view.jobs) - len(shown)} more jobs", "dim")
        clock = "" if view.seconds_left is None else f" {clock_text(view.seconds)}"
        yield progress_bar(f"{view.fraction:4.0%} ", view.fraction, clock, width)
        yield Text(view.summary(), "bold", no_wrap=True, overflow="ellipsis")


def shown_jobs(jobs: Sequence[JobProgress], rows: int) -> list[JobProgress]:
    """At most this many jobs, in order: the running ones first, then failed ones, the next ones
    and the last ones that are done."""
    if len(jobs) <= rows:
        return list(jobs)
    waiting = [job for job in jobs if job.status == "waiting"]
    done = [job for job in jobs if job.status == "done"][::-1]
    running = [job for job in jobs if job.status == "running"]
    others = [job for job in jobs if job.status not in ("waiting", "done", "running")]
    chosen = [*running, *others, *waiting[:2], *done, *waiting[2:]][:rows]
    return sorted(chosen, key=lambda job: job.number)


def _cells(job: JobProgress, width: int) -> list[Text]:
    style = STATUS_STYLES.get(job.status, "")
    cells = [Text(str(job.number), "dim"), Text(printable(job.setting)), Text(job.status, style)]
    if width >= MIN_BAR_WIDTH:
        cells.append(progress_bar("", job.fraction, f"{job.fraction:4.0%}", BAR_COLUMNS + 4))
    cells.append(Text(printable(job.headline), "bold"))
    if width >= MIN_CURVE_WIDTH:
        curve = blocks(job.run.heights(CURVE_COLUMNS), 1)[0] if job.run.curve else ""
        cells.append(Text(curve, "cyan"))
    return cells
