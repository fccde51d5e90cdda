"""The words of a command: flags, the rules besides Hydra's grammar, and mistyped names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.files import Choices, Content, Files, key_paths
from rlgames.config.hints import unknown_flag, unknown_key, unknown_option
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
from rlgames.core.untrusted import sanitized

HELP = ("-h", "--help")
MULTIRUN = ("-m", "--multirun")
FOLDER = ("-cd", "--config-dir")
OWN_CONFIG = ("-cn", "--config-name", "-cp", "--config-path", "--experimental-rerun")
"""Flags that take another config than the command's."""

SINGLE = (*MULTIRUN, "-r", "--run", "--resolve", "--hydra-help")
WITH_VALUE = (*OWN_CONFIG, "-c", "--cfg", "-p", "--package", "-i", "--info")

PRESETS = Group(
    "preset; null: the one of the game, if there is one", "experiment", is_nullable=True
)
"""The group of a training whose options set keys and other groups."""

SWEEP = re.compile(r"[,(]")
"""In the value of a key that has several values in a sweep."""

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
    return [f"{k}={v if isinstance(v, str) else _as_word(v)}" for k, v in keys.items()]


def _as_word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_as_word, value))}]"
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
        return any(flag in MULTIRUN for flag in self.hydra)

    @property
    def has_own_config(self) -> bool:
        """Whether the rules about conf/ do not hold."""
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
        elif word in MULTIRUN and command != "train":
            raise ConfigError("only train can sweep", f"omit {word}")
        elif word in SINGLE:
            flags.hydra.append(word)
        elif flag in WITH_VALUE:
            flags.hydra += [word] if equals else filter(None, [word, next(words, "")])
        elif flag in FOLDER:
            name = (value if equals else next(words, "")) or "nothing"
            path = Path(os.path.expanduser(name)).absolute()
            if not path.is_dir():
                raise ConfigError(f"{flag}: {name} is not a folder", "use --config-dir DIR")
            flags.folders += (path,)
        else:
            known = [*HELP, *SINGLE, *WITH_VALUE, *FOLDER, "--version"]
            paths = key_paths(Files(flags.folders).composed(command, {}).values)
            keys = [*names_of(COMMAND_SCHEMAS[command]), *paths]
            raise unknown_flag(flag, [each for each in known if each.startswith("--")], keys)
    if len(flags.folders) > 1:
        path = flags.folders[-1]
        hint = f"use hydra.searchpath=[file://{path}] for it"
        raise ConfigError(f"--config-dir={path} is a second folder of configs", hint)
    return flags


def typed_groups(command: str) -> dict[str, Group]:
    """The keys of a command that choose options, and the presets of a training."""
    presets = {"experiment": PRESETS} if command == "train" else {}
    return groups_of(COMMAND_SCHEMAS[command]) | presets


def hydra_words(
    command: str, typed: Sequence[str], files: Files, is_sweep: bool = False
) -> list[str]:
    """The words as Hydra reads them.

    1. A word without `=`, or the path of something, is the run of a command that takes one.
    2. A key that only games have gets `game.`: `board=4` is `game.board=4`.
    3. A seat names its player: `opponent=random` is `player@opponent=random`, and `opponent=PATH`
       the run there.
    4. A training without `experiment=` has the preset of its game that chooses the typed policy and
       learner: GAME, GAME_POLICY, GAME_LEARNER or GAME_mlp.
    5. `GROUP=null` is `~GROUP`; digits name an option, as in `game=2048`.
    6. The value of a key that takes any text is text, whatever characters it has.

    Raises ConfigError for an unknown key or option.
    """
    words, chosen = read_words(command, typed, files)
    groups = typed_groups(command)
    for key, options in chosen.items():
        names = files.names(groups[key].folder)
        has_brackets = any(word.name == key and "[" in (word.value or "") for word in words)
        if has_brackets and not groups[key].is_list:
            options = [f"[{','.join(options)}]"]
        if unknown := [option for option in options if option not in names]:
            raise unknown_option(key, sanitized(unknown[0], 100), names)
    removed = [word.name for word in words if word.sign == "~"]
    content = files.composed(command, chosen, removed)
    has_run = any(word.name == "run" for word in words)
    full = [_full_word(command, word, content, is_sweep, has_run) for word in words]
    if is_sweep:  # the directory of a job is named by what differs between jobs
        alike = sorted({word.name for word in full if not word.varies})
        key = "hydra.job.config.override_dirname.exclude_keys"
        full.append(Word("", key, f"[{','.join(alike)}]"))
    return [str(word) for word in full]


