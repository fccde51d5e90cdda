"""Words of a command line into a checked config: with launchers.py the only file that knows Hydra.

Nothing heavy is imported, so that a mistyped word is answered at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from rlgames.config import catalogue
from rlgames.config.catalogue import (
    conf_dir,
    kind_of,
    option_file,
    options,
    range_in_words,
    valid_options,
)
from rlgames.config.command import Group, PrimaryConfig
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.legacy import with_legacy_defaults
from rlgames.config.plugins import load_plugins, plugins_override
from rlgames.config.registry import PLAYER_KEYS, REGISTRY, SHARED_GROUPS, options_of, schema_of
from rlgames.config.schema import defaults
from rlgames.config.suggestions import unknown_key, unknown_option, unknown_value
from rlgames.core.errors import ConfigError, UnknownPart, nearest
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized

NEEDED = ("game", "reward", "policy", "sampling", "learner", "opponent", "eval_opponent")
"""Groups that every training has."""

COMPOSE_ERRORS = (HydraException, ValueError, YAMLError)
"""What composing raises for words, and for files of --config-dir, that cannot be."""


def _register(config: PrimaryConfig) -> None:
    """Let Hydra compose a config from its schema alone, without a YAML file."""
    listed = []
    for group in config.groups:
        folder = SHARED_GROUPS.get(group.name, group.name)
        package = "" if folder == group.name else f"@{group.name}"
        listed.append({folder + package: group.default})
    node = {"defaults": [*listed, "_self_"], **defaults(config.schema)}
    ConfigStore.instance().store(config.name, node)


for _config in CONFIGS.values():
    if _config is not TRAIN:  # which conf/train.yaml documents
        _register(_config)


def add_option(group: str, name: str, schema: type) -> None:
    """Let a schema be an option of a group, its defaults standing for a YAML file.

    Raises ValueError for a schema whose keys a config cannot have.
    """
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{group}={name} cannot be typed: letters, digits and _ can")
    keys = defaults(schema) if is_dataclass(schema) else {}
    if keys.get("name") != name or len(keys) != len(fields(schema)):
        raise ValueError(
            f"{group}={name} needs a dataclass with name: str = {name!r} and defaults for all keys"
        )
    OmegaConf.structured(schema)
    node, package = keys, None
    if group == "game":
        own = {key: value for key, value in keys.items() if key != "name"}
        for key in own:
            if any(key in (*config.key_names, "experiment") for config in CONFIGS.values()):
                raise ValueError(f"{group}={name} cannot have the key {key}: commands have it")
        inside = {"name": name} | {key: f"${{{key}}}" for key in own}
        node, package = own | {"game": inside}, "_global_"
    if option_file(group, name) is None:  # Hydra would match the two, and warn
        ConfigStore.instance().store(name, node, group, package)


def load_config(command: str, overrides: list[str]) -> DictConfig:
    """Compose and check a command's config; raises ConfigError for bad input."""
    words = _with_experiment(command, hydra_words(load_plugins(overrides), command))
    for override in parse_overrides(words):
        if override.is_sweep_override() and not override.key_or_group.startswith("hydra"):
            line = str(override.input_line)
            name, _, values = line.partition("=")
            as_list = "" if "(" in values else f", or write a list as {name}=[{values}]"
            raise ConfigError(f"{line} names several values", f"add -m to sweep{as_list}")
    try:
        config = _with_own_settings(command, words, _compose(command, words))
        names = [*CONFIGS[command].key_names, *map(str, config.get("game") or ()), "experiment"]
        for name in map(str, config):
            if name not in names:
                raise unknown_key(name, names)
        config = check_config(command, config)
    except InterpolationResolutionError as error:
        raise ConfigError(str(error).splitlines()[0], "${…} refers to another key") from None
    if config.plugins and not any(word.startswith("plugins=") for word in words):
        raise ConfigError(
            f"an experiment needs plugins={config.plugins}", "name them yourself if you trust them"
        )
    return config


