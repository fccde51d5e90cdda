"""The options of every config group and their keys, for help, completion and messages.

Names, ranges and choices come from the schemas; defaults and explanations from the YAML files,
where an option has one. Nothing heavy is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from inspect import get_annotations
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.command import Group
from rlgames.config.command_schemas import COMMANDS, CONFIGS
from rlgames.config.registry import (
    LIST_GROUPS,
    REGISTRY,
    SHARED_GROUPS,
    TRAINING_ONLY_PLAYERS,
)
from rlgames.config.schema import POSITIVE, defaults
from rlgames.core.untrusted import YAML_LOADER


def conf_dir() -> Path:
    """The folder of the YAML files: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


FOLDERS = [conf_dir()]
"""The folders searched for the YAML files of options; that of --config-dir comes last."""

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a word",
    "list[int]": "a list of whole numbers, as in [4,2]",
    "list[float]": "a list of numbers, as in [0.5,1]",
    "list[str]": "a list of words, as in [one,two]",
    "list[list[int]]": "a list of lists of whole numbers, as in [[0,1],[2,3]]",
}
"""Types of keys in words."""


KEY = re.compile(r"""[\s-]*(?:\w+@)?(\w+):(?:(?:"[^"]*"|'[^']*'|[^"'])*?\s#\s*(.*))?""")
"""A line of YAML: its key, and the comment after its value."""


@dataclass(frozen=True)
class Key:
    """A config key and its default, both as typed on the command line.

    kind: its type, range or choices in words. choices: its valid values, where they can be listed.
    """

    name: str
    default: str
    kind: str
    choices: tuple[str, ...]
    description: str


def options(group: str) -> list[str]:
    """The options of a config group: those with a YAML file, and registered ones without."""
    paths = [path for folder in FOLDERS for path in (folder / group).glob("[!_]*.yaml")]
    return sorted({*(path.stem for path in paths), *REGISTRY.get(group, ())})


def _layers(folder: str, path: Path | None) -> list[Path | None]:
    """The YAML file of an option, then the files of its group that its defaults list names."""
    names = [item for item in _values(path).get("defaults", []) if isinstance(item, str)]
    bases = [option_file(folder, name) for name in names if name != "_self_"]
    return [path, *(layer for base in bases for layer in _layers(folder, base))]


