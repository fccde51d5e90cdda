"""Composed configs checked by their schemas, and the configs of checkpoints checked again."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.catalogue import kind_of, range_in_words
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.legacy_defaults import with_legacy_defaults
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import LIST_GROUPS, options_of, schema_of
from rlgames.config.schema import defaults
from rlgames.config.suggestions import unknown_key, unknown_value
from rlgames.core.errors import ConfigError, UnknownPart, nearest
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized

MISSING = "???"
"""OmegaConf's mark of a value that is still to be given."""

MAX_VALUE_LENGTH = 100
"""Maximum characters of a value in a message."""

REQUIRED_GROUPS = ("game", "reward", "policy", "sampling", "learner", "opponent", "eval_opponent")
"""Groups that every training needs."""


def check_config(command: str, config: DictConfig) -> DictConfig:
    """The config with every value converted to its declared type and checked against its range."""
    result: dict[str, Any] = {}
    for group in CONFIGS[command].group_names:
        node = config.get(group)
        if group in LIST_GROUPS:
            result[group] = {} if node is None else _check_options(group, node)
        elif node is not None:
            result[group] = _check_option(group, group, node)
    schema = CONFIGS[command].schema
    names = {*config}  # also of missing values, which `in config` leaves out
    own = [item.name for item in fields(schema) if item.name in names]
    result.update(typed_values(schema, config, "", own))
    return OmegaConf.create(result)


def _check_options(group: str, node: Any) -> dict[str, Any]:
    """The checked keys of each option that a config names of a group of LIST_GROUPS."""
    if not isinstance(node, DictConfig):
        raise ConfigError(f"{group} names no options with their keys")
    result = {}
    for name in map(str, node):
        result[name] = _check_option(group, f"{group}.{name}", node[name])
        if result[name]["name"] != name:
            raise ConfigError(f"{group}.{name}.name={result[name]['name']} is another option")
    return result


def _check_option(group: str, prefix: str, node: Any) -> dict[str, Any]:
    """The checked keys of an option, defaults included; prefix: before its keys as they are typed.

    Raises ConfigError, UnknownPart where no option has this name.
    """
    name = str(node.get("name") if isinstance(node, DictConfig) else node)
    try:
        schema = schema_of(group, name)
    except KeyError:
        known = list(options_of(group))
        raise UnknownPart(f"no {group} is called {name!r}", nearest(name, known)) from None
    if not isinstance(node, DictConfig):
        raise ConfigError(f"{prefix} has no keys, not even its name")
    values = defaults(schema) | typed_values(schema, node, prefix)
    if missing := [key for key, value in values.items() if value == MISSING]:
        raise ConfigError(f"{prefix}.name={name} needs {prefix}.{missing[0]}=")
    return values


def typed_values(
    schema: type, node: DictConfig, prefix: str, names: Iterable[Any] | None = None
) -> dict[str, Any]:
    """The values of a node as plain Python, converted and checked by a schema.

    names: of the keys, by default all. Raises ConfigError for a value that is not of the type, the
    range or the choices of its key.
    """
    values: dict[str, Any] = {}
    typed = OmegaConf.structured(schema)
    metadata = {item.name: item.metadata for item in fields(schema)}
    dotted = "" if prefix in ("", "game") else f"{prefix}."
    for name in map(str, node if names is None else names):
        if name not in metadata:
            raise unknown_key(dotted + name, [dotted + each for each in metadata])
        raw = _resolved(node, name)
        is_reference = OmegaConf.is_interpolation(node, name)
        if isinstance(raw, str) and is_reference and not metadata[name].get("is_text"):
            raw = _decoded(raw)  # an environment variable is text, whatever it says
        raw = _whole_number(raw, kind_of(schema, name))
        if metadata[name].get("takes_word") and isinstance(raw, str):
            raw = [raw]
        _check_kind(dotted + name, raw, kind_of(schema, name), metadata[name].get("is_text", False))
        try:
            typed[name] = raw
            values[name] = _resolved(typed, name)
        except OmegaConfBaseException:
            raise _wrong_kind(dotted + name, raw, kind_of(schema, name)) from None
        _check_range(dotted + name, values[name], metadata[name])
    return values


