"""Reads the files of a run: imports nothing heavy, and trusts nothing that it reads."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import TrainConfig
from rlgames.config.conf import key_paths
from rlgames.config.overrides import parse_word
from rlgames.config.schema import groups_of
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import (
    YAML_LOADER,
    checked_float,
    checked_int,
    parse_object,
    sanitized,
)
from rlgames.runs import storage
from rlgames.runs.reports import BEST_REPORT, FINAL_REPORT, REPORTS, metrics_of, read_report

LATEST, BEST = "latest.safetensors", "best.safetensors"
"""The checkpoint that a run resumes from, and the weights of its best evaluation."""

BEST_IN_WORDS, FINAL_IN_WORDS = "best (selected)", "final"
"""The names, in tables and reports, of the checkpoint that evaluations during training selected and
of the network at the end of training."""

FINAL_PREFIX = "final."
"""Before the name of a metric: of the final network, not of the best checkpoint."""

CONFIG_FILE = "config.yaml"
"""The settings of a run."""

SWEEP_FILE = "multirun.yaml"
"""Where Hydra writes how a sweep was started."""

MAX_FILE_BYTES, MAX_METRICS_BYTES = 1 << 20, 1 << 30
"""Longer files, and a longer metrics.jsonl, are not read."""

MAX_SECONDS = 1e12

STATUSES = ("running", "interrupted", "failed", "done")
"""The values of status in run.json."""


class DamagedRun(ConfigError):
    """A file of a run that is invalid: one printable line that names the file and the value."""


@dataclass(frozen=True)
class RunInfo:
    """The content of run.json; None and empty: unknown.

    status: one of STATUSES; "waiting" without a file; "damaged", with nothing else, for an invalid
    one. metric: the metric of the game; best_by: the one that selects the best checkpoint. results:
    of this checkpoint, evaluated at the end, and of the final network, as final.NAME; empty unless
    the run is done. best_games: played before the best checkpoint was saved. games, seconds: so
    far. config: plain, with a game that has a name. start: in ISO 8601.
    """

    status: str
    config: dict[str, Any] = field(default_factory=dict)
    metric: str = ""
    best_by: str = ""
    results: dict[str, float] = field(default_factory=dict)
    best_games: int | None = None
    games: int = 0
    seconds: float | None = None
    start: str | None = None

    @property
    def start_time(self) -> datetime.datetime:
        """When it started; in the year 2 if that is unknown."""
        return datetime.datetime.fromisoformat(self.start or "0002-01-01").astimezone()


def read_run(directory: Path) -> dict[str, Any]:
    """The content of run.json, with unchecked values; empty for an invalid one and for none.

    Raises OSError if the system cannot read it.
    """
    with suppress(FileNotFoundError, ValueError):
        return parse_object(storage.read_file(directory, "run.json", MAX_FILE_BYTES))
    return {}


def read_info(directory: Path) -> RunInfo:
    """The checked content of run.json, whatever the file contains."""
    try:
        return parse_info(directory)
    except DamagedRun:
        return RunInfo("damaged")


def parse_info(directory: Path) -> RunInfo:
    """The checked content of run.json. Raises DamagedRun for anything but a valid one or none."""
    with damage_in("run.json"):
        try:
            content = parse_object(storage.read_file(directory, "run.json", MAX_FILE_BYTES))
        except FileNotFoundError:
            return RunInfo("waiting")
        values: dict[str, Any] = {}
        for name, (what, checked) in SCHEMA.items():
            if (value := content.get(name)) is not None:
                try:
                    values[name] = checked(value)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                    shown = "it" if isinstance(value, dict) else sanitized(value, 40)
                    raise ValueError(f"{name}: {shown} is not {what}") from None
        if "status" not in values:
            raise ValueError("it has no status")
    return RunInfo(**values, **(_results(directory) if values["status"] == "done" else {}))


def _results(directory: Path) -> dict[str, Any]:
    """The fields of a run that the evaluations at its end are about."""
    results, games = dict[str, float](), None
    for name, prefix in ((BEST_REPORT, ""), (FINAL_REPORT, FINAL_PREFIX)):
        with damage_in(f"{REPORTS}/{name}.json"), suppress(FileNotFoundError):
            result = read_report(directory, name).result
            known = {prefix + key: value for key, value in metrics_of(result).items()}
            if name == BEST_REPORT and result.get("checkpoint_games") is not None:
                games = checked_int(result["checkpoint_games"], 0)
            results |= known
    return {"results": results, "best_games": games}


@contextmanager
def damage_in(name: str) -> Iterator[None]:
    """Raise every error of a block that reads a file as DamagedRun."""
    try:
        yield
    except OSError as error:
        raise DamagedRun(f"{name}: {sanitized(error.strerror)}") from None
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else error
        raise DamagedRun(f"{name}: {sanitized(reason, 200)}") from None


def _checked_config(value: Any) -> Any:
    json.dumps(value, allow_nan=False)
    _checked_text(value["game"]["name"])
    return value


def _checked_time(value: Any) -> str:
    year = datetime.datetime.fromisoformat(value).year
    checked_int(year, datetime.MINYEAR + 1, datetime.MAXYEAR - 1)  # it has to exist in every zone
    return str(value)


def _checked_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


SCHEMA: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "status": (f"one of {', '.join(STATUSES)}", lambda value: STATUSES[STATUSES.index(value)]),
    "config": ("the config of a game", _checked_config),
    **dict.fromkeys(("metric", "best_by"), ("text", _checked_text)),
    "games": ("a count", lambda value: checked_int(value, 0)),
    "seconds": ("a number of seconds", lambda value: checked_float(value, 0, MAX_SECONDS)),
    "start": ("a time", _checked_time),
}
"""What the fields of run.json are, and how that is checked. All but status may be missing."""


def metric_lines(directory: Path) -> Iterator[dict[str, float]]:
    """The whole lines of a run's metrics.jsonl: `games`, and numbers by name. Raises ValueError at
    the first invalid line, and OSError."""
    content = storage.read_file(directory, "metrics.jsonl", MAX_METRICS_BYTES)
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            values = parse_object(line)
            checked_int(values["games"], 0)
            for value in values.values():
                if type(value) not in (int, float):
                    raise ValueError(value)
                float(value)  # raises for integers that are too large for TensorBoard
        except (ArithmeticError, LookupError, ValueError):
            raise ValueError(f"line {number} is not valid") from None
        yield values


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a metrics.jsonl, up to the first that is torn or invalid; none without the file.
    Raises OSError."""
    lines = []
    with suppress(FileNotFoundError, ValueError):
        for line in metric_lines(path.parent):
            lines.append(line)
    return lines


