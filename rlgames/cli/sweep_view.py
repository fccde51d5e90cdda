"""The live table of a sweep on a terminal, a line for each job; plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rlgames.cli.live_view import blocks, can_draw, progress_bar
from rlgames.cli.progress import clock_text
from rlgames.cli.sweep_progress import JobProgress, PlainSweepProgress, SweepReader
from rlgames.core.text import printable
from rlgames.sweeps.sweep import Sweep

STATUS_STYLES = {"running": "cyan", "done": "green", "failed": "red", "died": "red"}
STATUS_STYLES |= {"evaluating": "cyan", "interrupted": "yellow", "waiting": "dim"}

SILENT_SECONDS = 1.0
"""Checks that take longer show a line."""

MIN_BAR_WIDTH, MIN_CURVE_WIDTH = 44, 64
"""Columns of the terminal that bars and curves need."""

BAR_COLUMNS, CURVE_COLUMNS = 10, 16


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


class CheckingLine:
    """A line on the terminal while the jobs of a large sweep are checked."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """done: jobs of this total that are checked."""
        if sys.stdout.isatty() and time.monotonic() - self._begun >= SILENT_SECONDS:
            end = "" if done < total else "\n"
            print(f"\rchecking {total:,} jobs: {done / total:4.0%}", end=end, flush=True)


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
