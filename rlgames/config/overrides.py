"""The words of a command: flags, the rules besides Hydra's grammar, and mistyped names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.hints import unknown_flag, unknown_key
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Group,
    as_typed,
    groups_of,
    names_of,
    word_key,
)
from rlgames.core.errors import ConfigError

HELP = ("-h", "--help")
MULTIRUN = ("-m", "--multirun")
FOLDER = ("-cd", "--config-dir")
PRIMARY = (("-cn", "--config-name"), ("-cp", "--config-path"))
OWN_CONFIG = (*PRIMARY[0], *PRIMARY[1])
"""Flags that take another primary config than the command's: its name, and its folder."""

SINGLE = (*MULTIRUN, "-r", "--run", "--resolve", "--hydra-help")
WITH_VALUE = (*OWN_CONFIG, "-c", "--cfg", "-p", "--package", "-i", "--info")

PRESETS = Group(
    "preset; null: the one of the game, if there is one", "experiment", is_nullable=True
)
"""The group of a training whose options set keys and other groups."""

SWEEP = re.compile(r"[,(]")
"""In the value of a key that has several values in a sweep."""

OF_SWEEPS = {"out": "hydra.sweep.dir", "jobs": "hydra.launcher.jobs"}
"""Hydra's names of keys that have another meaning in a sweep, or none outside it."""

QUOTED = r"""'[^']*'|"[^"]*\""""


@dataclass(frozen=True)
class Word:
    """A word, as typed or as Hydra reads it.

    Args:
        sign: +, ++, ~ or nothing.
        name: the key or the group, of a player's the seat.
        value: None without `=`.
    """

    sign: str
    name: str
    value: str | None

    @property
    def options(self) -> list[str] | None:
        """The options that the value of a group names; None for what only Hydra can tell."""
        if self.sign == "~":
            return []
        names = [name.strip(" '\"") for name in (self.value or "").strip("[]").split(",")]
        is_plain = all(re.fullmatch(r"[\w.-]*", name) for name in names)
        return [name for name in names if name not in ("null", "")] if is_plain else None

    @property
    def varies(self) -> bool:
        """Whether it has several values in a sweep."""
        outside = re.sub(rf"\[[^\]]*\]|{QUOTED}", "", self.value or "")
        return SWEEP.search(outside) is not None

    def __str__(self) -> str:
        return f"{self.sign}{self.name}" + ("" if self.value is None else f"={self.value}")


def parse_word(text: str) -> Word:
    """A word as it is typed. The seat of a player may have its group before it."""
    match = re.fullmatch(r"(\+\+?|~|)([^=]*)(=?)(.*)", text, re.DOTALL)
    assert match is not None
    return Word(match[1], match[2].rpartition("@")[2], match[4] if match[3] else None)


def quoted(text: str) -> str:
    """Text as one value for Hydra, whatever characters it contains."""
    # Hydra reads a backslash literally, except before a quote.
    return "'" + re.sub(r"(\\+)('|$)", r"\1\1\2", text).replace("'", "\\'") + "'"


def words_of(keys: Mapping[str, Any]) -> list[str]:
    """The words that set keys to values of Python. A text is read as on the command line."""
    return [f"{k}={v if isinstance(v, str) else as_word(v)}" for k, v in keys.items()]


def as_word(value: Any) -> str:
    """A value as Hydra reads it: text in quotes."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_word, value))}]"
    return quoted(str(value)) if isinstance(value, str | Path) else as_typed(value)


@dataclass
class Flags:
    """The flags and the other words of a command line.

    Args:
        hydra: the flags for Hydra, with their values, except --config-dir.
        folders: from --config-dir.
    """

    words: list[str] = field(default_factory=list)
    hydra: list[str] = field(default_factory=list)
    folders: tuple[Path, ...] = ()
    is_help: bool = False

    @property
    def is_sweep(self) -> bool:
        """Whether the command runs many times."""
        return "hydra.mode=MULTIRUN" in self.words or any(flag in MULTIRUN for flag in self.hydra)

    @property
    def has_own_config(self) -> bool:
        """Whether the primary config is not the command's."""
        own = (*OWN_CONFIG, "--hydra-help")
        return any(flag.partition("=")[0] in own for flag in self.hydra)


def split_flags(command: str, typed: Sequence[str]) -> Flags:
    """Separate the flags from the other words. Raises ConfigError for a flag that Hydra does not
    have, and for a folder that does not exist."""
    flags, words = Flags(), iter(typed)
    for word in words:
        flag, equals, value = word.partition("=")
        if word[:1] != "-" or os.path.exists(word):
            flags.words.append(word)
        elif word in HELP:
            flags.is_help = True
        elif word in SINGLE:
            flags.hydra.append(word)
        elif flag in WITH_VALUE:
            value = value if equals else next(words, "")
            flags.hydra += [flag, value] if value else [flag]
        elif flag in FOLDER:
            name = (value if equals else next(words, "")) or "nothing"
            path = Path(os.path.expanduser(name)).absolute()
            if not path.is_dir():
                raise ConfigError(f"{flag}: {name} is not a folder", "use --config-dir DIR")
            flags.folders += (path,)
        else:
            known = [*HELP, *SINGLE, *WITH_VALUE, *FOLDER, "--version"]
            names = [each for each in known if each.startswith("--")]
            raise unknown_flag(flag, names, [*all_names(command)])
    _check_configs(flags)
    if flags.is_sweep and command != "train":
        raise ConfigError("only train can sweep", "omit -m")
    if len(flags.folders) > 1:
        path = flags.folders[-1]
        hint = f"use hydra.searchpath=[file://{path}] for it"
        raise ConfigError(f"--config-dir={path} is a second folder of configs", hint)
    return flags


