"""Studies as their files describe them: runs, evaluations of each, and tables of their values.

A study is a file in conf/study/, named by its stem, or anywhere, named by its path. It is read as
text, so that names stay as they are typed, and checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rlgames.config.commands import MAX_SEED
from rlgames.config.files import Files, mapping
from rlgames.config.schema import Config, default_values, key, schema
from rlgames.config.typed import typed
from rlgames.core.errors import ConfigError, nearest

OPTIONS = ("by seed", "highest", "mean", "lowest is best", "highest is best")
"""What a column may say after its metric and its format."""

TRAINING_METRIC = re.compile(r"(total_)?seconds|ms_per_game|[\w/]+\.(first|last)[1-9]\d*")

FORMAT = re.compile(r"((?P<factor>\d+(\.\d+)?)\*)?(?P<spec>\+?z?,?(\.\d{1,2})?[efg%]?)")

TRAINING, REPORTED = "training", "reported"
"""The sources of columns that are not evaluations."""

WRITTEN = {"record": "games.jsonl", "picture": "turns.png"}
"""The keys of evaluations that name what is written, with an example."""

COMMANDS = ("eval", "analyze", "arena", "solve")
"""The commands that an evaluation may call."""

NAMES = {
    "an evaluation": (re.compile(r"\w[\w-]*", re.ASCII), "use letters, digits, _ and -"),
    "a run": (re.compile(r"\w[\w.-]*", re.ASCII), "use letters, digits, _, - and ."),
}
"""What a name may be, and a hint: METRIC ends the name of an evaluation at a dot."""

UNSET = ("", "null", "~")

C = TypeVar("C", bound=Config)


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


@schema
class StudyTable(Config):
    """A table: a row for each run, a column for each metric. In a Study, rows are the labels by
    run, and columns StudyColumns."""

    title: str | None = key(value=None)
    before: str | None = key(value=None, help="text above the table, in Markdown")
    after: str | None = key(value=None)
    head: str = key(value="run", help="heading of the first column")
    rows: Any = key(value=None, help="runs, or their labels by name; null: all")
    columns: Any = key(value=None, help="metrics, or metrics by heading")


@schema
class StudyEntry(Config):
    """A run or an evaluation."""

    overrides: str | None = key(value=None)
    seeds: Any = key(value=None)
    runs: list[str] = key(value=[], help="runs to evaluate, as in [ppo*]; []: all")


@schema
class StudyFile(Config):
    """The keys of a study."""

    seeds: Any = key(value="1")
    runs: Any = key(value=None)
    evaluations: Any = key(value=None)
    table: Any = key(value=None)
    tables: Any = key(value=None)
    reported: Any = key(value=None)
    before: str | None = key(value=None)
    after: str | None = key(value=None)


@dataclass(frozen=True)
class StudyRun:
    """A row: a training, or a player that is only evaluated. words: as after `rlgames train`."""

    name: str
    words: tuple[str, ...]
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
class StudyColumn:
    """A column of a table.

    Args:
        source: an evaluation, TRAINING or REPORTED.
        metric: of the source, with dots.
        factor: what values are multiplied by, as 100 for percentages.
        format: of Python, as .2f.
        option: one of OPTIONS, or empty.
    """

    heading: str
    source: str
    metric: str
    factor: float
    format: str
    option: str


@dataclass(frozen=True)
class Study:
    """A study that was checked by itself; whether it fits the games is checked later.

    reported: values that others have published, by the name of the column and the run.
    """

    name: str
    path: Path
    runs: dict[str, StudyRun]
    evaluations: tuple[StudyEvaluation, ...]
    tables: tuple[StudyTable, ...]
    reported: dict[str, dict[str, str]]
    before: str
    after: str

    def evaluations_of(self, run: str) -> list[StudyEvaluation]:
        return [each for each in self.evaluations if run in each.runs]

    def columns_of(self, run: str, source: str) -> Iterator[StudyColumn]:
        """The columns of a source in the tables with a row for a run."""
        for table in self.tables:
            yield from (
                each for each in table.columns if run in table.rows and each.source == source
            )


def parse_column(heading: str, text: str) -> StudyColumn:
    """A column from METRIC | FORMAT | OPTION. Raises ConfigError."""
    metric, format, option, *rest = [*(part.strip() for part in text.split("|")), "", ""]
    source, _, name = metric.partition(".")
    if any(rest) or not re.fullmatch(r"[^\s.]+(\.[^\s.]+)+", metric):
        raise ConfigError(f"{text!r} is not a column", "as in EVALUATION.PATH | 100*.1f | by seed")
    match = FORMAT.fullmatch(format)
    if match is None:
        raise ConfigError(f"{text!r}: {format} is not a format", "as in .2f or 100*.1f")
    if option and option not in OPTIONS:
        raise ConfigError(f"{text!r}: {option} is not an option", nearest(option, list(OPTIONS)))
    if source == TRAINING and not TRAINING_METRIC.fullmatch(name):
        hint = "as in training.seconds or training.turns.last2000"
        raise ConfigError(f"{metric} is not a metric of training", hint)
    factor, spec = float(match["factor"] or 1), match["spec"] or ",.4g"
    return StudyColumn(heading, source, name, factor, spec, option)


def read_study(word: str, seeds: Any = None) -> Study:
    """The study with a name or at a path; seeds: instead of the seeds in the file. Raises
    ConfigError."""
    files = Files()
    path = Path(word) if word.endswith((".yaml", ".yml")) else files.path(f"study/{word}")
    if path is None:
        raise ConfigError(f"no study is called {word!r}", nearest(word, files.names("study")))
    _check_name("a study", path.stem)
    content = mapping(path, TextLoader)
    try:
        return _study(path, _entry(StudyFile, content, ""), seeds)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.error}", error.hint) from None


def _study(path: Path, file: StudyFile, seeds: Any) -> Study:
    usual = parse_seeds(file.seeds if seeds is None else seeds)
    runs = {
        name: _run(name, _short(StudyEntry, node, f"runs.{name}"), usual)
        for name, node in _mapping(file.runs, "runs").items()
    }
    evaluations: list[StudyEvaluation] = []
    for name, node in _mapping(file.evaluations, "evaluations").items():
        where = f"evaluations.{name}"
        _check_name("an evaluation", name)
        for part in node if isinstance(node, list) else [node]:
            made = _evaluation(name, _short(StudyEntry, part, where), runs)
            twice = {run for other in evaluations if other.name == name for run in other.runs}
            if again := sorted(twice & {*made.runs}):
                raise ConfigError(f"{where} evaluates {again[0]} twice", "use runs:")
            evaluations.append(made)
    if file.tables and file.table:
        raise ConfigError("tables= and table= are both set", "list all of them as tables:")
    nodes = file.tables or ([file.table] if file.table else [])
    if not isinstance(nodes, list):
        raise ConfigError("tables is not a list", "use table: for a single one")
    reported = {
        name: _texts(_mapping(values, f"reported.{name}"), f"reported.{name}")
        for name, values in _mapping(file.reported, "reported").items()
    }
    for name, values in reported.items():
        for run in values:
            _check_known(run, runs, f"reported.{name}: no run")
    sources = [*(each.name for each in evaluations), TRAINING, REPORTED]
    tables = [_table(_entry(StudyTable, node, "table"), runs, sources, reported) for node in nodes]
    texts = file.before or "", file.after or ""
    return Study(path.stem, path, runs, tuple(evaluations), tuple(tables), reported, *texts)


def parse_seeds(value: Any, key: str = "seeds") -> tuple[int, ...]:
    """Seeds as they are typed: how many, or a list of them. Raises ConfigError."""
    try:
        numbers = [int(str(each)) for each in (value if isinstance(value, list) else [value])]
        listed = numbers if isinstance(value, list) else [*range(min(numbers[0], 10_001))]
    except ValueError:
        listed = []
    is_valid = len(listed) <= 10_000 and all(0 <= each <= MAX_SEED for each in listed)
    if not listed or not is_valid or len({*listed}) < len(listed):
        hint = f"as in {key}=5 or {key}=[0,1,2]"
        raise ConfigError(f"{key}={value} is neither a number of seeds nor a list of them", hint)
    return tuple(listed)


def _run(name: str, entry: StudyEntry, usual: tuple[int, ...]) -> StudyRun:
    _check_name("a run", name)
    run = StudyRun(name, _words(entry.overrides, f"runs.{name}", "experiment="), usual)
    seeds = usual if run.is_training else (0,)
    if entry.seeds is not None:
        seeds = parse_seeds(entry.seeds, f"runs.{name}.seeds")
    return StudyRun(name, run.words, seeds)


def _evaluation(name: str, entry: StudyEntry, runs: Collection[str]) -> StudyEvaluation:
    where = f"evaluations.{name}"
    words = _words(entry.overrides, where)
    command, words = (
        (words[0], words[1:]) if words[:1] and words[0] in COMMANDS else ("eval", words)
    )
    for each in entry.runs:
        if not any(fnmatch(run, each) for run in runs):
            raise ConfigError(f"{where}.runs: no run is called {each!r}", nearest(each, [*runs]))
    chosen = tuple(run for run in runs if any(fnmatch(run, each) for each in entry.runs or ["*"]))
    for word in words:  # which may come from a stranger
        key = word.partition("=")[0]
        if key == "plugins":
            raise ConfigError(f"{where}: {word} is typed", f"as in rlgames study NAME {word}")
        if key in WRITTEN and not re.fullmatch(r"\w+=\{\}/[\w-]+(\.\w+)?", word):
            hint = f"as in {key}={{}}/{WRITTEN[key]}"
            raise ConfigError(f"{where}: {word} is outside the run", hint)
    seeds = None if entry.seeds is None else parse_seeds(entry.seeds, f"{where}.seeds")
    return StudyEvaluation(name, command, words, chosen, tuple(entry.runs), seeds)


def _words(text: str | None, where: str, first: str = "") -> tuple[str, ...]:
    """The words of a text; first: what a first word without `=` is the value of."""
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise ConfigError(f"{where} cannot be read: {error}", "close its quotes") from None
    if first and words and "=" not in words[0]:
        words[0] = first + words[0]
    return tuple(words)


def _table(
    table: StudyTable,
    runs: Collection[str],
    sources: Sequence[str],
    reported: Collection[str],
) -> StudyTable:
    """A table with its rows and columns parsed. Raises ConfigError."""
    labels = _texts(list(runs) if table.rows is None else table.rows, "rows")
    for name in labels:
        _check_known(name, runs, "rows: no run")
    if not isinstance(table.rows, Mapping):
        labels = {name: f"`{name}`" for name in labels}
    parsed = [parse_column(*each) for each in _texts(table.columns, "columns").items()]
    for column in parsed:
        path = f"{column.source}.{column.metric}"
        _check_known(column.source, sources, f"{path}: no evaluation")
        if column.source == REPORTED:
            _check_known(column.metric, reported, f"{path}: no values")
    texts = {"before": table.before or "", "after": table.after or ""}
    return StudyTable(**vars(table) | texts | {"rows": labels, "columns": parsed})


def _texts(node: Any, where: str) -> dict[str, str]:
    """Texts by name; a text of a list is named by what stands before `|`. Raises ConfigError."""
    if not isinstance(node, list):
        return {name: str(text) for name, text in _mapping(node, where).items()}
    values: dict[str, str] = {}
    for text in map(str, node):
        name = text.partition("|")[0].strip()
        if name in values:
            raise ConfigError(f"{where} has {name} twice", f"use {where}: {{NAME: …}}")
        values[name] = text
    return values


def _check_known(name: str, known: Collection[str], message: str) -> None:
    if name not in known:
        raise ConfigError(f"{message} is called {name!r}", nearest(name, list(known)))


def _check_name(kind: str, name: str) -> None:
    pattern, hint = NAMES.get(kind, NAMES["a run"])
    if not pattern.fullmatch(name) or (kind == "an evaluation" and name in (TRAINING, REPORTED)):
        raise ConfigError(f"{name!r} cannot be the name of {kind}", hint)


def _mapping(node: Any, where: str) -> Mapping[str, Any]:
    if node not in (*UNSET, None) and not isinstance(node, Mapping):
        raise ConfigError(f"{where} holds no names with their values", f"as in {where}: {{a: …}}")
    return node if isinstance(node, Mapping) else {}


def _short(kind: type[C], node: Any, where: str) -> C:
    """An entry; a text is its overrides."""
    return _entry(kind, node if isinstance(node, Mapping) else {"overrides": node}, where)


def _entry(kind: type[C], node: Any, where: str) -> C:
    values = {
        name: value
        for name, value in _mapping(node, where or "the file").items()
        if value not in UNSET
    }
    try:
        return typed(kind, default_values(kind) | values)
    except ConfigError as error:
        raise ConfigError(f"{where}{where and ': '}{error.error}", error.hint) from None
