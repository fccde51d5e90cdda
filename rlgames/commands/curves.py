"""Learning curves of several runs in one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rlgames.core.errors import ConfigError, nearest
from rlgames.core.text import json_text, printable
from rlgames.drawing import plots
from rlgames.drawing.plots import Floats
from rlgames.runs.files import finite_or_none, read_metrics
from rlgames.runs.summary import Report, Row, RunSummary, SeedMean

MAX_CURVES = 8
"""More curves in one picture cannot be distinguished."""

Curve = tuple[Floats, Floats]


def draw(
    report: Report, rows: list[Row], path: Path, metric: str | None, window: int | None
) -> None:
    """Write the curves of the first rows to a .png, with bands over the seeds of a row.

    window: average a training metric over this many games; None: draw it as logged.
    Raises ConfigError for another name, an unknown metric or a window that the logs do not allow,
    and OSError.
    """
    if path.suffix.lower() != ".png":
        raise ConfigError(f"curves={path} is not a picture", "it should end in .png")
    lines = {run.path: _lines(run.path) for run in report.runs}
    metric = _checked_metric(report, lines, metric, window)
    drawn = _curves_by_row(rows, lines, metric, window)
    curves: dict[str, Curve] = {}
    bands: dict[str, Curve] = {}
    for row, each in drawn[:MAX_CURVES]:
        name = _label(row, report.keys, curves)
        x, means = over_runs(each)
        y = np.array([mean.mean for mean in means])
        curves[name] = x, y
        if len(each) > 1:
            half = np.array([mean.half or 0.0 for mean in means])
            bands[name] = y - half, y + half
    curves |= _references(report, metric, curves)
    title = metric if window is None else f"{metric}, mean of the last {window:,} games"
    title += ", mean and 95 % interval over seeds" if bands else ""
    title += f", {MAX_CURVES} of {len(drawn)}" if len(drawn) > MAX_CURVES else ""
    labels = ("games", metric.partition("/")[2])
    chart = plots.line_chart(title, curves, bottom=None, bands=bands, labels=labels)
    path.write_bytes(plots.encode_png(chart))


def _checked_metric(
    report: Report,
    lines: dict[Path, list[dict[str, float]]],
    metric: str | None,
    window: int | None,
) -> str:
    """The metric, by default the one that selects checkpoints. Raises ConfigError."""
    judged = [run.best_by for run in (*report.best, *report.runs) if run.best_by]
    if metric is None:
        metric = f"eval/{judged[0]}" if judged else "eval/points"
    metrics = {name for each in lines.values() for line in each for name in line} - {"games"}
    if metric not in metrics:
        near = nearest(metric, sorted(metrics)) if metrics else "no run has any metrics yet"
        raise ConfigError(f"metric={metric} is in no run's metrics.jsonl", near)
    if window is not None and not metric.startswith("train/"):
        hint = "metric=train/turns is a mean over training games"
        raise ConfigError(f"window={window} needs a metric of training", hint)
    return metric


def _curves_by_row(
    rows: list[Row], lines: dict[Path, list[dict[str, float]]], metric: str, window: int | None
) -> list[tuple[Row, list[Curve]]]:
    """The rows that have the metric, each with a curve of every seed."""

    def points(run: RunSummary) -> Curve:
        curve = _points(lines[run.path], metric)
        return curve if window is None else moving_mean(curve, window)

    drawn = []
    for row in rows:
        of_seeds = [[points(run) for run in seed] for seed in row.by_seed]
        longest = [max(seed, key=lambda curve: len(curve[0])) for seed in of_seeds]
        if each := [curve for curve in longest if len(curve[0])]:
            drawn.append((row, each))
    if not drawn:
        if window is None:
            raise ConfigError(f"metric={metric} has no finite value", "choose another metric")
        raise ConfigError(f"window={window} is longer than every run", "use a shorter window")
    return drawn


def moving_mean(curve: Curve, window: int) -> Curve:
    """The mean over the last `window` games, at each point from that many games on.

    curve: games and means since the point before, from game 0. A line of the log that lies partly
    within the window counts for that part. Raises ConfigError if a line covers more games.
    """
    games, means = curve
    sizes = np.diff(games, prepend=0.0)
    if len(games) and sizes.max() > window:
        text = f"window={window} is shorter than the {sizes.max():,.0f} games of a log line"
        raise ConfigError(text, f"train with log_every={window} and a batch that divides it")
    ends = np.concatenate([[0.0], games])
    totals = np.concatenate([[0.0], np.cumsum(sizes * means)])
    x = games[games >= window]
    return x, (np.interp(x, ends, totals) - np.interp(x - window, ends, totals)) / window


def _references(report: Report, metric: str, curves: dict[str, Curve]) -> dict[str, Curve]:
    """Random play and the optimum as flat lines, where all runs are of one game."""
    known = [
        run
        for run in report.runs
        if run.results and metric in (f"eval/{run.figure}", f"train/{run.figure}")
    ]
    if not known or len({run.game for run in report.runs if run.config}) > 1:
        return {}
    places = np.concatenate([x for x, _ in curves.values()])
    ends = np.array([places.min(), places.max()])
    levels = known[0].results
    names = {"random": "random play", "optimal": "optimum"}
    return {names[key]: (ends, np.full(2, levels[key])) for key in names if key in levels}


def over_runs(curves: list[Curve]) -> tuple[Floats, list[SeedMean]]:
    """The mean at every place where a run has a point, between its points on straight lines.

    Each curve: x, rising, and y, float64 [N]. A run counts only within its range of x.
    """
    x = np.unique(np.concatenate([places for places, _ in curves]))
    each = [np.interp(x, places, y, left=np.nan, right=np.nan) for places, y in curves]
    return x, [
        SeedMean.of([float(y) for y in column if y == y]) for column in zip(*each, strict=True)
    ]


def _lines(run: Path) -> list[dict[str, float]]:
    path = run / "metrics.jsonl"
    try:
        return read_metrics(path) if path.is_file() else []
    except OSError:
        return []


def _points(lines: list[dict[str, float]], metric: str) -> Curve:
    """A metric over games; where a number of games has several values, the last one counts."""
    values: dict[float, float] = {}
    for line in lines:
        games, value = finite_or_none(line["games"]), finite_or_none(line.get(metric))
        if games is not None and value is not None:
            values[games] = value
    x = sorted(values)
    return np.array(x), np.array([values[games] for games in x])


def _label(row: Row, keys: list[str], taken: dict[str, Curve]) -> str:
    """The settings that distinguish a row."""
    settings = row.first.settings
    words = [f"{key}={json_text(settings[key])}" for key in keys if key in settings]
    name = printable(" ".join(words).replace('"', "") or str(row.first.path))
    name = name if len(name) <= 90 else name[:89] + "…"
    return name if name not in taken else f"{name} ({row.first.path})"
