"""The YAML files of config groups: in conf/ and in the folders of a user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Option, as_typed, defaults, groups_of, key_fields, names_of
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import YAML_LOADER, sanitized

FILE_KEYS = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir")
FILE_NODES = ("hydra.sweeper.params",)
"""Hydra's own keys that a file may set: none of them runs code."""

FILE_HINT = "a file may set " + ", ".join((*FILE_KEYS, *FILE_NODES))

ODD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|0o[0-7]+|[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""An octal or a base-60 number in YAML 1.1 or 1.2."""


def conf_dir() -> Path:
    """The folder of the YAML files: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


@dataclass(frozen=True)
class Preset:
    """What an experiment sets: the option of each group, and keys as they are typed."""

    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OptionFiles:
    """The options of all groups: registered ones, and YAML files in conf/ and in other folders.

    Args:
        folders: of a user, searched after conf/.
    """

    folders: tuple[Path, ...] = ()

    def names(self, folder: str) -> list[str]:
        """The options of a config group."""
        paths = [
            path
            for each in (conf_dir(), *self.folders)
            for path in (each / folder).glob("[!_]*.yaml")
            if path.is_file()
        ]
        return sorted({*(path.stem for path in paths), *REGISTRY.get(folder, ())})

    def path(self, folder: str, name: str) -> Path | None:
        """The file of an option; None for an option without one."""
        paths = [each / folder / f"{name}.yaml" for each in (conf_dir(), *self.folders)]
        # Of a name that is too long for a file, Path.is_file() raises.
        return next((path for path in paths if os.path.isfile(path)), None)

    def help(self, folder: str, name: str) -> str:
        """One line about an option: its help, or the first comment of its file."""
        if name in REGISTRY.get(folder, {}):
            return REGISTRY[folder][name].help
        lines = _text(self.path(folder, name)).splitlines()
        comments = (line for line in lines if re.match("#(?! *@package)", line))
        return next(comments, "#")[1:].strip()

    def option(self, folder: str, name: str) -> Option | None:
        """The registered option of a name; a user's file has its name in the key `name`."""
        options = REGISTRY.get(folder, {})
        if name in options or self.path(folder, name) is None:
            return options.get(name)
        return options.get(str(self.values(folder, name).get("name")))

    def values(self, folder: str, name: str) -> dict[str, Any]:
        """The defaults of an option's keys, from its schema and its file."""
        paths = self._layers(folder, name)
        own = {key: value for path in reversed(paths) for key, value in _mapping(path).items()}
        own.pop("defaults", None)
        option = REGISTRY.get(folder, {}).get(str(own.get("name", name)))
        return (defaults(option.schema) if option else {}) | own

    def preset(self, name: str) -> Preset:
        """What an experiment sets, with the experiments in its defaults list."""
        preset = Preset()
        for path in reversed(self._layers("experiment", name)):
            for item in _mapping(path).get("defaults") or []:
                if isinstance(item, dict):
                    for group, option in item.items():
                        preset.options[re.split("[@/ ]", group)[-1]] = as_typed(option)
            for key, value in flat(_mapping(path)):
                preset.settings[key.removeprefix("game.")] = as_typed(value)
        return preset

    def check(self, folder: str, name: str) -> None:
        """Raises ConfigError for a user's file of an option that says something else than it
        seems to, or sets what only a command line may."""
        for path in self._layers(folder, name):
            if path.parent.parent != conf_dir():
                _check(path, folder)
                if folder == "experiment":
                    self._check_options(path)
        file = self.path(folder, name)
        if file and folder in REGISTRY and "name" not in self.values(folder, name):
            raise ConfigError(f"{file} does not say which {folder} it is", "add the key name")

    def _check_options(self, path: Path) -> None:
        """Raises ConfigError for an option of an experiment that does not exist."""
        values, groups = _mapping(path), groups_of(TrainConfig)
        for name, value in values.items():
            if name in groups and isinstance(value, str):
                hint = f"add `- override /{name}: {value}` below `defaults:`"
                raise ConfigError(f"{path}: `{name}: {value}` does not choose an option", hint)
        for item in values.get("defaults") or []:
            for key, option in item.items() if isinstance(item, dict) else ():
                name = re.split("[@/ ]", key)[-1]
                for each in option if isinstance(option, list) else [option]:
                    known = self.names(groups[name].folder) if name in groups else []
                    if known and each is not None and str(each) not in known:
                        error = unknown_option(name, groups[name].folder, str(each), known)
                        raise ConfigError(f"{path}: {error.error}", error.hint)

    def _layers(self, folder: str, name: str, seen: Sequence[str] = ()) -> list[Path]:
        """The file of an option, then the files of its group in its defaults list."""
        path = self.path(folder, name)
        if path is None or name in seen:
            return []
        items = _mapping(path).get("defaults") or []
        bases = [item for item in items if isinstance(item, str) and item != "_self_"]
        return [
            path,
            *(each for base in bases[::-1] for each in self._layers(folder, base, [*seen, name])),
        ]


def _check(path: Path, folder: str) -> None:
    text = _text(path)
    try:
        node = yaml.compose(text, YAML_LOADER)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {sanitized(error)}") from None
    check_numbers(path, node)
    values = _mapping(path)
    if folder == "experiment":
        if not text.startswith("# @package _global_"):
            raise ConfigError(
                f"{path} does not begin with `# @package _global_`",
                "make it the first line, without a byte-order mark",
            )
        for name in values:
            if name not in ("defaults", "hydra"):
                check_top_key(path, str(name))
    hydra = dict(flat({"hydra": values.get("hydra") or {}}))
    for key, value in hydra.items():
        if key not in FILE_KEYS and not key.startswith(FILE_NODES):
            raise ConfigError(f"{path} sets {key}={as_typed(value)}", FILE_HINT)
    for item in values.get("defaults") or []:
        for group in item if isinstance(item, dict) else ():
            name = re.sub(r"^(override +)?/?", "", group)
            if name.startswith("hydra/"):
                raise ConfigError(f"{path} sets {name}", FILE_HINT)


def check_top_key(path: Path, name: str) -> None:
    """Raises ConfigError unless a training has a key or a group of this name."""
    known = names_of(TrainConfig)
    if name not in known:
        error = unknown_key(name, known)
        is_of_game = any(name in key_fields(each.schema) for each in REGISTRY["game"].values())
        hint = f"keys of a game stand below game:, as in game: {{{name}: …}}"
        raise ConfigError(f"{path}: {error.error}", hint if is_of_game else error.hint)


def check_numbers(path: Path, node: yaml.Node | None) -> None:
    """Raises ConfigError for a number that YAML reads as another one: 010 is 8, and 1:30 is 90."""
    for scalar in _scalars(node):
        if not scalar.style and ODD_NUMBER.fullmatch(scalar.value):
            line = scalar.start_mark.line + 1
            raise ConfigError(
                f"{path}, line {line}: {scalar.value} is octal or base 60 in YAML",
                "omit its leading zeros or colons, or put it in quotes",
            )


def _scalars(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _scalars(each)
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for each in pair:
                yield from _scalars(each)


def flat(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a mapping by their keys with dots, its defaults list left out."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        elif prefix or name != "defaults":
            yield f"{prefix}{name}", value


def _text(path: Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8", errors="replace")


def _mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file; empty if it cannot be parsed."""
    try:
        values = yaml.load(_text(path), YAML_LOADER)
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}
