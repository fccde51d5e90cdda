"""Text that is safe to print, and aligned columns."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence


def number_text(value: float) -> str:
    """A figure with four digits, or more before the decimal point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.4g}"


def short_number(value: float) -> str:
    """An estimate in few characters; empty if it is not finite."""
    if not math.isfinite(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:z.2f}"


def counted(number: int, name: str) -> str:
    """A number of things: 1 game, 2,000 games."""
    return f"{number:,} {name}{'s' * (number != 1)}"


def printable(text: str) -> str:
    """Text in one line, with control characters escaped: names and paths may contain anything."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, inside a table too."""
    return "".join("\\" * (each in "\\`*_[]<>|~") + each for each in printable(text))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, of cells that are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_section(page: str, name: str, text: str) -> str:
    """A page with a text between `<!-- NAME -->` and `<!-- end of NAME -->`; at its end without."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}{text}{end}{rest.partition(end)[2]}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines, each column as wide as its widest cell."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]


def help_width() -> int:
    """The width of help, in characters."""
    return min(120, shutil.get_terminal_size((100, 24)).columns)
