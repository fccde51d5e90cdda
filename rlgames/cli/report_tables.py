"""A report, and the statistics of `compare=`, as tables and as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlgames.commands.comparison import Comparison
from rlgames.commands.report_rows import REFERENCES, Report, Row
from rlgames.config import plugins
from rlgames.config.schema import as_typed
from rlgames.core.text import counted, escape_markdown, printable
from rlgames.evaluation.aggregate import Statistic
from rlgames.runs.files import FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.terminal.tables import Column, print_table

NOTE = "95% intervals in parentheses; IQM: mean of the middle half of the runs"


def print_report_as(report: Report, format: str, names: Sequence[str] = ()) -> None:
    """Print a report; format: as in `rlgames report`, without json. names: see columns."""
    if format == "csv":
        records = report.records
        if names and "all" not in names:
            records = [{name: record[name] for name in names} for record in records]
        print_csv(records)
        return
    print_table(title(report), columns(report, names), format)
    if format == "latex":
        for line in [title(report), *(" ".join(parts) for parts in _notes(report))]:
            print(f"% {printable(line)}")
    elif format == "markdown":
        notes = [f"{escape_markdown(text)} {_as_code(code)}" for text, code in _notes(report)]
        print("\n" + "\n\n".join([escape_markdown(title(report)), *notes]))
    else:
        for text, code in _notes(report):
            print(printable(f"{text} {code}"))


def print_comparison(comparison: Comparison, format: str) -> None:
    """Print the statistics of agents, then of pairs of agents; format: as above."""
    if format == "csv":
        print_csv([_flat(entry) for entry in (*comparison.statistics, *comparison.pairs)])
        return
    for heading, table in (
        ("agents", _agent_columns(comparison.statistics)),
        ("pairs of agents", _pair_columns(comparison.pairs)),
    ):
        if table[0].cells:
            print_table(heading, table, format)
            print()
    print(f"% {NOTE}" if format == "latex" else NOTE)


def print_csv(records: Sequence[dict[str, Any]]) -> None:
    """Records with full numbers."""
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(printable, names))
    writer.writerows([_word(record.get(name)) for name in names] for record in records)


def title(report: Report) -> str:
    """What the table shows, in words."""
    runs = len(report.runs) + len(report.damaged)
    text = counted(runs, "run")
    if report.num_rows < runs:
        several = "s" * (report.num_rows > 1)
        text += f" of {report.num_rows:,} config{several}, means over seeds ± 95%"
    if len(report.rows) < report.num_rows:
        text += f", the first {len(report.rows):,}"
    if len(report.folder.parts) > 1:
        text += f", in {report.folder}"
    if any(row.so_far(name) is not None for row in report.rows for name in report.metrics):
        text += ", * so far, by evaluations during training"
    return text


def columns(report: Report, names: Sequence[str] = ()) -> list[Column]:
    """The columns of a table, the most important ones first if the terminal is too narrow.

    names: those to show, by their names in CSV; "all": those that are not empty. By default the
    settings that differ between runs of one game, and the metrics that runs are judged by.
    """
    keys, judged = _essence(report)
    metrics = report.metrics if names else [name for name in report.metrics if name in judged]
    pairs = [(row, row.record(report.keys, metrics)) for row in report.rows]

    def column(name: str, rank: int, is_text: bool = False) -> tuple[str, Column]:
        is_metric = name in (*report.metrics, "gap", "final/gap")
        texts = [_shown(row, name, record[name], is_metric) for row, record in pairs]
        heading = _heading(printable(name)) if is_metric else printable(name)
        return name, Column(heading, texts, rank, is_text)

    paths = [_relative(row.first.path, report.folder) for row in report.rows]
    every = [
        *(column(key, 0 if key in keys else 5, is_text=True) for key in report.keys),
        column("status", 1, is_text=True),
        column("runs", 3),
        *(column(name, judged.get(name, 5)) for name in metrics),
        *(column(name, 3) for name in REFERENCES),
        *(column(name, rank) for name, rank in (("gap", 1), ("final/gap", 3), ("seconds", 4))),
        column("started", 5, is_text=True),
        ("run", Column("run", paths, is_text=True)),
    ]
    has_seeds = report.num_rows < len(report.runs) + len(report.damaged)
    known = {name for name, each in every if any(each.cells) and (name != "runs" or has_seeds)}
    if not names:
        return [each for name, each in every if name in known and each.rank < 5]
    shown = {*names, *(known if "all" in names else ())}
    return [replace(each, rank=0) for name, each in every if name in shown]


def _relative(path: Path, folder: Path) -> str:
    is_inside = len(folder.parts) > 1 and path != folder
    return str(path.relative_to(folder) if is_inside else path)


def _essence(report: Report) -> tuple[list[str], dict[str, int]]:
    """The settings that differ between runs of one game, and the ranks of the columns of what
    runs are judged by."""
    by_game: dict[str, list[dict[str, Any]]] = {}
    for run in report.runs:
        by_game.setdefault(as_text(run.settings["game"]), []).append(run.settings)
    differ = {"game", *(key for settings in by_game.values() for key in differing(settings))}
    ranks: dict[str, int] = {}
    for run in report.runs:
        for rank, name in ((2, run.metric), (0, run.best_by)):
            ranks |= {name: min(rank, ranks.get(name, rank))}
    ranks |= {FINAL_PREFIX + name: rank + 1 for name, rank in ranks.items()}
    return [key for key in report.keys if key in differ], ranks


def _heading(name: str) -> str:
    """A metric or a gap with its checkpoint."""
    if name.startswith(FINAL_PREFIX):
        return f"{name.removeprefix(FINAL_PREFIX)}\n{FINAL_IN_WORDS}"
    return f"{name}\nbest"


def _shown(row: Row, name: str, value: Any, is_metric: bool) -> str:
    if value is None:
        return ""
    if name in ("gap", "final/gap"):
        return f"{value:z.2%}"
    if is_metric and (result := row.result(name)) is not None:
        half = result.half
        return _number(value) + ("" if half is None else f" ± {_number(half)}")
    if name in row.settings or not isinstance(value, float):
        return _word(value)
    if name == "seconds":
        return f"{value:.1f}"
    return _number(value) + "*" * (row.so_far(name) is not None)


def _number(value: float, digits: int = 4) -> str:
    return f"{value:z.{digits}f}" if abs(value) < 1000 else f"{value:,.1f}"


def _word(value: Any) -> str:
    """A value as one types it; nothing in it controls a terminal."""
    return "" if value is None else printable(as_typed(value))


def _notes(report: Report) -> list[tuple[str, str]]:
    """The best run of each game, with the command that evaluates it, and the damaged runs."""
    notes = []
    for run in report.best:
        game = f" of {_word(run.settings['game'])}" if len(report.best) > 1 else ""
        command = plugins.command_for_run("eval", run.path, run.config.get("plugins"))
        notes.append((f"best run{game}:", printable(command)))
    return notes + [(f"damaged: {run.path}:", run.damage) for run in report.damaged]


def _as_code(text: str) -> str:
    """Text that Markdown shows as it is, and that can be copied from its source too."""
    return f"`{text}`" if "`" not in text else escape_markdown(text)


def _agent_columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    runs = [f"{each['runs']} of {_games(each)}" for each in entries]
    return [
        Column("agent", [each["agent"] for each in entries], is_text=True),
        _metric_column(entries),
        Column("runs", runs, 1),
        Column("mean", [_in_words(each["mean"]) for each in entries]),
        Column("IQM", [_in_words(each["iqm"]) for each in entries], 2),
    ]


def _pair_columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    return [
        Column("A", [each["agents"][0] for each in entries], is_text=True),
        Column("B", [each["agents"][1] for each in entries], is_text=True),
        _metric_column(entries),
        Column("A - B", [_in_words(each["difference"]) for each in entries]),
    ]


def _metric_column(entries: Sequence[dict[str, Any]]) -> Column:
    metrics = [f"{each['metric']}, {each['checkpoint']}" for each in entries]
    return Column("metric", metrics, is_text=True)


def _games(entry: dict[str, Any]) -> str:
    games: list[str] = entry["games"]
    return games[0] if len(games) == 1 else f"{len(games)} games"


def _in_words(statistic: Statistic) -> str:
    text = f"{statistic.value:z,.4f}"
    if statistic.interval is None:
        return text
    low, high = statistic.interval
    return f"{text} ({low:z,.4f} to {high:z,.4f})"


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """Statistics of an agent or of a pair as a record; an interval takes two columns."""
    record: dict[str, Any] = dict.fromkeys(("agent", "other"))
    for name, value in entry.items():
        if isinstance(value, Statistic):
            low, high = value.interval or (None, None)
            record |= {name: value.value, f"{name} low": low, f"{name} high": high}
        elif name == "agents":
            record |= dict(zip(("agent", "other"), value, strict=True))
        else:
            record[name] = _games(entry) if name == "games" else value
    return record
