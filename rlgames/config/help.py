"""The text of --help: the groups with their options, the keys of a command, and the keys of the
options that the words choose, with their values.

Without words it is read from the schemas and the file of the command. Hydra is not imported then,
which makes it immediate.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.conf import about, command_file, option_names
from rlgames.config.overrides import typed_groups
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Group, as_typed, key_fields
from rlgames.core.text import help_width

INDENT = 25
"""The column where explanations start."""


def command_help(command: str, title: str, words: Sequence[str], folders: Sequence[Path]) -> str:
    """The help of a command with the options that words choose. Raises ConfigError."""
    schema, groups = COMMAND_SCHEMAS[command], typed_groups(command)
    chosen, values = command_file(command)
    names = {group.folder: option_names(group.folder) for group in groups.values()}
    if words or folders:
        from rlgames.config.compose import compose_plain

        chosen, values, names = compose_plain(command, words, folders)
    lines = [f"rlgames {command}: {title}"]
    if groups:
        lines += ["", "groups and their options"]
        for key, group in groups.items():
            lines += row(f"  {key}={','.join(chosen.get(key, ())) or 'null'}", group.help)
            options = REGISTRY.get(group.folder, {})
            hidden = [each for each in options if options[each].training_only]
            hidden = [] if group.is_training else hidden
            if command in ("train", "resume"):
                hidden += [each for each in options if options[each].runs_code]
            shown = [each for each in names[group.folder] if each not in hidden]
            lines += row("", ", ".join(shown))
        if words:
            lines += ["", "keys of these options"]
        for key, group in groups.items():
            for option in chosen.get(key, ()) if key in values else ():
                lines += _of_option(key, group, option, values[key])
    lines += ["", "keys", *_rows(schema, values, "  "), ""]
    if groups:
        lines.append(f"{command} --help GROUP=OPTION lists the keys of an option")
    lines.append("--config-dir DIR adds options and presets; --cfg job shows the config")
    if command == "train":
        lines.append("-m key=a,b runs a sweep; jobs=4 runs four of its jobs at a time")
    return "\n".join(lines)


def _of_option(key: str, group: Group, option: str, values: Mapping[str, Any]) -> Iterator[str]:
    """An option with its keys."""
    node = values.get(option, {}) if group.is_list else values
    prefix = "" if key == "game" else f"{key}.{option}." if group.is_list else f"{key}."
    yield from row(f"  {key}={option}", about(group.folder, option))
    record = REGISTRY[group.folder].get(str(node.get("name")))
    if record is not None:
        yield from _rows(record.schema, node, f"    {prefix}")


def _rows(schema: type, values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """The keys of a schema outside groups, with their values and help."""
    fields = key_fields(schema)
    for name, value in values.items():
        if name in fields and name != "name":
            text, choices = (fields[name].metadata[each] for each in ("help", "of"))
            if not all(choice in text for choice in choices):
                text += f" ({', '.join(choices)})"
            yield from row(f"{prefix}{name}={as_typed(value)}", text)


def row(left: str, text: str) -> list[str]:
    """A left column and its explanation, which goes on below."""
    first, *rest = textwrap.wrap(text, max(30, help_width() - INDENT)) or [""]
    head = [f"{left:{INDENT - 1}} {first}"] if len(left) < INDENT else [left, " " * INDENT + first]
    return [line.rstrip() for line in (*head, *(" " * INDENT + each for each in rest))]
