"""Plain values, composed by Hydra or read from a checkpoint, as an instance of their schema.

Nothing is imported or resolved here, so the values may come from a stranger.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

import yaml

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.conf import command_file, option_values
from rlgames.config.hints import unknown_key, unknown_option
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Group,
    OptionConfig,
    arguments,
    as_typed,
    groups_of,
    key_fields,
    kind_in_words,
    kind_of,
    members,
    names_of,
    range_in_words,
)
from rlgames.core.errors import ConfigError, UnknownOption, closest, nearest
from rlgames.core.untrusted import sanitized

MISSING = "???"
"""The value of a key that must be given, as in OmegaConf."""

MAX_VALUE_LENGTH = 100
"""Maximum characters of a value in a message."""

C = TypeVar("C")


def typed(schema: type[C], values: Mapping[str, Any], prefix: str = "") -> C:
    """A config from plain values, each converted to its type and checked against its range.

    Args:
        prefix: what stands before the keys as they are typed.

    Raises:
        ConfigError: for an unknown or missing key, and for a value that is not of the type, the
            range or the choices of its key.
    """
    groups, keys = groups_of(schema), key_fields(schema)
    for name in values:
        if name not in keys and name not in groups:
            known = [prefix + each for each in names_of(schema) if each != "name"]
            raise unknown_key(prefix + sanitized(name, MAX_VALUE_LENGTH), known)
    checked = {name: _group(name, each, values.get(name)) for name, each in groups.items()}
    if schema is TrainConfig:
        _check_runs_no_code(checked, groups)
    for name in keys:
        if values.get(name, MISSING) == MISSING:
            kind = "PATH" if keys[name].metadata.get("is_path") else "VALUE"
            raise ConfigError(f"{prefix}{name} has no value", f"add {prefix}{name}={kind}")
        checked[name] = checked_value(schema, name, values[name], prefix)
    return schema(**checked)


def _check_runs_no_code(options: Mapping[str, Any], groups: Mapping[str, Group]) -> None:
    """Raises ConfigError for an option that runs what its keys name: the config of a training is
    stored, and may be a stranger's."""
    for name, option in options.items():
        if (
            isinstance(option, OptionConfig)
            and REGISTRY[groups[name].folder][option.name].runs_code
        ):
            raise ConfigError(
                f"{name}={option.name} is not for a training, whose config starts no program",
                "use it in eval, arena, analyze, play or watch",
            )


def _group(name: str, group: Group, node: Any) -> Any:
    if group.is_list:
        if not isinstance(node or {}, Mapping):
            raise ConfigError(f"{name} names no options with their keys")
        return {
            str(each): typed_option(name, group, keys, f"{name}.{each}.")
            for each, keys in (node or {}).items()
        }
    if not node:
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
    option, options = str(node["name"]), REGISTRY[group.folder]
    if option not in options:
        raise unknown_option(name, sanitized(option, MAX_VALUE_LENGTH), [*options])
    if options[option].training_only and not group.is_training:
        raise ConfigError(f"{name}={option} exists in training only", "name another player")
    return typed(options[option].schema, node, prefix)


def checked_value(schema: type, name: str, value: Any, prefix: str = "") -> Any:
    """A plain value of a key as its type. Raises ConfigError."""
    kind, limits, key = kind_of(schema, name), key_fields(schema)[name].metadata, prefix + name
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and (not text.strip() or text == MISSING or "\0" in text):
            raise ConfigError(f"{key}={sanitized(repr(text), MAX_VALUE_LENGTH)} is empty")
    if isinstance(value, str) and kind == list[str]:
        value = [value]  # one word is a list of one
    try:
        result = converted(kind, value, is_text=not limits.get("of"))
    except TypeError:
        words = kind_in_words(kind)
        raise ConfigError(f"{key}={sanitized(value, MAX_VALUE_LENGTH)} is not {words}") from None
    _check_range(key, result, limits)
    is_home = limits.get("is_path") and isinstance(result, str)
    return os.path.expanduser(result) if is_home else result


