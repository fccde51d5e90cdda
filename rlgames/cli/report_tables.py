"""A report as a table for a person, as Markdown, as LaTeX and as CSV."""

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

from rlgames.cli.markup import escape_markdown, latex_table, markdown_table
from rlgames.commands.report import COLUMNS, cell
from rlgames.config import plugins
from rlgames.core.text import printable
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.runs.summary import FINAL_PREFIX, Report, Row, as_text

MAX_SETTING_WIDTH = 24
"""Longer settings are cut in the table of a terminal."""


GAPS = ("gap", "final/gap")
"""The columns of the gap to the optimum, of the best checkpoint and of the final network."""

UNBOUNDED_WIDTH = 10_000
"""The width of a table that is not printed on a terminal."""


def print_table(report: Report) -> None:
    """A table, folded where the terminal is too narrow, then the best runs."""
    console = Console(width=None if sys.stdout.isatty() else UNBOUNDED_WIDTH)
    console.print(fitted_table(report, console))
    for text, command in _advice(report):
        print(text, command)


def fitted_table(report: Report, console: Console) -> Table:
    """A table, folded where the console is too narrow."""
    names, rows = _cells(report)
    table = _table(report, names, rows)
    if Console(width=UNBOUNDED_WIDTH).measure(table).maximum > console.width:
        table = _table(report, *_folded(report, names, rows))
    return table


