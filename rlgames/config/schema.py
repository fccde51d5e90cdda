"""Schemas: the keys of configs with their types, ranges, choices, defaults and help.

A schema is a frozen dataclass, decorated by `schema`; each key is declared once, by `key` or
`group`. The YAML files in
conf/, help and the tables of the documents are made from it.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Any,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

POSITIVE = 1e-300
"""As the low end of a range: more than 0."""

MAX_BATCH = 1 << 24

WORDS = {int: "whole number", float: "number", str: "word"}
"""Types of keys in words."""


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")


def _cached(function: F) -> F:
    """cache() that keeps the types of a function; mypy takes no type[C] for hashable."""
    return cast(F, cache(function))


def key(
    default: Any = MISSING,
    low: float = -math.inf,
    high: float = math.inf,
    of: Any = (),
    help: str = "",
    is_text: bool = False,
    is_path: bool = False,
    takes_word: bool = False,
    follows: str = "",
) -> Any:
    """A key of a schema: its default, its range from low to high or its choices, and its help.

    Args:
        of: the choices; values of another type are any in the range.
        is_text: any characters, which the command line quotes for Hydra.
        is_path: the path of a file or a folder; is_text too. `~` is the home directory.
        takes_word: a list of words, also numbers, that may be typed as a single word.
        follows: another key of the schema, whose value is the default.
    """
    metadata = {"low": low, "high": high, "of": tuple(of), "help": help, "is_path": is_path}
    metadata |= {"is_text": is_text or is_path, "takes_word": takes_word, "follows": follows}
    return _field(default, metadata)


def _field(default: Any, metadata: Mapping[str, Any] | None = None) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Group:
    """A key whose value is an option of a config group, with the option's keys below it.

    Args:
        folder: the config group, where that is not the name of the key.
        default: the option; None for none.
        is_training: also offers the players that exist only in training.
        is_list: holds several options or none, as in logger=[tensorboard,wandb].
    """

    folder: str
    default: str | None
    help: str
    is_training: bool = False
    is_list: bool = False

    @property
    def is_nullable(self) -> bool:
        """Whether the config needs no option."""
        return self.default is None or self.is_list


def group(default: str | None, help: str, folder: str = "", **flags: bool) -> Any:
    """A key that holds an option of a config group. See Group."""
    metadata = {"group": Group(folder, default, help, **flags)}
    return field(default=None, metadata=metadata)


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
def schema(config: type[C]) -> type[C]:
    """Make a subclass of Config a dataclass."""
    return dataclass(init=False, eq=False, repr=False)(config)


@schema
class Config:
    """The base of all schemas: frozen, and equal and printed by their values.

    These methods stand here once: dataclass() would compile them for each schema, which would take
    longer than all else that --help does.
    """

    def __init__(self, **values: Any) -> None:
        for item in dataclasses.fields(self):
            value = values.pop(item.name) if item.name in values else default_of(item)
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {item.name}=")
            vars(self)[item.name] = value
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"{name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((*vars(self).items(),))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


@schema
class OptionConfig(Config):
    """The keys of an option: its name, and what subclasses add."""

    name: str = key("")


def variant(base: type[OptionConfig], name: str, help: str, **defaults: Any) -> type[OptionConfig]:
    """The schema of another option with the same keys and other defaults."""
    kinds = get_type_hints(base)
    defaults = {"name": name} | defaults
    keys = [(each, kinds[each], _field(value)) for each, value in defaults.items()]
    config = make_schema(f"{base.__name__}_{name}", keys, base)
    config.__doc__ = help
    return config


def make_schema(name: str, keys: list[tuple[str, Any, Any]], base: type[C]) -> type[C]:
    """A subclass of a schema with further keys: their names, types and fields."""
    config = dataclasses.make_dataclass(name, keys, bases=(base,), init=False, eq=False, repr=False)
    config.__module__ = base.__module__
    setattr(sys.modules[base.__module__], name, config)  # where pickle looks for it
    return config


def schema_of_keys(name: str, help: str, keys: Mapping[str, Any]) -> type[OptionConfig]:
    """The schema of an option with these keys, each by its default or as key() makes it, which
    tells the type."""
    items = [("name", str, _field(name))]
    for each, value in keys.items():
        item = value if isinstance(value, Field) else key(value)
        default = default_of(item)
        kind: Any = type(default)
        if default and kind is list:
            kind = list[type(default[0])]  # type: ignore[misc]
        items.append((each, kind, item))
    config = make_schema(f"{name}_keys", items, OptionConfig)
    config.__doc__ = help
    return config


@_cached
def key_fields(schema: type) -> dict[str, Field[Any]]:
    """The keys of a schema outside groups, each with its type, range, choices and help.

    A subclass that only changes a default inherits the range, the choices and the help.
    """
    keys = {}
    for item in dataclasses.fields(schema):
        declared = [
            vars(base).get("__dataclass_fields__", {}).get(item.name) for base in schema.__mro__
        ]
        source = next((each for each in declared if each is not None and each.metadata), item)
        if "group" not in source.metadata:
            keys[item.name] = copy.copy(item)
            keys[item.name].metadata = source.metadata
    return keys


@_cached
def groups_of(schema: type) -> dict[str, Group]:
    """The config groups of a schema, by the keys that hold them."""
    return {
        item.name: dataclasses.replace(
            item.metadata["group"], folder=item.metadata["group"].folder or item.name
        )
        for item in dataclasses.fields(schema)
        if "group" in item.metadata
    }


def names_of(schema: type) -> list[str]:
    """The keys and groups of a schema, in the order of help and files: groups first, then the keys
    of the class itself, then those it inherits."""
    own_first = [name for part in schema.__mro__ for name in get_annotations(part)]
    keys = sorted(key_fields(schema), key=own_first.index)
    return [*groups_of(schema), *keys]


def default_of(item: Field[Any]) -> Any:
    """The default of a key; MISSING for a key without one."""
    factory = item.default_factory
    return item.default if factory is MISSING else factory()


def defaults(schema: type) -> dict[str, Any]:
    """The keys of a schema that have a default, with it."""
    values = {name: default_of(item) for name, item in key_fields(schema).items()}
    return {name: value for name, value in values.items() if value is not MISSING}


def changed(config: Config, *names: str) -> list[str]:
    """Those of the keys whose values are not their defaults."""
    usual = defaults(type(config))
    return [name for name in names if getattr(config, name) != usual.get(name)]


def initial_values(schema: type) -> dict[str, Any]:
    """The keys of a schema as a file holds them, in its order: the name of an option first, and a
    reference to the key that a key follows."""
    fields = key_fields(schema)
    names = sorted((name for name in names_of(schema) if name in fields), key="name".__ne__)
    values = {}
    for name in names:
        follows = fields[name].metadata.get("follows")
        values[name] = f"${{.{follows}}}" if follows else default_of(fields[name])
    return values


_kinds = _cached(get_type_hints)


def kind_of(schema: type, name: str) -> Any:
    """The type of a key."""
    return _kinds(schema)[name]


def members(kind: Any) -> tuple[Any, ...]:
    """The types that a union allows, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def kind_in_words(kind: Any) -> str:
    """A type as a message and a table name it."""
    words = []
    for part in members(kind):
        if get_origin(part) is list:
            inner = get_args(part)[0]
            example = {int: "[4,2]", float: "[0.5,1]", str: "[one,two]"}.get(inner, "[[0,1],[2,3]]")
            of = "lists of whole numbers" if get_origin(inner) is list else f"{WORDS[inner]}s"
            words.append(f"a list of {of}, as in {example}")
        elif part is bool:
            words.append("true or false")
        else:
            words.append("null" if part is NoneType else f"a {WORDS.get(part, 'value')}")
    return " or ".join(words)


