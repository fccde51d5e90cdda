"""Studies as their files describe them: runs, evaluations of each, and tables of their values.

A study is a file in conf/study/, named by its stem, or anywhere, named by its path. It is read as
data and checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from rlgames.config.commands import MAX_SEED
from rlgames.config.files import Files, mapping
from rlgames.config.schema import Config, default_values, key, schema
from rlgames.config.typed import typed
from rlgames.core.errors import ConfigError, nearest

OPTIONS = ("by seed", "highest", "mean", "lowest is best", "highest is best")
"""What a column may say after its metric and its format."""

PLACEHOLDER = re.compile(r"\{\{(.+?)\}\}")
"""A value within text: {{RUN:METRIC | FORMAT}}."""

REFERENCE = re.compile(r"\{([\w.-]*)(?:/(\d+))?\}")
"""The directory of a run within an override: {RUN}, {RUN/SEED}, or {} for the run's own."""

OPERATOR = re.compile(r"\s([-*/])\s")

TRAINING_METRIC = re.compile(
    r"seconds|total_seconds|ms_per_game|[\w/]+\.((last|first|at)\d+|below\d+(\.\d+)?over\d+)"
)

ZERO_DIVISOR = re.compile(r"\s/\s+-?0+(\.0+)?(\s|$)")

MANY_DIGITS = re.compile(r"\d{3}")
"""Of a format: text as wide as a page or wider."""

WRITTEN = {"record": "games.jsonl", "picture": "turns.png"}
"""The keys of evaluations that name what is written, with an example."""

COMMANDS = ("eval", "analyze", "arena", "solve")
"""The commands that an evaluation may call."""

NAME = re.compile(r"\w[\w.+-]*", re.ASCII)

C = TypeVar("C", bound=Config)


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
class ReportedValues(Config):
    """Values that others report."""

    values: Any = key(value=None, help="numbers or texts by run")
    source: str | None = key(value=None)
    compared: str | None = key(value=None, help="metric that is tested against them")


@schema
class StudyEntry(Config):
    """A run or an evaluation."""

    overrides: str | None = key(value=None)
    seeds: Any = key(value=None)
    runs: list[str] = key(value=[], help="runs to evaluate, as in [ppo*]; []: all")


@schema
class StudyFile(Config):
    """The keys of a study."""

    seeds: Any = key(value=1)
    runs: Any = key(value=None)
    evaluations: Any = key(value=None)
    table: Any = key(value=None)
    tables: Any = key(value=None)
    reported: Any = key(value=None)
    curves: Any = key(value=None)
    before: str | None = key(value=None)
    after: str | None = key(value=None)
    parts: list[str] = key(value=[])


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
    """A column of a table, or a value within text.

    Args:
        metric: an expression: metrics and numbers with -, * and / between them, from the left.
        factor: what values are multiplied by, as 100 for percentages.
        format: of Python, as .2f.
        option: one of OPTIONS, or empty.
    """

    heading: str
    metric: str
    factor: float
    format: str
    option: str

    @property
    def terms(self) -> list[str]:
        """The metrics of the expression, without its numbers."""
        return [term for term in OPERATOR.split(self.metric)[::2] if not is_number(term)]


