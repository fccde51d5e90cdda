"""`rlgames report`: a comparison of runs only from their files; nothing heavy is imported."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgames.commands import comparison
from rlgames.commands.comparison import REFERENCES, Comparison, game_titles, typed_text
from rlgames.config import plugins
from rlgames.config.commands import ReportConfig
from rlgames.config.typed import changed
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import are_equal
from rlgames.core.text import counted, escape_markdown, printable
from rlgames.runs.files import (
    FINAL_IN_WORDS,
    FINAL_PREFIX,
    differing,
    swept_settings,
    varying_settings,
)
from rlgames.runs.table import OF_ROWS, ColumnText, Row, Run, grouped, read_runs, rows_of
from rlgames.runs.where import matching, sorted_by
from rlgames.terminal.tables import Column, print_table

FIGURE_KEYS = ("width", "style")
CURVE_KEYS = ("metric", "window", "x", "aggregate", *FIGURE_KEYS)
"""Keys that say how figures and how learning curves are drawn."""

GAPS = {"gap": 1, f"{FINAL_PREFIX}gap": 3}
USUAL = {**dict.fromkeys(GAPS, "z.2%"), "seconds": ".1f"}
"""Formats of columns that are not metrics."""

LAST = {**dict.fromkeys(REFERENCES, 3), **GAPS, "seconds": 4, "started": 5, "run": 0}
"""The last columns, with their ranks. Rank 5 is shown only if it is chosen."""


@dataclass(frozen=True)
class Result:
    """A comparison of runs.

    config: of the command. runs: without the damaged ones. rows: damaged runs have a row each, at
    the end. keys: the settings that differ between runs. metrics: the results that are shown, those
    that select checkpoints first. chosen: by columns=. best: the best run of each game. num_rows:
    with those that top= leaves out. folder: the one that holds all runs. comparison: the statistics
    of compare=, None without it.
    """

    config: ReportConfig
    runs: list[Run]
    damaged: list[Run]
    rows: list[Row]
    keys: list[str]
    metrics: list[str]
    chosen: list[ColumnText]
    best: list[Run]
    num_rows: int
    folder: Path
    comparison: Comparison | None = None

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows by the names of columns, an interval takes two; None: unknown."""
        names = _names(self.keys, self.metrics)
        if self.chosen and not _is_all(self.config):
            names = [column.metric for column in self.chosen]
        return [{name: row.value(name) for name in names} for row in self.rows]

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
            "rows": [self._row_as_dict(row) for row in self.rows],
            "best": [str(run.path) for run in self.best],
        } | compared

    def _row_as_dict(self, row: Row) -> dict[str, Any]:
        results = dict.fromkeys(name for run in row.runs for name in run.results)
        chosen = dict.fromkeys(column.metric for column in self.chosen)
        estimates = {name: row.estimate(name) for name in (results | chosen)}
        known = {
            name: found.as_dict("value") | {"seeds": found.count}
            for name, found in estimates.items()
            if found is not None
        }
        return {
            "config": {key: row.first.settings.get(key) for key in self.keys},
            "runs": [str(run.path) for run in row.runs],
            "status": row.status,
            "results": known,
            "gap_to_optimal": row.mean("gap"),
            "final_gap_to_optimal": row.mean(f"{FINAL_PREFIX}gap"),
            "seconds": row.mean("seconds"),
        }


def run(cfg: ReportConfig) -> Result:
    """Compare the runs in some directories; writes the figures of curves= and effects=.

    Raises ConfigError if there are no runs, and OSError.
    """
    if not cfg.runs:
        raise ConfigError("report needs a directory", "as in: rlgames report outputs")
    _check_keys(cfg)
    every = matching(read_runs(cfg.runs), cfg.where)
    runs, damaged = ([run for run in every if bool(run.damage) == is_bad] for is_bad in (0, 1))
    metrics, keys = _metrics(runs), _telling(runs)
    if cfg.by in ("config", "run"):
        keys = [key for key in keys if key != "seed" or cfg.by == "run"]
        rows = rows_of(runs, cfg.by)
    else:
        keys = [*dict.fromkeys([*({*keys} & {"game"}), cfg.by])]
        rows = rows_of(_finished(runs, cfg.by), cfg.by)
    chosen = [ColumnText.parse(text.partition("|")[0].strip(), text) for text in cfg.columns]
    for column in chosen if not _is_all(cfg) else ():
        _check_column("columns", column.metric, runs, ["all", *_names(keys, metrics)])
    shown = _sorted([*rows, *(Row([run]) for run in damaged)], cfg.sort, _names(keys, metrics))
    top, best = _top(shown, cfg.top), _best(rows)
    folder = Path(os.path.commonpath([run.path for run in every]))
    result = Result(cfg, runs, damaged, top, keys, metrics, chosen, best, len(shown), folder)
    if cfg.curves is not None:
        from rlgames.commands.curves import draw

        draw(runs, rows, keys, cfg)
    if cfg.effects is not None:
        from rlgames.commands.curves import draw_effects

        draw_effects(runs, [key for key in _telling(runs) if key != "seed"], chosen, cfg)
    if cfg.compare is not None:
        return replace(result, comparison=comparison.compare(runs, cfg.compare, cfg.top))
    return result


