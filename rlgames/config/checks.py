"""Composed configs checked by their schemas, and the configs of checkpoints checked again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from rlgames.config.catalogue import kind_of, range_in_words
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.legacy_defaults import with_legacy_defaults
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import options_of, schema_of
from rlgames.config.schema import defaults
from rlgames.config.suggestions import unknown_key, unknown_value
from rlgames.core.errors import ConfigError, UnknownPart, nearest
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized

REQUIRED_GROUPS = ("game", "reward", "policy", "sampling", "learner", "opponent", "eval_opponent")
"""Groups that every training needs."""


def check_config(command: str, config: DictConfig) -> DictConfig:
    """The config with every value converted to its declared type and checked against its range."""
    result: dict[str, Any] = {}
    for group in CONFIGS[command].group_names:
        node = config.get(group)
        if node is None:
            continue
        name = str(node.get("name") if isinstance(node, DictConfig) else node)
        try:
            schema = schema_of(group, name)
        except KeyError:
            known = list(options_of(group))
            raise UnknownPart(f"no {group} is called {name!r}", nearest(name, known)) from None
        if not isinstance(node, DictConfig):
            raise ConfigError(f"{group} has no keys, not even its name")
        result[group] = defaults(schema) | typed_values(schema, node, group)
    command_schema = CONFIGS[command].schema
    own = {
        item.name: config.get(item.name) for item in fields(command_schema) if item.name in config
    }
    result.update(typed_values(command_schema, OmegaConf.create(own), ""))
    return OmegaConf.create(result)


def typed_values(schema: type, node: DictConfig, prefix: str) -> dict[str, Any]:
    """The values of a node as plain Python, converted and checked by a schema."""
    values: dict[str, Any] = {}
    merged = OmegaConf.structured(schema)
    for name in map(str, node):
        typed_key = name if prefix in ("", "game") else f"{prefix}.{name}"
        raw: Any = "${...}"  # for what names nothing
        try:
            raw = OmegaConf.to_container(OmegaConf.create({"v": node[name]}), resolve=True)
            raw = raw["v"] if isinstance(raw, dict) else raw
            if raw == "" or (isinstance(raw, str) and raw != raw.strip()):
                raise ConfigError(f"{typed_key}={raw!r} is empty or has blanks around it")
            kind = kind_of(schema, name)
            # OmegaConf would take 3 for true and "01" for 1.
            is_loose = isinstance(raw, str) and "number" in kind and "a word" not in kind
            is_odd = raw is not None and isinstance(raw, bool) != ("true or false" in kind)
            if kind and (is_loose or is_odd):
                raise ConfigError(
                    f"{typed_key}={raw} is not of the right kind", f"it should be {kind}"
                )
            merged[name] = raw
            values[name] = to_plain(merged)[name]
        except InterpolationResolutionError:
            raise
        except OmegaConfBaseException:
            names = [item.name for item in fields(schema)]
            if name not in names:
                dotted = "" if prefix in ("", "game") else f"{prefix}."
                raise unknown_key(typed_key, [dotted + each for each in names]) from None
            raise ConfigError(
                f"{typed_key}={raw} is not of the right kind",
                f"it should be {kind_of(schema, name)}",
            ) from None
    for item in fields(schema):
        if item.name in values:
            typed_key = item.name if prefix in ("", "game") else f"{prefix}.{item.name}"
            _check_range(typed_key, values[item.name], item.metadata)
    return values


def _check_range(name: str, value: Any, metadata: Any) -> None:
    if value is None or "of" not in metadata:
        return
    if isinstance(value, list):
        for item in value:
            _check_range(name, item, metadata)
        return
    choices, low, high = metadata["of"], metadata["low"], metadata["high"]
    if choices and value not in choices:
        raise unknown_value(name, str(value), choices)
    if isinstance(value, int | float) and not low <= value <= high:
        raise ConfigError(
            f"{name}={value} is out of range", f"it should be {range_in_words(low, high)}"
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
