"""Which settings of a run TensorBoard lists as its hyperparameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.files import Files
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import as_typed, groups_of
from rlgames.core.untrusted import parse_json
from rlgames.runs import storage
from rlgames.runs.files import flatten

MANIFEST, MAX_MANIFEST_BYTES = "sweep.json", 1 << 26
"""The file in the directory of a sweep that lists its jobs; longer ones are not read."""

ALWAYS = ("lr", "seed")
"""Settings of a single run that are listed whatever their values are."""


def listed_settings(directory: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The settings that distinguish a run from others, by the names that users type.

    For a job of a sweep, those that differ between its jobs; for any other run lr, seed and what
    differs from the defaults.
    """
    settings = flatten(config)
    names = _swept(directory.parent) or [*ALWAYS, *changed_settings(config)]
    return {name: settings[name] for name in dict.fromkeys(names) if name in settings}


def changed_settings(config: dict[str, Any]) -> list[str]:
    """The settings, typed or of a preset, that differ from the defaults of the chosen options."""
    files = Files()
    primary, settings = files.read("train"), flatten(config)
    usual = flatten({name: value for name, value in primary.values.items() if name != "hydra"})
    for name, group in groups_of(TrainConfig).items():
        usual[name] = ",".join(primary.choices[name]) or None
        node = config.get(name)
        if isinstance(node, dict) and str(node.get("name")) in REGISTRY[group.folder]:
            prefix = "" if name == "game" else f"{name}."
            values = files.option_values(group.folder, str(node["name"]))
            usual |= {f"{prefix}{key}": value for key, value in values.items()}
    changed = [
        name for name, value in settings.items() if as_typed(value) != as_typed(usual.get(name))
    ]
    return [name for name in changed if name != "plugins"]


def _swept(directory: Path) -> list[str]:
    """The settings that differ between the jobs of a sweep, from the first line of its manifest;
    empty where there is none. Raises OSError."""
    if not (directory / MANIFEST).is_file():
        return []
    try:
        with storage.open_to_read(directory, MANIFEST) as file:
            head = file.readline(MAX_MANIFEST_BYTES)
        return [str(name) for name in parse_json(head.rstrip() + b"]}")["listed"]]
    except (LookupError, TypeError, ValueError):
        return []  # a file of something else
