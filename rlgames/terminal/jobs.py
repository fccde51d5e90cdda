"""The jobs of a sweep or a study: a live table on a terminal, otherwise a line for each event.

What a job has reached is read from the files of its run.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rlgames.core.errors import print_progress
from rlgames.core.jobs import Job, JobView
from rlgames.core.metrics import direction, goal_of
from rlgames.core.text import counted, number_text, printable
from rlgames.runs.files import RunInfo, read_info, read_metrics
from rlgames.terminal.progress import blocks, clock_text

STATE_WIDTH, TIME_WIDTH, METRIC_WIDTH, CURVE_WIDTH = 8, 5, 9, 12
"""The widths of the columns on a terminal that is too narrow for the names."""

STYLES = {
    "waiting": "dim",
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "interrupted": "yellow",
}
"""The states of jobs, in the order of their counts."""

MAX_WIDTH = 10_000
"""A table is as wide as it needs to be in so many columns."""

LEAST_ROWS = 4
"""A terminal shows this many jobs, however low it is."""


@dataclass
class JobProgress:
    """What the files of a run say about its job.

    Args:
        games, total: played so far, and of the whole run; 0: unknown.
        speed: games per second; None: unknown.
        seconds: of training so far.
        metric: what selects the best checkpoint; sign: -1 if lower values are better.
        value: the result of a run that is done; otherwise the latest evaluation.
        curve: pairs of games and the metric of the greedy policy.
    """

    job: Job
    games: int = 0
    total: int = 0
    speed: float | None = None
    seconds: float = 0.0
    metric: str = ""
    sign: int = 1
    value: float | None = None
    curve: list[tuple[float, float]] = field(default_factory=list)
    _seen: tuple[str, int] | None = None

    def start(self) -> RunInfo:
        """The job starts: the state of its run before that."""
        assert self.job.task is not None
        self.total = self.job.task.games or 0
        self.update()
        return read_info(self.job.task.directory)

    def update(self) -> None:
        """Read the files if they have changed."""
        task = self.job.task
        if task is None:
            return
        path = task.directory / "metrics.jsonl"
        with suppress(OSError):
            seen = (self.job.status, path.stat().st_size)
            if seen == self._seen:
                return
            info, lines = read_info(task.directory), read_metrics(path)
            self._seen, self.metric = seen, info.best_by
            self.sign = direction(goal_of(info.metric), info.best_by)
            name = f"eval/{info.best_by}"
            self.curve = [(line["games"], line[name]) for line in lines if name in line]
            self.value = self.curve[-1][1] if self.curve else None
            self.value = info.results.get(info.best_by, self.value)
            self.games = int(lines[-1]["games"]) if lines else self.games
            for line in lines:
                self.speed = line.get("time/games_per_s", self.speed)
                self.seconds = line.get("time/seconds", self.seconds)

    @property
    def fraction(self) -> float:
        """How much of the job is done."""
        if self.job.outcome is not None:
            return 1.0
        return min(1.0, self.games / self.total) if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the average speed so far; None if that is unknown, or the job does not run."""
        if self.job.status != "running" or not self.games or not self.seconds:
            return None
        return max(0, self.total - self.games) * self.seconds / self.games

    def heights(self, low: float, high: float) -> list[float]:
        """The curve from low, which is 0, to high, which is 1; -1 before the first evaluation."""
        columns = round(CURVE_WIDTH * min(1.0, self.games / self.total)) if self.total else 0
        ends = [(column + 1) * self.total / CURVE_WIDTH for column in range(columns)]
        values = [[value for games, value in self.curve if games <= end][-1:] for end in ends]
        scaled = [[(value - low) / ((high - low) or 1.0) for value in each] for each in values]
        return [each[0] if each else -1.0 for each in scaled]


class JobLines(JobView):
    """Prints a line when a job starts and when it ends."""

    def __init__(self) -> None:
        self.rows: dict[Job, JobProgress] = {}
        self._before: dict[Job, RunInfo] = {}

    def on_jobs(self, jobs: Sequence[Job]) -> None:
        self.rows |= {job: JobProgress(job) for job in jobs}

    def on_start(self, job: Job) -> None:
        info = self._before[job] = self.rows[job].start()
        total = self.rows[job].total
        if info.status == "waiting" or not total:
            self.print(f"{job.name}: starts")
        elif info.status != "done" or total > info.games:
            self.print(f"{job.name}: goes on after {self.rows[job].games:,} games")

    def on_end(self, job: Job) -> None:
        self.rows[job].update()
        self.print(f"{job.name}: {self._end(job)}", is_problem=job.status != "done")

    def on_stop(self, jobs: Sequence[Job]) -> None:
        self.print(f"stopping, after {counted(len(jobs), 'job')} saved", is_problem=True)

    def _end(self, job: Job) -> str:
        """How a job has ended, in words."""
        progress, outcome, before = self.rows[job], job.outcome, self._before.get(job)
        assert outcome is not None
        if outcome.status != "done":
            return "; ".join(filter(None, [f"{outcome.status}, {outcome.error}", outcome.hint]))
        if before is not None and before.status == "done" and 0 < progress.total <= before.games:
            return "done before"
        value = progress.value
        return "done" if value is None else f"done, {progress.metric} {value:.4g}"

    def print(self, line: str, is_problem: bool = False) -> None:
        """Print a line. is_problem: a table does not show it."""
        print_progress(line)


