"""The live view of a training: what is drawn is a function of a small View and the clock."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from rlgames.onlooker import Onlooker
from rlgames.run_files import number, read_metrics, read_run

SHARES = {"playing": "cyan", "learning": "magenta", "evaluating": "yellow", "saving": "blue"}
"""What the time is spent on, with a colour each."""

NARROW = 40
"""Below so many columns, labels stand above and below what they name."""

LEVELS = " ▁▂▃▄▅▆▇█"
ASCII_LEVELS = "  ..::||#"
"""A cell of the learning curve that is filled by so many eighths, and the same in ASCII."""


@dataclass(frozen=True)
class View:
    """How far a run is. Clock times are seconds since 1970.

    total: how many games it will play. games: played so far, first of them before this process.
    begun: when this process began. doing: as Onlooker.doing. figure, random, optimal: as
    Onlooker.judged. curve: after how many games the greedy policy came to what in the figure.
    latest: the newest of each metric. evaluated, saved, best: after how many games there was the
    last evaluation, the last checkpoint and the best one. saved_at: when there was the last one.
    """

    total: int
    begun: float
    games: int = 0
    first: int = 0
    doing: str = "starting"
    figure: str = ""
    random: float | None = None
    optimal: float | None = None
    curve: tuple[tuple[int, float], ...] = ()
    latest: dict[str, float] = field(default_factory=dict)
    evaluated: int | None = None
    saved: int | None = None
    saved_at: float = 0.0
    best: int | None = None

    def told(self, games: int, metrics: dict[str, float]) -> View:
        """The view once so many games have been played, and these metrics logged."""
        name = f"eval/{self.figure}"
        new = ((games, metrics[name]),) if name in metrics else ()
        evaluated = any(each.startswith("eval/") for each in metrics)
        return replace(
            self,
            games=games,
            curve=self.curve + new,
            latest=self.latest | metrics if metrics else self.latest,
            evaluated=games if evaluated else self.evaluated,
        )

    def bounds(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """What the curve lies between, by name: random play, or the worst so far where that is not
        known, and the optimum, or the best that can be or was seen."""
        values = [value for _, value in self.curve]
        values += [] if self.random is None else [self.random]  # what is worse is no upper bound
        values = values or [0.0]
        fewer = self.figure == "turns"
        worst, best = (max(values), min(values)) if fewer else (min(values), max(values))
        low = ("worst", worst) if self.random is None else ("random", self.random)
        high = ("best", best) if self.optimal is None else ("optimum", self.optimal)
        if self.figure == "points" and self.optimal is None:
            high = ("all won", 1.0)
        return low, high

    def heights(self, columns: int) -> list[float]:
        """The curve at each column of a chart as wide as the run is long, up to now: 0 at the
        lower bound, 1 at the upper one."""
        (_, low), (_, high) = self.bounds()
        size = (high - low) or 1.0
        found: list[float] = []
        waiting = list(self.curve)
        latest: float | None = None
        for column in range(columns):
            end = (column + 1) * self.total / columns
            while waiting and waiting[0][0] <= end:
                latest = min(1.0, max(0.0, (waiting.pop(0)[1] - low) / size))
            if column * self.total / columns >= self.games:
                break
            found.append(-1.0 if latest is None else latest)
        return found

    def left(self, now: float) -> float | None:
        """Seconds until all games are played, at the pace so far; None before the first."""
        played, spent = self.games - self.first, now - self.begun
        return (self.total - self.games) * spent / played if played > 0 and spent > 0 else None


def blocks(heights: list[float], rows: int, ascii_only: bool = False) -> list[str]:
    """Columns as high as told, 0 to 1, or none at all below 0; the top row first."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    filled = [-1 if height < 0 else max(1, round(height * rows * 8)) for height in heights]
    return [
        "".join(levels[min(8, max(0, eighths - 8 * row))] for eighths in filled)
        for row in reversed(range(rows))
    ]


class Drawn:
    """A view as it is drawn at a moment, as wide and high as the console is by then."""

    def __init__(self, view: Callable[[], View], clock: Callable[[], float] = time.time) -> None:
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