@dataclass(frozen=True)
class Study:
    """A study that was checked by itself; whether it fits the games is checked later.

    Args:
        curves: the words of `rlgames report` that draw a picture, by its name.
        parts: other studies, which this one consists of.
    """

    name: str
    runs: dict[str, StudyRun]
    evaluations: tuple[StudyEvaluation, ...]
    tables: tuple[StudyTable, ...]
    reported: dict[str, ReportedValues]
    curves: dict[str, str]
    before: str
    after: str
    parts: tuple[Study, ...]

    def evaluation(self, name: str, run: str) -> StudyEvaluation | None:
        """The evaluation of this name that a run has."""
        named = (each for each in self.evaluations if each.name == name)
        return next((each for each in named if run in each.runs), None)

    @property
    def leaves(self) -> list[Study]:
        """The studies that have runs: this one, or its parts."""
        return [leaf for part in self.parts for leaf in part.leaves] or [self]

    @property
    def values(self) -> list[tuple[str, StudyColumn]]:
        """The values within its texts, each with its run."""
        texts = [self.before, self.after]
        texts += [text or "" for table in self.tables for text in (table.before, table.after)]
        return [parse_value(match) for text in texts for match in PLACEHOLDER.findall(text)]


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def parse_column(heading: str, text: str) -> StudyColumn:
    """A column from METRIC | FORMAT | OPTION. Raises ConfigError."""
    metric, format, option, *rest = [*(part.strip() for part in text.split("|")), "", ""]
    *factor, spec = format.rpartition("*")[::2] if "*" in format else (format,)
    if any(rest) or not all(map(is_number, factor)):
        raise ConfigError(f"{text!r} is not a column", "as in METRIC | 100*.1f | by seed")
    try:
        is_format = not MANY_DIGITS.search(spec) and bool(f"{1.0:{spec}}")
    except ValueError:
        is_format = False
    if not is_format:
        raise ConfigError(f"{text!r}: {spec} is not a format", "as in .2f")
    if ZERO_DIVISOR.search(metric):
        raise ConfigError(f"{text!r} divides by 0", "as in METRIC / 1000")
    if option and option not in OPTIONS:
        raise ConfigError(f"{text!r}: {option} is not an option", nearest(option, list(OPTIONS)))
    return StudyColumn(heading, metric, float(factor[0]) if factor else 1.0, spec or ",.4g", option)


def values_of(study: Study) -> Iterator[tuple[str, StudyColumn]]:
    """Each value of the tables and texts of a study, with the run that it belongs to."""
    for table in study.tables:
        yield from ((run, column) for column in table.columns for run in table.rows)
    yield from study.values
    for reported in study.reported.values():
        if reported.compared:
            column = StudyColumn("", reported.compared, 1.0, "", "")
            yield from ((run, column) for run in reported.values)


def parse_value(text: str) -> tuple[str, StudyColumn]:
    """The run and the column of a value within text. Raises ConfigError."""
    run, colon, rest = text.partition(":")
    if not colon:
        raise ConfigError(f"{{{{{text}}}}} names no run", "as in {{RUN:METRIC}}")
    return run.strip(), parse_column("", rest)


def read_study(word: str, seeds: Any = None, wholes: Sequence[Path] = ()) -> Study:
    """The study with a name or at a path; seeds: instead of the seeds in the file; wholes: the
    files of the studies that it is a part of. Raises ConfigError."""
    files = Files()
    path = Path(word) if word.endswith((".yaml", ".yml")) else files.path(f"study/{word}")
    if path is None:
        raise ConfigError(f"no study is called {word!r}", nearest(word, files.names("study")))
    name = path.stem
    _check_name("study", name)
    try:
        if path.resolve() in wholes:
            raise ConfigError("it is a part of itself", "omit it from parts:")
        file = _entry(StudyFile, mapping(path), "")
        wholes = [*wholes, path.resolve()]
        parts = [read_study(part, seeds, wholes) for part in file.parts]
        return _study(name, file, seeds, parts)
    except ConfigError as error:
        if not error.error.startswith(f"{path}: "):
            raise ConfigError(f"{path}: {error.error}", error.hint) from None
        raise


