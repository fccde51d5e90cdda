"""Schemas: frozen dataclasses whose fields say the type, the range, the choices and the help of a
key.

They have no values: conf/ has those. Only a plugin, which has no file there, names them in its
schema.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from functools import cache
from inspect import get_annotations
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, Union, dataclass_transform, get_args, get_origin, get_type_hints

POSITIVE = 1e-300
"""As the low end of a range: more than 0."""

MAX_BATCH = 1 << 24

WORDS = {int: "whole number", float: "number", str: "word"}
"""Types of keys in words."""


def key(
    low: float = -math.inf,
    high: float = math.inf,
    of: Any = (),
    help: str = "",
    *,
    is_path: bool = False,
    is_word: bool = False,
    value: Any = MISSING,
) -> Any:
    """A key of a schema: its range from low to high or its choices, and its help.

    Args:
        of: the choices; values of another type are any in the range.
        is_path: the path of a file or a folder; `~` is the home directory.
        is_word: what the words of a command name that have no `=`: the first one, or for a list all
            of them.
        value: the value in a plugin's schema.
    """
    metadata = {"low": low, "high": high, "of": tuple(of), "help": help}
    return field(metadata=metadata | {"is_path": is_path, "is_word": is_word, "value": value})


@dataclass(frozen=True)
class Group:
    """A key whose value is an option of a config group, with the option's keys below it.

    Args:
        folder: the config group, if that is not the name of the key.
        is_training: also offers the players that exist only in training.
        is_list: whether it holds several options or none, as in logger=[tensorboard,wandb].
        is_nullable: whether the option may be null.
    """

    help: str
    folder: str = ""
    is_training: bool = False
    is_list: bool = False
    is_nullable: bool = False


def group(help: str, folder: str = "", *, is_training: bool = False, is_word: bool = False) -> Any:
    """A key that holds an option of a config group. See Group and key."""
    return field(metadata={"group": Group(help, folder, is_training), "is_word": is_word})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key, group))
class Schema:
    """A class of keys and groups: each subclass is a frozen dataclass.

    The methods are these for all, because dataclass compiles those that it writes, and did so for
    longer than most commands take to see what is mistyped.
    """

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or cls.__name__  # or dataclass writes one
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        names = [item.name for item in dataclasses.fields(self)]  # type: ignore[arg-type]
        if values.keys() != {*names}:
            raise TypeError(f"{type(self).__name__} has the keys {', '.join(names)}")
        vars(self).update((name, values[name]) for name in names)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        keys = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({keys})"


def make_schema(
    name: str, base: type[Schema], keys: Mapping[str, tuple[Any, Any]], doc: str = ""
) -> type[Schema]:
    """A schema of the keys of another one and these, each with its type and field."""
    types = {key: kind for key, (kind, _) in keys.items()}
    fields = {key: item for key, (_, item) in keys.items()}
    made = type(name, (base,), {"__annotations__": types} | fields)
    made.__doc__ = doc
    return made


class OptionConfig(Schema):
    """The keys of every option. `name` says which class it is; what is typed is the name of the
    option's file."""

    name: str = key()


@dataclass(frozen=True)
class Option:
    """What `name:` in the file of an option means.

    Args:
        schema: a dataclass of its keys.
        make: the class or function that is called with them, or its place as "module:name", which
            is imported when a config first asks for it. None if no class makes it.
        gym_id: the game's name among Gymnasium's environments.
        values: the values of a plugin's keys; None for an option with a file.
        training_only: only a training knows this player.
        runs_code: this player runs what its keys name, so no training has it: the config of a run
            may be a stranger's.
        is_quick: this player moves at once, so that a training may measure random play against it
            before its first game.
        extra: the package that this option needs, which the extra of the same name installs.
        viewer: the command that shows what this logger wrote, with RUN for the run's directory.
    """

    schema: type
    make: str | Callable[..., Any] | None = None
    gym_id: str | None = None
    values: Mapping[str, Any] | None = None
    training_only: bool = False
    runs_code: bool = False
    is_quick: bool = False
    extra: str | None = None
    viewer: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class or function itself."""
        return resolve_name(self.make) if isinstance(self.make, str) else self.make


def key_fields(schema: type) -> dict[str, Field[Any]]:
    """The keys of a schema outside groups, each with its range, choices and help."""
    return {item.name: item for item in dataclasses.fields(schema) if "group" not in item.metadata}


def groups_of(schema: type) -> dict[str, Group]:
    """The config groups of a schema, by the keys that hold them."""
    kinds = _kinds(schema)
    return {
        item.name: dataclasses.replace(
            item.metadata["group"],
            folder=item.metadata["group"].folder or item.name,
            is_list=(is_list := get_origin(kinds[item.name]) is dict),
            is_nullable=is_list or NoneType in members(kinds[item.name]),
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


def word_key(schema: type) -> tuple[str, bool] | None:
    """The key that words without `=` name, and whether it takes all of them; None for none."""
    names = [item.name for item in dataclasses.fields(schema) if item.metadata["is_word"]]
    return (names[0], get_origin(kind_of(schema, names[0])) is list) if names else None


def arguments(option: Any) -> dict[str, Any]:
    """The keys of an option without its name: what its class is called with."""
    return {name: value for name, value in vars(option).items() if name != "name"}


_kinds: Callable[[type], dict[str, Any]] = cache(get_type_hints)


def kind_of(schema: type, name: str) -> Any:
    """The type of a key."""
    return _kinds(schema)[name]


def members(kind: Any) -> tuple[Any, ...]:
    """The types that a union allows, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def kind_in_words(kind: Any) -> str:
    """A type as a message names it."""
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


def range_in_words(limits: Mapping[str, Any]) -> str:
    """The range of a number."""
    ends = (limits["low"], limits["high"])
    low, high = (f"{end:,}" if isinstance(end, int) else f"{end:,.12g}" for end in ends)
    if limits["low"] == POSITIVE:
        low = "above 0"
    return f"at least {low}" if high == "inf" else f"{low} to {high}"


def as_typed(value: Any) -> str:
    """A value as typed on the command line."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_typed, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{as_typed(each)}' for key, each in value.items())}}}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
