"""Plain values, composed or read from a checkpoint, as an instance of their schema."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import yaml

from rlgames.config.plugins import plugins_override
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Group,
    WrongKind,
    converted,
    defaults,
    groups_of,
    key_fields,
    kind_in_words,
    kind_of,
    names_of,
    range_in_words,
)
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError, UnknownOption, nearest
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized

MISSING = "???"
"""The default of a key that must be given, as in OmegaConf."""

MAX_VALUE_LENGTH = 100
"""Maximum characters of a value in a message."""

C = TypeVar("C")


def typed(schema: type[C], values: Mapping[str, Any]) -> C:
    """A config from plain values, each converted to its type and checked against its range.

    Keys that are left out have their default, groups that are left out have no option. Raises
    ConfigError for a value that is not of the type, the range or the choices of its key.
    """
    groups = groups_of(schema)
    checked = {name: _group(name, each, values.get(name)) for name, each in groups.items()}
    keys = {name: value for name, value in values.items() if name not in groups}
    return schema(**checked, **_values(schema, keys, ""))


def _group(name: str, group: Group, node: Any) -> Any:
    if group.is_list:
        if not isinstance(node or {}, Mapping):
            raise ConfigError(f"{name} names no options with their keys")
        options = {
            each: typed_option(name, group, keys, f"{name}.{each}.")
            for each, keys in (node or {}).items()
        }
        for option, config in options.items():
            if config.name != option:
                raise ConfigError(f"{name}.{option}.name={config.name} is another option")
        return options
    if node is None:
        if not group.is_nullable:
            raise ConfigError(f"{name} cannot be null", f"add {name}=NAME")
        return None
    return typed_option(name, group, node, "" if name == "game" else f"{name}.")


def typed_option(name: str, group: Group, node: Any, prefix: str) -> Any:
    """An option of a group as an instance of its schema; prefix: before its keys as they are typed.

    Raises ConfigError, UnknownOption if no option has this name.
    """
    if not isinstance(node, Mapping) or "name" not in node:
        listed = f": {', '.join(map(str, node))}" if isinstance(node, Mapping) and node else ""
        raise ConfigError(f"{name} has keys, but no option is chosen{listed}", f"add {name}=NAME")
    options = REGISTRY[group.folder]
    option = str(node["name"])
    if option not in options:
        raise unknown_option(name, group.folder, sanitized(option, MAX_VALUE_LENGTH), [*options])
    schema = options[option].schema
    config = schema(**_values(schema, node, prefix))
    missing = [key for key, value in vars(config).items() if value == MISSING]
    if missing:
        raise ConfigError(f"{name}={option} needs {prefix}{missing[0]}=")
    return config


def _values(schema: type, values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    known = key_fields(schema)
    for name in values:
        if name not in known:
            raise unknown_key(prefix + str(name), [prefix + each for each in names_of(schema)])
    checked = {name: checked_value(schema, name, value, prefix) for name, value in values.items()}
    complete = defaults(schema) | checked
    following = {
        name: complete[item.metadata["follows"]]
        for name, item in known.items()
        if item.metadata.get("follows") and name not in checked
    }
    return complete | following


def checked_value(schema: type, name: str, value: Any, prefix: str = "") -> Any:
    """A plain value of a key as its type. Raises ConfigError."""
    kind, limits, key = kind_of(schema, name), key_fields(schema)[name].metadata, prefix + name
    if limits.get("takes_word") and isinstance(value, str):
        value = [value]
    if limits.get("is_text") and not limits.get("is_path") and isinstance(value, str):
        value = value.strip()
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and (not text or text != text.strip() or "\0" in text):
            shown = sanitized(repr(text), MAX_VALUE_LENGTH)
            raise ConfigError(f"{key}={shown} is empty or has blanks around it")
    if MISSING in (value if isinstance(value, list) else [value]) and (
        defaults(schema).get(name) != MISSING
    ):
        raise ConfigError(f"{key} needs a value")
    try:
        result = converted(kind, value, limits.get("is_text", False))
    except WrongKind:
        words = kind_in_words(kind)
        raise ConfigError(f"{key}={sanitized(value, MAX_VALUE_LENGTH)} is not {words}") from None
    _check_range(key, result, limits)
    is_home = limits.get("is_path") and isinstance(result, str)
    return os.path.expanduser(result) if is_home else result


def _check_range(key: str, value: Any, limits: Mapping[str, Any]) -> None:
    if isinstance(value, list):
        for item in value:
            _check_range(key, item, limits)
    elif value is not None and limits:
        shown = sanitized(value, MAX_VALUE_LENGTH)
        if isinstance(value, (*map(type, limits["of"]),)) and value not in limits["of"]:
            hint = nearest(shown, [*limits["of"]])
            if hint.startswith("available") and limits["low"] > -math.inf:
                hint += f", or a number, {range_in_words(limits)}"
            raise ConfigError(f"{key}={shown} is not a choice", hint)
        if isinstance(value, int | float) and not limits["low"] <= value <= limits["high"]:
            raise ConfigError(f"{key}={shown} is out of range", f"valid: {range_in_words(limits)}")


def to_plain(config: Any) -> dict[str, Any]:
    """A config as plain dicts, lists and values, in the order of its schema."""
    values = dataclasses.asdict(config)
    return {name: values[name] for name in names_of(type(config))}


def arguments(option: Any) -> dict[str, Any]:
    """The keys of an option without its name: what its class is called with."""
    return {name: value for name, value in vars(option).items() if name != "name"}


def to_yaml(config: Any) -> str:
    """A config as YAML."""
    return yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True, width=10**9)


@contextmanager
def sanitize_errors() -> Iterator[None]:
    """Make errors about an untrusted config one printable line of bounded length."""
    try:
        yield
    except ConfigError as error:
        error.error, error.hint = sanitized(error.error), sanitized(error.hint)
        error.args = (error.error,)
        raise


@sanitize_errors()
def from_plain(values: dict[str, Any]) -> TrainConfig:
    """The inverse of to_plain, checked again: a checkpoint's config is untrusted text.

    Raises ConfigError for a config that is not complete.
    """
    for name, value in values.items():
        if "${" in json_text(value):
            raise ConfigError(f"the checkpoint's {name} holds an interpolation, which is an error")
    try:
        return typed(TrainConfig, values)
    except UnknownOption as error:
        needed = plugins_override(values.get("plugins"))
        if not needed or all(str(name) in sys.modules for name in values["plugins"]):
            raise
        raise UnknownOption(
            f"{error.error} here",
            f"it was trained with {needed}; name them yourself if you trust them",
        ) from None
    except ConfigError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the checkpoint's config cannot be read: {error}") from None
