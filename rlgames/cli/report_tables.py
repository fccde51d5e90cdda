"""A report as a table for a person, as Markdown and as CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlgames.commands.report import COLUMNS, ReportResult, cell
from rlgames.config import plugins
from rlgames.core.text import printable
from rlgames.runs.summary import Report, Row, as_text

MAX_SETTING_WIDTH = 24
"""A setting is cut after so many characters, where the table is for a person."""


UNBOUNDED_WIDTH = 10_000
"""Of a table that nobody reads on a terminal."""


def print_report(result: ReportResult) -> None:
    """Print a report in the format of its command."""
    PRINTERS[result.format](result.report)
    if result.curves and result.format == "table":
        print(f"curves: {printable(result.curves)}")


def print_table(found: Report) -> None:
    """A table as wide as it needs to be, which is folded where a terminal is too narrow; then the
    best runs."""
    console = Console(width=None if sys.stdout.isatty() else UNBOUNDED_WIDTH)
    names, rows = _cells(found)
    table = _table(found, names, rows)
    if Console(width=UNBOUNDED_WIDTH).measure(table).maximum > console.width:
        table = _table(found, *_folded(found, names, rows))
    console.print(table)
    for told, typed in _advice(found):
        print(told, typed)


def _table(found: Report, names: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=_title(found), show_lines=any("\n" in text for row in rows for text in row))
    words = [*map(printable, found.keys), "settings", "status", "figures", "run"]
    for name in names:
        table.add_column(Text(name), justify="left" if name in words else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _folded(
    found: Report, names: list[str], rows: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    """All settings in one column and all figures in another, a line each."""
    keys = list(map(printable, found.keys))
    folded = []
    for row in rows:
        own = [(name, text) for name, text in zip(names, row, strict=True) if text]
        settings = [f"{name}={text}" for name, text in own if name in keys]
        figures = [f"{name} {text}" for name, text in own if name not in (*keys, "status", "run")]
        status = [text for name, text in own if name in ("status", "run")]
        folded.append(["\n".join(settings), "\n".join(figures), *status])
    return ["settings", "figures", "status", "run"], folded


def print_markdown(found: Report) -> None:
    found = _essence(found)
    names, rows = _cells(found)
    for row in (names, ["---"] * len(names), *rows):
        print("| " + " | ".join(_marked(text) for text in row) + " |")
    advice = [f"{_marked(told)} {_as_code(typed)}" for told, typed in _advice(found)]
    print("\n" + "\n\n".join([_marked(_title(found)), *advice]))


def _essence(found: Report) -> Report:
    """The report for a page that is read: the settings that differ between runs of one game, and
    the figures that these are about or judged by."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for run in found.runs:
        alike.setdefault(as_text(run.settings.get("game")), []).append(run.settings)

    def differs(key: str) -> bool:
        values = [{as_text(of[key]) for of in runs if key in of} for runs in alike.values()]
        return key == "game" or any(len(each) > 1 for each in values)

    judged = {name for run in found.runs for name in (run.figure, run.best_by)}
    return replace(
        found,
        keys=[key for key in found.keys if differs(key)],
        figures=[name for name in found.figures if name in judged],
    )


def print_csv(found: Report) -> None:
    """CSV with full numbers; the interval of a figure in two columns of their own."""
    beside = [name for name in COLUMNS if name not in ("status", "runs")]
    bounds = [f"{name} {end}" for name in found.figures for end in ("low", "high")]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = [*found.keys, "status", "runs", *found.figures, *bounds, *beside]
    writer.writerow(map(printable, names))
    for row in found.rows:
        values = {name: cell(row, name) for name in names}
        for name in found.figures:
            ends = row.results[name].as_dict()["ci95"] if name in row.results else None
            values |= dict(zip((f"{name} low", f"{name} high"), ends or (None, None), strict=True))
        writer.writerow(_word(values[name]) for name in names)


PRINTERS: dict[str, Callable[[Report], None]] = {
    "table": print_table,
    "markdown": print_markdown,
    "csv": print_csv,
}
"""By the value of format=."""


def _cells(found: Report) -> tuple[list[str], list[list[str]]]:
    """Headings and rows; columns that nobody has anything in are left out."""
    names = [*found.keys, "status", "runs", *found.figures, *COLUMNS[2:]]
    columns = []
    for name in names:
        texts = [_shown(row, name, found) for row in found.rows]
        dull = all(text == "1" for text in texts) if name == "runs" else not any(texts)
        if not dull:
            columns.append((printable(name), texts))
    headings = [name for name, _ in columns]
    return headings, [list(row) for row in zip(*(texts for _, texts in columns), strict=True)]


def _shown(row: Row, name: str, found: Report) -> str:
    value = cell(row, name)
    if name in found.keys:
        text = _word(value)
        return text if len(text) <= MAX_SETTING_WIDTH else text[: MAX_SETTING_WIDTH - 1] + "…"
    if name in found.figures and name in row.results:
        half = row.results[name].half
        return _number(value) + ("" if half is None else f" ± {_number(half)}")
    if name == "gap" and value is not None:
        return f"{value:.2%}"
    if name == "seconds" and value is not None:
        return f"{value:.1f}"
    return _number(value) if isinstance(value, float) else _word(value)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def _word(value: Any) -> str:
    """A value as it is typed on a command line; nothing in it controls a terminal."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return printable(text)


def _title(found: Report) -> str:
    runs, rows = len(found.runs), len(found.rows)
    told = f"{runs} run{'s' * (runs != 1)}"
    if rows < runs:
        told += ", means over seeds ± 95 %"
    return told


def _advice(found: Report) -> list[tuple[str, str]]:
    """How to evaluate the best run, of each game where there are several: what it is, and what to
    type."""
    lines = []
    for run in found.best:
        game = f" of {_word(run.settings.get('game'))}" if len(found.best) > 1 else ""
        typed = plugins.command_for_run("eval", run.path, run.config.get("plugins"))
        lines.append((f"the best{game}:", printable(typed)))
    return lines


def _as_code(text: str) -> str:
    """Text that Markdown shows as it is, and that can be copied from its source too."""
    return f"`{text}`" if "`" not in text else _marked(text)


def _marked(text: str) -> str:
    """Text that Markdown shows as it is, inside a table too."""
    for character in "\\`*_[]<>|~":
        text = text.replace(character, "\\" + character)
    return text
