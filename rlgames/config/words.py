"""The words of a command: the rules besides Hydra's grammar, and the check for mistyped names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.files import Choices, Content, Files, key_paths
from rlgames.config.hints import unknown_key, unknown_option
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

PRESETS = Group(
    "preset; null: the one of the game, if there is one", "experiment", is_nullable=True
)
"""The group of a training whose options set keys and other groups."""

SWEEP = re.compile(r"[,(]")
"""In the value of a key that has several values in a sweep."""

QUOTED = r"""'[^']*'|"[^"]*\""""

DIRECTORIES = {"out": "hydra.sweep.dir"}
"""What a key of a run is called in a sweep."""


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


def split_folders(words: Sequence[str]) -> tuple[tuple[Path, ...], list[str]]:
    """The folders that --config-dir names, and the other words.

    Raises ConfigError for a folder that does not exist.
    """
    folders: list[Path] = []
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in ("--config-dir", "-cd"):
            name = value if equals else next(rest, "")
            path = Path(os.path.expanduser(name)).absolute()
            if not name or not path.is_dir():
                hint = "use --config-dir DIR"
                raise ConfigError(f"{flag}: {name or 'nothing'} is not a folder", hint)
            folders.append(path)
        else:
            remaining.append(word)
    return tuple(folders), remaining


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
        if any(word.name == key and "[" in (word.value or "") for word in words):
            options = options if groups[key].is_list else [f"[{','.join(options)}]"]
        for option in options:
            if option not in names:
                shown = sanitized(option, 100)
                raise unknown_option(key, shown, names)
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
    if command == "train" and typed_options.get("experiment") == []:
        words = [word for word in words if word.name != "experiment"]
    elif command == "train" and typed_options.keys() <= {*groups} - {"experiment"}:
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
        if (
            not (is_path and not word.sign)
            and (word.sign or word.value is not None)
            and (not os.path.exists(text))
        ):
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
    if (name not in known or name.endswith(".name")) and not _is_open(word, content, groups):
        raise _unknown(command, name, values, groups, has_run)
    if name in groups:
        folder = groups[name].folder
        full = name if name == folder else f"{folder}@{name}"
        if word.value == "null" or (word.sign == "~" and groups[name].is_list):
            # Hydra takes null in files only, and removes no list
            return Word("", full, "[]") if groups[name].is_list else Word("~", full, None)
        value = word.value and re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", word.value)
        return replace(word, name=full, value=value)
    if is_sweep and name in DIRECTORIES:
        return Word("", DIRECTORIES[name], quoted(word.value or ""))
    in_game = name in rules and name not in values
    if word.value and _is_text(command, name, word.value, is_sweep):
        word = replace(word, value=quoted(word.value))
    return replace(word, name=f"game.{name}" if in_game else name)


def _is_open(word: Word, content: Content, groups: Mapping[str, Group]) -> bool:
    """Whether only Hydra can tell the keys of a word's group."""
    group = word.name.partition(".")[0]
    return group in groups and group != word.name and group not in content.choices


def _is_text(command: str, name: str, value: str, is_sweep: bool) -> bool:
    """Whether the value of a key is any text, which Hydra gets in quotes."""
    if value[0] in "'\"" or value == "null" or "${" in value:
        return False
    if os.path.exists(os.path.expanduser(value)):
        return True
    field = key_fields(COMMAND_SCHEMAS[command]).get(name)
    is_path = name.endswith(".path")
    if field is None and not is_path:
        return False
    kinds = (str,) if field is None else members(kind_of(COMMAND_SCHEMAS[command], name))
    of = () if field is None else field.metadata["of"]
    return str in kinds and not of and not (is_sweep and SWEEP.search(value))


def _unknown(
    command: str, name: str, values: Mapping[str, Any], groups: Mapping[str, Group], has_run: bool
) -> ConfigError:
    """The error for a key that the chosen options do not have."""
    schema = COMMAND_SCHEMAS[command]
    rules = {key for key in values.get("game") or () if key != "name"}
    known = [*groups, *names_of(schema), *sorted(rules)]
    known += [key for key in key_paths(values) if not key.startswith("game.")]
    known = [key for key in dict.fromkeys(known) if not key.endswith(".name")]
    game = (values.get("game") or {}).get("name")
    hint = f"{game} has {', '.join(sorted(rules))}; --help lists the others" if rules else ""
    top = name.partition(".")[0]
    if has_run and (top in names_of(TrainConfig) or _is_rule(name)):
        return ConfigError(
            f"{name}= is of the training", "a run keeps its training settings; omit it"
        )
    if options := _options_with(name, groups):
        return ConfigError(f"no key is called {name!r} here", f"it is a key of {options}")
    return unknown_key(name, known, hint or "--help lists the keys")


def _is_rule(name: str) -> bool:
    """Whether a game has this key."""
    return any(name in key_fields(each.schema) for each in REGISTRY["game"].values())


def _options_with(name: str, groups: Mapping[str, Group]) -> str:
    """The options of its group that have a key, in words; empty for none."""
    group, _, key = name.rpartition(".") if "." in name else ("game", "", name)
    listed, _, option = group.partition(".")
    if listed in groups and groups[listed].is_list:
        record = REGISTRY[listed].get(option)
        has_key = record is not None and key in key_fields(record.schema)
        return f"{listed}={option}" if has_key else ""
    if group not in groups or key == "name":
        return ""
    options = REGISTRY.get(groups[group].folder, {}).items()
    return " or ".join(
        f"{group}={option}" for option, record in options if key in key_fields(record.schema)
    )