def _check_keys(cfg: ReportConfig) -> None:
    """Raises ConfigError for a key that has no effect with the others."""
    used = CURVE_KEYS if cfg.curves is not None else FIGURE_KEYS if cfg.effects is not None else ()
    for name in changed(cfg, *CURVE_KEYS):
        if name not in used:
            raise ConfigError(f"{name}= is for learning curves", "add curves=FILE.png")
    if cfg.curves is not None and cfg.by not in ("config", "run"):
        raise ConfigError(f"by={cfg.by} is for tables", "use compare= with curves=")
    if cfg.compare is not None:
        if cfg.format == "csv":
            raise ConfigError("format=csv is a table of runs", "use format=json with compare=")
        for name in changed(cfg, "by", "sort", "columns"):
            raise ConfigError(f"{name}= is for a table of runs", "remove it, or compare=")


def _finished(runs: Sequence[Run], key: str) -> list[Run]:
    """The runs that are done. Raises ConfigError if there are none, or none has the setting."""
    found = [run for run in runs if run.results]
    if not found:
        raise ConfigError(f"by={key} needs runs that are done", "resume them with rlgames resume")
    known = dict.fromkeys(name for run in found for name in run.settings)
    if key not in known:
        raise ConfigError(f"by={key} is not a setting", nearest(key, ["config", "run", *known]))
    return found


def _is_all(cfg: ReportConfig) -> bool:
    return "all" in cfg.columns


