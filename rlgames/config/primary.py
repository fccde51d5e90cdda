"""config=FILE: the config that a training starts from.

A complete config, such as a run's config.yaml, becomes a preset: its settings, and its options,
which words may replace. It may come from a stranger, so it is read as data only: bounded, without
resolvers. A file with a defaults list is a primary config of Hydra, which Hydra composes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rlgames.config import catalogue
from rlgames.config.catalogue import options
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.overrides import parse_overrides
from rlgames.config.registry import LIST_GROUPS, SHARED_GROUPS
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.core.errors import ConfigError, nearest_directory
from rlgames.core.untrusted import is_plain_yaml, sanitized

MAX_CONFIG_BYTES = 1 << 20
RESOLVER = re.compile(r"\$\{[^{}]*(:|\$\{)")
"""Also a name in braces within a name, which may make up the name of a resolver."""


@dataclass(frozen=True)
class Primary:
    """What a training starts from.

    name: of the primary config. folders: searched besides those of the catalogue. preset: the
    settings of a complete config, None for one that Hydra composes.
    """

    name: str
    folders: tuple[Path, ...] = ()
    preset: DictConfig | None = None

    @property
    def is_default(self) -> bool:
        """Whether no config was named."""
        return not self.folders and self.preset is None


def split_primary(command: str, words: list[str]) -> tuple[Primary, list[str]]:
    """What config= names, and the other words. Raises ConfigError for a file that is no config."""
    own = [word for word in words if word.startswith("config=")]
    if not own or command != TRAIN.name:
        return Primary(command), words
    value = parse_overrides(own[-1:])[0].value()
    rest = [word for word in words if word not in own]
    if value is None:
        return Primary(command), rest
    path = Path(str(value))
    node = _read(path)
    if "defaults" in node:
        _check_own(path, node)
        return Primary(path.stem, (path.absolute().parent,)), rest
    if any(word.startswith("experiment=") for word in rest):
        raise ConfigError(f"{path} is a complete config", "omit experiment= or config=")
    game = OmegaConf.select(node, "game.name")
    for word in rest:
        if word.startswith("game=") and word.partition("=")[2].strip("'\"") != str(game):
            raise ConfigError(f"{path} is a config of {game}, not of {word}", "omit one of them")
    return Primary(command, preset=_preset(path, node)), rest


def _read(path: Path) -> DictConfig:
    """The mapping in a file. Raises ConfigError for anything else."""
    if path.is_dir() and (path / "config.yaml").is_file():
        raise ConfigError(f"{path} is a directory", f"write config={path / 'config.yaml'}")
    if not path.is_file():
        raise ConfigError(f"there is no config at {path}", nearest_directory(str(path)))
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1).decode()
        node = OmegaConf.create(text) if is_plain_yaml(text) else None
    except (OSError, ValueError, RecursionError, YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{path} is no config: {sanitized(error)}") from None
    if not isinstance(node, DictConfig) or len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path} is no config", "it should hold key: value lines, no aliases")
    return node


def _check_own(path: Path, node: DictConfig) -> None:
    """Raises ConfigError for a primary config that Hydra would not find by its name."""
    if path.stem in (*CONFIGS, "job") or (catalogue.FOLDERS[0] / path.name).is_file():
        if catalogue.FOLDERS[0] == path.absolute().parent:
            return
        raise ConfigError(f"{path} has the name of a config of rlgames", "rename it")
    if OmegaConf.select(node, "hydra.searchpath") is not None:
        raise ConfigError(f"{path} sets hydra.searchpath", "write --config-dir DIR")


def _preset(path: Path, node: DictConfig) -> DictConfig:
    """A complete config as the preset that sets all it says. Raises ConfigError."""
    values = OmegaConf.to_container(node)
    assert isinstance(values, dict)
    for text in _texts(values):
        if RESOLVER.search(text):
            hint = "type it, or name a config with a defaults list"
            raise ConfigError(f"{path} holds the resolver {sanitized(text, 100)}", hint)
    defaults: list[Any] = []
    settings: dict[str, Any] = {}
    for group, default in ((group.name, group.default) for group in TRAIN.groups):
        folder = SHARED_GROUPS.get(group, group)
        key = folder if folder == group else f"{folder}@{group}"
        is_list = group in LIST_GROUPS
        if default is not None and group not in values:
            continue  # the config is of a version without this group
        part = values.pop(group, None)
        if is_list:
            names, keys = _options_of_list(group, part)
            defaults.append({f"override /{key}": names})
            settings |= {group: keys} if keys else {}
            continue
        if part is None:
            defaults.append({f"override /{key}": None})
            continue
        name = str(part.get("name")) if isinstance(part, dict) else str(part)
        if name not in options(folder):
            raise unknown_option(group, sanitized(name, 100), options(folder))
        defaults.append({f"override /{key}": name})
        if not isinstance(part, dict):
            continue
        if group == "game":  # whose keys stand at the top, where they can be typed
            own = {str(key): each for key, each in part.items() if key != "name"}
            settings |= {key: values.pop(key, each) for key, each in own.items()}
        else:  # its name is that of the option, which words may replace
            settings[group] = {key: each for key, each in part.items() if key != "name"}
    names = [*TRAIN.key_names, *settings]
    for name in ("experiment", "out"):
        values.pop(name, None)
    for key in map(str, values):
        if key not in TRAIN.key_names:
            raise unknown_key(key, names)
    return OmegaConf.create({"defaults": defaults, **settings, **values})


def _options_of_list(group: str, part: Any) -> tuple[list[str], dict[str, Any]]:
    """The options that a config names of a group of LIST_GROUPS, and the keys of each."""
    if isinstance(part, str):
        part = [part]
    names = [sanitized(name, 100) for name in part or ()]
    for name in names:
        if name not in options(group):
            raise unknown_option(group, name, options(group))
    nodes = part if isinstance(part, dict) else {}
    keys = {
        str(name): {key: each for key, each in node.items() if key != "name"}
        for name, node in nodes.items()
        if isinstance(node, dict)
    }
    return names, keys


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    for child in (
        tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    ):
        yield from _texts(child)
