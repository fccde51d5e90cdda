"""Which settings of a run TensorBoard lists as its hyperparameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlgames.config.registry import REGISTRY
from rlgames.config.schema import as_typed, defaults, groups_of, key_fields
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import parse_json
from rlgames.runs import storage
from rlgames.runs.files import differing, flatten

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
    settings, usual = flatten(config), flatten(defaults(TrainConfig))
    for name, group in groups_of(TrainConfig).items():
        usual[name] = group.default
        node = config.get(name)
        option = (
            REGISTRY[group.folder].get(str(node.get("name"))) if isinstance(node, dict) else None
        )
        if option is not None:
            prefix = "" if name == "game" else f"{name}."
            usual |= {f"{prefix}{key}": value for key, value in defaults(option.schema).items()}
            for key, item in key_fields(option.schema).items():
                if follows := item.metadata.get("follows"):
                    usual[f"{prefix}{key}"] = settings.get(f"{prefix}{follows}")
    changed = [
        name for name, value in settings.items() if as_typed(value) != as_typed(usual.get(name))
    ]
    return [name for name in changed if name != "plugins"]


def _swept(directory: Path) -> list[str]:
    """The settings that differ between the jobs of a sweep; empty where there is none.

    Not all jobs of a search are known when the first one starts; any of them shows what it varies.
    Raises OSError.
    """
    try:
        manifest = parse_json(storage.read_file(directory, MANIFEST, MAX_MANIFEST_BYTES))
        jobs = [flatten(job["config"]) for job in manifest["jobs"] if job["config"]]
        words = [str(word) for job in manifest["jobs"] for word in job["overrides"]]
        is_search = manifest["search"] is not None
    except FileNotFoundError:
        return []
    except (AttributeError, ConfigError, LookupError, TypeError, ValueError):
        return []  # a file of something else
    if is_search:
        return list(dict.fromkeys(word.partition("=")[0] for word in words))
    return differing(jobs)
