"""Command-line overrides: as typed, as Hydra reads them, and parsed."""

from __future__ import annotations

import os
import re
from itertools import accumulate
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from rlgames.config.catalogue import conf_dir, options, quoted, valid_options
from rlgames.config.command import Group
from rlgames.config.command_schemas import CONFIGS
from rlgames.config.hydra_keys import is_hydra_word
from rlgames.config.registry import LIST_GROUPS, PLAYER_KEYS, REGISTRY, SHARED_GROUPS
from rlgames.config.suggestions import unknown_option
from rlgames.config.synonyms import option_synonym
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import sanitized

MAX_WORD_LENGTH = 1 << 15
"""Longer words, which take Hydra seconds to read, are refused."""

MAX_DEPTH = 32
"""Maximum depth of brackets in a value, far below Python's limit on recursion."""


def hydra_words(overrides: list[str], command: str = "train") -> list[str]:
    """The words in the form that Hydra reads.

    Numbers that name an option are quoted (game=2048); a player may be the path of a run.
    group=null means ~group. Hydra's own keys are left alone.
    """
    words: list[str] = []
    for word in overrides:
        if is_hydra_word(word):
            words.append(word)
            continue
        name, equals, value = word.partition("=")
        if name[:1] == "~" or (value == "null" and name in _nullable_groups(command)):
            words.append(_removal(word, command))
        elif name in PLAYER_KEYS and equals and not value.startswith("glob("):
            words += _player_words(name, value, command)
        elif name in SHARED_GROUPS and equals:
            words.append(f"{SHARED_GROUPS[name]}@{word}")
        elif (name in REGISTRY or name == "experiment") and not value.startswith("glob("):
            words.append(name + equals + re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", value))
        else:
            words.append(word)
    return words


def _nullable_groups(command: str) -> set[str]:
    """The groups that a config need not have."""
    config = CONFIGS[command]
    groups = [*config.groups, *([config.presets] if config.presets else [])]
    return {group.name for group in groups if group.default is None or group.name in LIST_GROUPS}


def _removal(word: str, command: str) -> str:
    """~group or group=null as Hydra reads it. Raises ConfigError for what a config must have."""
    name, equals, _ = word.removeprefix("~").partition("=")
    if name not in _nullable_groups(command) or (word[0] == "~" and equals):
        hint = f"write {name}=null" if equals else "every key has a default; omit it"
        raise ConfigError(f"{word}: {name} cannot be removed", hint)
    if name == "experiment":  # for composing, which knows the preset of the game
        return "experiment=null"
    if name in LIST_GROUPS:
        return f"{name}=[]"
    group = SHARED_GROUPS.get(name, name)
    return f"~{group}" if group == name else f"~{group}@{name}"


def _choices(value: str) -> list[str]:
    return [part.strip("'\" ") for part in value.split(",")]


def _player_words(name: str, value: str, command: str) -> list[str]:
    """The words for a key that holds a player: an option of the group, or the path of a run."""
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
        synonym = option_synonym("player", value, names)
        raise ConfigError(
            f"no player is called {value!r}, and there is no run there",
            (f"write {name}={synonym}" if synonym else nearest_directory(path))
            or nearest(value, names),
        )
    return [f"{group}=run", f"{name}.path={quoted(path)}"]


def _parsed(parser: OverridesParser, word: str) -> Override:
    """A word as Hydra reads it; raises ConfigError for one that it cannot read."""
    if len(word) > MAX_WORD_LENGTH:
        raise ConfigError(f"{sanitized(word, 40)} has {len(word):,} characters", "shorten it")
    _, _, value = word.partition("=")
    depth = accumulate((char in "([{") - (char in ")]}") for char in value)
    try:
        if value[:1] not in ("'", '"') and max(depth, default=0) > MAX_DEPTH:
            raise ValueError
        override = parser.parse_override(word)
        override.config_loader = parser.config_loader  # which glob() asks
        return override
    # Hydra lets Python's error for a number of thousands of digits pass.
    except (HydraException, ValueError):
        raise ConfigError(
            f"cannot read {sanitized(word, 100)!r}",
            "write key=value, with quotes around odd characters",
        ) from None


def _check_options(group: str, value: Any) -> None:
    """Raises ConfigError unless a value names an option of the group, or a list of them where it
    can."""
    is_list = isinstance(value, list) and group in LIST_GROUPS
    for name in map(str, value if is_list else [value]):
        if name not in options(group) and name != "None":
            raise unknown_option(group, sanitized(name, 100), options(group))


class _Options:
    """The options that glob() may name: those that can be typed."""

    def get_group_options(self, group_name: str, results_filter: Any = None) -> list[str]:
        """The options of a group, without those that need a path."""
        return [name for name in options(group_name) if (group_name, name) != ("player", "run")]


def parse_overrides(words: list[str]) -> list[Override]:
    """Parse the words; raises ConfigError unless each is key=value with a known option."""
    parser = OverridesParser.create(config_loader=cast(ConfigLoader, _Options()))
    parsed = [_parsed(parser, word) for word in words]
    groups = [path.name for path in conf_dir().iterdir() if path.is_dir()]
    for override in parsed:
        name, line = override.key_or_group, override.input_line
        if is_hydra_word(name) or (override.is_delete() and name in groups):
            continue
        if override.is_delete() or override.is_add() or override.is_force_add():
            raise ConfigError(
                f"{line}: keys cannot be added or removed", f"write {name}=value for a known key"
            )
        if name == "config" and override.is_sweep_override():
            raise ConfigError(f"{line} names several configs", "write one")
        if name in groups and not override.is_sweep_override():
            _check_options(name, override.value())
    return parsed
