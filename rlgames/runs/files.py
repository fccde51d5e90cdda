"""A run's files as they are read: nothing heavy is imported, and nothing in them is trusted."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml  # type: ignore[import-untyped]

from rlgames.config.command_schemas import GROUPS
from rlgames.core.untrusted import checked_int, parse_json

LOWER_IS_BETTER = ("turns", "exploitability")

MAX_FILE_LENGTH = 1 << 20
"""No run.json or config.yaml of ours is larger, in characters."""

MAX_YAML_DEPTH = 20
"""No config is nested deeper."""

MAX_LINE_LENGTH = 1 << 16
"""Longer lines of metrics are not read."""

TAIL_BYTES = 1 << 16
"""The last lines of the metrics are looked for in so many bytes."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_run(directory: Path) -> dict[str, Any]:
    """What run.json says; empty where there is none, "unknown" where it cannot be read."""
    try:
        found = parse_json(_text(directory / "run.json"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"status": "unknown"}
    return found if isinstance(found, dict) else {"status": "unknown"}


def read_config(directory: Path) -> dict[str, Any]:
    """What config.yaml says; empty where there is none that can be read."""
    try:
        text = _text(directory / "config.yaml")
        found = yaml.load(text, LOADER) if _harmless(text) else {}
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _harmless(text: str) -> bool:
    """Whether YAML is read in time: aliases make little text into a value without end, and deep
    nesting takes long to parse. Raises yaml.YAMLError."""
    depth = 0
    for event in yaml.parse(text, LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH or isinstance(event, yaml.AliasEvent):
            return False
    return True


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a metrics.jsonl, first to last, up to one that was torn."""
    with open(path, "rb") as file:
        return list(metric_lines(file))


def metric_lines(file: BinaryIO) -> Iterator[dict[str, float]]:
    """The lines of metrics, up to one that is none."""
    while line := file.readline(MAX_LINE_LENGTH):
        value = _line(line)
        if value is None:
            return
        yield value


def last_metrics(directory: Path) -> dict[str, float]:
    """The newest of each metric; empty where nothing can be read."""
    found: dict[str, float] = {}
    path = directory / "metrics.jsonl"
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).splitlines()
    except OSError:
        return {}
    for line in lines:
        found |= _line(line) or {}
    return found


def flatten(config: dict[str, Any]) -> dict[str, Any]:
    """A training's settings under the names that they are typed by, but for `out`.

    A group's choice has the group's name, null where it has none, so that all runs have it.
    """
    flat: dict[str, Any] = dict.fromkeys(GROUPS["train"])
    for name, value in config.items():
        if not isinstance(value, dict):
            flat[str(name)] = value
            continue
        for key, leaf in _leaves(value):
            if key == "name":
                flat[str(name)] = leaf
            else:
                flat[key if name == "game" else f"{name}.{key}"] = leaf
    flat.pop("out", None)
    return flat


def _leaves(tree: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", leaf) for key, leaf in _leaves(value))
        else:
            yield str(name), value


def finite_or_none(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _line(line: bytes) -> dict[str, float] | None:
    """A line of the metrics, whole games and numbers by name; None for anything else."""
    try:
        value = parse_json(line)
        checked_int(value["games"], 0)
        for each in value.values():
            if type(each) not in (int, float):
                return None
            float(each)  # the charts could not, where it is too large
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return dict(value)


def _text(path: Path) -> str:
    """Raises OSError, also for what is no plain file or too large, and ValueError."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no file")
    with path.open(encoding="utf-8") as file:
        text = file.read(MAX_FILE_LENGTH + 1)
    if len(text) > MAX_FILE_LENGTH:
        raise OSError(f"{path} is too large")
    return text
