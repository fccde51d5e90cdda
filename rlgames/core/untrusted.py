"""Checks of text and numbers from untrusted files."""

from __future__ import annotations

import json
from typing import Any

import yaml

from rlgames.core.text import printable

MAX_JSON_DEPTH = 32
"""Maximum nesting depth of JSON."""

MAX_NUMBER = 1e60
"""The largest absolute value of a metric that statistics use: its fourth power is finite."""

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C version, where PyYAML has it, is ten times as fast."""


def sanitized(value: Any, max_length: int = 300) -> str:
    """A value as one printable line of at most max_length characters."""
    prefix = str(value)[: max_length + 1]
    line = printable("".join(" " if char.isspace() else char for char in prefix))
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def parse_json(text: str | bytes) -> Any:
    """A JSON value. Raises ValueError for invalid JSON, for nesting deeper than MAX_JSON_DEPTH and
    for repeated names in an object."""
    try:
        value = json.loads(text, object_pairs_hook=_unique_names)
        content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        is_flat = content.count(b"{") + content.count(b"[") <= MAX_JSON_DEPTH
        if is_flat or _depth(value) <= MAX_JSON_DEPTH:
            return value
    except RecursionError:
        pass
    raise ValueError("JSON is nested too deeply")


def parse_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object, as parse_json. Raises ValueError for any other JSON."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _depth(value: Any) -> int:
    """How deep a JSON value is nested; 0 without anything in it."""
    children = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, children)) if children and isinstance(value, dict | list) else 0


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a JSON object repeats a name")
    return values


def checked_int(value: Any, low: int, high: int = 10**18) -> int:
    """An integer from low to high; ValueError for anything else."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{sanitized(value, 40)} is not an integer from {low} to {high}")
    return value


def checked_float(value: Any, low: float = 0.0, high: float = 1e300) -> float:
    """A number from low to high; ValueError for anything else, including NaN."""
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{sanitized(value, 40)} is not a number from {low:g} to {high:g}")
    return float(value)


def finite_or_none(value: Any) -> float | None:
    """A value as a float if it is a number of at most MAX_NUMBER, otherwise None."""
    try:
        return checked_float(value, -MAX_NUMBER, MAX_NUMBER)
    except ValueError:
        return None


def finite_numbers(values: dict[str, Any]) -> dict[str, float]:
    """Those values that are finite numbers."""
    numbers = {name: finite_or_none(value) for name, value in values.items()}
    return {name: number for name, number in numbers.items() if number is not None}
