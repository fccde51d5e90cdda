"""`rlgames report`: a comparison of runs from their files alone; nothing heavy is imported."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgames.commands.report_rows import REFERENCES, Report, Row, sort_key
from rlgames.config.commands import ReportConfig
from rlgames.config.typed import changed
from rlgames.core.errors import ConfigError
from rlgames.runs.files import FINAL_PREFIX, as_text, differing, varying_settings
from rlgames.runs.find import RunSummary, read_summaries
from rlgames.runs.where import check_column, matching, sorted_by

if TYPE_CHECKING:
    from rlgames.commands.comparison import Comparison

CURVE_KEYS = ("metric", "window", "x", "aggregate", "band", "references", "width", "style")
"""Keys that say how learning curves are drawn."""


@dataclass(frozen=True)
class ReportResult:
    """A report and the config that says how to print it.

    comparison: the statistics of compare=, None without it. follow: the same report later, for
    follow=true.
    """

    report: Report
    cfg: ReportConfig
    comparison: Comparison | None = None
    follow: Callable[[], ReportResult] | None = None

    def as_dict(self) -> dict[str, Any]:
        fields = self.report.as_dict()
        return fields if self.comparison is None else fields | self.comparison.as_dict()


def report_command(cfg: ReportConfig) -> ReportResult:
    """Compare the runs in some directories; writes the picture of curves=.

    Raises ConfigError if there are no runs, and OSError.
    """
    if not cfg.runs:
        raise ConfigError("report needs a directory", "as in: rlgames report outputs")
    return make_report(cfg.runs, cfg)


def make_report(directories: list[str], cfg: ReportConfig) -> ReportResult:
    """As report_command; directories: at least one."""
    every = matching(read_summaries(directories), cfg.where)
    runs, damaged = ([run for run in every if bool(run.damage) == is_bad] for is_bad in (0, 1))
    rows = sorted(_rows(runs, cfg.by), key=lambda row: row.order)
    keys = differing([run.settings for run in runs])
    keys = [key for key in keys if key != "seed" or cfg.by == "run"]
    metrics = _metrics(runs)
    every_row = [*rows, *(Row([run]) for run in damaged)]
    shown = _sorted(every_row, cfg.sort, keys, metrics)
    for name in cfg.columns:
        check_column("columns", name, ["all", *shown[0].record(keys, metrics)])
    top = _top(shown, cfg.top)
    folder = Path(os.path.commonpath([run.path for run in every]))
    report = Report(runs, damaged, top, keys, metrics, _best(rows), len(shown), folder)
    if cfg.curves is not None:
        from rlgames.commands.curves import draw

        draw(report, rows, Path(cfg.curves), cfg)
    elif unused := changed(cfg, *CURVE_KEYS):
        raise ConfigError(f"{unused[0]}= is for learning curves", "add curves=FILE.png")
    comparison = None
    if cfg.compare is not None:
        from rlgames.commands.comparison import compare

        comparison = compare(runs, cfg.compare, cfg.top)
    follow = None
    if cfg.follow:
        if cfg.format != "table" or comparison is not None:
            raise ConfigError("follow=true shows a table of runs", "omit format= and compare=")
        follow = partial(make_report, directories, cfg)
    return ReportResult(report, cfg, comparison, follow)


def _rows(runs: list[RunSummary], by: str) -> list[Row]:
    """One row per config or run."""
    varying = [name for name in varying_settings([run.settings for run in runs]) if name != "seed"]
    groups: dict[Any, list[RunSummary]] = {}
    for run in runs:
        alike = [as_text(run.settings[name]) for name in varying if name in run.settings]
        key = run.path if by == "run" else (frozenset(run.settings), *alike)
        groups.setdefault(key, []).append(run)
    return [
        Row(sorted(group, key=lambda run: sort_key(run, run.results))) for group in groups.values()
    ]


def _top(rows: list[Row], count: int | None) -> list[Row]:
    """The first rows of each game; None: all."""
    if count is None:
        return rows
    by_game: dict[str, list[Row]] = {}
    for row in rows:
        by_game.setdefault(row.first.game, []).append(row)
    first = {id(row) for each in by_game.values() for row in each[:count]}
    return [row for row in rows if id(row) in first]


def _metrics(runs: list[RunSummary]) -> list[str]:
    """The metrics that runs are judged by, then the others whose values differ. Those of the first
    are shown of both checkpoints, side by side."""
    known = [{**run.results, **run.so_far} for run in runs]
    first = dict.fromkeys(
        run.best_by for run, has in zip(runs, known, strict=True) if run.best_by in has
    )
    values: dict[str, set[float]] = {}
    for run in runs:
        for name, value in run.results.items():
            values.setdefault(name, set()).add(value)
    few = sum(bool(run.results) for run in runs) < 2
    others = [
        name
        for name, different in values.items()
        if name not in (*first, *REFERENCES) and not name.startswith(FINAL_PREFIX)
        if few or len(different) > 1
    ]
    judged = {FINAL_PREFIX + name for run in runs for name in (run.metric, run.best_by)}
    final = {name for has in known for name in has if name in judged}
    pairs = [(name, FINAL_PREFIX + name) for name in (*first, *others)]
    return [name for pair in pairs for name in pair if name in pair[:1] or name in final]


def _best(rows: list[Row]) -> list[RunSummary]:
    """The best run of the best row of each game; rows: the best of each game first."""
    best: dict[str, RunSummary] = {}
    for row in rows:
        if not row.rank[0]:
            best.setdefault(row.first.game, row.first)
    return list(best.values())


def _sorted(rows: list[Row], sort: str, keys: list[str], metrics: list[str]) -> list[Row]:
    """Sorted rows; rows: the best first. Raises ConfigError for an unknown column."""
    name, is_reversed = sort.removeprefix("-"), sort.startswith("-")
    if name == "best":
        return rows[::-1] if is_reversed else rows
    records = [row.record(keys, metrics) for row in rows]
    check_column("sort", name, ["best", *records[0]])
    values = {id(row): record[name] for row, record in zip(rows, records, strict=True)}
    return sorted_by(rows, lambda row: values[id(row)], is_reversed)
