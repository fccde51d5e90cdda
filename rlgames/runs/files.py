"""Reads the files of a run: imports nothing heavy, and trusts nothing that it reads."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from rlgames.config.commands import TrainConfig
from rlgames.config.files import flat
from rlgames.config.schema import groups_of
from rlgames.core.untrusted import checked_int, parse_json, parse_object
from rlgames.runs import storage

BEST_IN_WORDS, FINAL_IN_WORDS = "best (selected)", "final"
"""The names, in tables and reports, of the checkpoint that evaluations during training selected and
of the network at the end of training."""

FINAL_PREFIX = "final/"
"""Before the name of a metric: of the final network, not of the best checkpoint."""

LATEST, BEST = "latest.safetensors", "best.safetensors"
"""The checkpoint that a run resumes from, and the weights of its best evaluation."""

MAX_HEADER_BYTES = 1 << 24
"""Checkpoints with longer headers are not read."""

MAX_FILE_BYTES = 1 << 20
"""Longer run.json are not read."""

MAX_LINE_LENGTH = 1 << 16
"""Longer lines of metrics.jsonl are not read."""

CHUNK_BYTES = 1 << 24

MAX_METRICS_BYTES = 1 << 30
"""What lies beyond them in metrics.jsonl is not read."""


def read_run(directory: Path) -> dict[str, Any]:
    """The content of run.json, with unchecked values; empty for an invalid one and for none.

    Raises OSError if the system cannot read it.
    """
    try:
        return load_run(directory)
    except ValueError:
        return {}


def load_run(directory: Path) -> dict[str, Any]:
    """As read_run, but raises ValueError for an invalid run.json."""
    try:
        return parse_object(storage.read_file(directory, "run.json", MAX_FILE_BYTES).decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ValueError(error.strerror) from None


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a metrics.jsonl, up to the first that is torn. Raises OSError."""
    with storage.open_to_read(path.parent, path.name) as file:
        return list(metric_lines(file))


def metric_lines(file: BinaryIO) -> Iterator[dict[str, float]]:
    """The lines of a metrics.jsonl, up to the first invalid one or MAX_METRICS_BYTES."""
    num_bytes = 0
    while (line := file.readline(MAX_LINE_LENGTH)) and num_bytes < MAX_METRICS_BYTES:
        num_bytes += len(line)
        value = parse_line(line)
        if value is None:
            return
        yield value


def read_points(directory: Path, name: str) -> tuple[list[float], list[float]]:
    """A metric of a run's metrics.jsonl over games, line by line; empty without the file.

    A line is searched, not parsed: long logs are read ten times as fast. Raises OSError.
    """
    games: list[float] = []
    values: list[float] = []
    number = rb": (-?[0-9][0-9.eE+-]*)[,}]"
    metric = re.compile(re.escape(json.dumps(name).encode()) + number)
    first = re.compile(rb'\{"games"' + number)
    with suppress(FileNotFoundError), storage.open_to_read(directory, "metrics.jsonl") as file:
        rest = b""
        for _ in range(MAX_METRICS_BYTES // CHUNK_BYTES):
            chunk = file.read(CHUNK_BYTES)
            if not chunk or len(rest) > MAX_LINE_LENGTH:
                break
            chunk = rest + chunk
            whole, rest = chunk[: chunk.rfind(b"\n") + 1], chunk[chunk.rfind(b"\n") + 1 :]
            for match in metric.finditer(whole):
                start = first.match(whole, whole.rfind(b"\n", 0, match.start()) + 1)
                with suppress(ValueError):  # 1e5.5 is not a number
                    if start is not None:
                        point = float(start[1]), float(match[1])
                        games.append(point[0])
                        values.append(point[1])
    return games, values


def read_header(directory: Path, name: str) -> tuple[dict[str, Any], int]:
    """The header of a checkpoint, of which only safetensors checks more, and where it ends.

    Raises ValueError for anything but a regular file and for a header that is too long, repeats a
    name or is not a JSON object, and OSError.
    """
    if (directory / name).exists() and not (directory / name).is_file():
        raise ValueError("it is not a regular file")
    with storage.open_to_read(directory, name) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"a header of {length:,} bytes is too large")
        return parse_object(file.read(length)), 8 + length


def metric_names(directory: Path) -> set[str]:
    """The metrics in the last lines of a run's metrics.jsonl. Raises as read_points."""
    lines: list[bytes] = []
    with suppress(FileNotFoundError):
        lines = storage.read_end(directory, "metrics.jsonl", MAX_FILE_BYTES).splitlines()
    return {name for line in lines for name in parse_line(line) or {}} - {"games"}


def flatten(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run by the names that users type, except `out` and `logger`, which change
    nothing in it.

    The choice of a group has the group's name; it is None for a group without a choice, so that all
    runs have the same names.
    """
    settings: dict[str, Any] = dict.fromkeys(groups_of(TrainConfig))
    for name, value in config.items():
        if not isinstance(value, dict):
            settings[str(name)] = value
            continue
        for key, leaf in flat(value):
            if key == "name":
                settings[str(name)] = leaf
            else:
                settings[key if name == "game" else f"{name}.{key}"] = leaf
    return {
        name: value
        for name, value in settings.items()
        if name.partition(".")[0] not in ("out", "logger")
    }


def differing(runs: Sequence[dict[str, Any]]) -> list[str]:
    """The settings with two or more values among the runs that have them, without those that the
    options chosen in their groups tell: of runs with learner=ppo and learner=reinforce,
    learner.lr_end if it has one value in each."""
    return [name for name in varying_settings(runs) if not _follows(name, runs)]


def varying_settings(runs: Iterable[dict[str, Any]]) -> list[str]:
    """The settings with two or more values among the runs that have them."""
    first: dict[str, Any] = {}
    differ: set[str] = set()
    for settings in runs:
        for name, value in settings.items():
            known = first.setdefault(name, value)
            # Most are equal, and turning them into text takes long.
            if value is not known and (type(value) is not type(known) or value != known):
                differ.add(name)
    return [name for name in first if name in differ]


def _follows(name: str, runs: Iterable[dict[str, Any]]) -> bool:
    """Whether the options chosen in its group, which differ, tell a setting in all these runs."""
    group, _, key = name.partition(".")
    values: dict[str, set[str]] = {}
    for settings in runs if key else ():
        option = as_text(settings.get(group))
        values.setdefault(option, set()).add(as_text(settings.get(name)))
    return len(values) > 1 and all(len(texts) == 1 for texts in values.values())


def as_text(value: Any) -> str:
    """A value as text, equal for equal values."""
    is_nested = isinstance(value, dict | list)
    return json.dumps(value, sort_keys=True) if is_nested else repr(value)


def parse_line(line: bytes) -> dict[str, float] | None:
    """A line of metrics.jsonl: whole `games`, and numbers by name; None for anything else."""
    try:
        value = parse_json(line)
        checked_int(value["games"], 0)
        for number in value.values():
            if type(number) not in (int, float):
                return None
            float(number)  # raises for integers that are too large for TensorBoard
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return dict(value)
