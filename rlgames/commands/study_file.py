"""Studies as their files describe them: runs, evaluations of each, and tables of their values.

A study is a file in conf/study/, named by its stem, or anywhere, named by its path. It is read as
text, so that names stay as they are typed, and checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import MAX_SEED
from rlgames.config.conf import conf_dir, mapping, option_names
from rlgames.core.errors import ConfigError, nearest
from rlgames.runs.reports import OF_TRAINING
from rlgames.runs.table import LOGGED, TIMES, ColumnText

REPORTED = "reported"
"""The source of values that others have published."""

SOURCES = ("best", "final", "run", "train", "eval", "time", REPORTED)
"""The sources of columns that are not evaluations; see runs.table."""

WRITTEN = ("record", "picture")
"""The keys of evaluations that name what is written."""

COMMANDS = ("eval", "analyze", "solve")
"""The commands that an evaluation may call."""

NAMES = {
    **dict.fromkeys(("a study", "a run"), r"\w[\w.-]*"),
    "an evaluation": rf"(?!({'|'.join({*SOURCES, *OF_TRAINING} - {'final'})})$)\w[\w-]*",
}
"""What names may be: METRIC ends the name of an evaluation at a dot."""

UNSET = ("", "null", "~")

FILE = ("seeds", "runs", "evaluations", "table", "reported", "before", "after")
ENTRY = ("overrides", "seeds", "runs")
TABLE = ("title", "before", "after", "head", "rows", "columns")
"""The keys of a study, of its runs and evaluations, and of its tables."""

TEXTS = ("overrides", "title", "before", "after", "head")
"""Keys that hold neither lists nor mappings."""


class TextLoader(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
    """Reads every key and value as text; a key that is set twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The values of a mapping by their keys."""
        values: dict[Any, Any] = super().construct_mapping(node, deep)
        names = [each.value for each, _ in node.value]
        for place, name in enumerate(names):
            if name in names[:place]:
                mark = node.value[place][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, f"{name} is set twice", mark)
        return values


@dataclass(frozen=True)
class StudyRun:
    """A row: a training, or a player that is only evaluated. words: as after `rlgames train`."""

    name: str
    words: list[str]
    seeds: tuple[int, ...]

    @property
    def is_training(self) -> bool:
        return not any(word.startswith("player=") for word in self.words)


@dataclass(frozen=True)
class StudyEvaluation:
    """An evaluation of each seed of some runs. words: as after the command; runs: their names;
    patterns: as the file has them, empty for all."""

    name: str
    command: str
    words: tuple[str, ...]
    runs: tuple[str, ...]
    patterns: tuple[str, ...]
    seeds: tuple[int, ...] | None


@dataclass(frozen=True)
class StudyTable:
    """A table. title: empty without one. before, after: Markdown around it. head: of the first
    column. rows: the labels in it by the names of runs."""

    title: str
    before: str
    after: str
    head: str
    rows: dict[str, str]
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True)
class Study:
    """A study that was checked by itself; whether it fits the games is checked later.

    path: of its file. reported: values that others have published, by the name of the column and
    the run.
    """

    path: Path
    runs: dict[str, StudyRun]
    evaluations: tuple[StudyEvaluation, ...]
    tables: tuple[StudyTable, ...]
    reported: dict[str, dict[str, str]]
    before: str
    after: str

    @property
    def name(self) -> str:
        return self.path.stem

    def evaluations_of(self, run: str) -> list[StudyEvaluation]:
        return [each for each in self.evaluations if run in each.runs]

    def columns_of(self, run: str) -> list[ColumnText]:
        """The columns of the tables with a row for a run, except reported ones."""
        tables = [table for table in self.tables if run in table.rows]
        return [each for table in tables for each in table.columns if each.source != REPORTED]


def read_study(word: str, seeds: Any = None) -> Study:
    """The study with a name or at a path; seeds: instead of the seeds in the file. Raises
    ConfigError."""
    path, names = Path(word), option_names("study")
    if path.suffix not in (".yaml", ".yml"):
        if word not in names:
            raise ConfigError(f"no study is called {word!r}", nearest(word, names))
        path = conf_dir() / "study" / f"{word}.yaml"
    _check_name("a study", path.stem)
    content = mapping(path, TextLoader)
    try:
        return _study(path, _keys(content, "", FILE), seeds)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.error}", error.hint) from None


def _study(path: Path, file: Mapping[str, Any], seeds: Any) -> Study:
    usual = parse_seeds(file.get("seeds", "1") if seeds is None else seeds)
    runs = {run: _run(run, node, usual) for run, node in _mapping(file.get("runs"), "runs").items()}
    evaluations = [
        _evaluation(key, part, runs)
        for key, node in _mapping(file.get("evaluations"), "evaluations").items()
        for part in _listed(node)
    ]
    pairs = [(each.name, run) for each in evaluations for run in each.runs]
    for place, (key, run) in enumerate(pairs):
        if (key, run) in pairs[:place]:
            raise ConfigError(f"evaluations.{key} evaluates {run} twice", "use runs:")
    reported = {
        key: _texts(values, f"reported.{key}")
        for key, values in _mapping(file.get("reported"), "reported").items()
    }
    for key, values in reported.items():
        for run in values:
            _check_known(run, runs, f"reported.{key}: no run")
    sources = [*(each.name for each in evaluations), *SOURCES]
    nodes = _listed(file.get("table", []))
    tables = tuple(_table(_keys(node, "table", TABLE), runs, sources, reported) for node in nodes)
    texts = file.get("before", ""), file.get("after", "")
    return Study(path, runs, tuple(evaluations), tables, reported, *texts)


def parse_seeds(value: Any, key: str = "seeds") -> tuple[int, ...]:
    """Seeds as they are typed: how many, or a list of them. Raises ConfigError."""
    try:
        numbers = [int(str(each)) for each in _listed(value)]
    except ValueError:
        numbers = []
    if numbers and not isinstance(value, list):
        numbers = [*range(min(numbers[0], 10_001))]
    is_valid = 0 < len(numbers) <= 10_000 and all(0 <= each <= MAX_SEED for each in numbers)
    if not is_valid or len({*numbers}) < len(numbers):
        hint = f"as in {key}=5 or {key}=[0,1,2]"
        raise ConfigError(f"{key}={value} is neither a number of seeds nor a list of them", hint)
    return tuple(numbers)


def _run(name: str, node: Any, usual: tuple[int, ...]) -> StudyRun:
    _check_name("a run", name)
    entry, where = _entry(node, f"runs.{name}"), f"runs.{name}"
    run = StudyRun(name, _words(entry, where, "experiment="), usual)
    if "seeds" in entry:
        return replace(run, seeds=parse_seeds(entry["seeds"], f"{where}.seeds"))
    return run if run.is_training else replace(run, seeds=(0,))


def _evaluation(name: str, node: Any, runs: Collection[str]) -> StudyEvaluation:
    _check_name("an evaluation", name)
    where = f"evaluations.{name}"
    entry = _entry(node, where)
    words, command = _words(entry, where), "eval"
    if words and words[0] in COMMANDS:
        command, *words = words
    patterns = entry.get("runs", [])
    if not isinstance(patterns, list):
        raise ConfigError(f"{where}.runs is not a list", f"as in runs: [{patterns}]")
    patterns = [*map(str, patterns)]
    for each in patterns:
        if not any(fnmatch(run, each) for run in runs):
            raise ConfigError(f"{where}.runs: no run is called {each!r}", nearest(each, [*runs]))
    chosen = tuple(run for run in runs if any(fnmatch(run, each) for each in patterns or ["*"]))
    for word in words:  # which may come from a stranger
        key = word.partition("=")[0]
        if key == "plugins":
            raise ConfigError(f"{where}: {word} is typed", f"as in rlgames study NAME {word}")
        if key in WRITTEN and not re.fullmatch(r"\w+=\{\}/[\w-]+(\.\w+)?", word):
            raise ConfigError(f"{where}: {word} is outside the run", f"as in {key}={{}}/NAME")
    seeds = parse_seeds(entry["seeds"], f"{where}.seeds") if "seeds" in entry else None
    return StudyEvaluation(name, command, tuple(words), chosen, tuple(patterns), seeds)


def _words(entry: Mapping[str, Any], where: str, first: str = "") -> list[str]:
    """The overrides of an entry; first: what a first word without `=` is the value of."""
    try:
        words = shlex.split(entry.get("overrides", ""))
    except ValueError as error:
        raise ConfigError(f"{where} cannot be read: {error}", "close its quotes") from None
    if first and words and "=" not in words[0]:
        words[0] = first + words[0]
    return words


def _table(
    table: Mapping[str, Any],
    runs: Collection[str],
    sources: Sequence[str],
    reported: Collection[str],
) -> StudyTable:
    """A table with its rows and columns parsed. Raises ConfigError."""
    rows = table.get("rows", [*runs])
    labels = (
        _texts(rows, "rows")
        if not isinstance(rows, list)
        else {str(name): f"`{name}`" for name in rows}
    )
    for name in labels:
        _check_known(name, runs, "rows: no run")
    columns = [ColumnText.parse(*each) for each in _texts(table.get("columns"), "columns").items()]
    for column in columns:
        source, _, name = column.metric.partition(".")
        if not name:
            hint = "as in EVALUATION.PATH | 100*.1f | by seed"
            raise ConfigError(f"{column.metric!r} is not a column", hint)
        _check_known(source, sources, f"{column.metric}: no evaluation")
        is_known = column.metric in TIMES or LOGGED.fullmatch(column.metric)
        if source in ("train", "eval", "time") and not is_known:
            hint = "as in train.seconds or train.turns.last2000"
            raise ConfigError(f"{column.metric} is not a metric of training", hint)
        if source == REPORTED:
            _check_known(name, reported, f"{column.metric}: no values")
    title, before, after = (table.get(key, "") for key in ("title", "before", "after"))
    return StudyTable(title, before, after, table.get("head", "run"), labels, tuple(columns))


def _texts(node: Any, where: str) -> dict[str, str]:
    return {name: str(text) for name, text in _mapping(node, where).items()}


def _check_known(name: str, known: Collection[str], message: str) -> None:
    if name not in known:
        raise ConfigError(f"{message} is called {name!r}", nearest(name, list(known)))


def _check_name(kind: str, name: str) -> None:
    if not re.fullmatch(NAMES[kind], name, re.ASCII):
        hint = "use letters, digits, _ and -, and not the name of another source"
        raise ConfigError(f"{name!r} cannot be the name of {kind}", hint)


def _listed(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


def _mapping(node: Any, where: str) -> Mapping[str, Any]:
    if node not in (*UNSET, None) and not isinstance(node, Mapping):
        raise ConfigError(f"{where} holds no names with their values", f"as in {where}: {{a: …}}")
    return node if isinstance(node, Mapping) else {}


def _entry(node: Any, where: str) -> dict[str, Any]:
    """The keys of a run or an evaluation; a text is its overrides."""
    return _keys(node if isinstance(node, Mapping) else {"overrides": node}, where, ENTRY)


def _keys(node: Any, where: str, known: Sequence[str]) -> dict[str, Any]:
    """The keys that a part of the file sets. Raises ConfigError."""
    start, values = f"{where}: " if where else "", _mapping(node, where or "the file")
    for key, value in values.items():
        _check_known(key, known, f"{start}no key")
        if key in TEXTS and not isinstance(value, str):
            raise ConfigError(f"{start}{key} is not text", "use quotes")
    return {key: value for key, value in values.items() if value not in UNSET}
