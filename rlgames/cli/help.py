"""The text of --help: all commands; one command with its groups and keys; options and keys.

It is derived from the command records, the schemas and the comments of the YAML files.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rlgames.config.catalogue import (
    Key,
    chosen_options,
    description,
    experiment_overrides,
    group_keys,
    groups_of,
    keys_of,
    keys_of_command,
    option_names,
    options,
)
from rlgames.config.command import Command
from rlgames.config.command_schemas import LAUNCHERS
from rlgames.config.registry import LIST_GROUPS, REGISTRY, SHARED_GROUPS
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.core.text import columns

INDENT = 25
"""The column where explanations start."""


def overview(commands: Mapping[str, Command]) -> str:
    """Every command with its help and an example."""
    records = list(commands.values())
    lines = columns([(f"  {record.name}", record.help, record.example) for record in records])
    if max(map(len, lines)) > _width():  # examples on lines of their own
        lines = []
        for record in records:
            lines += [f"  {record.name:12}{record.help}", " " * 14 + record.example]
    title = "rlgames COMMAND [RUN] [key=value ...]: learn to play games from declarative configs"
    closing = "rlgames COMMAND --help: its groups and keys; rlgames --version: the version"
    return "\n".join([title, "", *lines, "", closing])


def command_help(command: Command, words: Sequence[str]) -> str:
    """The help of a whole command or, where words name options and keys, of these.

    Raises ConfigError for a word that names nothing, unless the command takes runs.
    """
    typed = [word for word in words if word[:1] != "-" and word[:8] != "plugins="]
    takes_runs = command.runs != "none"
    named = [word for word in typed if "=" in word or not takes_runs or word in _names(command)]
    sections = _explained(command, named) if named else _whole(command)
    return "\n\n".join("\n".join(lines) for lines in sections)


def _whole(command: Command) -> list[list[str]]:
    sections = [[f"rlgames {command.name}: {command.help}", f"  {command.example}"]]
    keys = _top(command)
    closing = [f"rlgames {command.name} --help {keys[0].name}: the values of a key"]
    if groups_of(command.name):
        sections.append(["groups and their options", *_groups(command)])
        closing[0] += "; --help game=salvo: the keys of an option"
    closing.append("--config-dir DIR adds options (DIR/<group>/*.yaml); --cfg job shows the config")
    sections.append(["keys", *(line for key in keys for line in _key(key))])
    if command.sweep is not None:
        closing.append(f"rlgames {command.name} -m key=a,b sweeps over values; launchers of jobs:")
        closing.append(f"  hydra/launcher={', '.join(LAUNCHERS)}")
    return [*sections, closing]


def _top(command: Command) -> list[Key]:
    """The keys of a command that belong to no group, with those of its start and of -m."""
    keys = keys_of_command(command.name)
    for config in (command.launch, command.sweep):
        keys = keys + ([] if config is None else keys_of_command(config.name))
    return [*{key.name: key for key in reversed(keys)}.values()][::-1]


def _groups(command: Command) -> list[str]:
    """The groups with their options; groups that share their options are listed together."""
    lines: list[str] = []
    groups = group_keys(command.name)
    for folder in dict.fromkeys(SHARED_GROUPS.get(group.name, group.name) for group in groups):
        alike = [group for group in groups if SHARED_GROUPS.get(group.name, group.name) == folder]
        lines += [line for group in alike for line in _key(group)]
        if folder in REGISTRY:
            lines += _options(folder, {name for group in alike for name in group.choices})
    return lines


def _options(folder: str, names: Collection[str]) -> list[str]:
    rows = (_row(f"    {name}", description(folder, name)) for name in sorted(names))
    return [line for row in rows for line in row]


def _names(command: Command, words: Sequence[str] = ()) -> dict[str, Key]:
    """What can be typed where words choose the options, with the values that a preset sets."""
    chosen = chosen_options(command.name, list(words))
    keys = [key for group, option in chosen.items() for key in keys_of(group, option)]
    known = {key.name: key for key in [*group_keys(command.name), *_top(command), *keys]}
    preset = chosen.get("experiment", "null")
    options_of_preset = chosen_options(command.name, [f"experiment={preset}"])
    for name, value in experiment_overrides(preset).items() if words else ():
        group = name.partition(".")[0]  # an option that replaces the preset's has its own values
        is_set = "." not in name or options_of_preset.get(group) == chosen.get(group)
        if name in known and is_set and value != known[name].default:
            about = f"{known[name].description} (set by experiment={preset})"
            known[name] = replace(known[name], default=value, description=about)
    return known


def _explained(command: Command, words: Sequence[str]) -> list[list[str]]:
    """A section for each group or option that the words name, and one for the other keys."""
    sections: list[list[str]] = []
    keys: list[str] = []
    known = _names(command, words)
    groups = [group.name for group in groups_of(command.name)]
    for word in words:
        name, equals, value = word.partition("=")
        if name not in known:
            raise unknown_key(name, list(known))
        if name in groups and equals and value != "null":
            whole, parts = value.strip("'\""), value.split(",")
            if name in LIST_GROUPS:
                parts = option_names(value)
            several = parts if {*parts} <= {*known[name].choices} else [whole]
            sections += [_option(command, name, option, known[name]) for option in several]
        elif name in groups:
            listed = _options(SHARED_GROUPS.get(name, name), known[name].choices)
            sections.append([*_key(known[name]), *listed])
        else:
            keys += _in_full(known[name])
    return [*sections, keys] if keys else sections


def _option(command: Command, group: str, option: str, known: Key) -> list[str]:
    """An option with its keys, an experiment with what it sets."""
    folder = SHARED_GROUPS.get(group, group)
    if option not in known.choices:
        if folder != "player" or not os.path.exists(option):  # a run, otherwise
            raise unknown_option(group, option, known.choices)
        option = "run"
    lines = [f"{group}={option}: {description(folder, option)}"]
    if folder == "experiment":
        words = [f"{name}={value}" for name, value in experiment_overrides(option).items()]
        return lines + textwrap.wrap(
            " ".join(words), _width(), initial_indent="  ", subsequent_indent="  "
        )
    lines += [line for key in keys_of(group, option) for line in _in_full(key)]
    presets = command.config and command.config.presets
    if presets and group == "game" and option in options(presets.name):
        lines.append(f"  uses {presets.name}={option} unless another preset or null is named")
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
