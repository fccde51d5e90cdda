"""Tables on a terminal, as Markdown and as LaTeX, whatever text is in them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlgames.core.text import printable

UNBOUNDED_WIDTH = 10_000
"""The width of a table that is not printed on a terminal."""

LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"±": "$\\pm$", "–": "--", "…": "\\ldots{}", "×": "$\\times$", '"': "''"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "]": "{]}"},
}
"""Characters that LaTeX would take for commands, or lacks."""


@dataclass(frozen=True)
class Column:
    """A column of texts.

    group: the heading of the column that it joins, a line for each cell, if the terminal is too
    narrow; empty for a column that stays. is_text: words, not numbers.
    """

    heading: str
    cells: list[str]
    group: str = ""
    is_text: bool = False


def rows(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """The headings and the cells of each row."""
    return list(zip(*([each.heading, *each.cells] for each in columns), strict=True))


def print_table(title: str, columns: Sequence[Column], format: str) -> None:
    """Print a table; format: table, markdown or latex, which have no title."""
    if format == "table":
        console = Console(width=None if sys.stdout.isatty() else UNBOUNDED_WIDTH)
        console.print(fitted_table(title, columns, console))
    else:
        print(markdown_table(columns) if format == "markdown" else latex_table(columns))


def fitted_table(title: str, columns: Sequence[Column], console: Console) -> Table:
    """A table, with the columns of each group in one where the console is too narrow."""
    table = _table(title, columns)
    if Console(width=UNBOUNDED_WIDTH).measure(table).maximum > console.width:
        table = _table(title, _grouped(columns))
    return table


def _table(title: str, columns: Sequence[Column]) -> Table:
    is_folded = any("\n" in text for each in columns for text in each.cells)
    table = Table(title=title, show_lines=is_folded)
    for each in columns:
        text = Text(printable(each.heading))
        table.add_column(text, justify="left" if each.is_text else "right", overflow="fold")
    for row in rows(columns)[1:]:
        table.add_row(*(Text("\n".join(map(printable, text.split("\n")))) for text in row))
    return table


def _grouped(columns: Sequence[Column]) -> list[Column]:
    groups: dict[str, list[Column]] = {}
    for each in columns:
        groups.setdefault(each.group or each.heading, []).append(each)
    folded = []
    for name, members in groups.items():
        if not members[0].group:
            folded += members
            continue
        joint = "=" if members[0].is_text else " "
        headings, *cells = rows(members)
        lines = [[a + joint + b for a, b in zip(headings, row, strict=True) if b] for row in cells]
        folded.append(Column(name, ["\n".join(each) for each in lines], is_text=True))
    return folded


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, inside a table too."""
    return "".join("\\" * (each in "\\`*_[]<>|~") + each for each in printable(text))


def escape_latex(text: str) -> str:
    """Text that LaTeX shows as it is, inside a table too."""
    return "".join(LATEX.get(each, each) for each in printable(text))


def markdown_table(columns: Sequence[Column]) -> str:
    headings, *lines = [list(map(escape_markdown, row)) for row in rows(columns)]
    every = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in every)


def latex_table(columns: Sequence[Column]) -> str:
    """A table for the package booktabs."""
    alignment = "".join("l" if each.is_text else "r" for each in columns)
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in rows(columns)]
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{alignment}}}",
            *("\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"),
        ]
    )