def option_file(group: str, name: str) -> Path | None:
    """The YAML file of an option; None for an option that has only a schema."""
    paths = [folder / group / f"{name}.yaml" for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def description(group: str, name: str) -> str:
    """One line about an option: the first comment of its file, or the docstring of its schema."""
    path = option_file(group, name)
    if path is None:
        return _docstring(REGISTRY[group][name].schema).partition("\n")[0]
    comments = (line for line in _text(path).splitlines() if re.match("#(?! *@package)", line))
    return next(comments, "#")[1:].strip()


def option_names(text: str) -> list[str]:
    """The options that a value names, typed as one name or as a list, as in [tensorboard,csv]."""
    return [name.strip("'\" ") for name in text.strip("[]").split(",") if name.strip("'\" ")]


def keys_of(group: str, option: str) -> list[Key]:
    """The keys of an option, with the prefix of the group (or of a key that holds a player).

    Where a group can hold several options, option may be a list of them, as it is typed.
    """
    if group in LIST_GROUPS:
        names = option_names(option)
        return [key for name in names for key in _keys_of(group, name, f"{group}.{name}.")]
    return _keys_of(group, option, "" if group == "game" else f"{group}.")


def _keys_of(group: str, option: str, prefix: str) -> list[Key]:
    folder = SHARED_GROUPS.get(group, group)
    node, explanations = option_values(folder, option), _explanations(folder, option)
    name = str(node.get("name", option))
    parts = REGISTRY.get(folder, {})
    part = parts.get(name) or parts.get(option)
    if part is None:
        return []
    explanations = (
        _docstring_explanations(_docstring(part.schema))
        | _explanations(folder, name)
        | explanations
    )
    keys = _keys(part.schema, node, explanations, prefix)
    return [key for key in keys if key.name != f"{prefix}name"]


def option_values(folder: str, option: str) -> dict[str, Any]:
    """The values set by an option's YAML file and its defaults list."""
    values: dict[str, Any] = {}
    for path in _layers(folder, option_file(folder, option)):
        node = _values(path)
        node = node.get(folder, {}) | node if isinstance(node.get(folder), dict) else node
        values |= {name: value for name, value in node.items() if name not in values}
    values.pop("defaults", None)
    return values


def _explanations(folder: str, option: str) -> dict[str, str]:
    """The comments of an option's keys, in its YAML file and its defaults list."""
    layers = _layers(folder, option_file(folder, option))
    return {name: comment for path in reversed(layers) for name, comment in comments(path).items()}


def keys_of_command(command: str) -> list[Key]:
    """The keys at the top of a primary config, groups left out: its own first, then shared ones."""
    return [*_keys(CONFIGS[command].schema, {}, {}, "")]


def groups_of(command: str) -> tuple[Group, ...]:
    """The groups of a command, its presets and, after -m, those of a sweep."""
    config = CONFIGS[command]
    presets = () if config.presets is None else (config.presets,)
    record = COMMANDS.get(command)
    sweep = () if record is None or record.sweep is None else record.sweep.groups
    return (*config.groups, *presets, *sweep)


def group_keys(command: str) -> list[Key]:
    """The groups of a command as keys, with their options as choices."""
    return [
        Key(group.name, as_typed(group.default), "", valid_options(group), group.help)
        for group in groups_of(command)
    ]


def valid_options(group: Group) -> tuple[str, ...]:
    """The options of a group that a command takes."""
    names = options(SHARED_GROUPS.get(group.name, group.name))
    return tuple(name for name in names if group.is_training or name not in TRAINING_ONLY_PLAYERS)


def chosen_options(command: str, words: list[str]) -> dict[str, str]:
    """The option of each group that the words select, directly or through an experiment."""
    typed = {name: value.strip("'\"") for name, _, value in (word.partition("=") for word in words)}
    chosen = {group.name: group.default for group in group_keys(command)}
    groups = list(chosen)
    if CONFIGS[command].presets is not None:
        preset = typed.get("experiment") or typed.get("game") or chosen["game"]
        chosen |= {"experiment": preset, **experiment_overrides(preset)}
        chosen["experiment"] = preset if preset in options("experiment") else "null"
    chosen |= {group: value for group, value in typed.items() if group in groups and value}
    return {group: name for group, name in chosen.items() if group in groups and name != "null"}


def experiment_overrides(experiment: str) -> dict[str, str]:
    """The overrides that an experiment stands for, those of its defaults list included."""
    path = option_file("experiment", experiment)
    overrides: dict[str, str] = {}
    for group, option in _listed(path).items():
        if group.startswith("+"):
            overrides |= experiment_overrides(str(option))
        else:
            overrides[group] = as_typed(option)
    return overrides | {name: as_typed(value) for name, value in _flat(_values(path))}


def comments(path: Path | None) -> dict[str, str]:
    """The comment of each key of a YAML file: after its value, or in the lines above it.

    The first lines of a file describe the file, not a key.
    """
    explanations: dict[str, str] = {}
    _, *lines = re.split(r"^(?!\s*(?:#|$))", _text(path), flags=re.MULTILINE)
    above = ""
    for part in lines:  # a line of YAML and the comments below it
        line, _, below = part.partition("\n")
        key = KEY.match(line)
        if key and (key[2] or above):
            explanations.setdefault(key[1], key[2] or above)
        above = " ".join(re.findall(r"^\s*#\s*(.*)$", below, re.MULTILINE))
    return explanations


def kind_of(schema: type, name: str) -> str:
    """The type of a key in words; empty for a key that the schema does not have."""
    kinds = {item.name: item.type for item in fields(schema)}
    annotation = kinds.get(
        name, ""
    )  # text, where the module has `from __future__ import annotations`
    kind = annotation.__name__ if type(annotation) is type else str(annotation)
    words = [KINDS.get(part.strip(), part.strip()) for part in kind.split("|")]
    return " or ".join(words).replace("None", "null")


def range_in_words(low: float, high: float) -> str:
    """The range of a number, in words."""
    lower_bound = "more than 0" if low == POSITIVE else f"at least {low:g}"
    return f"{lower_bound} and at most {high if isinstance(high, int) else format(high, 'g')}"


def as_typed(value: Any) -> str:
    """A value as typed on the command line."""
    if isinstance(value, list):
        return f"[{','.join(map(as_typed, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def quoted(text: str) -> str:
    """Text as one value for Hydra, whatever characters it contains."""
    # Hydra reads a backslash literally, except before a quote.
    return "'" + re.sub(r"(\\+)('|$)", r"\1\1\2", text).replace("'", "\\'") + "'"


def _keys(
    schema: type, values: dict[str, Any], explanations: dict[str, str], prefix: str
) -> Iterator[Key]:
    """The keys of a schema, with the values and explanations of a YAML file."""
    known = {item.name: "???" for item in fields(schema)} | defaults(schema) | values
    own_first = [name for part in schema.__mro__ for name in get_annotations(part)]
    order = [*values, *own_first]
    for item in sorted(fields(schema), key=lambda item: order.index(item.name)):
        kind = kind_of(schema, item.name)
        limits = item.metadata
        choices = tuple(map(str, limits.get("of", ())))
        if choices:
            many = "a list of: " if kind.startswith("a list") else ""
            kind = many + ", ".join(choices) + (" or null" if kind.endswith(" or null") else "")
        elif "number" in kind and math.isfinite(limits.get("high", math.inf)):
            each = "each " if "list" in kind else ""
            kind += f", {each}{_to(limits['low'])} to {_to(limits['high'])}"
        if kind.startswith("true or false"):
            choices = ("true", "false")
        if kind.endswith("or null") and choices:
            choices += ("null",)
        default = as_typed(known[item.name])
        explanation = explanations.get(item.name) or limits.get("help", "")
        yield Key(prefix + item.name, default, kind, choices, explanation)


def _to(end: float) -> str:
    """One end of a range."""
    if end == POSITIVE:
        return "above 0"
    return f"{end:,}" if isinstance(end, int) else f"{end:,.12g}"


def _listed(path: Path | None) -> dict[str, Any]:
    """The defaults list of a YAML file: options by group, and base files by "+" and their name."""
    selected: dict[str, Any] = {}
    for item in _values(path).get("defaults", []):
        if isinstance(item, str) and item != "_self_":
            selected[f"+{item}"] = item
        elif isinstance(item, dict):
            for group, option in item.items():
                selected[re.split("[@/ ]", group)[-1]] = option
    return selected


def _flat(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif prefix or name != "defaults":
            yield prefix + name, value


def _docstring(schema: type) -> str:
    """A schema's own docstring; empty if dataclass generated it."""
    text = (schema.__doc__ or "").strip()
    return "" if text.startswith(f"{schema.__name__}(") else text


def _docstring_explanations(docstring: str) -> dict[str, str]:
    """The explanations in a docstring: its lines of the form `key: explanation`."""
    return dict(re.findall(r"^\s*(\w+): (.+)$", docstring, re.MULTILINE))


def _text(path: Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8", errors="replace")


def _values(path: Path | None) -> dict[str, Any]:
    """The content of a YAML file; empty if it cannot be parsed."""
    try:
        values = yaml.load(_text(path), YAML_LOADER)
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}