def choices_of(schema: type, name: str) -> tuple[str, ...]:
    """The values of a key as they are typed, if they can be listed."""
    kinds = members(kind_of(schema, name))
    choices = tuple(map(str, key_fields(schema)[name].metadata.get("of", ())))
    if bool in kinds:
        choices = ("true", "false")
    return (*choices, "null") if choices and NoneType in kinds else choices


def values_in_words(schema: type, name: str) -> str:
    """The type of a key with its range or its choices."""
    kind, limits = kind_of(schema, name), key_fields(schema)[name].metadata
    text = kind_in_words(kind)
    if limits.get("of"):
        many = "a list of: " if text.startswith("a list") else ""
        other = {*members(kind)} & {int, float} - {*map(type, limits["of"])}
        number = f" or {kind_in_words(other.pop())}, {range_in_words(limits)}" if other else ""
        null = " or null" if NoneType in members(kind) else ""
        return many + ", ".join(map(str, limits["of"])) + number + null
    if "number" in text and math.isfinite(limits.get("high", math.inf)):
        text += f", {'each ' if 'list' in text else ''}{range_in_words(limits)}"
    return text


def range_in_words(limits: Mapping[str, Any]) -> str:
    """The range of a number."""
    ends = (limits["low"], limits["high"])
    low, high = (f"{end:,}" if isinstance(end, int) else f"{end:,.12g}" for end in ends)
    if limits["low"] == POSITIVE:
        low = "above 0"
    return f"at least {low}" if high == "inf" else f"{low} to {high}"


