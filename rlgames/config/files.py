"""The YAML files of presets, of options and of runs' configs, read as data.

Presets are in conf/experiment and, like further options, in the folders of a user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Option,
    as_typed,
    groups_of,
    key_fields,
    listed_options,
    names_of,
)
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.untrusted import YAML_LOADER, is_plain_yaml, sanitized

FILE_KEYS = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir")
FILE_NODES = ("hydra.sweeper.params",)
"""Hydra's own keys that a file may set: none of them runs code."""

ODD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|0o[0-7]+|[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""An octal or a base-60 number in YAML 1.1 or 1.2."""

MAX_CONFIG_BYTES = 1 << 20
RESOLVER = re.compile(r"\$\{[^{}]*(:|\$\{)")
"""Also a name in braces within a name, which may make up the name of a resolver."""


class Loader(YAML_LOADER):  # type: ignore[misc]
    """Reads 1e-3 as a number, as Hydra does."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def conf_dir() -> Path:
    """The folder of the YAML files: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


@dataclass(frozen=True)
class Preset:
    """What a file sets: the option of each group as it is typed, and values by their keys."""

    options: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """The values of all keys, by their names, as they are typed."""
        return {key.removeprefix("game."): as_typed(value) for key, value in flat(self.values)}


@dataclass(frozen=True)
class OptionFiles:
    """The options of all groups: registered ones, and YAML files in conf/ and in other folders.

    Args:
        folders: of a user, searched after conf/.
    """

    folders: tuple[Path, ...] = ()

    def names(self, folder: str) -> list[str]:
        """The options of a config group."""
        paths = [path for each in self._places(folder) for path in each.glob("[!_]*.yaml")]
        files = {path.stem for path in paths if path.is_file()}
        return sorted(files | {*REGISTRY.get(folder, ())})

    def path(self, folder: str, name: str) -> Path | None:
        """The file of an option; None for an option without one."""
        paths = [each / f"{name}.yaml" for each in self._places(folder)]
        # Of a name that is too long for a file, Path.is_file() raises.
        return next((path for path in paths if os.path.isfile(path)), None)

    def _places(self, folder: str) -> list[Path]:
        """Where the files of a group lie; the ones in conf/ of registered options say no more than
        their schemas."""
        own = [] if folder in REGISTRY else [conf_dir()]
        return [each / folder for each in (*own, *self.folders)]

    def help(self, folder: str, name: str) -> str:
        """One line about an option: its help, or the first comment of its file."""
        if name in REGISTRY.get(folder, {}):
            return REGISTRY[folder][name].help
        path = self.path(folder, name)
        lines = [] if path is None else _text(path).splitlines()
        comments = (line for line in lines if re.match("#(?! *@package)", line))
        return next(comments, "#")[1:].strip()

    def option(self, folder: str, name: str) -> Option | None:
        """The registered option of a name; a user's file has its name in the key `name`."""
        return REGISTRY.get(folder, {}).get(str(self.values(folder, name).get("name")))

    def values(self, folder: str, name: str) -> dict[str, Any]:
        """What an option sets: its name and, in a user's file, other values of its keys."""
        return self._merged(folder, name).values

    def preset(self, name: str) -> Preset:
        """What an experiment sets, with the experiments in its defaults list."""
        preset = self._merged("experiment", name)
        return Preset(preset.options | {"experiment": name}, preset.values)

    def _merged(self, folder: str, name: str, seen: Sequence[str] = ()) -> Preset:
        """What a file sets, merged with the files of its group in its defaults list."""
        path, merged = self.path(folder, name), Preset()
        if path is None and name in REGISTRY.get(folder, {}):
            return Preset(values={"name": name})
        if path is None or name in seen:
            return merged
        values, items = _split_defaults(_mapping(path))
        for item in items:
            layer = Preset(values=values)
            if isinstance(item, dict):
                layer = Preset(_options([item]))
            elif item != "_self_":
                layer = self._merged(folder, str(item), [*seen, name])
            merged = Preset(merged.options | layer.options, merge(merged.values, layer.values))
        return merged

    def check(self, folder: str, name: str, seen: Sequence[str] = ()) -> None:
        """Raises ConfigError for a user's file of an option that says something else than it
        seems to, or sets what only a command line may."""
        path = self.path(folder, name)
        if path is None or name in seen:
            return
        if path.parent.parent != conf_dir():
            _check(path, folder)
            _, items = _split_defaults(_mapping(path))
            for item in items:
                if isinstance(item, dict) and folder == "experiment":
                    self._check_options(path, item)
                elif item != "_self_" and str(item) not in self.names(folder):
                    error = unknown_option(folder, folder, str(item), self.names(folder))
                    raise ConfigError(f"{path}: {error.error}", error.hint)
                elif item != "_self_":
                    self.check(folder, str(item), [*seen, name])
        if folder in REGISTRY and "name" not in self.values(folder, name):
            raise ConfigError(f"{path} does not say which {folder} it is", "add the key name")

    def _check_options(self, path: Path, item: dict[str, Any]) -> None:
        """Raises ConfigError for an entry of a defaults list that chooses no option there is."""
        groups = groups_of(TrainConfig)
        for name, option in _options([item]).items():
            group = groups.get(name)
            if group is None:
                error = unknown_key(name, [*groups])
                raise ConfigError(f"{path}: {error.error}", error.hint)
            known = self.names(group.folder)
            for each in listed_options(option) if group.is_list else [option]:
                if each != "null" and each not in known:
                    error = unknown_option(name, group.folder, each, known)
                    raise ConfigError(f"{path}: {error.error}", error.hint)


def read_config(path: Path, typed: Mapping[str, str]) -> Preset:
    """What config=FILE sets, such as a run's config.yaml; typed: the words that come after it.

    It may come from a stranger, so it is read as data only: bounded, without resolvers, aliases
    and Hydra's own keys. Raises ConfigError for a file that is not a preset, and for words that
    contradict it.
    """
    values, items = _split_defaults(read_mapping(path))
    options = _options(items)
    for item in items:
        if not isinstance(item, dict) and item != "_self_":
            hint = "config=FILE holds all that it sets; put it into an experiment of --config-dir"
            raise ConfigError(f"{path} extends {sanitized(item, 100)}", hint)
    for name in ("experiment", "out"):
        values.pop(name, None)
    for name in values:
        check_top_key(path, name)
    for name, group in groups_of(TrainConfig).items():
        node = values.get(name, {})
        if group.is_list and name in values:
            options[name] = as_typed([*node] if isinstance(node, dict) else node)
        elif isinstance(node, dict) and "name" in node:
            options[name] = as_typed(node["name"])
        elif not isinstance(node, dict):
            options[name] = as_typed(node)
        if not isinstance(node, dict):
            del values[name]
    if "experiment" in typed:
        raise ConfigError(f"{path} is a preset itself", "omit experiment= or config=")
    game = options.get("game")
    if game and typed.get("game", game) != game:
        raise ConfigError(f"{path} is a config of {game}, not of game={typed['game']}", "omit one")
    return Preset(options, values)


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a file. Raises ConfigError for anything else."""
    if path.is_dir() and (path / "config.yaml").is_file():
        raise ConfigError(f"{path} is a directory", f"use config={path / 'config.yaml'}")
    if not path.is_file():
        raise ConfigError(f"there is no config at {path}", nearest_path(str(path)))
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1).decode("utf-8-sig")
        values = yaml.load(text, Loader) if is_plain_yaml(text) else None
        check_values(path, None if values is None else yaml.compose(text, Loader))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not a config: {sanitized(error)}") from None
    if not isinstance(values, dict) or len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path} is not a config", "it should hold key: value lines, no aliases")
    if match := RESOLVER.search(text):
        hint = "type it, or put it into an experiment of --config-dir"
        raise ConfigError(f"{path} holds the resolver {sanitized(match[0], 100)}", hint)
    return {str(name): value for name, value in values.items()}


def _check(path: Path, folder: str) -> None:
    """Raises ConfigError for a user's file that is not YAML, or sets what it cannot set."""
    text = _text(path)
    try:
        node = yaml.compose(text, Loader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {sanitized(error)}") from None
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path} holds no keys", "it should hold key: value lines")
    check_values(path, node)
    values, items = _split_defaults(_mapping(path))
    if folder == "experiment":
        if not text.startswith("# @package _global_"):
            raise ConfigError(
                f"{path} does not begin with `# @package _global_`",
                "make it the first line, without a byte-order mark",
            )
        for name, value in values.items():
            if name == "hydra":
                continue
            check_top_key(path, str(name))
            if name in groups_of(TrainConfig) and isinstance(value, str):
                hint = f"add `- override /{name}: {value}` below `defaults:`"
                raise ConfigError(f"{path}: `{name}: {value}` does not choose an option", hint)
    elif (package := re.search(r"^# *@package +(\S+)", text, re.M)) and package[1] != folder:
        raise ConfigError(f"{path} is a {folder}, and not of `{package[0]}`", "omit that line")
    names = [key for item in items if isinstance(item, dict) for key in item]
    names = [re.sub(r"^(override +)?/?", "", name) for name in names]
    sly = [f"{name}" for name in names if name.startswith("hydra/")]
    for key, value in flat({"hydra": values.get("hydra") or {}}):
        if key not in FILE_KEYS and not key.startswith(FILE_NODES):
            sly.append(f"{key}={as_typed(value)}")
    if sly:
        hint = "a file may set " + ", ".join((*FILE_KEYS, *FILE_NODES))
        raise ConfigError(f"{path} sets {sly[0]}", hint)


def check_top_key(path: Path, name: str) -> None:
    """Raises ConfigError unless a training has a key or a group of this name."""
    known = names_of(TrainConfig)
    if name not in known:
        error = unknown_key(name, known)
        is_of_game = any(name in key_fields(each.schema) for each in REGISTRY["game"].values())
        hint = f"keys of a game stand below game:, as in game: {{{name}: …}}"
        raise ConfigError(f"{path}: {error.error}", hint if is_of_game else error.hint)


def check_values(path: Path, node: yaml.Node | None) -> None:
    """Raises ConfigError for a key that is set twice, and for a number that YAML reads as another
    one: 010 is 8, and 1:30 is 90."""
    if isinstance(node, yaml.ScalarNode) and not node.style and ODD_NUMBER.fullmatch(node.value):
        raise ConfigError(
            f"{path}, line {node.start_mark.line + 1}: {node.value} is octal or base 60 in YAML",
            "omit its leading zeros or colons, or put it in quotes",
        )
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            check_values(path, each)
    elif isinstance(node, yaml.MappingNode):
        names = set[str]()
        for key, value in node.value:
            if str(key.value) in names:
                line = key.start_mark.line + 1
                raise ConfigError(f"{path}, line {line}: {key.value} is set twice", "omit one")
            names.add(str(key.value))
            if key.value == "defaults" and not isinstance(value, yaml.SequenceNode):
                line = key.start_mark.line + 1
                raise ConfigError(
                    f"{path}, line {line}: defaults: is not a list", "as in defaults: [tictactoe]"
                )
            check_values(path, key)
            check_values(path, value)


def flat(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a mapping by their keys with dots."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def merge(node: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A mapping with the values of another one, which replace its own."""
    merged = dict(node)
    for name, value in other.items():
        below = merged.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = merge(below, value)
        else:
            merged[name] = value
    return merged


def _split_defaults(values: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The values in a file, and the items of its defaults list, the last of which is itself."""
    items = values.get("defaults")
    items = items if isinstance(items, list) else []
    items = items if "_self_" in items else [*items, "_self_"]
    return {name: value for name, value in values.items() if name != "defaults"}, items


def _options(items: Sequence[Any]) -> dict[str, str]:
    """The options that a defaults list chooses, as in `override /player@opponent: random`."""
    pairs = [pair for item in items if isinstance(item, dict) for pair in item.items()]
    return {re.split("[@/ ]", str(name))[-1]: as_typed(option) for name, option in pairs}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file; empty if it cannot be parsed."""
    try:
        values = yaml.load(_text(path), Loader)
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}
