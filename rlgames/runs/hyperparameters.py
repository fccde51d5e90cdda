"""Which settings of a run TensorBoard lists as its hyperparameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import TrainConfig
from rlgames.config.files import Files
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import as_typed, groups_of
from rlgames.config.words import parse_word
from rlgames.core.untrusted import YAML_LOADER
from rlgames.runs import storage
from rlgames.runs.files import flatten

SWEEP_FILE, MAX_SWEEP_BYTES = "multirun.yaml", 1 << 20
"""Where Hydra writes how a sweep was started; longer files are not read."""

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


def sweep_overrides(directory: Path) -> dict[str, list[str]]:
    """How a sweep was started: the words of its jobs (`task`) and Hydra's own (`hydra`); none in
    the directory of anything else. Raises OSError."""
    if not (directory / SWEEP_FILE).is_file():
        return {"task": [], "hydra": []}
    try:
        text = storage.read_file(directory, SWEEP_FILE, MAX_SWEEP_BYTES).decode()
        overrides = yaml.load(text, YAML_LOADER)["hydra"]["overrides"]
        return {name: [str(word) for word in overrides[name]] for name in ("task", "hydra")}
    except (LookupError, TypeError, ValueError, yaml.YAMLError):
        return {"task": [], "hydra": []}


def _swept(directory: Path) -> list[str]:
    """The settings that differ between the jobs of a sweep."""
    words = map(parse_word, sweep_overrides(directory)["task"])
    return [word.name.removeprefix("game.") for word in words if word.varies]