def _names(keys: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """The columns of CSV, by the names that columns= and sort= take."""
    ends = [name for metric in metrics for name in (metric, f"{metric} low", f"{metric} high")]
    return [*keys, "status", "runs", *ends, *LAST]


def _check_column(key: str, name: str, runs: Sequence[Run], names: list[str]) -> None:
    """Raises ConfigError for a value of columns= or sort= that no row has."""
    if name not in names and not any(run.knows(name) for run in runs):
        known = [*names, *dict.fromkeys(each for run in runs for each in run.measured)]
        raise ConfigError(f"{key}={name} is not a column", nearest(name, known))


def _telling(runs: Sequence[Run]) -> list[str]:
    """The settings that differ between runs or that their sweeps vary, also if only jobs with the
    first value have begun."""
    swept = [key for each in {run.path.parent: 0 for run in runs} for key in swept_settings(each)]
    known = [key for key in swept if any(key in run.settings for run in runs)]
    return [*dict.fromkeys([*differing([run.settings for run in runs]), *known])]


def _top(rows: list[Row], count: int | None) -> list[Row]:
    """The first rows of each game; None: all."""
    first = {id(row) for of in grouped(rows, lambda r: r.first.game).values() for row in of[:count]}
    return [row for row in rows if id(row) in first]


def _metrics(runs: list[Run]) -> list[str]:
    """The metrics that runs are judged by, then the others whose values differ. Those of the first
    are shown of both checkpoints, side by side."""
    known = [{**run.results, **run.so_far} for run in runs]
    first = dict.fromkeys(
        run.best_by for run, has in zip(runs, known, strict=True) if run.best_by in has
    )
    values = grouped((pair for run in runs for pair in run.results.items()), lambda pair: pair[0])
    few = sum(bool(run.results) for run in runs) < 2
    others = [
        name
        for name, pairs in values.items()
        if name not in (*first, *REFERENCES) and not name.startswith(FINAL_PREFIX)
        if few or not are_equal(min(pairs)[1], max(pairs)[1])
    ]
    judged = {FINAL_PREFIX + name for run in runs for name in (run.metric, run.best_by)}
    final = {name for has in known for name in has if name in judged}
    pairs = [(name, FINAL_PREFIX + name) for name in (*first, *others)]
    return [name for pair in pairs for name in pair if name in pair[:1] or name in final]


def _best(rows: list[Row]) -> list[Run]:
    """The best run of the best row of each game; rows: the best of each game first."""
    best = {row.first.game: row.first for row in rows[::-1] if not row.rank[0]}
    return [*best.values()][::-1]


def _sorted(rows: list[Row], sort: str, names: list[str]) -> list[Row]:
    """Sorted rows; rows: the best first. Raises ConfigError for an unknown column."""
    name, is_reversed = sort.removeprefix("-"), sort.startswith("-")
    if name == "best":
        return rows[::-1] if is_reversed else rows
    _check_column("sort", name, [run for row in rows for run in row.runs], ["best", *names])
    return sorted_by(rows, lambda row: row.value(name), is_reversed)


def show(result: Result) -> None:
    """Print a report in the format of its command; a comparison replaces the runs."""
    config = result.config
    if result.comparison is None:
        _show_table(result)
    else:
        comparison.show(result.comparison, config.format, _left_out(result))
    for name in ("curves", "effects"):
        if (path := getattr(config, name)) and config.format == "table":
            print(f"{name}: {printable(path)}")


def _left_out(result: Result) -> str:
    """How many runs a comparison leaves out, in words; empty for none."""
    every = [*result.runs, *result.damaged]
    count = sum(run.metric not in run.results for run in every)
    text = f"left out, because they are not done or damaged: {count} of {len(every)} runs"
    return text if count else ""


def _show_table(result: Result) -> None:
    """Print the rows, as a table, Markdown, LaTeX or CSV."""
    format = result.config.format
    if format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        records = result.records
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
    pooled = sum(len(row.runs) for row in result.rows)
    if any(row.parts for row in result.rows):
        within = {
            key for row in result.rows for key in varying_settings(r.settings for r in row.runs)
        }
        others = [key for key in _telling(result.runs) if key in within - {"seed"}]
        text = f"{counted(pooled, 'run')}, means over {', '.join([*others, 'seed'])} ± 95%"
        if pooled < runs and result.config.top is None:
            by = result.config.by
            text += f", {runs - pooled:,} left out: not done, or not with every {by}"
    elif result.num_rows < runs:
        several = "s" * (result.num_rows > 1)
        done = sum(bool(run.results) for run in result.runs)
        seeds = f"the seeds that are done ({done} of {runs})" if 0 < done < runs else "seeds"
        text += f" of {result.num_rows:,} config{several}, means over {seeds} ± 95%"
    if len(result.rows) < result.num_rows:
        text += f", the first {len(result.rows):,}"
    if len(result.folder.parts) > 1:
        text += f", in {result.folder}"
    if any(row.so_far(name) is not None for row in result.rows for name in result.metrics):
        text += ", * so far, by evaluations during training"
    return text


def _columns(result: Result) -> list[Column]:
    """The columns of a table, the most important ones first if the terminal is too narrow.

    Those of columns=, or all that are not empty. By default the settings that differ between runs
    of one game, and the metrics that runs are judged by.
    """
    keys, judged = _essence(result)
    ranks = {key: 0 if key in keys else 5 for key in result.keys} | {"status": 1, "runs": 3}
    ranks |= {name: judged.get(name, 5) for name in result.metrics} | LAST
    is_all = _is_all(result.config)
    if result.chosen and not is_all:
        return [_column(result, column, 0) for column in result.chosen]
    has_seeds = result.num_rows < len(result.runs) + len(result.damaged)
    columns = [
        _column(result, ColumnText(name, name), 0 if is_all else rank)
        for name, rank in ranks.items()
        if (is_all or rank < 5) and (name != "runs" or has_seeds)
    ]
    return [column for column in columns if any(column.cells)]


def _column(result: Result, column: ColumnText, rank: int) -> Column:
    """A column of the table; the names of metrics say which checkpoint they are of."""
    name, heading = column.metric, printable(column.heading)
    cells = [_shown(row, column) for row in result.rows]
    if name == "run":
        cells = [_relative(row.first.path, result.folder) for row in result.rows]
    if name in (*result.metrics, *GAPS):
        checkpoint = FINAL_IN_WORDS if name.startswith(FINAL_PREFIX) else "best"
        heading = f"{heading.removeprefix(FINAL_PREFIX)}\n{checkpoint}"
    is_text = name in (*result.keys, "status", "started", "run")
    return Column(heading, cells, rank, is_text)


def _relative(path: Path, folder: Path) -> str:
    is_inside = len(folder.parts) > 1 and path != folder
    return str(path.relative_to(folder) if is_inside else path)


def _essence(result: Result) -> tuple[list[str], dict[str, int]]:
    """The settings that differ between runs of one game, and the ranks of the columns of what
    runs are judged by."""
    by_game = grouped(result.runs, lambda run: run.settings["game"]).values()
    differ = {"game", *(key for runs in by_game for key in _telling(runs))}
    ranks: dict[str, int] = {}
    for run in result.runs:
        for rank, name in ((2, run.metric), (0, run.best_by)):
            ranks |= {name: min(rank, ranks.get(name, rank))}
    ranks |= {FINAL_PREFIX + name: rank + 1 for name, rank in ranks.items()}
    return [key for key in result.keys if key in {*differ, result.config.by}], ranks


def _shown(row: Row, column: ColumnText) -> str:
    """A cell of a table; empty for an unknown value."""
    name, value = column.metric, row.value(column.metric)
    if value is None:
        return ""
    if name in OF_ROWS or name in row.settings or not isinstance(value, float):
        return typed_text(value)
    usual = USUAL.get(name) or ("z.4f" if abs(value) < 1000 else ",.1f")
    if (name in LAST and not column.format) or (estimate := row.estimate(name)) is None:
        return column.text(value, usual) + "*" * (row.so_far(name) is not None)
    return column.cell(estimate.value, estimate.half, row.values(name), usual)


def _notes(result: Result) -> list[tuple[str, str]]:
    """The best run of each game, with the command that evaluates it, and the damaged runs."""
    notes, titles = [], game_titles([run.game for run in result.best])
    for run in result.best:
        game = f" of {titles[run.game]}" if len(titles) > 1 else ""
        command = plugins.command_for_run("eval", run.path, run.config.get("plugins"))
        notes.append((f"best run{game}:", printable(command)))
    return notes + [(f"damaged: {run.path}:", run.damage) for run in result.damaged]
