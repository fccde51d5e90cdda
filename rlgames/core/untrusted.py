"""Text from files that somebody else may have written: read within bounds, told in one line."""

from __future__ import annotations

import json
from typing import Any

from rlgames.core.text import printable

MAX_JSON_DEPTH = 32
"""JSON is not nested deeper than this."""

MAX_MESSAGE_LENGTH = 300
"""Characters of such a file that a message shows at most."""


def sanitized(text: Any, most: int = MAX_MESSAGE_LENGTH) -> str:
    """A value as one printable line of at most so many characters, whatever is in it."""
    cut = str(text)[: most + 1]
    line = printable("".join(" " if mark.isspace() else mark for mark in cut))
    return line if len(line) <= most else line[: most - 1] + "…"


def parse_json(text: str | bytes) -> Any:
    """A JSON value. Raises ValueError for text that is none, that is nested deeper than DEPTH or
    in which a name comes twice."""
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    level, depth = [value], 0
    while level := [inner for each in level for inner in _inside(each)]:
        depth += 1
        if depth > MAX_JSON_DEPTH:
            raise ValueError("its JSON is nested too deeply")
    return value


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return value if isinstance(value, list) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice in its JSON")
    return found


def checked_int(value: Any, low: int, high: int = 10**18) -> int:
    """A whole number from low to high; ValueError for anything else."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{sanitized(value, 40)} is no whole number from {low} to {high}")
    return value


def checked_float(value: Any, low: float = 0.0, high: float = 1e300) -> float:
    """A number from low to high; ValueError for anything else, NaN too."""
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{sanitized(value, 40)} is no number from {low:g} to {high:g}")
    return float(value)
