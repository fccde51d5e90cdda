"""The words of a command: flags, the rules besides Hydra's grammar, and mistyped names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.conf import command_file
from rlgames.config.hints import unknown_flag, unknown_key
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Group,
    as_typed,
    groups_of,
    key_fields,
    kind_of,
    members,
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
            raise unknown_flag(flag, names, [*known_names(command)])
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


class Composing(Protocol):
    """What the rules for words ask Hydra; see compose.Composer."""

    def names(self, group: str) -> list[str]:
        """The options of a config group."""

    def choices(self, command: str, words: Sequence[str]) -> dict[str, str]:
        """The option of each group that words choose."""


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
    has_run = any(word.name == "run" for word in words)
    for word in words:
        is_of_hydra = word.name.startswith(("hydra.", "hydra/")) or word.sign == "+"
        is_of_hydra |= is_sweep and word.name in OF_SWEEPS
        if not (is_of_hydra or has_key(command, word.name)):
            raise unknown_word(command, word.name, has_run)
        group = typed_groups(command).get(word.name)
        if group and not group.is_list and (word.value or "").startswith("["):
            raise ConfigError(f"{word} is a list, and {word.name}= takes one option", "omit the []")
    return words


def hydra_words(
    command: str, read: Iterable[Word], composing: Composing, flags: Flags | None = None
) -> list[str]:
    """The words as Hydra reads them.

    1. A word without `=`, or the path of something, is the run of a command that takes one.
    2. A key that the command lacks and a game has gets `game.`: `board=4` is `game.board=4`.
    3. A seat names its player: `opponent=random` is `player@opponent=random`, and `opponent=PATH`
       the run there.
    4. A training without `experiment=` has the preset of its game that chooses the typed policy and
       learner: GAME, GAME_POLICY, GAME_LEARNER or GAME_mlp.
    5. `GROUP=null` is `~GROUP`; digits name an option, as in `game=2048`.
    6. The value of a key that takes any text is text, whatever characters it has.

    read: by read_words. flags: of the command line; in a sweep, the directory of a job is named by
    what differs between jobs, and a primary config of one's own has no preset.
    """
    flags, groups, words = flags or Flags(), typed_groups(command), list[Word]()
    for word in read:
        is_player = word.name in groups and groups[word.name].folder == "player"
        if is_player and _is_run(word, composing):
            words.append(Word("", f"{word.name}.path", word.value))
            word = replace(word, value="run")
        words.append(word)
    if "experiment" in groups and not flags.has_own_config:
        words = _with_preset(words, composing)
    full = [_full_word(command, word, flags.is_sweep) for word in words]
    if flags.is_sweep:
        # Hydra knows the player of a seat by its group.
        varied = {word.name.partition("@")[0] for word in full if word.varies}
        alike = sorted({word.name.partition("@")[0] for word in full} - varied)
        key = "hydra.job.config.override_dirname.exclude_keys"
        full.append(Word("", key, f"[{','.join(alike)}]"))
    return [str(word) for word in full]


def _with_preset(words: list[Word], composing: Composing) -> list[Word]:
    """The words of a training with the preset of its game, or of each of its games, if there is
    one."""
    typed = {word.name: word.options for word in words}
    if "experiment" in typed:
        return [word for word in words if word.name != "experiment" or word.options != []]
    wanted = {name: typed[name] for name in ("policy", "learner") if typed.get(name) is not None}
    games = typed["game"] if "game" in typed else command_file("train")[0]["game"]
    presets = [_preset_of(game, wanted, composing) for game in games or ()]
    if not presets or not all(presets):
        return words
    if len(presets) > 1:  # a sweep, in which each game has its own
        words = [word for word in words if word.name != "game"]
    return [*words, Word("", "experiment", ",".join(name for name in presets if name))]


def _preset_of(
    game: str, wanted: Mapping[str, list[str] | None], composing: Composing
) -> str | None:
    """The first preset of a game that chooses what is wanted; None if there is none."""
    there = composing.names("experiment")
    names = (game, *(f"{game}_{each}" for options in wanted.values() for each in options or ()))
    for name in (*names, f"{game}_mlp"):
        if name in there:
            if not wanted:
                return name
            chosen = composing.choices("train", [f"experiment='{name}'"])
            if all([chosen.get(group)] == options for group, options in wanted.items()):
                return name
    return None


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


def _is_run(word: Word, composing: Composing) -> bool:
    """Whether the value of a player's seat is a run: none of the players."""
    value = (word.value or "").strip("'\"")
    if not value or value in ("null", "run", "???") or value in composing.names("player"):
        return False
    return os.path.exists(os.path.expanduser(value)) or not SWEEP.search(value)