def _study(name: str, file: StudyFile, seeds: Any, parts: Sequence[Study]) -> Study:
    for each in ("runs", "evaluations", "table", "tables", "reported", "curves"):
        if parts and getattr(file, each):
            raise ConfigError(f"a study of parts cannot have {each}:", "make it another part")
    usual = parse_seeds(file.seeds if seeds is None else seeds)
    runs = {}
    for run, entry in _entries(StudyEntry, file.runs, "runs", "overrides").items():
        _check_name("run", run)
        is_player = "player=" in (entry.overrides or "")
        own = (0,) if is_player else usual
        if entry.seeds is not None:
            own = parse_seeds(entry.seeds, f"runs.{run}.seeds")
        runs[run] = StudyRun(
            run, _words((entry.overrides or ""), f"runs.{run}", "experiment="), own
        )
    evaluations: list[StudyEvaluation] = []
    for each, node in _mapping(file.evaluations, "evaluations").items():
        _check_name("evaluation", str(each))
        for part in node if isinstance(node, list) else [node]:
            made = _evaluation(str(each), _short(StudyEntry, part, f"evaluations.{each}"), runs)
            twice = {run for other in evaluations if other.name == each for run in other.runs}
            if again := sorted(twice & {*made.runs}):
                raise ConfigError(f"evaluations.{each} evaluates {again[0]} twice", "use runs:")
            evaluations.append(made)
    if file.tables and file.table is not None:
        raise ConfigError("tables= and table= are both set", "list all of them as tables:")
    nodes = file.tables or ([] if file.table is None else [file.table])
    if not isinstance(nodes, list):
        raise ConfigError("tables is not a list", "use table: for a single one")
    tables = tuple(_table(_entry(StudyTable, node, "table"), runs) for node in nodes)
    reported = _entries(ReportedValues, file.reported, "reported", "values")
    for picture in _mapping(file.curves, "curves"):
        _check_name("picture", str(picture))
    study = Study(
        name,
        runs,
        tuple(evaluations),
        tables,
        reported,
        {str(key): str(value) for key, value in _mapping(file.curves, "curves").items()},
        file.before or "",
        file.after or "",
        tuple(parts),
    )
    _check_terms(study)
    return study


def parse_seeds(value: Any, key: str = "seeds") -> tuple[int, ...]:
    """Seeds as they are typed: how many, or a list of them. Raises ConfigError."""
    is_count = type(value) is int and 0 < value <= 10_000
    listed = value if isinstance(value, list) else list(range(value)) if is_count else []
    is_valid = all(type(each) is int and 0 <= each <= MAX_SEED for each in listed)
    if not listed or not is_valid or len({*listed}) < len(listed):
        hint = f"as in {key}=5 or {key}=[0,1,2]"
        raise ConfigError(f"{key}={value} is neither a number of seeds nor a list of them", hint)
    return tuple(listed)


def _evaluation(name: str, entry: StudyEntry, runs: Mapping[str, StudyRun]) -> StudyEvaluation:
    where = f"evaluations.{name}"
    words = _words((entry.overrides or ""), where)
    command, words = (
        (words[0], words[1:]) if words[:1] and words[0] in COMMANDS else ("eval", words)
    )
    chosen = tuple(run for run in runs if any(fnmatch(run, each) for each in entry.runs or ["*"]))
    for each in entry.runs:
        if not any(fnmatch(run, each) for run in runs):
            raise ConfigError(f"{where}.runs: no run is called {each!r}", nearest(each, [*runs]))
    try:
        check_evaluation(command, words)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.error}", error.hint) from None
    seeds = None if entry.seeds is None else parse_seeds(entry.seeds, f"{where}.seeds")
    return StudyEvaluation(name, command, words, chosen, tuple(entry.runs), seeds)


def check_evaluation(command: str, words: Sequence[str]) -> None:
    """Raises ConfigError for an evaluation that imports a module or writes outside of its run: its
    words may come from a stranger."""
    if command not in COMMANDS:
        raise ConfigError(f"{command} is not an evaluation", f"valid: {', '.join(COMMANDS)}")
    for word in words:
        if word.startswith("plugins="):
            raise ConfigError(f"{word} is typed", f"as in rlgames study NAME {word}")
        key = word.partition("=")[0]
        if key in WRITTEN and not re.fullmatch(r"\w+=\{\}/[\w-]+(\.\w+)?", word):
            raise ConfigError(f"{word} is outside the run", f"as in {key}={{}}/{WRITTEN[key]}")