def _table(report: Report, names: list[str], rows: list[list[str]]) -> Table:
    table = Table(
        title=_title(report), show_lines=any("\n" in text for row in rows for text in row)
    )
    left = _left_columns(report)
    for name in names:
        table.add_column(Text(name), justify="left" if name in left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _left_columns(report: Report) -> list[str]:
    """The headings of columns with words."""
    return [*map(printable, report.keys), "settings", "status", "figures", "run"]


def _folded(
    report: Report, names: list[str], rows: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    """The cells with all settings in one column and all figures in another, a line each."""
    keys = list(map(printable, report.keys))
    folded = []
    for row in rows:
        cells = [(name, text) for name, text in zip(names, row, strict=True) if text]
        settings = [f"{name}={text}" for name, text in cells if name in keys]
        figures = [f"{name} {text}" for name, text in cells if name not in (*keys, "status", "run")]
        status = [text for name, text in cells if name in ("status", "run")]
        folded.append(["\n".join(settings), "\n".join(figures), *status])
    return ["settings", "figures", "status", "run"], folded


def print_markdown(report: Report) -> None:
    report = _essence(report)
    names, rows = _cells(report)
    print(markdown_table([names, *rows]))
    advice = [f"{escape_markdown(text)} {_as_code(command)}" for text, command in _advice(report)]
    print("\n" + "\n\n".join([escape_markdown(_title(report)), *advice]))


def print_latex(report: Report) -> None:
    """The table of Markdown; what else there is to say as comments."""
    report = _essence(report)
    names, rows = _cells(report)
    print(latex_table([names, *rows], _left_columns(report)))
    for line in [_title(report), *(" ".join(parts) for parts in _advice(report))]:
        print(f"% {printable(line)}")


def _essence(report: Report) -> Report:
    """The report with the settings that differ between runs of one game, and the figures that
    these are about or judged by."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for run in report.runs:
        alike.setdefault(as_text(run.settings.get("game")), []).append(run.settings)

    def differs(key: str) -> bool:
        values = [{as_text(of[key]) for of in runs if key in of} for runs in alike.values()]
        return key == "game" or any(len(each) > 1 for each in values)

    judged = {name for run in report.runs for name in (run.figure, run.best_by)}
    return replace(
        report,
        keys=[key for key in report.keys if differs(key)],
        figures=[name for name in report.figures if name.removeprefix(FINAL_PREFIX) in judged],
    )


def print_csv(report: Report) -> None:
    """CSV with full numbers; the interval of a figure takes two columns."""
    columns = [name for name in COLUMNS if name not in ("status", "runs")]
    headings = [*report.keys, "status", "runs", *map(_checkpoint_heading, report.figures)]
    headings += [
        f"{_checkpoint_heading(name)} {end}" for name in report.figures for end in ("low", "high")
    ]
    headings += [_checkpoint_heading(name) if name in GAPS else name for name in columns]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(printable, headings))
    for row in report.rows:
        values = [cell(row, name) for name in (*report.keys, "status", "runs", *report.figures)]
        for name in report.figures:
            mean = row.mean_of(name)
            interval = None if mean is None else mean.as_dict()["ci95"]
            values += interval or (None, None)
        values += [cell(row, name) for name in columns]
        writer.writerow(map(_word, values))


PRINTERS: dict[str, Callable[[Report], None]] = {
    "table": print_table,
    "markdown": print_markdown,
    "latex": print_latex,
    "csv": print_csv,
}
"""By the value of format=."""


def _cells(report: Report) -> tuple[list[str], list[list[str]]]:
    """Headings and rows, without empty columns."""
    names = [*report.keys, "status", "runs", *report.figures, *COLUMNS[2:]]
    columns = []
    for name in names:
        texts = [_shown(row, name, report) for row in report.rows]
        is_empty = all(text == "1" for text in texts) if name == "runs" else not any(texts)
        if not is_empty:
            is_figure = name in (*report.figures, *GAPS)
            columns.append((printable(_checkpoint_heading(name) if is_figure else name), texts))
    headings = [name for name, _ in columns]
    return headings, [list(row) for row in zip(*(texts for _, texts in columns), strict=True)]


def _checkpoint_heading(name: str) -> str:
    """A figure or a gap with its checkpoint in words."""
    is_final = name.startswith(FINAL_PREFIX)
    words = FINAL_IN_WORDS if is_final else BEST_IN_WORDS
    return f"{name.removeprefix(FINAL_PREFIX)} {words}"


def _shown(row: Row, name: str, report: Report) -> str:
    value = cell(row, name)
    if name in report.keys:
        text = _word(value)
        return text if len(text) <= MAX_SETTING_WIDTH else text[: MAX_SETTING_WIDTH - 1] + "…"
    mean = row.mean_of(name) if name in report.figures else None
    if mean is not None:
        half = mean.half
        return _number(value) + ("" if half is None else f" ± {_number(half)}")
    if name in report.figures and value is not None and row.so_far(name) is not None:
        return f"{_number(value)}*"
    if name in GAPS and value is not None:
        return f"{value:.2%}"
    if name == "seconds" and value is not None:
        return f"{value:.1f}"
    return _number(value) if isinstance(value, float) else _word(value)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def _word(value: Any) -> str:
    """A value as it is command on a command line; nothing in it controls a terminal."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return printable(text)


def _title(report: Report) -> str:
    runs = len(report.runs) + len(report.damaged)
    text = f"{runs} run{'s' * (runs != 1)}"
    if len(report.rows) < runs:
        text += ", means over seeds ± 95%"
    if any(row.so_far(name) is not None for row in report.rows for name in report.figures):
        text += ", * so far, by evaluations during training"
    return text


def _advice(report: Report) -> list[tuple[str, str]]:
    """The best run of each game, in words, and the command that evaluates it."""
    lines = []
    for run in report.best:
        game = f" of {_word(run.settings.get('game'))}" if len(report.best) > 1 else ""
        command = plugins.command_for_run("eval", run.path, run.config.get("plugins"))
        lines.append((f"best run{game}:", printable(command)))
    for run in report.damaged:
        lines.append((f"damaged: {printable(str(run.path))}:", run.damage))
    return lines


def _as_code(text: str) -> str:
    """Text that Markdown shows as it is, and that can be copied from its source too."""
    return f"`{text}`" if "`" not in text else escape_markdown(text)