def _resolved(node: DictConfig, name: str) -> Any:
    """A value as plain Python; "???" where it is missing. Raises ConfigError for an interpolation
    that refers to nothing."""
    try:
        value = MISSING if OmegaConf.is_missing(node, name) else node[name]
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except OmegaConfBaseException as error:
        raise wrong_interpolation(error) from None


def _decoded(text: str) -> Any:
    """Text as the value that it would be on a command line."""
    node = OmegaConf.create({"text": text, "value": "${oc.decode:${text}}"})
    with contextlib.suppress(OmegaConfBaseException):
        value = node.value
        return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    return text


def _whole_number(raw: Any, kind: str) -> Any:
    """1e5 as 100000 where only whole numbers are valid; any other value as it is."""
    if isinstance(raw, list):
        return [_whole_number(value, kind) for value in raw]
    if isinstance(raw, float) and raw.is_integer() and "whole number" in kind:
        return raw if "a number" in kind else int(raw)
    return raw


def wrong_interpolation(error: OmegaConfBaseException) -> ConfigError:
    line = sanitized(str(error).partition("\n")[0])
    return ConfigError(line, "${…} refers to another key")


def _check_kind(key: str, raw: Any, kind: str, is_text: bool) -> None:
    """Raises ConfigError for what OmegaConf would take for a value of this kind, and is none.

    is_text: the key holds a text, which may be an interpolation of a number.
    """
    if isinstance(raw, list) and "a list" in kind:
        for value in raw:
            _check_kind(key, value, kind, is_text)
        return
    if isinstance(raw, str) and (not raw or raw != raw.strip() or "\0" in raw):
        raise ConfigError(
            f"{key}={sanitized(repr(raw), MAX_VALUE_LENGTH)} is empty or has blanks around it"
        )
    has_numbers = "number" in kind
    # OmegaConf would take 3 for true, "01" for 1, and 1e400 for the word inf.
    is_loose = isinstance(raw, str) and has_numbers and "a word" not in kind
    is_loose |= isinstance(raw, int | float) and "word" in kind and not (has_numbers or is_text)
    is_odd = raw is not None and isinstance(raw, bool) != ("true or false" in kind)
    if raw == MISSING or is_loose or is_odd:
        raise _wrong_kind(key, raw, kind)


def _wrong_kind(key: str, raw: Any, kind: str) -> ConfigError:
    return ConfigError(
        f"{key}={sanitized(raw, MAX_VALUE_LENGTH)} is not of the right kind", f"it should be {kind}"
    )


def _check_range(name: str, value: Any, metadata: Any) -> None:
    if value is None or "of" not in metadata:
        return
    if isinstance(value, list):
        for item in value:
            _check_range(name, item, metadata)
        return
    choices, low, high = metadata["of"], metadata["low"], metadata["high"]
    if choices and value not in choices:
        raise unknown_value(name, sanitized(value, MAX_VALUE_LENGTH), choices)
    if isinstance(value, int | float) and not low <= value <= high:
        raise ConfigError(
            f"{name}={sanitized(value, MAX_VALUE_LENGTH)} is out of range",
            f"it should be {range_in_words(low, high)}",
        )


def to_plain(config: DictConfig) -> dict[str, Any]:
    """A config as plain dicts, lists and values."""
    values = OmegaConf.to_container(config)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


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
def from_plain(values: dict[str, Any]) -> DictConfig:
    """The inverse of to_plain, checked again: a checkpoint's config is untrusted text.

    Keys that an older version did not have get the values that were used before they existed.
    """
    raw = OmegaConf.create()
    for name, value in (defaults(TRAIN.schema) | with_legacy_defaults(values)).items():
        if "${" in json_text(value):
            raise ConfigError(f"the checkpoint's {name} holds an interpolation; that is refused")
        raw[name] = value
    for group in REQUIRED_GROUPS:
        if raw.get(group) is None:
            raise ConfigError(f"the checkpoint's config has no {group}")
    try:
        return check_config("train", raw)
    except (ArithmeticError, LookupError, OmegaConfBaseException, TypeError, ValueError) as error:
        raise ConfigError(f"the checkpoint's config cannot be read: {error}") from None
    except UnknownPart as error:
        needed = plugins_override(values.get("plugins"))
        if not needed or all(str(name) in sys.modules for name in values["plugins"]):
            raise
        raise UnknownPart(
            f"{error.error} here",
            f"it was trained with {needed}, name them yourself if you trust them",
        ) from None


def to_yaml(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config)