class WrongKind(Exception):
    """A value that is not of the type of its key."""


def converted(kind: Any, value: Any, is_text: bool = False) -> Any:
    """A value as the type of its key: 3 is also the number 3.0, and 1e5 a whole number.

    Raises WrongKind, and ConfigError for empty text and text with blanks around it.
    """
    kinds = members(kind)
    if value is None:
        if NoneType in kinds:
            return None
    elif isinstance(value, list):
        for part in kinds:
            if get_origin(part) is list:
                return [converted(get_args(part)[0], each, is_text) for each in value]
    elif isinstance(value, bool):
        if bool in kinds:
            return value
    elif isinstance(value, int | float):
        if int in kinds and (isinstance(value, int) or (value.is_integer() and float not in kinds)):
            return int(value)
        if float in kinds:
            return float(value)
        if is_text:
            return str(value)
    elif isinstance(value, str) and str in kinds:
        return value
    if Any in kinds:
        return value
    raise WrongKind


@dataclass(frozen=True)
class Option:
    """An option of a config group.

    Args:
        schema: a dataclass of its keys; `name` is the option's name, the docstring its help.
        make: the class or function that is called with them, or its place as "module:name", which
            is imported when a config first asks for it. None if no class makes it.
        training_only: only a training knows this player.
        is_quick: this player moves at once, so that a training may measure random play against it
            before its first game.
        gym_id: the game's name among Gymnasium's environments.
        extra: the package that this option needs, which the extra of the same name installs.
        viewer: the command that shows what this logger wrote, with RUN for the run's directory.
    """

    schema: type
    make: str | Callable[..., Any] | None = None
    training_only: bool = False
    is_quick: bool = False
    gym_id: str | None = None
    extra: str | None = None
    viewer: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class or function itself."""
        if not isinstance(self.make, str):
            return self.make
        module, _, name = self.make.partition(":")
        return getattr(importlib.import_module(module), name)

    @property
    def help(self) -> str:
        """One line about the option: the first of its schema's docstring."""
        text = (self.schema.__doc__ or "").strip()
        return "" if text.startswith(f"{self.schema.__name__}(") else text.partition("\n")[0]


def as_typed(value: Any) -> str:
    """A value as typed on the command line."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_typed, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{as_typed(each)}' for key, each in value.items())}}}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def listed_options(typed: str) -> list[str]:
    """The options of a list as it is typed, with or without brackets."""
    options = (option.strip("'\" ") for option in typed.strip("[]").split(","))
    return [option for option in options if option]