def _words(text: str, where: str, first: str = "") -> tuple[str, ...]:
    """The words of a text; first: what a first word without `=` is the value of."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{where} cannot be read: {error}", "close its quotes") from None
    if first and words and "=" not in words[0]:
        words[0] = first + words[0]
    return tuple(words)


def _table(table: StudyTable, runs: Mapping[str, StudyRun]) -> StudyTable:
    """A table with its rows and columns parsed. Raises ConfigError."""
    rows = list(runs) if table.rows is None else table.rows
    labels = {str(each): f"`{each}`" for each in rows} if isinstance(rows, list) else rows
    for name in _mapping(labels, "rows"):
        _check_known(name, runs, "rows: no run")
    columns = table.columns
    if isinstance(columns, list):
        columns = {str(each).partition("|")[0].strip(): each for each in columns}
    parsed = [parse_column(str(h), str(text)) for h, text in _mapping(columns, "columns").items()]
    names = {str(name): str(label) for name, label in labels.items()}
    texts = {"before": table.before or "", "after": table.after or ""}
    return StudyTable(**vars(table) | texts | {"rows": names, "columns": parsed})


def _check_terms(study: Study) -> None:
    """Raises ConfigError for a metric whose run or evaluation does not exist."""
    names = [each.name for each in study.evaluations]
    sources = [*dict.fromkeys(names), "training", "reported"]
    used = [column for table in study.tables for column in table.columns]
    for run, column in study.values:
        _check_known(run, study.runs, f"{{{{{run}:{column.metric}}}}}: no run")
        used.append(column)
    for column in used:
        for term in column.terms:
            run, colon, path = term.rpartition(":")
            source = path.partition(".")[0]
            if colon:
                _check_known(run, study.runs, f"{term}: no run")
            _check_known(source, sources, f"{term}: no evaluation")
            if source == "training" and not TRAINING_METRIC.fullmatch(path.partition(".")[2]):
                hint = "as in training.seconds or training.turns.last2000"
                raise ConfigError(f"{term} is not a metric of training", hint)
            if source == "reported":
                name = path.partition(".")[2]
                _check_known(name, study.reported, f"{term}: no values")
            elif source in names and colon and study.evaluation(source, run) is None:
                raise ConfigError(f"{term}: {source} does not evaluate {run}")
    for name, words in study.curves.items():
        curves = [word for word in words.split() if "=" not in word]
        if not curves:
            raise ConfigError(f"curves.{name} names no run", nearest("", [*study.runs]))
        for run in curves:
            _check_known(run, study.runs, f"curves.{name}: no run")
    for name, reported in study.reported.items():
        if not reported.values:
            raise ConfigError(f"reported.{name} has no values", "as in values: {RUN: 0.5}")
        for run in _mapping(reported.values, f"reported.{name}.values"):
            _check_known(run, study.runs, f"reported.{name}: no run")


def _check_known(name: Any, known: Any, message: str) -> None:
    if name not in known:
        raise ConfigError(f"{message} is called {str(name)!r}", nearest(str(name), list(known)))


def _check_name(kind: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a {kind}", "use letters, digits and _")


def _mapping(node: Any, where: str) -> Mapping[Any, Any]:
    if node is not None and not isinstance(node, Mapping):
        raise ConfigError(f"{where} holds no names with their values", f"as in {where}: {{a: …}}")
    return node or {}


def _entries(kind: type[C], node: Any, where: str, short: str) -> dict[str, C]:
    """Entries by name; a text or a number is the value of the key `short`."""
    return {
        str(name): _short(kind, each, f"{where}.{name}", short)
        for name, each in _mapping(node, where).items()
    }


def _short(kind: type[C], node: Any, where: str, short: str = "overrides") -> C:
    is_full = isinstance(node, Mapping) and (short != "values" or "values" in node)
    return _entry(kind, node if is_full else {short: node}, where)


def _entry(kind: type[C], node: Any, where: str) -> C:
    try:
        return typed(kind, default_values(kind) | {**_mapping(node, where or "the file")})
    except ConfigError as error:
        raise ConfigError(f"{where}{where and ': '}{error.error}", error.hint) from None