class JobTable(JobLines):
    """A table of all jobs, which rich may draw at any time in another thread, and a line for each
    problem above it. Once the jobs stop, the table stays as it is and every event has a line."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console, self._begun = console, time.monotonic()
        self.live = Live(self, console=console)

    def on_stop(self, jobs: Sequence[Job]) -> None:
        self.live.stop()
        super().on_stop(jobs)

    def print(self, line: str, is_problem: bool = False) -> None:
        if is_problem or not self.live.is_started:
            self.console.print(Text(printable(line)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [*self.rows.values()]
        for progress in rows:
            progress.update()
        shown = _most_telling(rows, max(LEAST_ROWS, console.height - 5))
        room = options.update(width=MAX_WIDTH)
        for has_counts, width in ((True, None), (False, None), (False, options.max_width)):
            table = self._table(shown, has_counts, width)
            if console.measure(table, options=room).maximum <= options.max_width:
                break
        yield table
        if len(shown) < len(rows):
            yield Text(f"and {counted(len(rows) - len(shown), 'other job')}", "dim")
        yield self._summary(rows)

    def _table(self, rows: Sequence[JobProgress], has_counts: bool, width: int | None) -> Table:
        """width: names are cut to it; None: as wide as they are."""
        metrics = {progress.metric for progress in self.rows.values()} - {""}
        metric = metrics.pop() if len(metrics) == 1 else "result"
        fixed = STATE_WIDTH, TIME_WIDTH, METRIC_WIDTH, CURVE_WIDTH
        room = None if width is None else max(METRIC_WIDTH, width - sum(fixed) - 2 * len(fixed))
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
        table.add_column("job", no_wrap=True, max_width=room)
        table.add_column("state", no_wrap=True, min_width=STATE_WIDTH)
        for name in ("games", "games/s") if has_counts else ():
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("left", justify="right", no_wrap=True, min_width=TIME_WIDTH)
        limit = None if width is None else METRIC_WIDTH
        table.add_column(printable(metric), justify="right", no_wrap=True, max_width=limit)
        table.add_column("", no_wrap=True, min_width=CURVE_WIDTH)
        bounds = self._bounds()
        for progress in rows:
            left, speed, job = progress.seconds_left, progress.speed, progress.job
            counts = [f"{progress.games:,}" if progress.games else ""]
            counts.append(number_text(speed) if speed is not None and job.outcome is None else "")
            state, curve = job.status, ""
            if state == "running":
                state = f"{progress.fraction:4.0%}" if progress.games else "starting"
            if progress.curve:
                (curve,) = blocks(progress.heights(*bounds[progress.metric]), 1)
            name = printable(job.name)
            if room is not None and len(name) > room:  # the ends of names differ most
                name = "…" + name[1 - room :]
            table.add_row(
                name,
                Text(state, STYLES[job.status]),
                *(counts if has_counts else []),
                "" if left is None else clock_text(left),
                "" if progress.value is None else number_text(progress.value),
                Text(curve, "cyan"),
            )
        return table

    def _bounds(self) -> dict[str, tuple[float, float]]:
        """The worst and the best value of each metric: all jobs have the same scale."""
        values: dict[str, list[float]] = {}
        signs = {progress.metric: progress.sign for progress in self.rows.values()}
        for progress in self.rows.values():
            values.setdefault(progress.metric, []).extend(value for _, value in progress.curve)
        ends = {name: (min(known), max(known)) for name, known in values.items() if known}
        return {
            name: (high, low) if signs[name] < 0 else (low, high)
            for name, (low, high) in ends.items()
        }

    def _summary(self, rows: Sequence[JobProgress]) -> Text:
        """How many jobs are in each state, the time, and an estimate of the time left."""
        text = Text(clock_text(time.monotonic() - self._begun), no_wrap=True, overflow="ellipsis")
        if (left := _seconds_left(rows)) is not None:
            text.append(f", {clock_text(left)} left")
        states = Counter(progress.job.status for progress in rows)
        text.append(f"; {counted(len(rows), 'job')}")
        for place, name in enumerate(name for name in STYLES if states[name]):
            text.append(", " if place else ": ").append(f"{states[name]:,} {name}", STYLES[name])
        return text


def _seconds_left(rows: Sequence[JobProgress]) -> float | None:
    """An estimate for all jobs, if waiting ones take as long as the others; None: unknown."""
    known = [each.total * each.seconds / each.games for each in rows if each.games and each.seconds]
    running = [each for each in rows if each.job.status == "running"]
    num_waiting = sum(each.job.status == "waiting" for each in rows)
    if not known or not running:
        return None
    mean = sum(known) / len(known)
    of_running = sum(mean if (left := each.seconds_left) is None else left for each in running)
    return (of_running + num_waiting * mean) / len(running)


def _most_telling(rows: Sequence[JobProgress], count: int) -> list[JobProgress]:
    """The jobs that a low terminal shows, in their order: first those that run, then those that
    failed, the last that are done, and the next."""
    states = ["running", "failed", "interrupted", "done", "waiting"]

    def rank(place: int) -> tuple[int, int]:
        status = rows[place].job.status
        return states.index(status), -place if status == "done" else place

    return [rows[place] for place in sorted(sorted(range(len(rows)), key=rank)[:count])]


@contextmanager
def jobs_view() -> Iterator[JobView]:
    """How jobs are shown on standard output."""
    console = Console()
    is_unicode = console.encoding.startswith("utf")
    if not sys.stdout.isatty() or console.is_dumb_terminal or not is_unicode:
        yield JobLines()
        return
    table = JobTable(console)
    with table.live:
        yield table
