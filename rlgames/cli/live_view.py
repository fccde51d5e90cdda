"""The live view of a training on a terminal: a function of a View and the clock."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from rlgames.cli.progress import ProgressView
from rlgames.core.text import printable

PHASES = {"playing": "cyan", "learning": "magenta", "evaluating": "yellow", "saving": "blue"}
"""What the time is spent on, with a colour each."""

NARROW = 40
"""Below so many columns, labels stand above and below what they name."""

LEVELS = " ▁▂▃▄▅▆▇█"
ASCII_LEVELS = "  ..::||#"
"""A cell of the learning curve that is filled by so many eighths, and the same in ASCII."""


def blocks(heights: list[float], rows: int, ascii_only: bool = False) -> list[str]:
    """Columns as high as told, 0 to 1, or none at all below 0; the top row first."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    filled = [-1 if height < 0 else max(1, round(height * rows * 8)) for height in heights]
    return [
        "".join(levels[min(8, max(0, eighths - 8 * row))] for eighths in filled)
        for row in reversed(range(rows))
    ]


class RenderedView:
    """A view as it is drawn at a moment, as wide and high as the console is by then."""

    def __init__(
        self, view: Callable[[], ProgressView], clock: Callable[[], float] = time.time
    ) -> None:
        self.view, self.clock = view, clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, plain = options.max_width, options.ascii_only
        view, now = self.view(), self.clock()
        rows = 1 if console.height < 14 else 4 if console.height < 30 else 6
        yield from _bar(view, now, width, plain)
        yield _speed(view)
        yield from _shares(view, width, plain)
        if view.curve:
            yield from _curve(view, width, rows, plain)
        yield from _marks(view)


def _bar(view: ProgressView, now: float, width: int, plain: bool) -> list[Text]:
    """How much is played, and the time left."""
    share = min(1.0, view.games / view.total)
    left = view.left(now)
    words = f"{int(share * 100):3d} % "
    rest = "" if left is None else f" {_clock(left)} left"
    if view.games >= view.total or view.directory is not None:
        rest = f" {_clock(now - view.begun)}"
    room = width if width < NARROW else width - len(words) - len(rest)
    done = int(share * room)
    full, empty = "#-" if plain else "━╌"
    bar = Text(full * done, "green").append(empty * (room - done), "dim")
    if width < NARROW:
        return [Text(words.strip() + rest, "bold"), bar]
    return [Text(words, "bold").append_text(bar).append(rest, "bold")]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _speed(view: ProgressView) -> Text:
    text = Text(f"{view.games:,} of {view.total:,} games")
    speed = view.latest.get("time/games_per_s")
    if speed is not None:
        text.append(f", {speed:,.0f} games/s" if speed >= 10 else f", {speed:.2f} games/s")
    if view.directory is not None:
        text.append(f", done, in {printable(str(view.directory))}", "green")
    elif view.doing not in ("playing", "learning", ""):
        text.append(f", {view.doing}", "yellow")
    return text


def _shares(view: ProgressView, width: int, plain: bool) -> list[Text]:
    """Where the time goes, as a bar and in numbers."""
    shares = {name: view.latest.get(f"time/{name}", 0.0) for name in PHASES}
    if not any(shares.values()):
        return []
    marks = dict(zip(PHASES, "#=:." if plain else "█▓▒░", strict=True))
    bar, legend, so_far = Text(), Text(), 0.0
    whole = max(1.0, sum(shares.values()))
    for name, share in shares.items():
        start, so_far = round(so_far * width), so_far + share / whole
        bar.append(marks[name] * (round(so_far * width) - start), PHASES[name])
        legend.append("  " if legend else "").append(f"{marks[name]} ", PHASES[name])
        legend.append(f"{name} {share:.0%}".replace("%", " %"))
    return [bar, legend]


def _curve(view: ProgressView, width: int, rows: int, plain: bool) -> list[Text]:
    """The learning curve between random play and the optimum, its last value marked."""
    (low_name, low), (high_name, high) = view.bounds()
    ends = [f"{high_name} {_number(high)}", f"{low_name} {_number(low)}"]
    last = ("< " if plain else "◀ ") + _number(view.curve[-1][1])
    title = Text(f"{view.figure} of the greedy policy", "dim")
    side = max(map(len, ends))
    room = width if width < NARROW else width - side - 3
    room = max(1, room - len(last) - 1)
    heights = view.heights(room)
    lines = blocks(heights, rows, plain)
    at = rows - 1 - min(rows - 1, int(max(0.0, heights[-1]) * rows)) if heights else rows - 1
    chart = [Text(line, "cyan") for line in lines]
    chart[at].append(f" {last}", "bold")
    if width < NARROW or rows == 1:
        return [title, Text(ends[0], "dim"), *chart, Text(ends[1], "dim")]
    axis = "|" if plain else "│"
    names = [ends[0], *[""] * (rows - 2), ends[1]]
    beside = [Text().append(f"{name:>{side}} {axis}", "dim") for name in names]
    return [title, *(name.append_text(line) for name, line in zip(beside, chart, strict=True))]


def _marks(view: ProgressView) -> list[Text]:
    """The last evaluation and the last checkpoint."""
    lines = []
    if view.evaluated is not None:
        told = [(name, view.latest.get(f"eval/{name}")) for name in (view.figure, "exploitability")]
        figures = ", ".join(f"{name} {_number(v)}" for name, v in told if v is not None)
        lines.append(Text(f"evaluated after {view.evaluated:,} games: {figures}"))
    if view.saved is not None:
        at = time.strftime("%H:%M:%S", time.localtime(view.saved_at))
        best = "" if view.best is None else f", the best after {view.best:,}"
        lines.append(Text(f"saved after {view.saved:,} games, at {at}{best}"))
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class LiveScreen(Live):
    """A view on a terminal that is kept up to date, also when the terminal becomes narrower.

    Then most terminals break the lines that are too long, so that the view to be drawn anew begins
    further up than rich knows.
    """

    def __init__(self, drawn: RenderedView, console: Console) -> None:
        self._widths: list[int] = []
        super().__init__(drawn, console=console)

    def refresh(self) -> None:
        width, before = self.console.width, self._widths
        broken = sum(max(0, -(-line // width) - 1) for line in before)
        if broken:
            up = Control.move(0, 1 - len(before) - broken)
            self.console.control(Control((ControlType.CARRIAGE_RETURN,)), up)
            self.console.file.write("\x1b[J" + "\n" * (len(before) - 1))
        super().refresh()
        lines = self.console.render_lines(self.get_renderable(), pad=False)
        self._widths = [Segment.get_line_length(line) for line in lines[: self.console.height]]


def svg(view: ProgressView, title: str = "rlgames train", width: int = 80) -> str:
    """A picture of the view as it stands 0 seconds after 1970, which is when of_run ends."""
    console = Console(record=True, width=width, height=24, force_terminal=True, file=io.StringIO())
    console.print(RenderedView(lambda: view, lambda: 0.0))
    return console.export_svg(title=title)
