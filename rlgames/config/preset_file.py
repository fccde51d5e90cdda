"""config=FILE: a preset in a file, such as a run's config.yaml.

It may come from a stranger, so it is read as data only: bounded, without resolvers, aliases and
Hydra's own keys. Its settings become words, which come before those that are typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.files import Preset, check_numbers, check_top_key, flat
from rlgames.config.keys import typed_values
from rlgames.config.schema import as_typed, groups_of
from rlgames.config.training import TrainConfig
from rlgames.config.words import quoted
from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.untrusted import YAML_LOADER, is_plain_yaml, sanitized

MAX_CONFIG_BYTES = 1 << 20
RESOLVER = re.compile(r"\$\{[^{}]*(:|\$\{)")
"""Also a name in braces within a name, which may make up the name of a resolver."""


def preset_words(path: Path, words: Sequence[str]) -> list[str]:
    """The settings of a preset in a file as words, unless a typed word replaces them.

    Raises ConfigError for a file that is not a preset, and for words that contradict it.
    """
    preset, typed = _read(path), typed_values(words)
    game = preset.options.get("game")
    if "experiment" in typed:
        raise ConfigError(f"{path} is a preset itself", "omit experiment= or config=")
    if game and typed.get("game", game) != game:
        raise ConfigError(f"{path} is a config of {game}, not of game={typed['game']}", "omit one")
    replaced = {
        name for name, option in preset.options.items() if typed.get(name, option) != option
    }
    settings = {
        key: value
        for key, value in preset.settings.items()
        if key not in typed and key.partition(".")[0] not in replaced
    }
    options = {name: option for name, option in preset.options.items() if name not in typed}
    plain = ("null", "[")  # other options are quoted: a path, or a number such as 2048
    chosen = [
        f"{name}={option if option.startswith(plain) else quoted(option)}"
        for name, option in options.items()
    ]
    return chosen + [f"{key}={value}" for key, value in settings.items()]


def _read(path: Path) -> Preset:
    values = _mapping(path)
    for name in ("experiment", "out"):
        values.pop(name, None)
    options: dict[str, str] = {}
    for item in values.pop("defaults", None) or []:
        for name, option in item.items() if isinstance(item, dict) else ():
            options[re.split("[@/ ]", str(name))[-1]] = as_typed(option)
    for name in values:
        check_top_key(path, name)
    for name, group in groups_of(TrainConfig).items():
        if name not in values:
            continue
        node = values[name] if isinstance(values[name], dict) else {"name": values[name]}
        if group.is_list:
            options[name] = as_typed([*node] if isinstance(values[name], dict) else values[name])
            values[name] = {key: each for key, each in node.items() if isinstance(each, dict)}
            for each in values[name].values():
                each.pop("name", None)
            continue
        if "name" in node:
            option = node.pop("name")
            is_run = group.folder == "player" and option == "run"  # which its path names
            options[name] = as_typed(node.pop("path", None) if is_run else option)
        values[name] = node
    settings = {key.removeprefix("game."): _as_word(value) for key, value in flat(values)}
    return Preset(options, settings)


def _as_word(value: Any) -> str:
    """A value as it is typed, with quotes around text."""
    if isinstance(value, list):
        return f"[{','.join(map(_as_word, value))}]"
    return quoted(value) if isinstance(value, str) else as_typed(value)


def _mapping(path: Path) -> dict[str, Any]:
    """The mapping in a file. Raises ConfigError for anything else."""
    if path.is_dir() and (path / "config.yaml").is_file():
        raise ConfigError(f"{path} is a directory", f"use config={path / 'config.yaml'}")
    if not path.is_file():
        raise ConfigError(f"there is no config at {path}", nearest_path(str(path)))
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1).decode("utf-8-sig")
        node = OmegaConf.create(text) if is_plain_yaml(text) else None
        check_numbers(path, None if node is None else yaml.compose(text, YAML_LOADER))
        values = None if node is None else OmegaConf.to_container(node)
    except (OSError, ValueError, RecursionError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{path} is not a config: {sanitized(error)}") from None
    if not isinstance(values, dict) or len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path} is not a config", "it should hold key: value lines, no aliases")
    if match := RESOLVER.search(text):
        hint = "type it, or put it into an experiment of --config-dir"
        raise ConfigError(f"{path} holds the resolver {sanitized(match[0], 100)}", hint)
    return {str(name): value for name, value in values.items()}
