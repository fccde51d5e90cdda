"""The live view of a training on a terminal: a function of a ProgressView and the time."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from rlgames.cli.progress import (
    PlainProgress,
    ProgressCallback,
    ProgressView,
    clock_text,
    number_text,
)
from rlgames.core.text import printable
from rlgames.training.callbacks import Callback

PHASES = {"playing": "cyan", "learning": "magenta", "evaluating": "yellow", "saving": "blue"}
"""The phases of a training, with their colors."""

NARROW_WIDTH = 40
"""On narrower terminals labels are placed above and below what they name."""

LEVELS = " ▁▂▃▄▅▆▇█"
ASCII_LEVELS = "  ..::||#"
"""A cell of the learning curve by its filled eighths, and the same in ASCII."""


@contextmanager
def training_view(total: int) -> Iterator[Callback]:
    """A live view of a training of this many games; without a terminal a plain line at every tenth
    of the games."""
    console = Console()
    if not sys.stdout.isatty() or console.is_dumb_terminal:
        yield PlainProgress(total)
        return
    callback = ProgressCallback(total)
    with LiveScreen(RenderedView(lambda: callback.view), console):
        yield callback


def blocks(heights: list[float], rows: int, ascii_only: bool = False) -> list[str]:
    """Columns of these heights, from 0 to 1, empty for a negative one; the top row first."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    filled = [-1 if height < 0 else max(1, round(height * rows * 8)) for height in heights]
    return [
        "".join(levels[min(8, max(0, eighths - 8 * row))] for eighths in filled)
        for row in reversed(range(rows))
    ]


class RenderedView:
    """A view as it is rendered at a time, in the size that the console has then."""

    def __init__(
        self, view: Callable[[], ProgressView], clock: Callable[[], float] = time.time
    ) -> None:
        self.view, self.clock = view, clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, is_ascii = options.max_width, options.ascii_only
        view, now = self.view(), self.clock()
        rows = 1 if console.height < 14 else 4 if console.height < 30 else 6
        yield from _progress_bar(view, now, width, is_ascii)
        yield _speed(view)
        yield from _phase_bar(view, width, is_ascii)
        if view.curve:
            yield from _curve(view, width, rows, is_ascii)
        yield from _events(view)


def _progress_bar(view: ProgressView, now: float, width: int, is_ascii: bool) -> list[Text]:
    """The games played so far, the time since this process started and the time left."""
    fraction = min(1.0, view.games / view.total)
    seconds_left = view.seconds_left(now)
    percent = f"{int(fraction * 100):3d} % "
    clock = f" {clock_text(now - view.begun)}"
    if seconds_left is not None and view.games < view.total and not view.is_done:
        clock += f", {clock_text(seconds_left)} left"
    if width < NARROW_WIDTH:
        bar = progress_bar("", fraction, "", width, is_ascii)
        return [Text(percent.strip() + clock, "bold"), bar]
    return [progress_bar(percent, fraction, clock, width, is_ascii)]


def progress_bar(left: str, fraction: float, right: str, width: int, is_ascii: bool) -> Text:
    """A bar of which this fraction is full, between two texts, together this wide."""
    room = max(0, width - len(left) - len(right))
    done = int(fraction * room)
    full, empty = "#-" if is_ascii else "━╌"
    text = Text(left, "bold").append(full * done, "green").append(empty * (room - done), "dim")
    return text.append(right, "bold")


def _speed(view: ProgressView) -> Text:
    text = Text(f"{view.games:,} of {view.total:,} games")
    speed = view.latest.get("time/games_per_s")
    if speed is not None:
        text.append(f", {speed:,.0f} games/s" if speed >= 10 else f", {speed:.2f} games/s")
    if view.is_done:
        text.append(", done", "green")
    elif view.phase not in ("playing", "learning", ""):
        text.append(f", {view.phase}", "yellow")
    if view.directory is not None:
        text.append(f", in {printable(str(view.directory))}")
    return text


