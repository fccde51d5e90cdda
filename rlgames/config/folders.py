"""The folders of configs: --config-dir, --config-path, --config-name and hydra.searchpath=."""

from __future__ import annotations

import os
from pathlib import Path

from rlgames.config import catalogue
from rlgames.core.errors import ConfigError, nearest

SHORT_FLAGS = {"-cd": "--config-dir", "-cp": "--config-path", "-cn": "--config-name"}
FOLDER_FLAGS = (*SHORT_FLAGS, *SHORT_FLAGS.values())
"""Hydra's flags that name folders and files of configs; each takes a value."""

PRIMARY = "train"
"""The config that a training starts from unless another one is named."""


def load_folders(words: list[str]) -> list[str]:
    """Add the folders that the words name to those that are searched; returns the other words.

    --config-name becomes config=FILE. Raises ConfigError for a folder or a config that does not
    exist.
    """
    flags: dict[str, str] = {}
    added: list[str] = []
    remaining, words_left = [], iter(words)
    for word in words_left:
        flag, equals, value = word.partition("=")
        flag = SHORT_FLAGS.get(flag, flag)
        if flag in SHORT_FLAGS.values():
            flags[flag] = value if equals else next(words_left, "")
        elif flag == "hydra.searchpath" and equals:
            added += _search_path(word)
        else:
            remaining.append(word)
    for flag in ("--config-dir", "--config-path"):
        if flag in flags and not os.path.isdir(flags[flag]):
            raise ConfigError(f"{flag} {flags[flag]} is not a folder", f"write {flag} DIR")
    if "--config-dir" in flags or added:
        folders = [flags["--config-dir"], *added] if "--config-dir" in flags else added
        catalogue.FOLDERS[1:] = [Path(folder).absolute() for folder in folders]
    if "--config-path" in flags:
        folder = Path(flags["--config-path"]).absolute()
        if "--config-name" in flags and not _has_options(folder):
            catalogue.FOLDERS[1:] = [folder, *catalogue.FOLDERS[1:]]
        else:
            catalogue.FOLDERS[0] = folder
        if "--config-name" not in flags and not _config_file(PRIMARY):
            raise ConfigError(
                f"{flags['--config-path']} has no {PRIMARY}.yaml",
                "name its config with --config-name, or keep those here with --config-dir",
            )
    return _named_config(flags.get("--config-name")) + remaining


def _named_config(name: str | None) -> list[str]:
    """The override for --config-name; nothing without it, and for the config that is the default.

    Raises ConfigError for a name that no file in the folders has.
    """
    if name is None or name.removesuffix(".yaml") == PRIMARY:
        return []
    path = _config_file(name.removesuffix(".yaml")) if name else None
    if path is None:
        names = [file.stem for folder in catalogue.FOLDERS for file in folder.glob("*.yaml")]
        raise ConfigError(f"no config is called {name!r}", nearest(name, sorted({*names})))
    return [f"config={catalogue.quoted(str(path))}"]


def _has_options(folder: Path) -> bool:
    """Whether a folder has what may replace the configs here; that of a run has only its own."""
    groups = [path.name for path in catalogue.conf_dir().iterdir() if path.is_dir()]
    is_primary = (folder / f"{PRIMARY}.yaml").is_file()
    return is_primary or any((folder / group).is_dir() for group in groups)


def _config_file(name: str) -> Path | None:
    paths = [folder / f"{name}.yaml" for folder in catalogue.FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def _search_path(word: str) -> list[str]:
    """The folders in hydra.searchpath=[...]. Raises ConfigError for what is not a folder."""
    from rlgames.config.overrides import parse_overrides  # which imports Hydra

    value = parse_overrides([word])[0].value()
    parts = value if isinstance(value, list) else [value]
    folders = [str(part).removeprefix("file://") for part in parts if part is not None]
    for folder in folders:
        if folder.startswith("pkg://"):
            raise ConfigError(f"{word} names a package", "only plugins= imports modules")
        if not os.path.isdir(folder):
            raise ConfigError(f"{word}: {folder} is not a folder", "as in [file:///home/me/conf]")
    return folders