def converted(kind: Any, value: Any, is_text: bool = False) -> Any:
    """A value as the type of its key: 3 is also the number 3.0, and 1e5 a whole number.

    is_text: a number is also text. Raises TypeError for any other value.
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
            try:
                return float(value)
            except OverflowError:
                raise TypeError from None
        if is_text and str in kinds:
            return str(value)
    elif isinstance(value, str) and str in kinds:
        return value
    elif isinstance(value, str) and {int, float} & {*kinds}:  # of an environment variable
        with contextlib.suppress(ValueError):
            return converted(kind, float(value) if set(value) & {*".eE"} else int(value))
    if Any in kinds:
        return value
    raise TypeError


def _check_range(key: str, value: Any, limits: Mapping[str, Any]) -> None:
    if isinstance(value, list):
        for item in value:
            _check_range(key, item, limits)
    elif value is not None and limits:
        shown = sanitized(value, MAX_VALUE_LENGTH)
        if isinstance(value, (*map(type, limits["of"]),)) and value not in limits["of"]:
            hint = nearest(shown, limits["of"])
            if limits["low"] > -math.inf and not closest(shown, limits["of"]):
                hint += f", or a number, {range_in_words(limits)}"
            raise ConfigError(f"{key}={shown} is not a choice", hint)
        if isinstance(value, int | float) and not limits["low"] <= value <= limits["high"]:
            raise ConfigError(f"{key}={shown} is out of range", f"valid: {range_in_words(limits)}")


def to_plain(config: Any) -> dict[str, Any]:
    """A config as plain dicts, lists and values, in the order of its schema."""
    values = dataclasses.asdict(config)
    return {name: values[name] for name in names_of(type(config))}


def to_yaml(config: Any) -> str:
    """A config as YAML."""
    return yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True, width=10**9)


def command_of(schema: type) -> str:
    """The command with this schema."""
    return next(name for name, each in COMMAND_SCHEMAS.items() if each is schema)


def make_option(group: str, name: str, **values: Any) -> Any:
    """An option with the values of its file, and these. Raises ConfigError."""
    return typed(REGISTRY[group][name].schema, option_values(group, name) | values)


def changed(config: Any, *names: str) -> list[str]:
    """Those of the groups and keys that a command without words does not have so."""
    return [name for name in names if as_words(config, name)]


def as_words(config: Any, *names: str) -> list[str]:
    """The words that set these groups and keys of a config, unless the command has them anyway."""
    words, schema = list[str](), type(config)
    choices, values = command_file(command_of(schema))
    for name in names:
        value, group = getattr(config, name), groups_of(schema).get(name)
        if group is None:
            words += [f"{name}={as_typed(value)}"] if value != values[name] else []
            continue
        option = "null" if value is None else str(value.name)
        if [option] != (choices[name] or ["null"]):
            words.append(f"{name}={option}")
        if value is not None:
            words += [f"{k}={as_typed(v)}" for k, v in own_keys(name, group, value).items()]
    return words


def own_keys(name: str, group: Group, option: Any) -> dict[str, Any]:
    """The keys of an option, as they are typed, whose values differ from its file."""
    prefix = "" if name == "game" else f"{name}."
    usual, keys = option_values(group.folder, option.name), arguments(option).items()
    return {prefix + key: value for key, value in keys if value != usual.get(key)}


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
    """The inverse of to_plain, checked again: a stored config is untrusted text. A key that it
    lacks has its value in conf/.

    Raises ConfigError for anything else.
    """
    for name, value in values.items():
        text = json.dumps(value, default=str)
        if name in ("hydra", "defaults") or '"_target_"' in text:
            raise ConfigError(f"the stored config has {name}:, which only a folder of configs may")
        if "${" in text:
            raise ConfigError(f"the stored config's {name} holds an interpolation")
    try:
        return typed(TrainConfig, _completed(values))
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
        raise ConfigError(f"the stored config cannot be read: {error}") from None


def _completed(values: dict[str, Any]) -> dict[str, Any]:
    """A stored config with the values in conf/ of keys that it lacks."""
    completed = command_file("train")[1] | values
    for name, group in groups_of(TrainConfig).items():
        node = completed.get(name)
        if isinstance(node, dict) and str(node.get("name")) in REGISTRY[group.folder]:
            option = REGISTRY[group.folder][str(node["name"])]
            lost = node.keys() - {*names_of(option.schema), "name"}
            if lost and option.values is not None:
                key = min(lost, key=str)
                shown = sanitized(node[key], MAX_VALUE_LENGTH)
                raise ConfigError(
                    f"the run was trained with {name}.{sanitized(key, MAX_VALUE_LENGTH)}={shown}, "
                    f"a key that {name}={node['name']} does not have any more",
                    "register the key again to use the run",
                )
            completed[name] = option_values(group.folder, str(node["name"])) | node
    return completed
