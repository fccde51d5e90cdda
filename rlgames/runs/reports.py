"""Reports: what was measured about a run, a file for each question: RUN/reports/NAME.json.

A report is {command, config, checkpoints, date, result}. The checkpoints, by the keys that name
them, are those that were read, so it can be told whether a report is about the weights of today.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlgames.config.overrides import parse_word
from rlgames.config.schema import groups_of, names_of
from rlgames.config.typed import as_words, command_of, to_plain
from rlgames.core.errors import ConfigError, report_error
from rlgames.core.untrusted import MAX_NUMBER, finite_or_none, parse_object, sanitized
from rlgames.runs import storage

REPORTS = "reports"
"""The folder of a run that holds them."""

OF_TRAINING = BEST_REPORT, FINAL_REPORT = "train_best", "train_final"
"""The reports that a training ends with: of the checkpoint that its evaluations selected, and of
the network at its end."""

UNCOUNTED = ("run", "players", "where", "name", "out", "format", "plugins", "device", "threads")
"""Keys of a command that its numbers do not depend on, except by the checkpoints that they name."""

UNNAMED = (*UNCOUNTED, "game", "player", "batch", "record", "picture", "worst")
"""Keys that the default name of a report leaves out."""

SEATS = ("opponent", "opponent_search")
"""Groups that are in the names of the other players."""

MAX_BYTES = 1 << 24
MAX_NAME_LENGTH = 100

Number = tuple[float, float | None]
"""A number, NaN for null, and half of its 95% interval over games, if it has one."""


@dataclass(frozen=True)
class Report:
    """A report as its file has it.

    command: its name. config: plain, without UNCOUNTED keys. checkpoints: the checksum of each, by
    the key that names it, "run" for the run. date: when it was made. result: what the command
    prints with format=json.
    """

    command: str
    config: dict[str, Any]
    checkpoints: dict[str, Any]
    date: str
    result: dict[str, Any]

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """The numbers in the result by their dotted names, as in win.rate."""
        return dict(_numbers(self.result, ""))


def metrics_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The metrics in a report of a training, without those that are not finite. Raises ValueError
    for text, and for a number that statistics cannot use."""
    found = {}
    for name, value in result.items():
        if type(value) in (int, float) and name != "checkpoint_games":
            if MAX_NUMBER < abs(value) < math.inf:
                raise ValueError(f"{name}: {sanitized(value, 40)} is too large")
            found[name] = float(value)
        elif not isinstance(value, int | dict | None):
            raise ValueError(f"{name}: {sanitized(value, 40)} is not a number")
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _numbers(node: Any, prefix: str) -> Iterator[tuple[str, Number]]:
    """The numbers of a part of a result; `ci95` next to a mean, a rate or a rating is its
    interval."""
    interval = node.get("ci95") if isinstance(node, Mapping) else None
    for name, value in enumerate(node) if isinstance(node, list) else node.items():
        if isinstance(value, Mapping | list):
            if name not in ("ci95", "game"):
                yield from _numbers(value, f"{prefix}{name}.")
        elif value is None or (number := finite_or_none(value)) is None:
            if value is None or isinstance(value, float):
                yield f"{prefix}{name}", (math.nan, None)
        elif not isinstance(value, bool) and abs(number) <= MAX_NUMBER:
            is_mean = name in ("mean", "rate", "elo") and isinstance(interval, list)
            yield f"{prefix}{name}", (number, _half(interval) if is_mean else None)


def _half(interval: Any) -> float | None:
    ends = [finite_or_none(end) for end in interval]
    return (ends[1] - ends[0]) / 2 if len(ends) == 2 and None not in ends else None  # type: ignore[operator]


def read_report(directory: Path, name: str) -> Report:
    """A report of a run. Raises OSError without one, and ValueError for an invalid one."""
    content = parse_object(storage.read_file(directory, f"{REPORTS}/{name}.json", MAX_BYTES))
    kinds = {"command": str, "config": dict, "checkpoints": dict, "date": str, "result": dict}
    for key, kind in kinds.items():
        if not isinstance(content.get(key), kind):
            raise ValueError(f"{key}: {sanitized(content.get(key), 40)} is not what a report has")
    return Report(**{key: content[key] for key in kinds})


def report_names(directory: Path) -> list[str]:
    """The names of the reports of a run."""
    return sorted(path.stem for path in (directory / REPORTS).glob("*.json"))


def check_report(cfg: Any, directory: Path | None) -> None:
    """Raises ConfigError for a name= that no report can have, and for one without a place."""
    if cfg.name is None:
        return
    if directory is None:
        raise ConfigError(f"name={cfg.name} needs the directory of a run", "remove name=")
    if not re.fullmatch(r"\w[\w+-]*", cfg.name, re.ASCII) or len(cfg.name) > MAX_NAME_LENGTH:
        raise ConfigError(f"name={cfg.name} is not a name", "use letters, digits, _, + and -")
    if cfg.name in OF_TRAINING:
        raise ConfigError(f"name={cfg.name} is the report of a training", "use another name=")


def question(cfg: Any) -> dict[str, Any]:
    """What a report answers: the plain config of its command, without UNCOUNTED keys."""
    return {key: value for key, value in to_plain(cfg).items() if key not in UNCOUNTED}


def default_name(cfg: Any, others: Sequence[str] = ()) -> str:
    """The command and what distinguishes the question, as in eval_exact or eval_random_games-100:
    the other players, the options that were chosen, and the keys that were set."""
    keys = [name for name in names_of(type(cfg)) if name not in UNNAMED]
    parts = [command_of(type(cfg)), *("_".join(Path(each).parts[-2:]) for each in others)]
    for word in map(parse_word, as_words(cfg, *keys)):
        group, _, key = word.name.partition(".")
        is_choice = group in groups_of(type(cfg)) and not key
        if is_choice or group == "checkpoint":
            parts += [] if group in SEATS else [str(word.value)]
        elif key not in ("path", "command"):
            parts.append(f"{key or group}-{word.value}")
    return "_".join(re.sub(r"[^\w+-]+", "_", part).strip("_") for part in parts)[:MAX_NAME_LENGTH]


def keep_report(
    cfg: Any,
    directory: Path | None,
    checkpoints: Mapping[str, Any],
    result: Mapping[str, Any],
    others: Sequence[str] = (),
) -> None:
    """Write the report of a command into a run; where that fails, only warn.

    directory: None for players without one: nothing is written. others: as in default_name. By its
    default name, a report replaces only one that answers the same question.
    """
    if directory is None:
        return
    name = cfg.name or _free_name(directory, cfg, default_name(cfg, others))
    try:
        save_report(directory, name, command_of(type(cfg)), question(cfg), checkpoints, result)
    except OSError as error:
        report_error(ConfigError(f"{error.filename} was not written: {error.strerror}"))


def _free_name(directory: Path, cfg: Any, name: str) -> str:
    """A name, with a number if the report of that name answers another question."""
    asked = json.loads(json.dumps(question(cfg)))

    def is_free(name: str) -> bool:
        try:
            return read_report(directory, name).config == asked
        except (OSError, ValueError):
            return True

    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if is_free(each))


def save_report(
    directory: Path, name: str, command: str, config: Any, checkpoints: Any, result: Any
) -> None:
    """Write a report into a directory. Raises OSError."""
    date = datetime.date.today().isoformat()
    report = Report(command, config, checkpoints, date, result)
    storage.make_directory(directory / REPORTS)
    text = json.dumps(asdict(report), indent=1) + "\n"
    storage.write_file(directory, f"{REPORTS}/{name}.json", text)
