"""The progress of a training: a live view on a terminal, otherwise plain lines.

Other commands that compute for long show a bar.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rlgames.core import progress as computation
from rlgames.core.callbacks import Callback
from rlgames.core.errors import print_progress
from rlgames.core.memory import peak_memory
from rlgames.core.metrics import HEADLINES, direction, goal_of
from rlgames.core.status import STATUS
from rlgames.core.text import number_text, printable
from rlgames.runs.files import read_metrics

PHASES = ("playing", "learning", "evaluating", "saving")
"""The phases of a training whose fractions of the time are logged."""

MEASURES = ("exploitability", "regret")
"""What the view shows of an evaluation, besides the metric of the game."""

LEVELS = " ▁▂▃▄▅▆▇█"
"""A cell of the learning curve by its filled eighths."""

FIRST_SECONDS = 5.0
"""After this time an update prints a plain line, unless an evaluation has, and the time left is
estimated."""

WARN_DIVISOR = 5
"""From this fraction of the games on, a training that cannot get better is warned about."""

LARGE_BYTES = 1_000_000_000
"""Of memory: the view shows no less."""

QUIET_SECONDS = 1.0
"""Shorter computations have no bar."""


@dataclass
class Progress(Callback):
    """The progress of a run, which rich may draw at any time in another thread.

    Args:
        total: the games of the whole run.
        about: what is trained.
        clock: the time in seconds since 1970.
        begun: when this process started, by the clock.
        games: played so far.
        first: the games played before this process.
        phase: see Callback.on_phase.
        metric, random, optimal: see Callback.on_references.
        curve: pairs of games and the metric of the greedy policy.
        latest: the last value of each metric.
        events: the last evaluation, the last checkpoint, the best one and a warning, in words.
        directory: of the run.
        is_done: whether the run is done. is_interrupted: whether it ended before.
        timed: when the first update was over, which compiles kernels, and the games until then.
    """

    total: int
    about: str = ""
    clock: Callable[[], float] = time.time
    begun: float = field(default_factory=time.time)
    games: int = 0
    first: int = 0
    phase: str = "starting"
    metric: str = ""
    random: float | None = None
    optimal: float | None = None
    curve: list[tuple[int, float]] = field(default_factory=list)
    latest: dict[str, float] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)
    directory: Path | None = None
    is_done: bool = False
    is_interrupted: bool = False
    timed: tuple[float, int] | None = None

    def on_run_start(self, games: int, directory: Path) -> None:
        self.directory = directory

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        self.metric, self.random, self.optimal = metric, random, optimal
        if self.directory is not None:
            for line in read_metrics(self.directory / "metrics.jsonl"):  # of earlier processes
                self.on_metrics(int(line["games"]), line)
        self.begun, self.first = self.clock(), self.games

    def on_update(self, games: int, metrics: dict[str, float], *_: Any) -> None:
        self.games = games
        self.timed = self.timed or (self.clock(), games)

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.games, self.latest = games, self.latest | metrics
        if any(name.startswith("eval/") for name in metrics):
            values = {name: self.latest.get(f"eval/{name}") for name in (self.metric, *MEASURES)}
            known = [f"{name} {number_text(v)}" for name, v in values.items() if v is not None]
            self.events["evaluated"] = f"evaluated after {games:,} games: {', '.join(known)}"
        if (value := metrics.get(f"eval/{self.metric}")) is not None:
            self.curve.append((games, value))

    def on_evaluation_end(self, games: int) -> None:
        if self.directory is not None and games * WARN_DIVISOR >= self.total > games:
            from rlgames.runs.diagnosis import certain_cause

            self.events["warning"] = certain_cause(self.directory)

    def on_phase(self, phase: str) -> None:
        self.phase = phase

    def on_checkpoint(self, games: int, is_best: bool) -> None:
        if is_best:
            self.events["best"] = f", the best after {games:,}"
        else:
            clock = time.strftime("%H:%M:%S", time.localtime(self.clock()))
            self.events["saved"] = f"saved after {games:,} games, at {clock}"

    def on_run_end(self, directory: Path) -> None:
        self.phase, self.directory, self.is_done = "", directory, True

    def bounds(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """The lower and the upper bound of the curve, each with its name.

        Random play, or the worst value where that is unknown; the optimum, or the best possible or
        the best so far.
        """
        # Values that are worse than random play are not an upper bound.
        values = [value for _, value in self.curve]
        values = [*values, *([] if self.random is None else [self.random])] or [0.0]
        is_lower_better = direction(goal_of(self.metric), self.metric) < 0
        worst, best = (max(values), min(values)) if is_lower_better else (min(values), max(values))
        low = ("worst", worst) if self.random is None else ("random", self.random)
        high = ("best", best) if self.optimal is None else ("optimum", self.optimal)
        if self.metric == "points" and self.optimal is None:
            high = ("all won", 1.0)
        return low, high

    def heights(self, columns: int) -> list[float]:
        """The curve at each column of a chart as wide as the whole run, up to the present.

        0 is the lower bound, 1 the upper one, -1 marks columns before the first evaluation.
        """
        (_, low), (_, high) = self.bounds()
        starts = [column * self.total / columns for column in range(columns)]
        ends = [start + self.total / columns for start in starts if start < self.games]
        known = [bisect([games for games, _ in self.curve], end) for end in ends]
        values = [(value - low) / ((high - low) or 1.0) for _, value in self.curve]
        return [min(1.0, max(0.0, values[count - 1])) if count else -1.0 for count in known]

    def seconds_left(self) -> float | None:
        """The remaining seconds at the average speed after the first update; None before it means
        something."""
        begun, first = self.timed or (self.begun, self.first)
        played, spent = self.games - first, self.clock() - begun
        is_known = played > 0 and spent >= FIRST_SECONDS
        return (self.total - self.games) * spent / played if is_known else None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.about:
            yield Text(self.about, "dim")
        yield self._bar()
        yield self._speed()
        shares = {name: self.latest.get(f"time/{name}", 0.0) for name in PHASES}
        if any(shares.values()):
            yield Text(", ".join(f"{name} {share:.0%}" for name, share in shares.items()), "dim")
        if self.curve:
            yield from self._chart(options.max_width, rows=2 if console.height < 14 else 4)
        events = self.events
        if "evaluated" in events:
            yield Text(events["evaluated"])
        if "saved" in events:
            yield Text(events["saved"] + events.get("best", ""))
        if events.get("warning"):
            yield Text(f"warning: {events['warning']}", "yellow")

    def _bar(self) -> Table:
        """The games played so far, the time since this process started and the time left."""
        right, seconds_left = clock_text(self.clock() - self.begun), self.seconds_left()
        is_over = self.is_done or self.is_interrupted or self.games >= self.total
        if seconds_left is not None and not is_over:
            right += f", {clock_text(seconds_left)} left"
        grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        done = min(1.0, self.games / self.total)
        left = Text(f"{int(done * 100):3d}%", "bold")
        bar = ProgressBar(1.0, done, complete_style="green", finished_style="green")
        grid.add_row(left, bar, Text(right, "bold"))
        return grid

    def _speed(self) -> Text:
        text = Text(f"{self.games:,} of {self.total:,} games")
        speed = self.latest.get("time/games_per_s")
        if speed is not None:
            text.append(f", {speed:,.0f} games/s" if speed >= 10 else f", {speed:.2f} games/s")
        if memory := memory_text():
            text.append(f", {memory}")
        if self.is_done:
            text.append(", done", "green")
        elif self.is_interrupted:
            text.append(", stopped", "yellow")
        elif STATUS.text:
            text.append(f", {STATUS.text}", "yellow")
        elif self.phase not in ("playing", "learning", ""):
            text.append(f", {self.phase}", "yellow")
        if self.directory is not None:
            text.append(f", in {printable(str(self.directory))}")
        return text

    def _chart(self, width: int, rows: int) -> Iterator[Text]:
        """The learning curve between random play and the optimum, with its last value."""
        (low_name, low), (high_name, high) = self.bounds()
        labels = [f"{high_name} {number_text(high)}", f"{low_name} {number_text(low)}"]
        last = f" ◀ {number_text(self.curve[-1][1])}"
        margin = max(map(len, labels))
        heights = self.heights(max(1, width - margin - 2 - len(last)))
        end = rows - 1 - min(rows - 1, int(max(0.0, heights[-1]) * rows)) if heights else rows - 1
        yield Text(f"{self.metric} of the greedy policy", "dim")
        names = [labels[0], *[""] * (rows - 2), labels[1]]
        for row, (name, line) in enumerate(zip(names, blocks(heights, rows), strict=True)):
            text = Text(f"{name:>{margin}} │", "dim", no_wrap=True, overflow="crop")
            text.append(line, "not dim cyan")
            yield text.append(last if row == end else "", "not dim bold")


class PlainProgress(Progress):
    """Prints a line at the first evaluation in each tenth of the games: the metrics since the last
    one. Before them it prints one of an update, and one with the time that is left, if evaluations
    are long in coming."""

    _tenth, _has_line, _has_estimate = 0, False, False

    def on_run_start(self, games: int, directory: Path) -> None:
        self.first, self.begun, self.directory = games, self.clock(), directory
        print_progress(f"training in {directory}" + (f": {self.about}" if self.about else ""))

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        self.metric = metric

    def on_update(self, games: int, metrics: dict[str, float], *_: Any) -> None:
        super().on_update(games, metrics)
        is_late = self.clock() - self.begun >= FIRST_SECONDS and not self._has_line
        if is_late or (self.seconds_left() is not None and not self._has_estimate):
            few = [f"{name} {number_text(value)}" for name, value in [*metrics.items()][:3]]
            self._print_line(games, ", ".join(few))

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.games, self.latest = games, self.latest | metrics
        is_evaluated = any(name.startswith("eval/") for name in metrics)
        if is_evaluated and games * 10 // self.total > self._tenth:
            self._tenth = games * 10 // self.total
            self._print_line(games, self.line())
            self.latest = {}

    def on_evaluation_end(self, games: int) -> None:
        has_warned = self.events.get("warning")
        super().on_evaluation_end(games)
        if (warning := self.events.get("warning")) and not has_warned:
            print_progress(f"warning: {warning}")

    def line(self) -> str:
        """The latest metrics."""
        latest, names = self.latest, [*HEADLINES, "regret"]
        speed = latest.get("time/games_per_s")
        parts = [] if speed is None else [f"{speed:,.0f} games/s"]
        played = [name for name in HEADLINES if f"train/{name}" in latest]
        if "score" in played:
            played = [name for name in played if name != "turns"]
        parts += [f"{name} {latest[f'train/{name}']:z.2f}" for name in played]
        found = [f"{n} {latest[f'eval/{n}']:z.3f}" for n in names if f"eval/{n}" in latest]
        return ", ".join([*parts, f"greedy {' '.join(found)}"] if found else parts)

    def _print_line(self, games: int, line: str) -> None:
        times = [clock_text(self.clock() - self.begun)]
        if (seconds := self.seconds_left()) is not None and games < self.total:
            times.append(f"about {clock_text(seconds)} left")
            self._has_estimate = True
        times += [] if self._has_line else filter(None, [memory_text()])
        self._has_line = True
        print_progress(f"{games:>10,} of {self.total:,} games, {', '.join(times)}: {line}")


@contextmanager
def training_view(total: int, about: str) -> Iterator[Callback]:
    """The progress of a training of this many games, on standard output; about: what is trained."""
    console = Console()
    is_unicode = console.encoding.startswith("utf")
    if not sys.stdout.isatty() or console.is_dumb_terminal or not is_unicode:
        STATUS.clear()
        yield PlainProgress(total, about)
        return
    progress = Progress(total, about)
    with STATUS.shown_in_a_view(), Live(progress, console=console):
        try:
            yield progress
        except BaseException:
            progress.is_interrupted = True  # what stays on the screen waits for nothing
            raise


def blocks(heights: list[float], rows: int) -> list[str]:
    """Columns of these heights, from 0 to 1, empty for a negative one; the top row first."""
    filled = [-1 if height < 0 else max(1, round(height * rows * 8)) for height in heights]
    return [
        "".join(LEVELS[min(8, max(0, eighths - 8 * row))] for eighths in filled)
        for row in reversed(range(rows))
    ]


def memory_text() -> str:
    """The most memory that this process has used so far; empty if it is little or unknown."""
    size = peak_memory() or 0
    return f"{size / 1e9:.1f} GB of memory" if size >= LARGE_BYTES else ""


def clock_text(seconds: float) -> str:
    """A time as minutes:seconds, or hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def busy_bar(label: str) -> Iterator[None]:
    """A block whose progress is shown after a label on standard error, a terminal."""
    columns = (label, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True))
    bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task(label, total=1.0)
    begun = time.monotonic()
    with ExitStack() as stack:

        def show(fraction: float) -> None:
            if not bar.live.is_started and time.monotonic() - begun > QUIET_SECONDS:
                stack.enter_context(STATUS.shown_in_a_view())
                stack.enter_context(bar)
            bar.update(task, completed=fraction)

        with computation.listening(show):
            yield
