"""What run.json says, checked once: nobody else needs to expect odd values in it."""

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
from pathlib import Path
from typing import Any

from rlgames.core.processes import is_alive
from rlgames.core.untrusted import MAX_NUMBER, sanitized
from rlgames.runs import storage
from rlgames.runs.files import FINAL_PREFIX, MAX_LINE_LENGTH, load_run, parse_line

STATUSES = ("running", "interrupted", "failed", "done")
"""The values of status in run.json."""

MAX_SECONDS = 1e12

MAX_COUNT = 10**18


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
    with damage_in("run.json"):
        content = load_run(directory)
        if not content:
            return RunInfo("waiting")
        values: dict[str, Any] = {}
        for name, (what, is_valid) in SCHEMA.items():
            value = content.get(name)
            if value is not None:
                if not is_valid(value):
                    raise ValueError(f"{name}: {sanitized(value, 40)} is not {what}")
                values[name] = value
        if "status" not in values:
            raise ValueError("it has no status")
        results = _measured(values.pop("results", {}))
        final = _measured(values.pop("final_results", {}))
        if values["status"] == "done":
            final = {FINAL_PREFIX + name: value for name, value in final.items()}
            return RunInfo(results=results | final, **values)
        return RunInfo(**values | {"best_games": None})


class MetricsFollower:
    """Reads the metrics.jsonl of a run that may still be written, each line once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._offset, self._inode, self._num_lines = 0, -1, 0

    def new_lines(self) -> tuple[bool, list[dict[str, float]]]:
        """Whether the file was replaced, as by a resumed run, so that the lines start again; and
        the whole lines since the last call. Nothing if the file is missing.

        Raises DamagedRun for an invalid line.
        """
        lines: list[dict[str, float]] = []
        is_replaced = False
        with (
            damage_in("metrics.jsonl"),
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


@contextmanager
def damage_in(name: str) -> Iterator[None]:
    """Raise every error of a block that reads a file as DamagedRun."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        reason = str(error)
    else:
        return
    raise DamagedRun(f"{name}: {sanitized(reason, 200)}")


def _measured(results: dict[str, float | None]) -> dict[str, float]:
    """Without those that were not measured, or are not finite."""
    return {
        name: float(value)
        for name, value in results.items()
        if value is not None and math.isfinite(value)
    }


def _is_config(value: Any) -> bool:
    game = value.get("game") if isinstance(value, dict) else None
    if not isinstance(game, dict) or not isinstance(game.get("name"), str):
        return False
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT


def _is_result(value: Any) -> bool:
    """Whether it is a number that statistics can use, or one that was not measured."""
    if type(value) not in (int, float):
        return value is None
    return not math.isfinite(value) or abs(value) <= MAX_NUMBER


def _are_results(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_result, value.values()))


def _is_time(value: Any) -> bool:
    try:
        year = datetime.datetime.fromisoformat(value).year
    except (TypeError, ValueError):
        return False
    return datetime.MINYEAR < year < datetime.MAXYEAR  # it has to exist in every zone


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_SECONDS


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_texts_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


SCHEMA: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "status": (f"one of {', '.join(STATUSES)}", STATUSES.__contains__),
    "config": ("the config of a game", _is_config),
    **dict.fromkeys(("metric", "best_by", "host", "commit"), ("text", _is_text)),
    **dict.fromkeys(("results", "final_results"), ("an object of numbers", _are_results)),
    **dict.fromkeys(("best_games", "games", "pid"), ("a count", _is_count)),
    "seconds": ("a number of seconds", _is_duration),
    "start": ("a time", _is_time),
    "command": ("a list of texts", _are_texts),
    "versions": ("an object of texts", _are_texts_by_name),
}
"""What the fields of run.json are, and how that is checked. All but status may be missing."""
