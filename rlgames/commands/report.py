"""`rlgames report`: a comparison of runs only from their files; nothing heavy is imported."""

from __future__ import annotations

import csv
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgames.commands import comparison
from rlgames.commands.comparison import REFERENCES, Comparison, Row, sort_key, typed_text
from rlgames.config import plugins
from rlgames.config.commands import ReportConfig
from rlgames.config.typed import changed
from rlgames.core.errors import ConfigError
from rlgames.core.metrics import are_equal
from rlgames.core.text import counted, escape_markdown, printable
from rlgames.runs.files import (
    FINAL_IN_WORDS,
    FINAL_PREFIX,
    as_text,
    differing,
    swept_settings,
    varying_settings,
)
from rlgames.runs.find import RunSummary, read_summaries
from rlgames.runs.where import check_column, matching, sorted_by
from rlgames.terminal.tables import Column, print_table

CURVE_KEYS = ("metric", "window", "x", "aggregate", "band", "references", "width", "style")
"""Keys that say how learning curves are drawn."""


@dataclass(frozen=True)
class Result:
    """A comparison of runs.

    config: of the command. runs: without the damaged ones. rows: damaged runs have a row each, at
    the end. keys: the settings that differ between runs. metrics: the results that are shown, those
    that select checkpoints first. best: the best run of each game. num_rows: with those that top=
    leaves out. folder: the one that holds all runs. comparison: the statistics of compare=, None
    without it.
    """

    config: ReportConfig
    runs: list[RunSummary]
    damaged: list[RunSummary]
    rows: list[Row]
    keys: list[str]
    metrics: list[str]
    best: list[RunSummary]
    num_rows: int
    folder: Path
    comparison: Comparison | None = None

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows by the names of columns."""
        return [row.record(self.keys, self.metrics) for row in self.rows]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        names = ("status", "config", "results", "so_far", "best_games", "games", "seconds")
        compared = {} if self.comparison is None else self.comparison.as_dict()
        return {
            "runs": [
                {"path": str(run.path)} | {name: getattr(run, name) for name in names}
                for run in self.runs
            ],
            "damaged": [{"path": str(run.path), "reason": run.damage} for run in self.damaged],
            "rows": [
                {
                    "config": {key: row.first.settings.get(key) for key in self.keys},
                    "runs": [str(run.path) for run in row.runs],
                    "status": row.status,
                    "results": {
                        name: mean.as_dict("value") | {"seeds": mean.count}
                        for name in dict.fromkeys(name for run in row.runs for name in run.results)
                        if (mean := row.result(name)) is not None
                    },
                    "gap_to_optimal": row.gap(),
                    "final_gap_to_optimal": row.gap(FINAL_PREFIX),
                    "seconds": row.seconds,
                }
                for row in self.rows
            ],
            "best": [str(run.path) for run in self.best],
        } | compared


def run(cfg: ReportConfig) -> Result:
    """Compare the runs in some directories; writes the picture of curves=.

    Raises ConfigError if there are no runs, and OSError.
    """
    if not cfg.runs:
        raise ConfigError("report needs a directory", "as in: rlgames report outputs")
    if cfg.format == "csv" and cfg.compare is not None:
        raise ConfigError("format=csv is a table of runs", "use format=json with compare=")
    every = matching(read_summaries(cfg.runs), cfg.where)
    runs, damaged = ([run for run in every if bool(run.damage) == is_bad] for is_bad in (0, 1))
    rows = sorted(_rows(runs, cfg.by), key=lambda row: row.order)
    keys = [key for key in _telling(runs) if key != "seed" or cfg.by == "run"]
    metrics = _metrics(runs)
    every_row = [*rows, *(Row([run]) for run in damaged)]
    shown = _sorted(every_row, cfg.sort, keys, metrics)
    for name in cfg.columns:
        check_column("columns", name, ["all", *shown[0].record(keys, metrics)])
    top = _top(shown, cfg.top)
    folder = Path(os.path.commonpath([run.path for run in every]))
    result = Result(cfg, runs, damaged, top, keys, metrics, _best(rows), len(shown), folder)
    if cfg.curves is not None:
        from rlgames.commands.curves import draw

        draw(runs, rows, keys, cfg)
    elif unused := changed(cfg, *CURVE_KEYS):
        raise ConfigError(f"{unused[0]}= is for learning curves", "add curves=FILE.png")
    if cfg.compare is not None:
        return replace(result, comparison=comparison.compare(runs, cfg.compare, cfg.top))
    return result


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


def _telling(runs: Sequence[RunSummary]) -> list[str]:
    """The settings that differ between runs or that their sweeps vary, also if only jobs with the
    first value have begun."""
    swept = [key for each in {run.path.parent: 0 for run in runs} for key in swept_settings(each)]
    known = [key for key in swept if any(key in run.settings for run in runs)]
    return [*dict.fromkeys([*differing([run.settings for run in runs]), *known])]


def _top(rows: list[Row], count: int | None) -> list[Row]:
    """The first rows of each game; None: all."""
    seen, shown = Counter[str](), list[Row]()
    for row in rows:
        seen[row.first.game] += 1
        if count is None or seen[row.first.game] <= count:
            shown.append(row)
    return shown


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
        if few or not are_equal(min(different), max(different))
    ]
    judged = {FINAL_PREFIX + name for run in runs for name in (run.metric, run.best_by)}
    final = {name for has in known for name in has if name in judged}
    pairs = [(name, FINAL_PREFIX + name) for name in (*first, *others)]
    return [name for pair in pairs for name in pair if name in pair[:1] or name in final]


def _best(rows: list[Row]) -> list[RunSummary]:
    """The best run of the best row of each game; rows: the best of each game first."""
    best = {row.first.game: row.first for row in rows[::-1] if not row.rank[0]}
    return [*best.values()][::-1]


def _sorted(rows: list[Row], sort: str, keys: list[str], metrics: list[str]) -> list[Row]:
    """Sorted rows; rows: the best first. Raises ConfigError for an unknown column."""
    name, is_reversed = sort.removeprefix("-"), sort.startswith("-")
    if name == "best":
        return rows[::-1] if is_reversed else rows
    records = [row.record(keys, metrics) for row in rows]
    check_column("sort", name, ["best", *records[0]])
    values = {id(row): record[name] for row, record in zip(rows, records, strict=True)}
    return sorted_by(rows, lambda row: values[id(row)], is_reversed)


def show(result: Result) -> None:
    """Print a report in the format of its command; a comparison replaces the runs."""
    config = result.config
    if result.comparison is None:
        _show_table(result)
    else:
        comparison.show(result.comparison, config.format)
        every = [*result.runs, *result.damaged]
        left_out = sum(not run.results for run in every)
        if left_out and config.format == "table":
            print(
                f"left out, because they are not done or damaged: {left_out} of {len(every)} runs"
            )
    if config.curves and config.format == "table":
        print(f"curves: {printable(config.curves)}")


def _show_table(result: Result) -> None:
    """Print the rows, as a table, Markdown, LaTeX or CSV."""
    names, format = result.config.columns, result.config.format
    if format == "csv":
        records = result.records
        if names and "all" not in names:
            records = [{name: record[name] for name in names} for record in records]
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(printable, records[0]))
        writer.writerows([*map(typed_text, record.values())] for record in records)
        return
    title, notes = _title(result), _notes(result)
    print_table(title, _columns(result), format)
    if format == "markdown":  # a command can be copied from the source too
        lines = [escape_markdown(title)]
        for text, code in notes:
            shown = f"`{code}`" if "`" not in code else escape_markdown(code)
            lines.append(f"{escape_markdown(text)} {shown}")
        print("\n" + "\n\n".join(lines))
        return
    lines = [" ".join(note) for note in notes]
    for line in [f"% {each}" for each in (title, *lines)] if format == "latex" else lines:
        print(printable(line))


def _title(result: Result) -> str:
    """What the table shows, in words."""
    runs = len(result.runs) + len(result.damaged)
    text = counted(runs, "run")
    if result.num_rows < runs:
        several = "s" * (result.num_rows > 1)
        text += f" of {result.num_rows:,} config{several}, means over seeds ± 95%"
    if len(result.rows) < result.num_rows:
        text += f", the first {len(result.rows):,}"
    if len(result.folder.parts) > 1:
        text += f", in {result.folder}"
    if any(row.so_far(name) is not None for row in result.rows for name in result.metrics):
        text += ", * so far, by evaluations during training"
    return text


def _columns(result: Result) -> list[Column]:
    """The columns of a table, the most important ones first if the terminal is too narrow.

    columns= lists those to show by their names in CSV; "all": those that are not empty. By default
    the settings that differ between runs of one game, and the metrics that runs are judged by.
    """
    names, (keys, judged) = result.config.columns, _essence(result)
    metrics = result.metrics if names else [name for name in result.metrics if name in judged]
    ranks = {key: 0 if key in keys else 5 for key in result.keys} | {"status": 1, "runs": 3}
    ranks |= {name: judged.get(name, 5) for name in metrics} | dict.fromkeys(REFERENCES, 3)
    ranks |= {"gap": 1, "final/gap": 3, "seconds": 4, "started": 5, "run": 0}
    pairs = [(row, row.record(result.keys, metrics)) for row in result.rows]
    has_seeds = result.num_rows < len(result.runs) + len(result.damaged)
    columns = []
    for name, rank in ranks.items():
        is_metric = name in (*metrics, "gap", "final/gap")
        cells = [_shown(row, name, record[name], is_metric) for row, record in pairs]
        if name == "run":
            cells = [_relative(row.first.path, result.folder) for row in result.rows]
        heading = printable(name)
        if is_metric:
            checkpoint = FINAL_IN_WORDS if name.startswith(FINAL_PREFIX) else "best"
            heading = f"{heading.removeprefix(FINAL_PREFIX)}\n{checkpoint}"
        is_shown = any(cells) and (name != "runs" or has_seeds)
        is_chosen = "all" in names if names else rank < 5
        if name in names or (is_shown and is_chosen):
            is_text = name in (*result.keys, "status", "started", "run")
            columns.append(Column(heading, cells, 0 if names else rank, is_text))
    return columns


def _relative(path: Path, folder: Path) -> str:
    is_inside = len(folder.parts) > 1 and path != folder
    return str(path.relative_to(folder) if is_inside else path)


def _essence(result: Result) -> tuple[list[str], dict[str, int]]:
    """The settings that differ between runs of one game, and the ranks of the columns of what
    runs are judged by."""
    by_game: dict[str, list[RunSummary]] = {}
    for run in result.runs:
        by_game.setdefault(as_text(run.settings["game"]), []).append(run)
    differ = {"game", *(key for runs in by_game.values() for key in _telling(runs))}
    ranks: dict[str, int] = {}
    for run in result.runs:
        for rank, name in ((2, run.metric), (0, run.best_by)):
            ranks |= {name: min(rank, ranks.get(name, rank))}
    ranks |= {FINAL_PREFIX + name: rank + 1 for name, rank in ranks.items()}
    return [key for key in result.keys if key in differ], ranks


def _shown(row: Row, name: str, value: Any, is_metric: bool) -> str:
    if value is None:
        return ""
    if name in ("gap", "final/gap"):
        return f"{value:z.2%}"
    if is_metric and (result := row.result(name)) is not None:
        half = result.half
        return _number(value) + ("" if half is None else f" ± {_number(half)}")
    if name in row.settings or not isinstance(value, float):
        return typed_text(value)
    if name == "seconds":
        return f"{value:.1f}"
    return _number(value) + "*" * (row.so_far(name) is not None)


def _number(value: float) -> str:
    return f"{value:z.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def _notes(result: Result) -> list[tuple[str, str]]:
    """The best run of each game, with the command that evaluates it, and the damaged runs."""
    notes = []
    for run in result.best:
        game = f" of {typed_text(run.settings['game'])}" if len(result.best) > 1 else ""
        command = plugins.command_for_run("eval", run.path, run.config.get("plugins"))
        notes.append((f"best run{game}:", printable(command)))
    return notes + [(f"damaged: {run.path}:", run.damage) for run in result.damaged]
