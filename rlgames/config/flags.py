"""Hydra's flags on a command line, told from its words before Hydra is imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.files import Files, key_paths
from rlgames.config.hints import unknown_flag
from rlgames.config.schema import names_of
from rlgames.config.words import split_folders
from rlgames.core.errors import ConfigError

HELP = ("-h", "--help")
SWEEP = ("-m", "--multirun")
SINGLE = (*SWEEP, "-r", "--run", "--resolve", "--hydra-help", "-sc", "--shell-completion")
WITH_VALUE = (
    *("-c", "--cfg", "-p", "--package", "-i", "--info", "-cn", "--config-name"),
    *("-cp", "--config-path", "--experimental-rerun"),
)
OWN_CONFIG = (
    "-cn",
    "--config-name",
    "-cp",
    "--config-path",
    "--experimental-rerun",
    "--hydra-help",
)
"""Flags that take another config than the command's."""


@dataclass
class Flags:
    """The flags and the other words of a command line.

    Args:
        hydra: the flags for Hydra, with their values and --config-dir.
        folders: from --config-dir.
    """

    words: list[str] = field(default_factory=list)
    hydra: list[str] = field(default_factory=list)
    folders: tuple[Path, ...] = ()
    is_help: bool = False

    @property
    def is_sweep(self) -> bool:
        """Whether the command runs many times."""
        return any(flag in SWEEP for flag in self.hydra)

    @property
    def has_own_config(self) -> bool:
        """Whether the rules about conf/ do not hold."""
        return any(flag.partition("=")[0] in OWN_CONFIG for flag in self.hydra)


def split_flags(command: str, typed: Sequence[str]) -> Flags:
    """Separate the flags from the other words. Raises ConfigError for a flag that Hydra does not
    have."""
    folders, rest = split_folders(typed)
    flags, words = Flags(folders=folders), iter(rest)
    if len(folders) > 1:
        raise ConfigError(
            f"--config-dir={folders[-1]} is a second folder of configs",
            f"use hydra.searchpath=[file://{folders[-1].absolute()}] for it",
        )
    for folder in folders:
        flags.hydra += ["--config-dir", str(folder)]
    for word in words:
        flag, equals, _ = word.partition("=")
        if word[:1] != "-" or os.path.exists(word):
            flags.words.append(word)
        elif word in HELP:
            flags.is_help = True
        elif word in SWEEP and command != "train":
            raise ConfigError("only train can sweep", f"omit {word}")
        elif word in SINGLE:
            flags.hydra.append(word)
        elif flag in WITH_VALUE:
            value = [] if equals else [value for value in [next(words, "")] if value]
            flags.hydra += [word, *value]
        else:
            known = [*HELP, *SINGLE, *WITH_VALUE, "--config-dir", "--version"]
            paths = key_paths(Files(folders).composed(command, {}).values)
            keys = [*names_of(COMMAND_SCHEMAS[command]), *paths]
            raise unknown_flag(flag, [each for each in known if each.startswith("--")], keys)
    return flags