def _with_own_settings(command: str, words: list[str], config: DictConfig) -> DictConfig:
    """An experiment's settings of a group belong to the option that it chose itself.

    Where the words choose another one, that one's own file counts.
    """
    experiment = [word for word in words if word.startswith("experiment=")]
    game = [word for word in words if word.startswith("game=")]
    for group in CONFIGS[command].group_names:
        typed_in = [word for word in words if re.match(f"(player@)?{group}=", word)]
        if not experiment or not typed_in or group == "game":
            continue
        chosen, own = config[group].name, _compose(command, [*experiment, *game]).get(group)
        if own is None or own.name != chosen:
            about = [word for word in words if re.match(rf"(player@)?{group}[=.]", word)]
            found = _compose(command, [*about, f"game='{config.game.name}'"])
            config[group] = found[group]
    return config


def hydra_words(overrides: list[str], command: str = "train") -> list[str]:
    """The words as Hydra reads them.

    Numbers that name an option are quoted (game=2048), and a player may be the path of a run.
    """
    words: list[str] = []
    for word in overrides:
        name, equals, value = word.partition("=")
        if name in PLAYER_KEYS and equals:
            words += _seated(name, value, command)
        elif name in SHARED_GROUPS and equals:
            words.append(f"{SHARED_GROUPS[name]}@{word}")
        elif name in REGISTRY or name == "experiment":
            words.append(name + equals + re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", value))
        else:
            words.append(word)
    return words


def _with_experiment(command: str, words: list[str]) -> list[str]:
    """Training takes the game's own experiment, if there is one, where none is named."""
    if CONFIGS[command].presets is None or any(word.startswith("experiment=") for word in words):
        return [word for word in words if word != "experiment=null"]  # as the file has it
    game = next((w.partition("=")[2].strip("'") for w in words if w.startswith("game=")), "salvo")
    return [f"experiment='{game}'", *words] if game in options("experiment") else words


def _choices(value: str) -> list[str]:
    return [part.strip("'\" ") for part in value.split(",")]


def _seated(name: str, value: str, command: str) -> list[str]:
    """The words for player=, opponent= and the like: an option of the group, or a run's path."""
    group = name if name == "player" else f"player@{name}"
    if value in ("run", "null", ""):
        raise ConfigError(f"{name}={value} names nobody", f"write {name}=PATH, or a player's name")
    if all(choice in options("player") for choice in _choices(value)):
        return [f"{group}={value}"]
    path = value.strip("'\"")
    if not os.path.exists(path):  # Path.exists raises for names that are too long
        one = next((part for part in _choices(value) if os.path.exists(part)), None)
        if one is not None:
            raise ConfigError(
                f"{name}={value}: a sweep over players takes names, and {one} is a run",
                f"sweep once more with {name}={one}",
            )
        from rlgames.core.errors import nearest_directory

        group_of_key = {each.name: each for each in CONFIGS[command].groups}.get(name, Group(name))
        names = [player for player in valid_options(group_of_key) if player != "run"]
        raise ConfigError(
            f"no player is called {value!r}, and there is no run there",
            nearest_directory(path) or nearest(value, names),
        )
    return [f"{group}=run", f"{name}.path={quoted(path)}"]


def quoted(text: str) -> str:
    """Any text as one value for Hydra, whatever characters are in it."""
    # To Hydra a backslash means itself, but before a quote.
    return "'" + re.sub(r"(\\+)('|$)", r"\1\1\2", text).replace("'", "\\'") + "'"


def parse_overrides(words: list[str]) -> list[Override]:
    """The words taken apart; raises ConfigError for what is not key=value with a known option."""
    try:
        parsed = OverridesParser.create().parse_overrides(words)
    except OverrideParseException as error:
        raise ConfigError(
            f"cannot read {error.override!r}", "write key=value, with quotes around odd characters"
        ) from None
    groups = [path.name for path in conf_dir().iterdir() if path.is_dir()]
    for override in parsed:
        name, line = override.key_or_group, override.input_line
        if name.startswith("hydra"):
            continue
        if override.is_delete() or override.is_add() or override.is_force_add():
            raise ConfigError(
                f"{line}: keys cannot be added or removed", f"write {name}=value for a known key"
            )
        if name in groups and not override.is_sweep_override():
            value = str(override.value())
            if value not in options(name) and value != "None":
                raise unknown_option(name, value, options(name))
    return parsed


def _compose(command: str, overrides: list[str]) -> DictConfig:
    groups = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    more = ",".join(quoted(f"file://{folder}") for folder in catalogue.FOLDERS[1:])
    search = [f"hydra.searchpath=[{more}]"] if more else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            return compose(command, [*overrides, *search])
        except COMPOSE_ERRORS as error:
            choices = [text for text in overrides if re.split("[@=]", text)[0] in groups]
            wrong = [text for text in overrides if text not in choices]
            try:
                known = compose(command, [*choices, *search])
            except COMPOSE_ERRORS:
                known = compose(command)
                wrong = overrides
            presets = CONFIGS[command].presets
            names = [str(name) for name in known if name != "experiment"]
            names += [*CONFIGS[command].group_names, *([presets.name] if presets else [])]
            for name, node in ((str(name), node) for name, node in known.items()):
                if isinstance(node, DictConfig):
                    names += [name + "." + str(inner) for inner in node]
            for text in wrong:
                name = text.split("=")[0].split("@")[-1]
                if name not in names:
                    game = known.get("game")
                    own = [str(key) for key in game or () if key != "name"]
                    has = f"{game.name} has {', '.join(own)}; " if game else ""
                    hint = f"{has}rlgames {command} --help lists the others"
                    raise unknown_key(name, names, hint) from None
            raise ConfigError(str(error).splitlines()[0]) from None


def check_config(command: str, config: DictConfig) -> DictConfig:
    """The same config with every value converted to its declared type and inside its range."""
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
    """A node's values as plain Python, converted and checked by a schema."""
    values: dict[str, Any] = {}
    merged = OmegaConf.structured(schema)
    for name in map(str, node):
        sanitized = name if prefix in ("", "game") else f"{prefix}.{name}"
        raw: Any = "${...}"  # for what names nothing
        try:
            raw = OmegaConf.to_container(OmegaConf.create({"v": node[name]}), resolve=True)
            raw = raw["v"] if isinstance(raw, dict) else raw
            if raw == "" or (isinstance(raw, str) and raw != raw.strip()):
                raise ConfigError(f"{sanitized}={raw!r} is empty or has blanks around it")
            kind = kind_of(schema, name)
            # OmegaConf would take 3 for true and "01" for 1.
            loose = isinstance(raw, str) and "number" in kind and "a word" not in kind
            odd = raw is not None and isinstance(raw, bool) != ("true or false" in kind)
            if kind and (loose or odd):
                raise ConfigError(
                    f"{sanitized}={raw} is not of the right kind", f"it should be {kind}"
                )
            merged[name] = raw
            values[name] = to_plain(merged)[name]
        except InterpolationResolutionError:
            raise
        except OmegaConfBaseException:
            names = [item.name for item in fields(schema)]
            if name not in names:
                dotted = "" if prefix in ("", "game") else f"{prefix}."
                raise unknown_key(sanitized, [dotted + each for each in names]) from None
            raise ConfigError(
                f"{sanitized}={raw} is not of the right kind",
                f"it should be {kind_of(schema, name)}",
            ) from None
    for item in fields(schema):
        if item.name in values:
            sanitized = item.name if prefix in ("", "game") else f"{prefix}.{item.name}"
            _check_range(sanitized, values[item.name], item.metadata)
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
    """What is wrong with a stranger's config is told in one printable line of bounded length."""
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
    for group in NEEDED:
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
