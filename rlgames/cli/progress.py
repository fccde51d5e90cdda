"""The progress of a training: what a view of it shows, and plain lines."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from rlgames.core.callbacks import Callback
from rlgames.core.errors import detach_stdout
from rlgames.core.metrics import HEADLINES, direction, goal_of
from rlgames.core.text import number_text, printable
from rlgames.runs.files import read_metrics


@dataclass
class Progress(Callback):
    """The progress of a run, which another thread may draw at any time.

    Args:
        total: the games of the whole run.
        begun: when this process started, in seconds since 1970, like all times here.
        games: played so far.
        first: the games played before this process.
        phase: see Callback.on_phase.
        metric, random, optimal: see Callback.on_references.
        curve: pairs of games and the metric of the greedy policy.
        latest: the last value of each metric.
        evaluated, saved, best: the games at the last evaluation, at the last checkpoint and at the
            best one.
        saved_at: the time of the last checkpoint.
        directory: of the run.
        is_done: whether the run is done.
        lines_before: the run's log at the start of this process.
    """

    total: int
    begun: float = field(default_factory=time.time)
    games: int = 0
    first: int = 0
    phase: str = "starting"
    metric: str = ""
    random: float | None = None
    optimal: float | None = None
    curve: list[tuple[int, float]] = field(default_factory=list)
    latest: dict[str, float] = field(default_factory=dict)
    evaluated: int | None = None
    saved: int | None = None
    saved_at: float = 0.0
    best: int | None = None
    directory: Path | None = None
    is_done: bool = False
    lines_before: list[dict[str, float]] = field(default_factory=list)

    def on_run_start(self, games: int, directory: Path) -> None:
        self.directory = directory
        self.lines_before = read_metrics(directory / "metrics.jsonl")

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        self.metric, self.random, self.optimal = metric, random, optimal
        for line in self.lines_before:
            self.on_metrics(int(line["games"]), line)
        self.begun, self.first = time.time(), self.games

    def on_update(self, games: int, metrics: dict[str, float]) -> None:
        self.games = games

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.games, self.latest = games, self.latest | metrics
        if any(name.startswith("eval/") for name in metrics):
            self.evaluated = games
        if (value := metrics.get(f"eval/{self.metric}")) is not None:
            self.curve.append((games, value))

    def on_phase(self, phase: str) -> None:
        self.phase = phase

    def on_checkpoint(self, games: int, is_best: bool) -> None:
        if is_best:
            self.best = games
        else:
            self.saved, self.saved_at = games, time.time()

    def on_run_end(self, directory: Path) -> None:
        self.phase, self.directory, self.is_done = "", directory, True

    def bounds(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """The lower and the upper bound of the curve, each with its name.

        Random play, or the worst value where that is unknown; the optimum, or the best possible or
        the best so far.
        """
        values = [value for _, value in self.curve]
        values += (
            [] if self.random is None else [self.random]
        )  # a worse value is not an upper bound
        values = values or [0.0]
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
        size = (high - low) or 1.0
        heights: list[float] = []
        pending = list(self.curve)
        latest = -1.0
        for column in range(columns):
            end = (column + 1) * self.total / columns
            while pending and pending[0][0] <= end:
                latest = min(1.0, max(0.0, (pending.pop(0)[1] - low) / size))
            if column * self.total / columns >= self.games:
                break
            heights.append(latest)
        return heights

    def seconds_left(self, now: float) -> float | None:
        """The remaining seconds at the average speed; None before the first game."""
        played, spent = self.games - self.first, now - self.begun
        return (self.total - self.games) * spent / played if played > 0 and spent > 0 else None


def clock_text(seconds: float) -> str:
    """A time as minutes:seconds, or hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


FIRST_SECONDS = 5.0
"""After this time an update prints a line, unless an evaluation has."""

SLOW_SECONDS = 8.0
"""A first update that takes longer is announced."""

SLOW = (
    "still in the first update; kernels compile once, and a smaller batch= or window= makes "
    "updates shorter"
)


def print_line(line: str) -> None:
    """Print a line of progress at once."""
    try:
        print(printable(line), flush=True)
    except BrokenPipeError:  # nobody reads standard output; the run continues
        detach_stdout()


class PlainProgress(Callback):
    """Prints a line at the first evaluation in each tenth of the games: the metrics since the last
    one. Before them it prints one of an update, if evaluations are long in coming."""

    def __init__(self, total: int) -> None:
        self._total, self._tenth = total, 0
        self._latest: dict[str, float] = {}
        self._begun = time.monotonic()
        self._first_games, self._has_line = 0, False
        self._announcement = threading.Timer(SLOW_SECONDS, print_line, [SLOW])
        self._announcement.daemon = True  # a training may end before

    def on_run_start(self, games: int, directory: Path) -> None:
        print_line(f"training in {directory}")
        self._first_games = games
        self._announcement.start()

    def on_update(self, games: int, metrics: dict[str, float]) -> None:
        self.close()
        seconds = time.monotonic() - self._begun
        if seconds >= FIRST_SECONDS and not self._has_line:
            speed = number_text((games - self._first_games) / seconds)
            few = [f"{name} {number_text(value)}" for name, value in [*metrics.items()][:3]]
            self._print_line(games, ", ".join([f"{speed} games/s", *few]))

    def close(self) -> None:
        """Announce nothing from now on, as the first update has ended, or the training."""
        self._announcement.cancel()

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self._latest.update(metrics)
        is_evaluated = any(name.startswith("eval/") for name in metrics)
        if is_evaluated and games * 10 // self._total > self._tenth:
            self._tenth = games * 10 // self._total
            self._print_line(games, self._line())
            self._latest = {}

    def _print_line(self, games: int, line: str) -> None:
        self._has_line = True
        clock = clock_text(time.monotonic() - self._begun)
        print_line(f"{games:>10,} of {self._total:,} games, {clock}: {line}")

    def _line(self) -> str:
        latest, metrics = self._latest, HEADLINES
        speed = latest.get("time/games_per_s")
        parts = [] if speed is None else [f"{speed:,.0f} games/s"]
        for name in metrics:
            if f"train/{name}" in latest and not (name == "turns" and "train/score" in latest):
                parts.append(f"{name} {latest[f'train/{name}']:.2f}")
        greedy = [
            f"{name} {latest[f'eval/{name}']:.3f}"
            for name in (*metrics, "regret")
            if f"eval/{name}" in latest
        ]
        if greedy:
            parts.append("greedy " + " ".join(greedy))
        return ", ".join(parts)
