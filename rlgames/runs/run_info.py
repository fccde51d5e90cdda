"""What the files of a run say, checked once: nobody else needs to expect odd values in them."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError
from rlgames.core.processes import is_alive
from rlgames.core.untrusted import (
    MAX_NUMBER,
    checked_float,
    checked_int,
    sanitized,
)
from rlgames.runs import storage
from rlgames.runs.files import FINAL_PREFIX, MAX_LINE_LENGTH, load_run, parse_line

STATUSES = ("running", "interrupted", "failed", "done")
"""The values of status in run.json."""

MAX_SECONDS = 1e12


class DamagedRun(Exception):
    """A file of a run that is invalid: one printable line that names the file and the value."""


@dataclass(frozen=True)
class RunInfo:
    """The content of run.json; None and empty: unknown.

    status: one of STATUSES; "waiting" without a file; "damaged", with nothing else, for an invalid
    one. metric: the metric of the game; best_by: the one that selects the best checkpoint. results:
    of this checkpoint, evaluated at the end, and of the final network, as final/NAME; empty unless
    the run is done. best_games: played before the best checkpoint was saved. games, seconds: so
    far. config: plain, with a game that has a name. start: in ISO 8601. The others say how the run
    was started.
    """

    status: str
    config: dict[str, Any] = field(default_factory=dict)
    metric: str = ""
    best_by: str = ""
    results: dict[str, float] = field(default_factory=dict)
    best_games: int | None = None
    games: int = 0
    seconds: float | None = None
    pid: int | None = None
    host: str | None = None
    command: list[str] = field(default_factory=list)
    commit: str | None = None
    start: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def is_process_gone(self) -> bool:
        """Whether the process of a running run has certainly died: it may have been killed."""
        is_here = self.status == "running" and self.host == platform.node()
        return is_here and bool(self.pid) and not is_alive(self.pid or 0)


def read_info(directory: Path) -> RunInfo:
    """The content of run.json, whatever the file contains."""
    try:
        return parse_info(directory)
    except DamagedRun:
        return RunInfo("damaged")


def parse_info(directory: Path) -> RunInfo:
    """The content of run.json. Raises DamagedRun for anything but a valid one or none."""
    with _damage_in("run.json"):
        content = load_run(directory)
        if not content:
            return RunInfo("waiting")
        values: dict[str, Any] = {}
        for name, check in _CHECKS.items():
            if content.get(name) is not None:
                try:
                    values[name] = check(content[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        if values.get("status") not in STATUSES:
            raise ValueError(f"status is none of {', '.join(STATUSES)}")
        final = values.pop("final_results", {})
        if values["status"] == "done":
            final = {FINAL_PREFIX + name: value for name, value in final.items()}
            values["results"] = values.get("results", {}) | final
        else:
            values |= {"results": {}, "best_games": None}
        return RunInfo(**values)


class MetricsFollower:
    """Reads the metrics.jsonl of a run that may still be written, each line once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._offset, self._inode, self._num_lines = 0, -1, 0

    def new_lines(self) -> tuple[bool, list[dict[str, float]]]:
        """Whether the file was replaced, as by a resumed run, so that the lines start again; and
        the whole lines since the last call. Nothing if the file is missing.

        Raises DamagedRun for an invalid line, and for anything but a file.
        """
        lines: list[dict[str, float]] = []
        is_replaced = False
        with (
            _damage_in("metrics.jsonl"),
            contextlib.suppress(FileNotFoundError),
            storage.open_to_read(self.directory, "metrics.jsonl") as file,
        ):
            status = os.fstat(file.fileno())
            is_replaced = status.st_ino != self._inode or status.st_size < self._offset
            if is_replaced:
                self._offset, self._inode, self._num_lines = 0, status.st_ino, 0
            file.seek(self._offset)
            while (line := file.readline(MAX_LINE_LENGTH)).endswith(b"\n"):
                values = parse_line(line)
                if values is None:
                    raise ValueError(f"line {self._num_lines + 1} is not valid")
                self._offset += len(line)
                self._num_lines += 1
                lines.append(values)
            if len(line) == MAX_LINE_LENGTH:
                raise ValueError(f"line {self._num_lines + 1} is too long")
        return is_replaced, lines


def check_log(directory: Path) -> None:
    """Raises DamagedRun for a metrics.jsonl that cannot be read; it may be missing."""
    with _damage_in("metrics.jsonl"), contextlib.suppress(FileNotFoundError):
        storage.open_to_read(directory, "metrics.jsonl").close()


@contextmanager
def _damage_in(name: str) -> Iterator[None]:
    """Raise every error of a block that reads a file as DamagedRun."""
    try:
        yield
    except ConfigError:
        reason = "it is not a regular file"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        reason = str(error)
    else:
        return
    raise DamagedRun(f"{name}: {sanitized(reason, 200)}")


def _config(value: Any) -> dict[str, Any]:
    game = value.get("game") if isinstance(value, dict) else None
    if not isinstance(game, dict) or not isinstance(game.get("name"), str):
        raise ValueError("it names no game")
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("it has numbers that JSON lacks") from None
    return dict(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{sanitized(value, 40)} is not text")
    return value


def _numbers(value: Any) -> dict[str, float]:
    """Numbers by name; those that were not measured, or are not finite, are left out."""
    if not isinstance(value, dict):
        raise ValueError(f"{sanitized(value, 40)} is not an object of numbers")
    known = {name: number for name, number in value.items() if number is not None}
    return {
        name: checked_float(number, -MAX_NUMBER, MAX_NUMBER)
        for name, number in known.items()
        if not (isinstance(number, float) and not math.isfinite(number))
    }


def _time(value: Any) -> str:
    time = datetime.datetime.fromisoformat(_text(value))  # raises ValueError
    if not datetime.MINYEAR < time.year < datetime.MAXYEAR:  # it has to exist in every zone
        raise ValueError(f"{sanitized(value, 40)} is not a time")
    return str(value)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError(f"{sanitized(value, 40)} is not a list of texts")
    return [_text(part) for part in value]


def _texts_by_name(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{sanitized(value, 40)} is not an object of texts")
    return {name: _text(part) for name, part in value.items()}


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "config": _config,
    **dict.fromkeys(("status", "metric", "best_by", "host", "commit"), _text),
    **dict.fromkeys(("results", "final_results"), _numbers),
    **dict.fromkeys(("best_games", "games", "pid"), partial(checked_int, low=0)),
    "seconds": lambda value: checked_float(value, 0, MAX_SECONDS),
    "start": _time,
    "command": _texts,
    "versions": _texts_by_name,
}
