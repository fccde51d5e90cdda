"""What --help says: all commands; one with its groups and keys; options and keys by name.

All of it is read from the schemas and from the comments of the YAML files.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence

from rlgames.config.catalogue import (
    Key,
    chosen_options,
    description,
    experiment_overrides,
    group_keys,
    groups_of,
    keys_of,
    keys_of_command,
    options,
)
from rlgames.config.command_schemas import LAUNCHERS
from rlgames.config.registry import REGISTRY, SHARED_GROUPS
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.text import columns

Commands = Mapping[str, tuple[str, str]]
"""By the name of a command: what it does, and an example."""


INDENT = 25
"""Where what something is begins."""


def overview(commands: Commands) -> str:
    """Every command with what it does and an example."""
    lines = columns([(f"  {name}", what, told) for name, (what, told) in commands.items()])
    if max(map(len, lines)) > _width():  # examples below
        lines = []
        for name, (what, example) in commands.items():
            lines += [f"  {name:12}{what}", " " * 14 + example]
    title = "rlgames COMMAND [RUN] [key=value ...]: learn to play games from declarative configs"
    closing = "rlgames COMMAND --help: its groups and its keys; rlgames --version: its version"
    return "\n".join([title, "", *lines, "", closing])


def command_help(
    command: str, commands: Commands, words: Sequence[str], takes_runs: bool = False
) -> str:
    """A command as a whole or, where words name options and keys, these.

    Raises ConfigError for a word that names nothing, unless the command takes runs.
    """
    asked = [word for word in words if word[:1] != "-" and word[:8] != "plugins="]
    named = [word for word in asked if "=" in word or not takes_runs or word in _names(command)]
    sections = _explained(command, named) if named else _whole(command, *commands[command])
    return "\n\n".join("\n".join(lines) for lines in sections)


def _whole(command: str, what: str, example: str) -> list[list[str]]:
    sections = [[f"rlgames {command}: {what}", f"  {example}"]]
    closing = [f"rlgames {command} --help {_top(command)[0].name}: what that key takes"]
    if groups_of(command):
        sections.append(["groups and their options", *_groups(command)])
        closing[0] += "; --help game=salvo: the keys of that option"
    closing.append("--config-dir DIR adds the options in DIR/<group>/*.yaml")
    sections.append(["keys", *(line for key in _top(command) for line in _key(key))])
    if command == "train":
        closing.append("rlgames train -m key=a,b sweeps over the values; its jobs are run by")
        closing.append(f"  hydra/launcher={', '.join(LAUNCHERS)}")
    return [*sections, closing]


def _top(command: str) -> list[Key]:
    """The keys of a command that belong to no group; training has those of a sweep, after -m."""
    keys = keys_of_command(command) + (keys_of_command("sweep") if command == "train" else [])
    return [*{key.name: key for key in reversed(keys)}.values()][::-1]


def _groups(command: str) -> list[str]:
    """The groups with their options; those that share theirs stand together."""
    lines: list[str] = []
    groups = group_keys(command)
    for folder in dict.fromkeys(SHARED_GROUPS.get(group.name, group.name) for group in groups):
        alike = [group for group in groups if SHARED_GROUPS.get(group.name, group.name) == folder]
        lines += [line for group in alike for line in _key(group)]
        if folder in REGISTRY:
            lines += _options(folder, {name for group in alike for name in group.choices})
    return lines


def _options(folder: str, names: Collection[str]) -> list[str]:
    rows = (_row(f"    {name}", description(folder, name)) for name in sorted(names))
    return [line for row in rows for line in row]


def _names(command: str, words: Sequence[str] = ()) -> dict[str, Key]:
    """What can be typed where words choose the options."""
    now = chosen_options(command, list(words))
    keys = [key for group, option in now.items() for key in keys_of(group, option)]
    return {key.name: key for key in [*group_keys(command), *_top(command), *keys]}


def _explained(command: str, words: Sequence[str]) -> list[list[str]]:
    """A section for each group or option that the words name, and one for the other keys."""
    sections: list[list[str]] = []
    keys: list[str] = []
    known, groups = _names(command, words), groups_of(command)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in known:
            raise ConfigError(f"no key is called {name!r} here", nearest(name, list(known)))
        if name in groups and equals and value != "null":
            whole, parts = value.strip("'\""), value.split(",")
            several = parts if {*parts} <= {*known[name].choices} else [whole]
            sections += [_option(command, name, option, known[name]) for option in several]
        elif name in groups:
            listed = _options(SHARED_GROUPS.get(name, name), known[name].choices)
            sections.append([*_key(known[name]), *listed])
        else:
            keys += _in_full(known[name])
    return [*sections, keys] if keys else sections


def _option(command: str, group: str, option: str, known: Key) -> list[str]:
    """An option with its keys, an experiment with what it sets."""
    folder = SHARED_GROUPS.get(group, group)
    if option not in known.choices:
        if folder != "player" or not os.path.exists(option):  # a run, otherwise
            raise ConfigError(f"no {group} is called {option!r}", nearest(option, [*known.choices]))
        option = "run"
    lines = [f"{group}={option}: {description(folder, option)}"]
    if folder == "experiment":
        words = [f"{name}={value}" for name, value in experiment_overrides(option).items()]
        return lines + textwrap.wrap(
            " ".join(words), _width(), initial_indent="  ", subsequent_indent="  "
        )
    lines += [line for key in keys_of(group, option) for line in _in_full(key)]
    if command == "train" and group == "game" and option in options("experiment"):
        lines.append(f"  begins with experiment={option}, unless another one or null is named")
    return lines


def _in_full(key: Key) -> list[str]:
    """A key with its explanation and what it takes."""
    return [*_key(key), *_row("", key.kind)]


def _key(key: Key) -> list[str]:
    return _row(f"  {key.name}={key.default}", key.description)


def _row(left: str, text: str) -> list[str]:
    """Text behind a word, wrapped to the right of it."""
    first, *more = textwrap.wrap(text, max(30, _width() - INDENT)) or [""]
    head = [f"{left:{INDENT - 1}} {first}".rstrip()]
    if len(left) >= INDENT and first:
        head = [left, " " * INDENT + first]
    return [*head, *(" " * INDENT + line for line in more)]


def _width() -> int:
    return min(120, shutil.get_terminal_size((100, 24)).columns)
