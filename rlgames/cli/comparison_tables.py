"""The statistics of `rlgames report compare=` as tables, as Markdown, as LaTeX and as CSV."""

from __future__ import annotations

import csv
import itertools
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from rlgames.cli.display import plain_text
from rlgames.cli.markup import latex_table, markdown_table
from rlgames.commands.comparison import Comparison
from rlgames.evaluation.aggregate import Statistic

STATISTICS = ("mean", "median", "iqm")

PAIR_STATISTICS = ("difference", "probability_of_improvement")

LEFT_COLUMNS = ("agent", "figure", "A", "B")
"""The headings of columns with words."""

UNBOUNDED_WIDTH = 10_000
"""The width of a table that is not printed on a terminal."""

NOTE = "95% intervals in parentheses; IQM: mean of the middle half of the runs"


def print_comparison(comparison: Comparison, format: str) -> None:
    """Print the statistics of agents, then those of pairs of agents; format: as in report."""
    if format == "csv":
        _print_csv(comparison)
        return
    tables = [("agents", _agent_rows(comparison)), ("pairs of agents", _pair_rows(comparison))]
    for title, rows in tables:
        if len(rows) < 2:
            continue
        if format == "markdown":
            print(markdown_table(rows), end="\n\n")
        elif format == "latex":
            print(latex_table(rows, LEFT_COLUMNS), end="\n\n")
        else:
            _print_table(title, rows)
    print(f"% {NOTE}" if format == "latex" else NOTE)


def _agent_rows(comparison: Comparison) -> list[list[str]]:
    rows = [["agent", "figure", "runs", "mean", "median", "IQM"]]
    for entry in comparison.statistics:
        runs = f"{entry['runs']} of {_games(entry)}"
        values = [_in_words(entry[name]) for name in STATISTICS]
        rows.append([entry["agent"], f"{entry['figure']}, {entry['checkpoint']}", runs, *values])
    return rows


def _pair_rows(comparison: Comparison) -> list[list[str]]:
    seeds = f"seeds for power {comparison.power:g}"
    rows = [["A", "B", "figure", "A - B", "A better than B", seeds]]
    for entry in comparison.pairs:
        needed = entry["seeds_needed"]
        rows.append(
            [
                *entry["agents"],
                f"{entry['figure']}, {entry['checkpoint']}",
                _in_words(entry["difference"]),
                _in_words(entry["probability_of_improvement"], 2),
                "–" if needed is None else f"{needed:,} to detect {entry['detects']:.4g}",
            ]
        )
    return rows


def _games(entry: dict[str, Any]) -> str:
    games: list[str] = entry["games"]
    return games[0] if len(games) == 1 else f"{len(games)} games"


def _in_words(statistic: Statistic, digits: int = 4) -> str:
    text = f"{statistic.value:,.{digits}f}"
    if statistic.interval is None:
        return text
    low, high = statistic.interval
    return f"{text} ({low:,.{digits}f} to {high:,.{digits}f})"


def _print_table(title: str, rows: list[list[str]]) -> None:
    table = Table(title=title, show_lines=True)
    for name in rows[0]:
        table.add_column(plain_text(name), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(plain_text, row))
    Console(width=None if sys.stdout.isatty() else UNBOUNDED_WIDTH).print(table)


def _print_csv(comparison: Comparison) -> None:
    """A line for each statistic, with full numbers."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["agent", "other", "games", "figure", "checkpoint", "statistic", "value", "low", "high"]
    )
    for entry, name in itertools.product(comparison.statistics, STATISTICS):
        writer.writerow(_csv_row([entry["agent"], ""], entry, name))
    for entry, name in itertools.product(comparison.pairs, PAIR_STATISTICS):
        writer.writerow(_csv_row(entry["agents"], entry, name))
    for entry in comparison.pairs:
        row = [
            *entry["agents"],
            _games(entry),
            entry["figure"],
            entry["checkpoint"],
            "seeds_needed",
        ]
        writer.writerow([*row, entry["seeds_needed"], None, None])


def _csv_row(agents: list[str], entry: dict[str, Any], name: str) -> list[Any]:
    statistic: Statistic = entry[name]
    interval = statistic.interval or (None, None)
    row = [*agents, _games(entry), entry["figure"], entry["checkpoint"], name]
    return [*row, statistic.value, *interval]
