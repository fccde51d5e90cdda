"""How far a training is: a small view of it, kept up to date as it is told, or read from files."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlgames.runs.files import finite_or_none, read_metrics, read_run
from rlgames.training.callbacks import Callback


@dataclass(frozen=True)
class ProgressView:
    """How far a run is. Clock times are seconds since 1970.

    total: how many games it will play. games: played so far, first of them before this process.
    begun: when this process began. doing: as Onlooker.doing. figure, random, optimal: as
    Onlooker.judged. curve: after how many games the greedy policy came to what in the figure.
    latest: the newest of each metric. evaluated, saved, best: after how many games there was the
    last evaluation, the last checkpoint and the best one. saved_at: when there was the last one.
    directory: where the run lies, once it is done.
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
    directory: Path | None = None

    def with_metrics(self, games: int, metrics: dict[str, float]) -> ProgressView:
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


class ProgressCallback(Callback):
    """Keeps the view of a run that is under way; another thread may draw it at any time."""

    def __init__(self, total: int) -> None:
        self.view = ProgressView(total, time.time())
        self._before: list[dict[str, float]] = []

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        self.view = replace(self.view, figure=metric, random=random, optimal=optimal)
        for line in self._before:
            self.view = self.view.with_metrics(int(line["games"]), line)
        self.view = replace(self.view, begun=time.time(), first=self.view.games)

    def on_resume(self, lines: list[dict[str, float]]) -> None:
        self._before = lines

    def on_update(self, games: int, metrics: dict[str, float]) -> None:
        self.view = replace(self.view, games=games)

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.view = self.view.with_metrics(games, metrics)

    def on_phase(self, phase: str) -> None:
        self.view = replace(self.view, doing=phase)

    def on_checkpoint(self, games: int, is_best: bool) -> None:
        if is_best:
            self.view = replace(self.view, best=games)
        else:
            self.view = replace(self.view, saved=games, saved_at=time.time())

    def on_run_end(self, directory: Path) -> None:
        self.view = replace(self.view, doing="", directory=directory)


def view_of_run(directory: Path, games: int | None = None) -> ProgressView:
    """What a finished run looked like after so many games, or at its end, from its files."""
    run, lines = read_run(directory), []
    if (directory / "metrics.jsonl").is_file():
        lines = read_metrics(directory / "metrics.jsonl")
    results: dict[str, Any] = run.get("results") or {}
    view = ProgressView(
        total=int(lines[-1]["games"]) if lines else 1,
        begun=0.0,
        figure=str(run.get("figure", "")),
        random=finite_or_none(results.get("random")),
        optimal=finite_or_none(results.get("optimal")),
        doing="",
    )
    for line in lines:
        if games is None or line["games"] <= games:
            view = view.with_metrics(int(line["games"]), line)
    return replace(view, begun=-view.latest.get("time/seconds", 0.0))
