"""Command-line overrides: as typed, checked, and as Hydra reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Transformer
from hydra.errors import HydraException

from rlgames.config.files import OptionFiles, Preset
from rlgames.config.keys import (
    chosen_options,
    command_groups,
    known_keys,
    option_names,
    typed_values,
)
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Group, as_typed, key_fields, listed_options, names_of
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.config.training import LaunchConfig, SweepConfig, TrainConfig
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import sanitized

MAX_WORD_LENGTH = 1 << 15
"""Longer words, which take Hydra seconds to read, are an error."""

MAX_DEPTH = 32
"""Maximum depth of brackets in a value, far below Python's limit on recursion."""

SWEEP_FUNCTION = re.compile(r"\s*(choice|range|glob|interval|tag|sort|shuffle|extend_list)\s*\(")

LISTED = re.compile(r"""((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^,])*),""")
"""What ends at a comma outside of quotes."""

NUMBER_WORD = re.compile(r"(?:(?<=[\[,])|^)\d+(?=[,\]]|$)")
"""Digits alone, as an item of a list or without one."""

RUN_KEYS = ("hydra.run.dir",)
SWEEP_KEYS = (
    *("hydra.sweep.dir", "hydra.sweep.subdir", "hydra.sweeper.max_batch_size"),
    *("hydra/launcher", "hydra.launcher"),
)
HYDRA_KEYS = (*RUN_KEYS, *SWEEP_KEYS, "hydra.searchpath")
"""Hydra's own keys that a training honors; any other is an error."""


def key_of(word: str) -> str:
    """The key of an override, whatever signs stand before it."""
    return word.lstrip("+~").partition("=")[0]


def is_hydra_word(word: str) -> bool:
    """Whether an override is one of Hydra's own keys."""
    return word.lstrip("+~").startswith(("hydra.", "hydra/", "hydra="))


def check_hydra_word(word: str, is_sweep: bool) -> None:
    """Raises ConfigError for one of Hydra's own keys that is not supported here."""
    key = key_of(word)
    if word[0] in "+~" or not any(key == name or key.startswith(f"{name}.") for name in HYDRA_KEYS):
        raise ConfigError(f"{word} is not supported here", "supported: " + ", ".join(HYDRA_KEYS))
    if not is_sweep and key.startswith(SWEEP_KEYS):
        raise ConfigError(f"{word} belongs to a sweep", "add -m")
    if is_sweep and key.startswith(RUN_KEYS):
        raise ConfigError(f"{word} belongs to a single run", "use hydra.sweep.dir=")
    if parse(word).is_sweep_override():
        raise ConfigError(f"{word} is a list of values", "Hydra does not sweep over its own keys")


def quoted(text: str) -> str:
    """Text as one value for Hydra, whatever characters it contains."""
    # Hydra reads a backslash literally, except before a quote.
    return "'" + re.sub(r"(\\+)('|$)", r"\1\1\2", text).replace("'", "\\'") + "'"


class _Loader:
    """The options that glob() may name: those that can be typed."""

    def __init__(self, files: OptionFiles) -> None:
        self.files = files

    def get_group_options(self, group_name: str, results_filter: Any = None) -> list[str]:
        """The options of a group, without those that need a path."""
        return [name for name in self.files.names(group_name) if name != "run"]


def parse(word: str, files: OptionFiles | None = None) -> Override:
    """A word as Hydra reads it; raises ConfigError for one that it cannot read."""
    parser = OverridesParser.create(cast(ConfigLoader, _Loader(files or OptionFiles())))
    if len(word) > MAX_WORD_LENGTH:
        raise ConfigError(f"{sanitized(word, 40)} has {len(word):,} characters", "shorten it")
    value = word.partition("=")[2]
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


