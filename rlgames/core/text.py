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


def some(names: Sequence[str], separator: str = ", ", limit: int = 10) -> str:
    """Names in a row; of more than the limit the first ones, dots and the last one."""
    shown = [*names] if len(names) <= limit else [*names[: limit - 2], "...", names[-1]]
    return separator.join(shown)


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
    """A page with a text between the lines `<!-- NAME -->` and `<!-- end of NAME -->`; at its end
    if it has neither. The text gets the page's line endings.

    Raises ValueError for a page with one of the two, several, or the second before the first.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    lines = page.split("\n")
    places = [[n for n, line in enumerate(lines) if line.strip() == each] for each in (begin, end)]
    newline = "\r\n" if "\r\n" in page else "\n"
    new = f"{begin}\n{text}{end}\n".replace("\n", newline)
    if not any(places):
        return f"{page}{newline if page and lines[-1] else ''}{new}"
    first, last = (each[0] if len(each) == 1 else -1 for each in places)
    if not 0 <= first < last:
        raise ValueError(f"it needs one line {begin}, and after it one line {end}")
    before, after = ("".join(f"{line}\n" for line in lines[:first]), "\n".join(lines[last + 1 :]))
    return f"{before}{new}{after}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines, each column as wide as its widest cell."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]


def help_width() -> int:
    """The width of help, in characters."""
    return min(120, shutil.get_terminal_size((100, 24)).columns)


def kind_of_value(value: object) -> str:
    """What a value is, for errors."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
