"""Which settings of a run TensorBoard lists as its hyperparameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlgames.config.catalogue import as_typed, keys_of
from rlgames.config.command_schemas import TRAIN
from rlgames.config.schema import defaults
from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text
from rlgames.core.untrusted import parse_json
from rlgames.runs import storage
from rlgames.runs.files import flatten, follows_from_option

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
    settings, usual = flatten(config), defaults(TRAIN.schema)
    texts = {name: as_typed(value) for name, value in usual.items()}
    for group in TRAIN.groups:
        texts[group.name] = as_typed(group.default)
        node = config.get(group.name)
        if isinstance(node, dict):
            keys = keys_of(group.name, str(node.get("name")))
            texts |= {key.name: key.default for key in keys}

    def is_changed(name: str) -> bool:
        text = texts.get(name, "null")
        if text.startswith("${"):  # the value of another key
            text = as_typed(settings.get(text[2:-1]))
        return as_typed(settings[name]) != text

    return [name for name in settings if name != "plugins" and is_changed(name)]


def _swept(directory: Path) -> list[str]:
    """The settings that differ between the jobs of a sweep; empty where there is none.

    Not all jobs of a search are known when the first one starts; any of them shows what it varies.
    Raises OSError.
    """
    try:
        manifest = parse_json(storage.read_file(directory, MANIFEST, MAX_MANIFEST_BYTES))
        jobs = [flatten(job["config"]) for job in manifest["jobs"]]
        words = [str(word) for job in manifest["jobs"] for word in job["overrides"]]
        is_search = manifest["search"] is not None
    except FileNotFoundError:
        return []
    except (AttributeError, ConfigError, LookupError, TypeError, ValueError):
        return []  # a file of something else
    if is_search:
        return list(dict.fromkeys(word.partition("=")[0] for word in words))
    names = dict.fromkeys(name for job in jobs for name in job)
    values = {name: {json_text(job.get(name)) for job in jobs} for name in names}
    return [name for name in names if len(values[name]) > 1 and not follows_from_option(name, jobs)]