def _phase_bar(view: ProgressView, width: int, is_ascii: bool) -> list[Text]:
    """The fraction of the time in each phase, as a bar and as numbers."""
    fractions = {name: view.latest.get(f"time/{name}", 0.0) for name in PHASES}
    if not any(fractions.values()):
        return []
    patterns = dict(zip(PHASES, "#=:." if is_ascii else "█▓▒░", strict=True))
    bar, legend, end = Text(), Text(), 0.0
    whole = max(1.0, sum(fractions.values()))
    for name, fraction in fractions.items():
        start, end = round(end * width), end + fraction / whole
        bar.append(patterns[name] * (round(end * width) - start), PHASES[name])
        legend.append("  " if legend else "").append(f"{patterns[name]} ", PHASES[name])
        legend.append(f"{name} {fraction:.0%}".replace("%", " %"))
    return [bar, legend]


def _curve(view: ProgressView, width: int, rows: int, is_ascii: bool) -> list[Text]:
    """The learning curve between random play and the optimum, with its last value."""
    (low_name, low), (high_name, high) = view.bounds()
    labels = [f"{high_name} {number_text(high)}", f"{low_name} {number_text(low)}"]
    last = ("< " if is_ascii else "◀ ") + number_text(view.curve[-1][1])
    title = Text(f"{view.metric} of the greedy policy", "dim")
    margin = max(map(len, labels))
    room = width if width < NARROW_WIDTH else width - margin - 3
    room = max(1, room - len(last) - 1)
    heights = view.heights(room)
    row = rows - 1 - min(rows - 1, int(max(0.0, heights[-1]) * rows)) if heights else rows - 1
    chart = [Text(line, "cyan") for line in blocks(heights, rows, is_ascii)]
    chart[row].append(f" {last}", "bold")
    if width < NARROW_WIDTH or rows == 1:
        return [title, Text(labels[0], "dim"), *chart, Text(labels[1], "dim")]
    axis = "|" if is_ascii else "│"
    names = [labels[0], *[""] * (rows - 2), labels[1]]
    left = [Text().append(f"{name:>{margin}} {axis}", "dim") for name in names]
    return [title, *(name.append_text(line) for name, line in zip(left, chart, strict=True))]


def _events(view: ProgressView) -> list[Text]:
    """The last evaluation and the last checkpoint."""
    lines = []
    if view.evaluated is not None:
        names = (view.metric, "exploitability")
        values = [(name, view.latest.get(f"eval/{name}")) for name in names]
        text = ", ".join(
            f"{name} {number_text(value)}" for name, value in values if value is not None
        )
        lines.append(Text(f"evaluated after {view.evaluated:,} games: {text}"))
    if view.saved is not None:
        clock = time.strftime("%H:%M:%S", time.localtime(view.saved_at))
        best = "" if view.best is None else f", the best after {view.best:,}"
        lines.append(Text(f"saved after {view.saved:,} games, at {clock}{best}"))
    return lines


class LiveScreen(Live):
    """A live view that also survives a terminal that becomes narrower.

    Most terminals then wrap the lines that are too long. rich counts the lines of the last render
    at its former width: measured with rich 15.0.0, a view of 8 lines of 80 columns on a terminal
    narrowed to 20 moves the cursor up 7 lines instead of 31, and 24 lines of the old view stay.
    So refresh first clears the wrapped lines; rich has no hook for this (LiveRender.position_cursor
    knows neither width).
    """

    def __init__(self, view: RenderableType, console: Console) -> None:
        self._line_widths: list[int] = []
        super().__init__(view, console=console)

    def refresh(self) -> None:
        width, before = self.console.width, self._line_widths
        wrapped = sum(max(0, -(-line // width) - 1) for line in before)
        if wrapped:
            up = Control.move(0, 1 - len(before) - wrapped)
            self.console.control(Control((ControlType.CARRIAGE_RETURN,)), up)
            self.console.file.write("\x1b[J" + "\n" * (len(before) - 1))
        super().refresh()
        lines = self.console.render_lines(self.get_renderable(), pad=False)
        self._line_widths = [Segment.get_line_length(line) for line in lines[: self.console.height]]


def svg(view: ProgressView, title: str = "rlgames train", width: int = 80) -> str:
    """A picture of a view at time 0, which is when the view of view_of_run ends."""
    console = Console(record=True, width=width, height=24, force_terminal=True, file=io.StringIO())
    console.print(RenderedView(lambda: view, lambda: 0.0))
    return console.export_svg(title=title)
