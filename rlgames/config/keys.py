"""The keys and options that words can name, for checks, help and the documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlgames.config.files import OptionFiles, Preset
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Group,
    as_typed,
    choices_of,
    default_of,
    groups_of,
    key_fields,
    listed_options,
    names_of,
    values_in_words,
)
from rlgames.config.training import TrainConfig


@dataclass(frozen=True)
class Key:
    """A config key and its default, both as typed on the command line.

    Args:
        kind: its type, range or choices in words.
        choices: its valid values, if they can be listed.
    """

    name: str
    default: str
    kind: str
    choices: tuple[str, ...]
    help: str


PRESETS = Group("experiment", None, "preset; null: the one named after the game, if any")
"""The group of a training whose options set keys and other groups."""


def command_groups(schema: type) -> dict[str, Group]:
    """The groups of a command's config, and the presets of a training."""
    presets = {"experiment": PRESETS} if schema is TrainConfig else {}
    return groups_of(schema) | presets


def option_names(group: Group, files: OptionFiles) -> tuple[str, ...]:
    """The options that a group takes."""
    parts = REGISTRY.get(group.folder, {})
    return tuple(
        name
        for name in files.names(group.folder)
        if group.is_training or not (name in parts and parts[name].training_only)
    )


def group_keys(schema: type, files: OptionFiles) -> list[Key]:
    """The groups of a command as keys, with their options as choices."""
    return [
        Key(name, as_typed(group.default), "", option_names(group, files), group.help)
        for name, group in command_groups(schema).items()
    ]


def schema_keys(schema: type, values: dict[str, Any] | None = None, prefix: str = "") -> list[Key]:
    """The keys of a schema that belong to no group; values: those that a file sets."""
    fields = key_fields(schema)
    keys = []
    for name in (name for name in names_of(schema) if name in fields):
        default = (values or {}).get(name, default_of(fields[name]))
        follows = fields[name].metadata.get("follows")
        if follows and name not in (values or {}):
            default = f"${{{follows}}}"
        about, kind = fields[name].metadata.get("help", ""), values_in_words(schema, name)
        keys.append(Key(prefix + name, as_typed(default), kind, choices_of(schema, name), about))
    return keys


def option_keys(name: str, group: Group, option: str, files: OptionFiles) -> list[Key]:
    """The keys of an option, with the prefix that they are typed with.

    option: of a group that can hold several, also a list of them, as it is typed.
    """
    if group.is_list:
        single = replace(group, is_list=False)
        return [
            key
            for item in listed_options(option)
            for key in option_keys(f"{name}.{item}", single, item, files)
        ]
    prefix = "" if name == "game" else f"{name}."
    record = files.option(group.folder, option)
    if record is None:
        return []
    keys = schema_keys(record.schema, files.values(group.folder, option), prefix)
    lines = (line.strip().partition(": ") for line in (record.schema.__doc__ or "").splitlines())
    documented = {name: about for name, _, about in lines if about}  # of a plugin, as `key: help`
    return [
        replace(key, help=key.help or documented.get(key.name.rpartition(".")[2], ""))
        for key in keys
        if key.name != f"{prefix}name"
    ]


def used_preset(schema: type, words: Sequence[str], files: OptionFiles) -> Preset:
    """The preset of a training: the one that is named, or the game's own, if there is one.

    If it has another policy or learner than those typed, the preset of the game and this policy
    replaces it, if there is one, and otherwise the one of the game and policy=mlp.
    """
    typed = typed_values(words)
    if schema is not TrainConfig or "config" in typed or typed.get("experiment") == "null":
        return Preset()
    if "experiment" in typed:
        return files.preset(typed["experiment"])
    game = typed.get("game", "salvo")
    named = {name: typed[name] for name in ("policy", "learner") if name in typed}
    names = dict.fromkeys((game, f"{game}_{named.get('policy')}", f"{game}_mlp"))
    presets = [files.preset(name) for name in names if files.path("experiment", name)]
    usual = {name: group.default for name, group in groups_of(schema).items()}
    fitting = [each for each in presets if named.items() <= (usual | each.options).items()]
    return [*fitting, *presets[::-1], Preset()][0]


def typed_values(words: Sequence[str]) -> dict[str, str]:
    """The values of the words by their keys, without quotes around them."""
    pairs = (word.lstrip("+").partition("=") for word in words)
    return {name: value.strip("'\"") for name, equals, value in pairs if equals}


def chosen_options(schema: type, words: Sequence[str], preset: Preset) -> dict[str, str]:
    """The option of each group that the words choose, directly or through a preset."""
    groups, typed = command_groups(schema), typed_values(words)
    chosen = {name: group.default for name, group in groups.items()} | preset.options
    chosen |= {name: value for name, value in typed.items() if value}
    return {
        name: option
        for name, option in chosen.items()
        if name in groups and option not in (None, "null", "[]")
    }


def without_replaced(preset: Preset, schema: type, chosen: dict[str, str]) -> Preset:
    """A preset without what it sets for options that others replace: they have their own values."""
    values = dict(preset.values)
    for name, group in groups_of(schema).items():
        usual = preset.options.get(name, group.default)
        # A preset that names no game is for any.
        is_of_any = name == "game" and name not in preset.options
        if chosen.get(name, "null") != (usual or "null") and not is_of_any:
            values.pop(name, None)
    return Preset(preset.options, values)


def known_keys(
    schema: type, chosen: dict[str, str], files: OptionFiles
) -> Iterator[tuple[str, Key]]:
    """Every key that can be typed if these options are chosen, by its name."""
    groups = command_groups(schema)
    for key in [*group_keys(schema, files), *schema_keys(schema)]:
        yield key.name, key
    for name, option in chosen.items():
        folder = groups[name].folder
        is_path = folder == "player" and option not in files.names(folder)
        for key in option_keys(name, groups[name], "run" if is_path else option, files):
            yield key.name, key