@dataclass(frozen=True)
class Grammar:
    """What the words of a command may name.

    Args:
        schema: of the command's config.
        is_sweep: commas separate the values of a key, also of text.
    """

    schema: type
    files: OptionFiles
    is_sweep: bool = False

    @property
    def groups(self) -> dict[str, Group]:
        """The groups of the command, and the presets of a training."""
        return command_groups(self.schema)

    def plain(self, word: str) -> str:
        """A word as its key and value: ++key=value is key=value, and game.board=4 is board=4.

        Raises ConfigError for a key that is added or removed.
        """
        name, equals, _ = word.lstrip("+~").partition("=")
        if word[:1] == "~":
            if name not in self.groups or not self.groups[name].is_nullable or equals:
                hint = f"use {name}=null" if equals else "every key has a default; omit it"
                raise ConfigError(f"{word}: {name} cannot be removed", hint)
            return f"{name}=null"
        if word[:1] == "+" and word[:2] != "++":
            raise ConfigError(f"{word}: keys cannot be added", f"use {name}=value for a known key")
        if not equals:
            known = {*self.groups, *key_fields(self.schema)}
            group = next((group for group in self.groups if name in self.files.names(group)), None)
            hint = f"use {group}={name}" if group else nearest(name, [*known])
            hint = f"use {name}=VALUE" if name in known else hint
            if word in ("-m", "--multirun"):
                hint = f"run a sweep in a shell: rlgames train {word} ..."
            is_near = not hint.startswith("available")
            raise ConfigError(f"{word!r} is not key=value", hint if is_near else "omit it")
        word = word.removeprefix("++")
        return word.removeprefix("game.") if "game" in self.groups else word

    def _holds_text(self, name: str) -> bool:
        """Whether a key or a group holds text, with any characters."""
        if name in self.groups:
            return self.groups[name].folder == "player"
        field = key_fields(self.schema).get(name)
        return name.endswith(".path") or (
            field is not None and field.metadata.get("is_text", False)
        )

    def _texts(self, name: str, value: str) -> list[str]:
        """The options or the texts that a value lists, commas in quotes and in paths included.

        Empty for a value of another kind: a list in brackets, or a function such as glob().
        """
        is_text = self._holds_text(name)
        is_option = name in self.groups and value[:1] != "["
        if not (is_text or is_option) or SWEEP_FUNCTION.match(value):
            return []
        is_path = is_text and os.path.lexists(os.path.expanduser(value))
        if "," not in value or is_path or (is_text and not self.is_sweep):
            return [value]
        return [text.strip() for text in LISTED.findall(f"{value},")]

    def jobs(self, words: Sequence[str]) -> list[list[str]]:
        """The words of each job of a sweep. Raises ConfigError."""
        return [list(job) for job in product(*map(self.choices, words))]

    def choices(self, word: str) -> list[str]:
        """An override with several values as one word per value."""
        name, _, value = word.partition("=")
        if texts := self._texts(name, value):
            return [f"{name}={text}" for text in texts]
        override = parse(word, self.files)
        if not override.is_sweep_override():
            return [word]
        try:
            if self._holds_text(name):
                values = override.sweep_iterator(transformer=Transformer.identity)
                return [f"{name}={as_typed(getattr(each, 'text', each))}" for each in values]
            texts = [*override.sweep_string_iterator()]
        except HydraException:  # which cannot list the values of an interval
            raise ConfigError(f"{word} is an interval", "add hparams_search=tpe") from None
        # Hydra escapes the characters of an interpolation, which is to stay one.
        return [
            f"{name}=" + (re.sub(r"\\(.)", r"\1", each) if "$\\{" in each else each)
            for each in texts
        ]

    def is_range(self, word: str) -> bool:
        """Whether an override has several values."""
        return parse(self.for_parser(word), self.files).is_sweep_override()

    def for_parser(self, word: str) -> str:
        """A word with quotes around the options that it names and around text, also digits where a
        list of words is due."""
        name, _, value = word.partition("=")
        texts = [
            text if text in ("", "null") or text[0] in "'\"" else quoted(text)
            for text in self._texts(name, value)
        ]
        field = key_fields(self.schema).get(name)
        if field is not None and field.metadata.get("takes_word"):
            return f"{name}=" + NUMBER_WORD.sub(r"'\g<0>'", value)
        return f"{name}={','.join(texts)}" if texts else word

    def check(self, words: Sequence[str], preset: Preset) -> dict[str, str]:
        """The options that the words and a preset choose.

        Raises ConfigError for a word that names no key or no option, or several values.
        """
        for word in words:
            name = word.partition("=")[0]
            if name in self.groups:
                self._check_single(word, self.groups[name].is_list)
        for name, option in (preset.options | typed_values(words)).items():
            if name in self.groups:
                self._check_option(name, option)
        chosen = chosen_options(self.schema, words, preset)
        known = dict(known_keys(self.schema, chosen, self.files))
        for word in words:
            name = word.partition("=")[0]
            if name not in known:
                raise self._unknown(name, [*known], chosen)
            self._check_single(word, "a list" in known[name].kind)
        return chosen

    def _check_single(self, word: str, takes_list: bool) -> None:
        """Raises ConfigError for a word with several values."""
        if self.is_range(word):
            name, _, value = word.partition("=")
            takes_list = takes_list and "(" not in value
            as_list = f", or write a list as {name}=[{value}]" if takes_list else ""
            raise ConfigError(f"{word} is a list of values", f"add -m to run a sweep{as_list}")

    def _unknown(self, name: str, known: list[str], chosen: dict[str, str]) -> ConfigError:
        game = chosen.get("game")
        own = [key for key in known if "." not in key and key not in key_fields(self.schema)]
        own = [key for key in own if key not in self.groups]
        hint = f"{game} has {', '.join(own)}; --help lists the others" if own else ""

        def options_with(key: str) -> list[str]:
            name, _, rest = key.partition(".") if "." in key else ("game", "", key)
            if name not in self.groups or rest == "name":
                return []
            prefix = "{}." if self.groups[name].is_list else ""
            return [
                f"{name}={'PATH' if option == 'run' else option}"
                for option, record in REGISTRY.get(self.groups[name].folder, {}).items()
                if rest in {prefix.format(option) + each for each in key_fields(record.schema)}
            ]

        if self.schema is TrainConfig:
            known = [*known, *names_of(LaunchConfig), *names_of(SweepConfig)]
        return unknown_key(name, known, hint, options_with)

    def _check_option(self, name: str, value: str) -> None:
        """Raises ConfigError unless a value names an option of a group, or a list of them."""
        group = self.groups[name]
        if value == "null":
            if not group.is_nullable:
                raise ConfigError(
                    f"{name} cannot be null", nearest("", [*option_names(group, self.files)])
                )
            return
        if group.folder == "player":  # any other name is a run's, which is looked for later
            if value in ("run", ""):
                raise ConfigError(
                    f"{name}={value} names nobody", f"use {name}=PATH, or a player's name"
                )
            return
        names = self.files.names(group.folder)
        for part in listed_options(value) if group.is_list else [value]:
            if part not in names:
                raise unknown_option(name, group.folder, sanitized(part, 100), names)

    def for_hydra(self, words: Sequence[str]) -> list[str]:
        """Checked words with a single value as Hydra reads them, without the words of groups."""
        overrides = []
        for word in words:
            name = word.partition("=")[0]
            if name not in self.groups:
                in_game = "." not in name and name not in key_fields(self.schema)
                overrides.append(f"game.{word}" if in_game else self.for_parser(word))
        return overrides