def read_words(command: str, typed: Sequence[str], files: Files) -> tuple[list[Word], Choices]:
    """The words by the rules about runs, players and presets, and the options that they choose."""
    groups, words = typed_groups(command), list[Word]()
    for word in _with_named_runs(command, typed):
        is_player = word.name in groups and groups[word.name].folder == "player"
        if is_player and _is_run(word, files):
            words.append(Word("", f"{word.name}.path", word.value))
            word = replace(word, value="run")
        words.append(word)
    typed_options = {word.name: word.options for word in words if word.name in groups}
    chosen = {name: options for name, options in typed_options.items() if options is not None}
    if typed_options.get("experiment") == []:
        words = [word for word in words if word.name != "experiment"]
    elif "experiment" in {*groups} - {*typed_options}:
        is_known = typed_options.get("game", []) is not None
        if is_known and (presets := files.presets(chosen)):
            words = [word for word in words if word.name != "game"]
            words.append(Word("", "experiment", ",".join(presets)))
            chosen["experiment"] = presets
    return words, chosen


def _with_named_runs(command: str, typed: Sequence[str]) -> list[Word]:
    """The words, with the key of those that name a run, or what else a command takes.

    Raises ConfigError for a word that names nothing.
    """
    key = word_key(COMMAND_SCHEMAS[command])
    named, words = list[str](), list[Word]()
    for text in typed:
        word = parse_word(text)
        is_path = "/" in text.partition("=")[0] and not text.startswith("hydra/")
        is_key = word.sign or (word.value is not None and not is_path)
        if is_key and not os.path.exists(text):
            words.append(word)
        elif key is None:
            raise ConfigError(f"{text} is not key=value", f"{command} takes no other words")
        elif named and not key[1]:
            raise ConfigError(f"{command} takes one {key[0]}, and {text} is another", "omit it")
        else:
            named.append(text)
    if key is not None and named:
        is_group = key[0] in groups_of(COMMAND_SCHEMAS[command])
        texts = named if is_group else [*map(quoted, named)]
        words.insert(0, Word("", key[0], f"[{','.join(texts)}]" if key[1] else texts[0]))
    return words


def _is_run(word: Word, files: Files) -> bool:
    """Whether the value of a player's seat is a run: none of the players."""
    value = (word.value or "").strip("'\"")
    if not value or value in ("null", "run", "???") or value in files.names("player"):
        return False
    return os.path.exists(os.path.expanduser(value)) or not SWEEP.search(value)


def _full_word(command: str, word: Word, content: Content, is_sweep: bool, has_run: bool) -> Word:
    """A word with the full name of its key.

    Raises ConfigError for an unknown key.
    """
    if word.name.startswith(("hydra.", "hydra/")):
        return word
    groups, values = typed_groups(command), content.values
    rules = values.get("game") or {}
    name = word.name.removeprefix("game.")
    known = {*groups, *key_paths(values), *rules}
    group, _, own_key = word.name.partition(".")
    is_open = own_key and group in groups and group not in content.choices  # only Hydra can tell
    if (name not in known or name.endswith(".name")) and not is_open:
        raise _unknown(command, name, values, groups, has_run)
    if name in groups:
        folder = groups[name].folder
        full = name if name == folder else f"{folder}@{name}"
        if word.value == "null" or (word.sign == "~" and groups[name].is_list):
            # Hydra takes null in files only, and removes no list
            return Word("", full, "[]") if groups[name].is_list else Word("~", full, None)
        value = word.value and re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", word.value)
        return replace(word, name=full, value=value)
    if is_sweep and name == "out":
        return Word("", "hydra.sweep.dir", quoted(word.value or ""))
    in_game = name in rules and name not in values
    if word.value and _is_text(COMMAND_SCHEMAS[command], name, word.value, is_sweep):
        word = replace(word, value=quoted(word.value))
    return replace(word, name=f"game.{name}" if in_game else name)


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


def _unknown(
    command: str, name: str, values: Mapping[str, Any], groups: Mapping[str, Group], has_run: bool
) -> ConfigError:
    """The error for a key that the chosen options do not have."""
    rules = sorted(values.get("game") or ())
    known = dict.fromkeys([*groups, *names_of(COMMAND_SCHEMAS[command]), *rules])
    known |= dict.fromkeys(key for key in key_paths(values) if not key.startswith("game."))
    games = [key for game in REGISTRY["game"].values() for key in key_fields(game.schema)]
    if has_run and name.partition(".")[0] in (*names_of(TrainConfig), *games):
        return ConfigError(
            f"{name}= is of the training", "a run keeps its training settings; omit it"
        )
    if options := _options_with(name, groups):
        return ConfigError(f"no key is called {name!r} here", f"it is a key of {options}")
    hint = "--help lists the keys"
    if rules:
        rules.remove("name")
        hint = f"{values['game']['name']} has {', '.join(rules)}; --help lists the others"
    return unknown_key(name, [key for key in known if key.rpartition(".")[2] != "name"], hint)


def _options_with(name: str, groups: Mapping[str, Group]) -> str:
    """The options of its group that have a key, in words; empty for none."""
    group, _, key = name.rpartition(".") if "." in name else ("game", "", name)
    folder, _, listed = group.partition(".")  # logger.wandb.project names its option
    if folder not in groups or key == "name":
        return ""
    options = REGISTRY.get(groups[folder].folder, {}).items()
    return " or ".join(
        f"{folder}={option}"
        for option, record in options
        if key in key_fields(record.schema) and listed in ("", option)
    )
