"""What can be chosen and typed: the options of every group, their keys, and what they are.

Names, ranges and choices are those of the schemas; defaults and explanations those of the YAML
files, where an option has one. Nothing heavy is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from inspect import get_annotations
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from rlgames.config.command import Group
from rlgames.config.command_schemas import COMMANDS, CONFIGS
from rlgames.config.registry import REGISTRY, SHARED_GROUPS, TRAINING_ONLY_PLAYERS
from rlgames.config.schema import POSITIVE, defaults


def conf_dir() -> Path:
    """Where the YAML files lie: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


FOLDERS = [conf_dir()]
"""Where the YAML files of options are looked for, the folder of --config-dir last."""

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
"""What a key's type is called."""


KEY = re.compile(r"""[\s-]*(?:\w+@)?(\w+):(?:(?:"[^"]*"|'[^']*'|[^"'])*?\s#\s*(.*))?""")
"""A line of YAML with its key and the comment behind it."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Written in C where PyYAML has it, which is ten times faster."""


@dataclass(frozen=True)
class Key:
    """A key as it is typed, its default as it would be typed, and what a person may want to know.

    kind: its type, range or choices in words. choices: the words that it takes, where they can be
    listed. about: its explanation.
    """

    name: str
    default: str
    kind: str
    choices: tuple[str, ...]
    description: str


def options(group: str) -> list[str]:
    """The names of a config group's files, and of registered parts that have none."""
    paths = [path for folder in FOLDERS for path in (folder / group).glob("[!_]*.yaml")]
    return sorted({*(path.stem for path in paths), *REGISTRY.get(group, ())})


def _layers(folder: str, path: Path | None) -> list[Path | None]:
    """The YAML file of an option, and then those that its defaults list names in its own group."""
    names = [item for item in _values(path).get("defaults", []) if isinstance(item, str)]
    bases = [option_file(folder, name) for name in names if name != "_self_"]
    return [path, *(layer for base in bases for layer in _layers(folder, base))]