def _bar(view: View, now: float, width: int, plain: bool) -> list[Text]:
    """How much is played, and the time left."""
    share = min(1.0, view.games / view.total)
    left = view.left(now)
    words = f"{int(share * 100):3d} % "
    rest = "" if left is None else f" {_clock(left)} left"
    if view.games >= view.total:
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


def _speed(view: View) -> Text:
    text = Text(f"{view.games:,} of {view.total:,} games")
    speed = view.latest.get("time/games_per_s")
    if speed is not None:
        text.append(f", {speed:,.0f} games/s" if speed >= 10 else f", {speed:.2f} games/s")
    if view.doing not in ("playing", "learning", ""):
        text.append(f", {view.doing}", "yellow")
    return text


def _shares(view: View, width: int, plain: bool) -> list[Text]:
    """Where the time goes, as a bar and in numbers."""
    shares = {name: view.latest.get(f"time/{name}", 0.0) for name in SHARES}
    if not any(shares.values()):
        return []
    marks = dict(zip(SHARES, "#=:." if plain else "█▓▒░", strict=True))
    bar, legend, so_far = Text(), Text(), 0.0
    whole = max(1.0, sum(shares.values()))
    for name, share in shares.items():
        start, so_far = round(so_far * width), so_far + share / whole
        bar.append(marks[name] * (round(so_far * width) - start), SHARES[name])
        legend.append("  " if legend else "").append(f"{marks[name]} ", SHARES[name])
        legend.append(f"{name} {share:.0%}".replace("%", " %"))
    return [bar, legend]


def _curve(view: View, width: int, rows: int, plain: bool) -> list[Text]:
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


def _marks(view: View) -> list[Text]:
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


class Screen(Live):
    """A view on a terminal that is kept up to date, also when the terminal becomes narrower.

    Then most terminals break the lines that are too long, so that the view to be drawn anew begins
    further up than rich knows.
    """

    def __init__(self, drawn: Drawn, console: Console) -> None:
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


class Viewer(Onlooker):
    """Keeps the view of a run that is under way; another thread may draw it at any time."""

    def __init__(self, total: int) -> None:
        self.view = View(total, time.time())
        self._before: list[dict[str, float]] = []

    def judged(self, figure: str, random: float | None, optimal: float | None) -> None:
        self.view = replace(self.view, figure=figure, random=random, optimal=optimal)
        for line in self._before:
            self.view = self.view.told(int(line["games"]), line)
        self.view = replace(self.view, begun=time.time(), first=self.view.games)

    def remembers(self, lines: list[dict[str, float]]) -> None:
        self._before = lines

    def told(self, games: int, metrics: dict[str, float]) -> None:
        self.view = self.view.told(games, metrics)

    def doing(self, what: str) -> None:
        self.view = replace(self.view, doing=what)

    def saved(self, games: int, best: bool) -> None:
        if best:
            self.view = replace(self.view, best=games)
        else:
            self.view = replace(self.view, saved=games, saved_at=time.time())


def of_run(directory: Path, games: int | None = None) -> View:
    """What a finished run looked like after so many games, or at its end, from its files."""
    run, lines = read_run(directory), []
    if (directory / "metrics.jsonl").is_file():
        lines = read_metrics(directory / "metrics.jsonl")
    results: dict[str, Any] = run.get("results") or {}
    view = View(
        total=int(lines[-1]["games"]) if lines else 1,
        begun=0.0,
        figure=str(run.get("figure", "")),
        random=number(results.get("random")),
        optimal=number(results.get("optimal")),
        doing="",
    )
    for line in lines:
        if games is None or line["games"] <= games:
            view = view.told(int(line["games"]), line)
    return replace(view, begun=-view.latest.get("time/seconds", 0.0))


def svg(view: View, title: str = "rlgames train", width: int = 80) -> str:
    """A picture of the view as it stands 0 seconds after 1970, which is when of_run ends."""
    console = Console(record=True, width=width, height=24, force_terminal=True, file=io.StringIO())
    console.print(Drawn(lambda: view, lambda: 0.0))
    return console.export_svg(title=title)
