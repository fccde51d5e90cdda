"""The YAML files in conf/ as data: their names, first comments and own values.

Only Hydra composes configs, in compose.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import YAML_LOADER


class Loader(YAML_LOADER):  # type: ignore[misc]
    """Reads 1e-3 as a number and a date as text, as Hydra does."""


Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in YAML_LOADER.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


@cache
def conf_dir() -> Path:
    """The folder of the YAML files: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def option_names(group: str) -> list[str]:
    """The options of a config group, including plugins."""
    plugins = [name for name, option in REGISTRY.get(group, {}).items() if option.values]
    files = (path for path in (conf_dir() / group).glob("[!_]*.yaml") if path.is_file())
    return sorted({*plugins, *(path.stem for path in files)})


def about(group: str, name: str) -> str:
    """One line about an option: the first comment of its file, or the first line of a plugin's
    docstring; empty for an option in a user's folder."""
    option, path = REGISTRY.get(group, {}).get(name), conf_dir() / group / f"{name}.yaml"
    if option is not None and option.values is not None:
        return (option.schema.__doc__ or "").partition("\n")[0]
    text = read_text(path) if path.is_file() else ""
    comment = re.search(r"^#(?! *@package)(.*)", text, re.MULTILINE)
    return comment[1].strip() if comment else ""


def option_values(group: str, name: str) -> dict[str, Any]:
    """The keys of an option with the values of its file and of the option that it extends; a key
    that another key sets has its value.

    Raises KeyError if there is no such option.
    """
    option = REGISTRY[group][name]
    if option.values is not None:
        return dict(option.values)
    values = mapping(conf_dir() / group / f"{name}.yaml")
    for extended in values.pop("defaults", ()):
        if isinstance(extended, str):
            values = option_values(group, extended) | values
    return {
        key: values[value[3:-1]] if re.fullmatch(r"\$\{\.\w+\}", str(value)) else value
        for key, value in values.items()
    }


@cache
def command_file(command: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """What the file of a command says: the options of its groups, none for null, and its keys."""
    values = mapping(conf_dir() / f"{command}.yaml")
    values.pop("hydra", None)
    choices = dict[str, list[str]]()
    for item in values.pop("defaults"):
        if isinstance(item, dict):
            ((key, option),) = item.items()
            options = option if isinstance(option, list) else [option]
            choices[key.rpartition("@")[2]] = [str(each) for each in options if each is not None]
    return {key: choices[key] for key in choices if not key.startswith("override ")}, values


def read_text(path: Path) -> str:
    """Raises ConfigError for a file that is not there or not text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def mapping(path: Path, loader: type = Loader) -> dict[str, Any]:
    """The content of a file. Raises ConfigError if it is not YAML with keys."""
    try:
        values = yaml.load(read_text(path), loader) or {}
    except yaml.YAMLError as error:
        raise not_yaml(path, error) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds no keys", "it should hold key: value lines")
    return values


def not_yaml(path: Path | str, error: yaml.YAMLError) -> ConfigError:
    """The error for a file that is not YAML, with the line."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    reason = getattr(error, "problem", None) or " ".join(str(error).split())
    return ConfigError(f"{path}{line} is not YAML: {reason}")


def key_paths(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of nested mappings by their keys with dots."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", leaf) for key, leaf in key_paths(value))
        else:
            yield name, value