def _full_word(command: str, word: Word, is_sweep: bool) -> Word:
    """A word with the full name of its key."""
    name, groups, schema = word.name, typed_groups(command), COMMAND_SCHEMAS[command]
    if name.startswith(("hydra.", "hydra/")) or word.sign == "+":
        return word
    if is_sweep and name in OF_SWEEPS and not word.sign:
        text = word.value or ""
        return Word("", OF_SWEEPS[name], quoted(text) if name == "out" else text)
    if name in groups:
        folder = groups[name].folder
        full = name if name == folder else f"{folder}@{name}"
        if word.value == "null" or (word.sign == "~" and groups[name].is_list):
            # Hydra takes null in files only, and removes no list
            return Word("", full, "[]") if groups[name].is_list else Word("~", full, None)
        value = word.value and re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", word.value)
        return replace(word, name=full, value=value)
    if word.value and _is_text(schema, name, word.value, is_sweep):
        word = replace(word, value=quoted(word.value))
    is_of_game = "." not in name and name not in key_fields(schema)
    return replace(word, name=f"game.{name}" if is_of_game else name)


def _is_text(schema: type, name: str, value: str, is_sweep: bool) -> bool:
    """Whether the value of a key is any text, which Hydra gets in quotes."""
    if value[0] in "'\"" or value == "null" or "${" in value:
        return False
    if os.path.exists(os.path.expanduser(value)):
        return True
    field = key_fields(schema).get(name)
    if field is None:
        is_text = name.endswith(".path")
    else:
        is_text = str in members(kind_of(schema, name)) and not field.metadata["of"]
    return is_text and not (is_sweep and SWEEP.search(value))


def keys_of_options(name: str, group: Group) -> dict[str, list[str]]:
    """The keys of the options of a group, as they are typed, with the options that have them."""
    found = dict[str, list[str]]()
    for option, record in REGISTRY.get(group.folder, {}).items():
        prefix = "" if name == "game" else f"{name}.{option}." if group.is_list else f"{name}."
        for key in key_fields(record.schema).keys() - {"name"}:
            found.setdefault(prefix + key, []).append(option)
    return found


def has_key(command: str, name: str) -> bool:
    """Whether a command, or an option of its groups, has a key or group; Hydra composes with the
    chosen options."""
    if name in key_fields(COMMAND_SCHEMAS[command]) or name in typed_groups(command):
        return True
    if name in OF_SWEEPS and command == "train":
        return True
    group, _, key = name.rpartition(".") if "." in name else ("game", "", name)
    folder, _, option = group.partition(".")  # logger.wandb.project names its option
    groups = groups_of(COMMAND_SCHEMAS[command])
    if folder not in groups:
        return False
    records = REGISTRY[groups[folder].folder].values()
    is_key = any(key in key_fields(record.schema) for record in records)
    return key != "name" and is_key and bool(option) == groups[folder].is_list


def known_names(command: str) -> list[str]:
    """The groups and keys of a command and of all options, as they are typed."""
    groups = typed_groups(command)
    names = dict.fromkeys([*groups, *names_of(COMMAND_SCHEMAS[command])])
    names |= dict.fromkeys(OF_SWEEPS if command == "train" else ())
    for name, group in groups.items():
        names |= dict.fromkeys(keys_of_options(name, group))
    return [*names]


def unknown_word(command: str, name: str, has_run: bool = False) -> ConfigError:
    """The error for a key that the chosen options do not have; name: as it is typed."""
    games = keys_of_options("game", Group("", "game"))
    if has_run and name.partition(".")[0] in (*names_of(TrainConfig), *games):
        return ConfigError(
            f"{name}= is of the training", "a run keeps its training settings; omit it"
        )
    if name == "jobs" and command == "train":
        return ConfigError("jobs= is for a sweep", "add -m")
    for group_name, group in groups_of(COMMAND_SCHEMAS[command]).items():
        if options := keys_of_options(group_name, group).get(name):
            of = " or ".join(f"{group_name}={option}" for option in options)
            return ConfigError(f"no key is called {name!r} here", f"it is a key of {of}")
    return unknown_key(name, known_names(command), "--help lists the keys")
