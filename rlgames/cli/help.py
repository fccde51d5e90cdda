"""The text of --help: one command with its groups and keys; options and keys.

It is derived from the table of commands and the schemas.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import replace

from rlgames.cli.table import Command, width
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import (
    Key,
    chosen_options,
    command_groups,
    group_keys,
    known_keys,
    option_keys,
    option_names,
    schema_keys,
    typed_values,
    used_preset,
    without_replaced,
)
from rlgames.config.registry import LAUNCHERS, REGISTRY
from rlgames.config.schema import as_typed, names_of
from rlgames.config.suggestions import unknown_key, unknown_option
from rlgames.runs.names import is_run

INDENT = 25
"""The column where explanations start."""


def command_help(command: Command, words: Sequence[str]) -> str:
    """The help of a whole command or, if words name options and keys, of these.

    Raises ConfigError for a word that names nothing, unless the command takes many names.
    """
    folders, words = split_folders(words)
    page = Page(command, OptionFiles(folders))
    typed = [word for word in words if word[:1] != "-" and word[:8] != "plugins="]
    if command.runs != "none":
        takes_more = command.runs in ("many", "names")
        known = page.known([])
        runs = {word for word in typed if takes_more or "/" in word or is_run(word)}
        typed = [word for word in typed if "=" in word or word in known or word not in runs]
    sections = page.explained(typed) if typed else page.whole()
    return "\n\n".join("\n".join(lines) for lines in sections)


class Page:
    """What can be typed after a command, and its help."""

    def __init__(self, command: Command, files: OptionFiles) -> None:
        self.command, self.files, self.schema = command, files, command.config
        self.groups, self.sweep_names = command_groups(self.schema), set[str]()
        if command.sweep is not None:
            self.groups |= command_groups(command.sweep)
            self.sweep_names = {*names_of(command.sweep)} - {*names_of(self.schema)}

    def whole(self) -> list[list[str]]:
        """Every group and key."""
        command = self.command
        sections = [[f"rlgames {command.name}: {command.help}", f"  {command.example}"]]
        known = self.known([])
        keys = [known[key.name] for key in self._top()]
        closing = [f"rlgames {command.name} --help {keys[0].name}: the values of a key"]
        if self.groups:
            sections.append(["groups and their options", *self._listed_groups()])
            closing[0] += "; --help game=salvo: the keys of an option"
        closing.append(
            "--config-dir DIR adds options (DIR/<group>/*.yaml); --cfg job shows the config"
        )
        sections.append(["keys", *(line for key in keys for line in _key(key))])
        if command.sweep is not None:
            closing.append(
                f"rlgames {command.name} -m key=a,b sweeps over values; launchers of jobs:"
            )
            closing.append(f"  hydra/launcher={', '.join(LAUNCHERS)}")
        return [*sections, closing]

    def known(self, words: Sequence[str]) -> dict[str, Key]:
        """What can be typed if words choose the options, with the values that a preset sets."""
        preset = used_preset(self.schema, words, self.files)
        chosen = chosen_options(self.schema, words, preset)
        sweep = [] if self.command.sweep is None else group_keys(self.command.sweep, self.files)
        known = dict(known_keys(self.schema, chosen, self.files))
        known |= {key.name: key for key in [*sweep, *self._top()]}
        for name, group in self.groups.items():
            option = typed_values(words).get(name)
            if name not in command_groups(self.schema) and option:
                keys = option_keys(name, group, option, self.files)
                known |= {key.name: key for key in keys}
        for key, value in without_replaced(preset, self.schema, chosen).settings.items():
            if key in known and value != known[key].default:
                about = f"{known[key].help} (set by experiment={preset.options['experiment']})"
                known[key] = replace(known[key], default=value, help=about)
        return known

    def explained(self, words: Sequence[str]) -> list[list[str]]:
        """A section for each group or option that the words name, and one for the other keys."""
        sections: list[list[str]] = []
        keys: list[str] = []
        known = self.known(words)
        for word in words:
            name, equals, value = word.partition("=")
            if name not in known:
                raise unknown_key(name, list(known))
            if name in self.groups and equals and value != "null":
                whole, parts = value.strip("'\""), [part.strip("[] ") for part in value.split(",")]
                several = parts if {*parts} <= {*known[name].choices} else [whole]
                sections += [self._option(name, option, known[name]) for option in several]
            elif name in self.groups:
                listed = self._options(self.groups[name].folder, known[name].choices)
                sections.append([*_key(known[name]), *listed])
            else:
                keys += _in_full(known[name])
        return [*sections, keys] if keys else sections

    def _top(self) -> list[Key]:
        """The keys of a command outside groups, including the keys of its start and of -m."""
        schemas = [self.schema, self.command.launch, self.command.sweep]
        keys = [key for schema in schemas if schema is not None for key in schema_keys(schema)]
        return [*{key.name: key for key in reversed(keys)}.values()][::-1]

    def _listed_groups(self) -> list[str]:
        """The groups with their options; groups that share their options are listed together."""
        lines: list[str] = []
        choices = {name: option_names(group, self.files) for name, group in self.groups.items()}
        for folder in dict.fromkeys(group.folder for group in self.groups.values()):
            alike = [name for name, group in self.groups.items() if group.folder == folder]
            for name in alike:
                default = as_typed(self.groups[name].default)
                lines += _row(f"  {name}={default}", self.groups[name].help)
            if folder in REGISTRY:
                lines += self._options(folder, {each for name in alike for each in choices[name]})
        return lines

    def _options(self, folder: str, names: Collection[str]) -> list[str]:
        rows = (_row(f"    {name}", self.files.help(folder, name)) for name in sorted(names))
        return [line for row in rows for line in row]

    def _option(self, name: str, option: str, known: Key) -> list[str]:
        """An option with its keys, or an experiment with its settings."""
        group = self.groups[name]
        if option not in known.choices:
            if group.folder != "player" or not os.path.exists(option):  # a run, otherwise
                raise unknown_option(name, group.folder, option, known.choices)
            option = "run"
        lines = [f"{name}={option}: {self.files.help(group.folder, option)}"]
        if name == "experiment":
            preset = self.files.preset(option)
            del preset.options["experiment"]
            words = [f"{key}={value}" for key, value in (preset.options | preset.settings).items()]
            return lines + textwrap.wrap(
                " ".join(words), width(), initial_indent="  ", subsequent_indent="  "
            )
        for key in option_keys(name, group, option, self.files):
            lines += _in_full(key)
        is_preset = name == "game" and self.files.path("experiment", option)
        if is_preset and "experiment" in self.groups:
            lines.append(f"  uses experiment={option} unless another preset or null is named")
        return lines


def _in_full(key: Key) -> list[str]:
    """A key with its explanation and what it takes."""
    return [*_key(key), *_row("", key.kind)]


def _key(key: Key) -> list[str]:
    return _row(f"  {key.name}={key.default}", key.help)


def _row(left: str, text: str) -> list[str]:
    """Text behind a word, wrapped to the right of it."""
    first, *more = textwrap.wrap(text, max(30, width() - INDENT)) or [""]
    head = [f"{left:{INDENT - 1}} {first}".rstrip()]
    if len(left) >= INDENT and first:
        head = [left, " " * INDENT + first]
    return [*head, *(" " * INDENT + line for line in more)]
