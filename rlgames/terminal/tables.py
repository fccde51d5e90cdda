"""Tables on a terminal, as Markdown and as LaTeX, whatever text is in them."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len, chop_cells

from rlgames.core.text import escape_markdown, markdown_table, printable

GAP = "  "
"""Between two columns."""

MIN_FOLDED_WIDTH = 12
"""Columns of words are not folded into fewer characters."""

LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"±": "$\\pm$", "–": "--", "…": "\\ldots{}", "×": "$\\times$", '"': "''"},
    **{"†": "$\\dagger$", "−": "$-$", "→": "$\\to$"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "]": "{]}"},
}
"""Characters that LaTeX would take for commands, or lacks."""


@dataclass(frozen=True)
class Column:
    """A column of texts.

    rank: its importance. Columns of rank 0 are always shown; of the others those with the highest
        rank are left out first where a terminal is too narrow.
    is_text: words, not numbers.
    """

    heading: str  # of all columns "": a table without headings
    cells: list[str]
    rank: int = 0
    is_text: bool = False

    @cached_property
    def width(self) -> int:
        return max(map(cell_len, (*self.heading.split("\n"), *self.cells)))


def rows(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """The headings and the cells of each row."""
    return list(zip(*([each.heading, *each.cells] for each in columns), strict=True))


def print_table(title: str, columns: Sequence[Column], format: str) -> None:
    """Print a table; format: table, markdown or latex, which have no title. If a terminal is too
    narrow, columns are left out and named."""
    if format == "markdown":
        head, *rest = ([*map(escape_markdown, row)] for row in _on_one_line(columns))
        print(markdown_table(head, rest), end="")
    elif format == "latex":
        print(latex_table(columns))
    else:
        print("\n".join([printable(title), *_table_lines(columns, terminal_width())]))


def print_titled(title: str, columns: Sequence[Column], format: str) -> None:
    """Print a table below its title, which is a heading in Markdown and a comment in LaTeX."""
    if mark := {"latex": "% ", "markdown": "### "}.get(format):
        print(f"{mark}{printable(title)}\n")
    print_table(title, columns, format)


def print_note(text: str, format: str) -> None:
    """Print a line below tables."""
    print(f"{'% ' * (format == 'latex')}{printable(text)}{chr(10) * (format != 'table')}")


def fits(columns: Sequence[Column]) -> bool:
    """Whether columns fit side by side."""
    width = terminal_width()
    return width is None or _total(each.width for each in columns) <= width


def terminal_width() -> int | None:
    """The columns of the terminal; None if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _total(widths: Iterable[int]) -> int:
    sizes = list(widths)
    return sum(sizes) + len(GAP) * (len(sizes) - 1)


def _table_lines(columns: Sequence[Column], width: int | None) -> list[str]:
    """A table as aligned lines that are this wide at most; None: as wide as they are.

    The columns with the highest rank are left out until the others fit. Columns that fit in no way
    become lines, each with its heading.
    """
    shown = [replace(each, cells=list(map(printable, each.cells))) for each in columns]
    every, left_out = shown[:], list[Column]()
    while width is not None and _total(each.width for each in shown) > width:
        last = max(reversed(range(len(shown))), key=lambda number: shown[number].rank)
        if not shown[last].rank:
            break
        left_out.insert(0, shown.pop(last))
    least = (min(each.width, MIN_FOLDED_WIDTH) if each.is_text else each.width for each in shown)
    if width is not None and _total(least) > width:
        return _records(every, width)
    names = ", ".join(each.heading.replace("\n", " ") for each in left_out)
    return ["", *_lines(shown, width), *([f"no room for: {names}"] if names else [])]


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of words side by side; what is too wide for a terminal is folded."""
    texts = [[printable(cell) for cell in cells] for cells in zip(*rows, strict=True)]
    columns = [Column("", cells, is_text=True) for cells in texts]
    print("\n".join(_lines(columns, terminal_width())))


def _lines(columns: Sequence[Column], width: int | None) -> list[str]:
    """Where columns are wider than a terminal, the widest ones of words are folded: no cell is
    cut."""
    widths = [each.width for each in columns]
    words = [number for number, each in enumerate(columns) if each.is_text]
    while width is not None and words and _total(widths) > width:
        widest = max(words, key=lambda number: widths[number])
        if widths[widest] <= MIN_FOLDED_WIDTH:
            break
        widths[widest] -= 1

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell + " " * (size - cell_len(cell))
            if column.is_text
            else " " * (size - cell_len(cell)) + cell
            for column, size, cell in zip(columns, widths, cells, strict=True)
        ]
        return GAP.join(padded).rstrip()

    lines, headings = list[str](), [each.heading.split("\n") for each in columns]
    if any(each.heading for each in columns):
        height = max(map(len, headings))
        whole = [[""] * (height - len(parts)) + parts for parts in headings]
        is_utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
        rule = GAP.join(("─" if is_utf else "-") * size for size in widths)
        lines = [*map(line, zip(*whole, strict=True)), rule]
    for row in rows(columns)[1:]:
        folded = [
            [cell] if cell_len(cell) <= size else _folded(cell, size)
            for cell, size in zip(row, widths, strict=True)
        ]
        lines += map(line, zip_longest(*folded, fillvalue=""))
    return lines


def _records(columns: Sequence[Column], width: int) -> list[str]:
    """A block of lines for each row: a heading and its value in each."""
    headings, *cells = _on_one_line(columns)
    size, lines = max(map(cell_len, headings)), list[str]()
    if width - size - len(GAP) < MIN_FOLDED_WIDTH:
        size = 0
    for row in cells:
        lines.append("")
        for heading, cell in zip(headings, row, strict=True):
            lines += _folded(f"{heading:{size}}{GAP}{cell}", width, " " * size + GAP)
    return lines


def _folded(text: str, width: int, indent: str = "") -> list[str]:
    """A cell in lines, of whole words as far as they fit."""
    parts = wrap(text, width, subsequent_indent=indent) or [""]
    return [chop for part in parts for chop in chop_cells(part, width)]


def escape_latex(text: str) -> str:
    """Text that LaTeX shows as it is, inside a table too."""
    text = re.sub(r"(?<!\w)-(?=\d)", "−", printable(text))  # of a number
    return "".join(LATEX.get(each, each) for each in text)


def latex_table(columns: Sequence[Column]) -> str:
    """A table for the package booktabs."""
    alignment = "".join("l" if each.is_text else "r" for each in columns)
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in _on_one_line(columns)]
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{alignment}}}",
            *("\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"),
        ]
    )


def _on_one_line(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    headings, *cells = rows(columns)
    return [tuple(heading.replace("\n", " ") for heading in headings), *cells]