def option_file(group: str, name: str) -> Path | None:
    """The YAML file of an option, None where its schema's defaults stand for it."""
    paths = [folder / group / f"{name}.yaml" for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def description(group: str, name: str) -> str:
    """What an option is: the first comment of its file, or the docstring of its schema."""
    path = option_file(group, name)
    if path is None:
        return _docstring(REGISTRY[group][name].schema).partition("\n")[0]
    comments = (line for line in _text(path).splitlines() if re.match("#(?! *@package)", line))
    return next(comments, "#")[1:].strip()


def keys_of(group: str, option: str) -> list[Key]:
    """The keys of an option, as they are typed behind the group, which may hold a player."""
    folder = SHARED_GROUPS.get(group, group)
    node, explanations = option_values(folder, option), _explanations(folder, option)
    name = str(node.get("name", option))
    parts = REGISTRY.get(folder, {})
    part = parts.get(name) or parts.get(option)
    if part is None:
        return []
    explanations = _told(_docstring(part.schema)) | _explanations(folder, name) | explanations
    prefix = "" if group == "game" else f"{group}."
    keys = _keys(part.schema, node, explanations, prefix)
    return [key for key in keys if key.name != f"{prefix}name"]


def option_values(folder: str, option: str) -> dict[str, Any]:
    """The keys that an option's YAML file sets, those of its defaults list included."""
    values: dict[str, Any] = {}
    for path in _layers(folder, option_file(folder, option)):
        node = _values(path)
        node = node.get(folder, {}) | node if isinstance(node.get(folder), dict) else node
        values |= {name: value for name, value in node.items() if name not in values}
    values.pop("defaults", None)
    return values


def _explanations(folder: str, option: str) -> dict[str, str]:
    """The comments of an option's keys, those of its defaults list included."""
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
    """The option of each group that a command's words come to, by their experiment or by itself."""
    typed = {name: value.strip("'\"") for name, _, value in (word.partition("=") for word in words)}
    found = {group.name: group.default for group in group_keys(command)}
    groups = list(found)
    if CONFIGS[command].presets is not None:
        preset = typed.get("experiment") or typed.get("game") or found["game"]
        found |= {"experiment": preset, **experiment_overrides(preset)}
        found["experiment"] = preset if preset in options("experiment") else "null"
    found |= {group: value for group, value in typed.items() if group in groups and value}
    return {group: name for group, name in found.items() if group in groups and name != "null"}


def experiment_overrides(experiment: str) -> dict[str, str]:
    """What an experiment sets, as it would be typed, those that it begins with included."""
    path = option_file("experiment", experiment)
    found: dict[str, str] = {}
    for group, option in _listed(path).items():
        if group.startswith("+"):
            found |= experiment_overrides(str(option))
        else:
            found[group] = as_typed(option)
    return found | {name: as_typed(value) for name, value in _flat(_values(path))}


def comments(path: Path | None) -> dict[str, str]:
    """The comment of each key of a YAML file: behind it, or in the lines above it, unless these
    are the first ones, which tell of the whole file."""
    found: dict[str, str] = {}
    _, *lines = re.split(r"^(?!\s*(?:#|$))", _text(path), flags=re.MULTILINE)
    above = ""
    for part in lines:  # a line of YAML and the comments below it
        line, _, below = part.partition("\n")
        key = KEY.match(line)
        if key and (key[2] or above):
            found.setdefault(key[1], key[2] or above)
        above = " ".join(re.findall(r"^\s*#\s*(.*)$", below, re.MULTILINE))
    return found


def kind_of(schema: type, name: str) -> str:
    """What the values of a key are, in words; nothing for a key that the schema has not."""
    kinds = {item.name: item.type for item in fields(schema)}
    own = kinds.get(name, "")  # text, where the module has `from __future__ import annotations`
    kind = own.__name__ if type(own) is type else str(own)
    words = [KINDS.get(part.strip(), part.strip()) for part in kind.split("|")]
    return " or ".join(words).replace("None", "null")


def range_in_words(low: float, high: float) -> str:
    """The range of a number, in words."""
    least = "more than 0" if low == POSITIVE else f"at least {low:g}"
    return f"{least} and at most {high if isinstance(high, int) else format(high, 'g')}"


def as_typed(value: Any) -> str:
    """A value of a YAML file as it would be typed."""
    if isinstance(value, list):
        return f"[{','.join(map(as_typed, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _keys(schema: type, values: dict[str, Any], told: dict[str, str], prefix: str) -> Iterator[Key]:
    """The keys of a schema, with the values and the explanations of a file."""
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
        about = told.get(item.name) or limits.get("help", "")
        yield Key(prefix + item.name, default, kind, choices, about)


def _to(end: float) -> str:
    """One end of a range."""
    if end == POSITIVE:
        return "above 0"
    return f"{end:,}" if isinstance(end, int) else f"{end:,.12g}"


def _listed(path: Path | None) -> dict[str, Any]:
    """The options in the defaults of a YAML file, by group; a file to begin with by "+" and its
    name."""
    found: dict[str, Any] = {}
    for item in _values(path).get("defaults", []):
        if isinstance(item, str) and item != "_self_":
            found[f"+{item}"] = item
        elif isinstance(item, dict):
            for group, option in item.items():
                found[re.split("[@/ ]", group)[-1]] = option
    return found


def _flat(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif prefix or name != "defaults":
            yield prefix + name, value


def _docstring(schema: type) -> str:
    """The docstring that somebody has written for a schema."""
    text = (schema.__doc__ or "").strip()
    return "" if text.startswith(f"{schema.__name__}(") else text


def _told(docstring: str) -> dict[str, str]:
    """The explanations in a docstring: lines of the form "key: what it is"."""
    return dict(re.findall(r"^\s*(\w+): (.+)$", docstring, re.MULTILINE))


def _text(path: Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8", errors="replace")


def _values(path: Path | None) -> dict[str, Any]:
    """What a YAML file holds; nothing, where it cannot be read."""
    try:
        found = yaml.load(_text(path), LOADER)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}
