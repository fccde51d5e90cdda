"""Folders of configs among the words of a command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rlgames.core.errors import ConfigError

FLAGS = ("--config-dir", "-cd")


def split_folders(words: Sequence[str]) -> tuple[tuple[Path, ...], list[str]]:
    """The folders that the words name, and the other words.

    Raises ConfigError for a folder that does not exist.
    """
    folders: list[Path] = []
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in FLAGS:
            folders.append(_folder(flag, value if equals else next(rest, "")))
        elif flag == "hydra.searchpath" and equals:
            parts = value.strip("[]").split(",")
            names = [part.strip(" '\"").removeprefix("file://") for part in parts]
            folders += [_folder("hydra.searchpath", name) for name in names if name]
        else:
            remaining.append(word)
    return tuple(folders), remaining


def _folder(key: str, name: str) -> Path:
    path = Path(os.path.expanduser(name)).absolute()
    if name.startswith("pkg://"):
        raise ConfigError(f"{key} names the package {name}", "only plugins= imports modules")
    if not name or not path.is_dir():
        raise ConfigError(f"{key}: {name or 'nothing'} is not a folder", "use --config-dir DIR")
    return path
