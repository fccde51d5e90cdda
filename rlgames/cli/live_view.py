"""The live view of a training on a terminal: a function of its progress and the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from rlgames.cli.progress import PlainProgress, Progress, clock_text
from rlgames.core.callbacks import Callback
from rlgames.core.text import number_text, printable

PHASES = {"playing": "cyan", "learning": "magenta", "evaluating": "yellow", "saving": "blue"}
"""The phases of a training, with their colors."""

LEVELS = " ▁▂▃▄▅▆▇█"
"""A cell of the learning curve by its filled eighths."""


@contextmanager
def training_view(total: int) -> Iterator[Callback]:
    """A live view of a training of this many games, or a plain line at every tenth of the games."""
    console = Console()
    if not can_draw(console):
        lines = PlainProgress(total)
        try:
            yield lines
        finally:
            lines.close()
        return
    progress = Progress(total)
    with Live(RenderedView(progress), console=console):
        yield progress


def can_draw(console: Console) -> bool:
    """Whether standard output is a terminal that shows block characters and moves its cursor."""
    is_unicode = console.encoding.startswith("utf")
    return sys.stdout.isatty() and not console.is_dumb_terminal and is_unicode


def blocks(heights: list[float], rows: int) -> list[str]:
    """Columns of these heights, from 0 to 1, empty for a negative one; the top row first."""
    filled = [-1 if height < 0 else max(1, round(height * rows * 8)) for height in heights]
    return [
        "".join(LEVELS[min(8, max(0, eighths - 8 * row))] for eighths in filled)
        for row in reversed(range(rows))
    ]


class RenderedView:
    """A view as it is rendered at a time, in the size that the console has then."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.time) -> None:
        self.progress, self.clock = progress, clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        view, now = self.progress, self.clock()
        rows = 1 if console.height < 14 else 4 if console.height < 30 else 6
        yield _progress_bar(view, now, width)
        yield _speed(view)
        yield from _phase_bar(view, width)
        if view.curve:
            yield from _curve(view, width, rows)
        yield from _events(view)


def _progress_bar(view: Progress, now: float, width: int) -> Text:
    """The games played so far, the time since this process started and the time left."""
    fraction = min(1.0, view.games / view.total)
    seconds_left = view.seconds_left(now)
    percent = f"{int(fraction * 100):3d}% "
    clock = f" {clock_text(now - view.begun)}"
    if seconds_left is not None and view.games < view.total and not view.is_done:
        clock += f", {clock_text(seconds_left)} left"
    return progress_bar(percent, fraction, clock, width)


def progress_bar(left: str, fraction: float, right: str, width: int) -> Text:
    """A bar of which this fraction is full, between two texts, together this wide."""
    room = max(0, width - len(left) - len(right))
    done = int(fraction * room)
    text = Text(left, "bold").append("━" * done, "green").append("╌" * (room - done), "dim")
    return text.append(right, "bold")


def _speed(view: Progress) -> Text:
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


def _phase_bar(view: Progress, width: int) -> list[Text]:
    """The fraction of the time in each phase, as a bar and as numbers."""
    fractions = {name: view.latest.get(f"time/{name}", 0.0) for name in PHASES}
    if not any(fractions.values()):
        return []
    patterns = dict(zip(PHASES, "█▓▒░", strict=True))
    bar, legend, end = Text(), Text(), 0.0
    whole = max(1.0, sum(fractions.values()))
    for name, fraction in fractions.items():
        start, end = round(end * width), end + fraction / whole
        bar.append(patterns[name] * (round(end * width) - start), PHASES[name])
        legend.append("  " if legend else "").append(f"{patterns[name]} ", PHASES[name])
        legend.append(f"{name} {fraction:.0%}")
    return [bar, legend]


def _curve(view: Progress, width: int, rows: int) -> list[Text]:
    """The learning curve between random play and the optimum, with its last value."""
    (low_name, low), (high_name, high) = view.bounds()
    labels = [f"{high_name} {number_text(high)}", f"{low_name} {number_text(low)}"]
    last = "◀ " + number_text(view.curve[-1][1])
    title = Text(f"{view.metric} of the greedy policy", "dim")
    margin = max(map(len, labels))
    room = max(1, width - margin - 3 - len(last) - 1)
    heights = view.heights(room)
    row = rows - 1 - min(rows - 1, int(max(0.0, heights[-1]) * rows)) if heights else rows - 1
    chart = [Text(line, "cyan") for line in blocks(heights, rows)]
    chart[row].append(f" {last}", "bold")
    if rows == 1:
        return [title, Text(labels[0], "dim"), *chart, Text(labels[1], "dim")]
    names = [labels[0], *[""] * (rows - 2), labels[1]]
    left = [
        Text(no_wrap=True, overflow="crop").append(f"{name:>{margin}} │", "dim") for name in names
    ]
    return [title, *(name.append_text(line) for name, line in zip(left, chart, strict=True))]


def _events(view: Progress) -> list[Text]:
    """The last evaluation and the last checkpoint."""
    lines = []
    if view.evaluated is not None:
        names = (view.metric, "exploitability", "regret")
        values = [(name, view.latest.get(f"eval/{name}")) for name in names]
        known = [f"{name} {number_text(value)}" for name, value in values if value is not None]
        text = ", ".join(known)
        lines.append(Text(f"evaluated after {view.evaluated:,} games: {text}"))
    if view.saved is not None:
        clock = time.strftime("%H:%M:%S", time.localtime(view.saved_at))
        best = "" if view.best is None else f", the best after {view.best:,}"
        lines.append(Text(f"saved after {view.saved:,} games, at {clock}{best}"))
    return lines