def _check_configs(flags: Flags) -> None:
    """Raises ConfigError for a primary config, or a folder of configs, that belongs to a run: it is
    data, perhaps a stranger's, and Hydra would run code that it names."""
    given = dict(zip(flags.hydra, flags.hydra[1:], strict=False))
    name, path = (next((given[each] for each in names if each in given), None) for names in PRIMARY)
    for place in (*flags.folders, *([Path(path).absolute()] if path else [])):
        for folder in (place, (place / (name or "")).parent if name else place):
            if (folder / "run.json").exists():
                again = shlex.join(["rlgames", "train", str(folder)])
                raise ConfigError(f"{folder} is a run, not a folder of configs", f"use {again}")


def typed_groups(command: str) -> dict[str, Group]:
    """The keys of a command that choose options, and the presets of a training."""
    presets = {"experiment": PRESETS} if command == "train" else {}
    return groups_of(COMMAND_SCHEMAS[command]) | presets


def read_words(command: str, typed: Iterable[str], is_sweep: bool = False) -> list[Word]:
    """The words of a command, with the key of those that name a run, or what else it takes.

    Hydra is not needed. Raises ConfigError for a word that names nothing, and for a key that
    neither the command nor any option has.
    """
    key, (named, words) = word_key(COMMAND_SCHEMAS[command]), split_named(typed)
    if named and key is None:
        raise ConfigError(f"{named[0]} is not key=value", f"{command} takes no other words")
    if key is not None and named:
        if len(named) > 1 and not key[1]:
            raise ConfigError(f"{command} takes one {key[0]}, and {named[1]} is another", "omit it")
        is_group = key[0] in groups_of(COMMAND_SCHEMAS[command])
        texts = named if is_group else [*map(quoted, named)]
        words.insert(0, Word("", key[0], f"[{','.join(texts)}]" if key[1] else texts[0]))
    has_run, names = any(word.name == "run" for word in words), all_names(command)
    for word in words:
        is_of_hydra = word.name.startswith(("hydra.", "hydra/")) or word.sign == "+"
        is_of_game = names.get(word.name.removeprefix("game."))
        if not (is_of_hydra or word.name in names or is_of_game):
            raise unknown_word(command, word.name, has_run)
        group = typed_groups(command).get(word.name)
        if group and not group.is_list and (word.value or "").startswith("["):
            raise ConfigError(f"{word} is a list, and {word.name}= takes one option", "omit the []")
    return words


def split_named(typed: Iterable[str]) -> tuple[list[str], list[Word]]:
    """The words without `=` and the paths of something, and the other words."""
    named, words = list[str](), list[Word]()
    for text in typed:
        word = parse_word(text)
        is_path = "/" in text.partition("=")[0] and not text.startswith("hydra/")
        is_key = word.sign or (word.value is not None and not is_path)
        if is_key and not os.path.exists(text):
            words.append(word)
        else:
            named.append(text)
    return named, words


def all_names(command: str) -> dict[str, list[str]]:
    """The groups and keys of a command and of all its options, as they are typed, each with the
    options that have it."""
    groups = typed_groups(command)
    names = [
        *groups,
        *names_of(COMMAND_SCHEMAS[command]),
        *(OF_SWEEPS if command == "train" else ()),
    ]
    found = {name: list[str]() for name in names}
    for name, group in groups.items():
        for option, record in REGISTRY.get(group.folder, {}).items():
            prefix = "" if name == "game" else f"{name}.{option}." if group.is_list else f"{name}."
            for key in names_of(record.schema):
                if key != "name":
                    found.setdefault(prefix + key, []).append(f"{name}={option}")
    return found


def unknown_word(command: str, name: str, has_run: bool = False) -> ConfigError:
    """The error for a key that the chosen options do not have; name: as it is typed."""
    names = all_names(command)
    if has_run and name.partition(".")[0] in all_names("train"):
        return ConfigError(
            f"{name}= is of the training", "a run keeps its training settings; omit it"
        )
    if name == "jobs" and command == "train":
        return ConfigError("jobs= is for a sweep", "add -m")
    if options := names.get(name):
        hint = f"it is a key of {' or '.join(options)}"
        return ConfigError(f"no key is called {name!r} here", hint)
    return unknown_key(name, [*names], "--help lists the keys")