@dataclass(frozen=True)
class SweepStart:
    """How a sweep was started.

    words: of its jobs. hydra: Hydra's own words. folder: from --config-dir. config_name: of the
    primary config.
    """

    words: list[str]
    hydra: list[str]
    folder: str | None
    config_name: str

    @property
    def unsafe_words(self) -> list[str]:
        """Words that run code, so that nobody takes them from a file."""
        if self.config_name != "train":
            return [f"--config-name {self.config_name}"]
        own = re.compile(r"[+~]*(plugins|hydra)\b")
        storage = [word for word in self.hydra if word.startswith("hydra.sweeper.storage=")]
        return [word for word in self.words if own.match(word) or "${" in word] + storage


def sweep_start(directory: Path) -> SweepStart | None:
    """How a sweep was started; None in the directory of anything else."""
    with suppress(OSError, LookupError, TypeError, ValueError, yaml.YAMLError):
        if (directory / SWEEP_FILE).is_file():  # reading anything else may never end
            text = storage.read_file(directory, SWEEP_FILE, MAX_FILE_BYTES)
            started = yaml.load(text, YAML_LOADER)["hydra"]
            task, own = (list(map(str, started["overrides"][name])) for name in ("task", "hydra"))
            sources = started.get("runtime", {}).get("config_sources", [])
            typed = [str(each["path"]) for each in sources if each["provider"] == "command-line"]
            name = str(started.get("job", {}).get("config_name", "train"))
            return SweepStart(task, own, typed[0] if typed else None, name)
    return None


def swept_settings(directory: Path) -> list[str]:
    """The settings that a sweep varies, and its presets; none in the directory of anything else."""
    start = sweep_start(directory)
    words = map(parse_word, start.words if start else ())
    return [word.name.removeprefix("game.") for word in words if word.varies]


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
        for key, leaf in key_paths(value):
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
