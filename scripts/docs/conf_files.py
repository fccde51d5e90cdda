"""The text of conf/, from the schemas: a file for each option, and train.yaml.

The experiments in conf/experiment/ are written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlgames.config.compose import RUN_DIR, SWEEP_DIR, SWEEP_SUBDIR
from rlgames.config.files import conf_dir
from rlgames.config.keys import PRESETS
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, initial_values, key_fields
from rlgames.config.commands import TrainConfig

GENERATED = "# Generated from rlgames/config by `make conf`; edit the schema instead."

HYDRA = f"""
# Hydra's own keys; docs/hydra.md says which can be set. A run gets the first free counter.
hydra:
  run:
    dir: {RUN_DIR}
  sweep:
    dir: {SWEEP_DIR}
    subdir: {SWEEP_SUBDIR}
"""


def files() -> Iterator[tuple[Path, str]]:
    """Each generated file with its current text."""
    for folder, options in REGISTRY.items():
        for name, option in options.items():
            package = [f"# @package logger.{name}"] if folder == "logger" else []
            head = [*package, f"# {option.help}", GENERATED]
            lines = [*head, *_rows(initial_values(option.schema) | {"name": name}, option.schema)]
            yield conf_dir() / folder / f"{name}.yaml", "\n".join(lines) + "\n"
    yield conf_dir() / "train.yaml", _train()


def _train() -> str:
    groups = {
        (group.folder if group.folder == name else f"{group.folder}@{name}"): group
        for name, group in groups_of(TrainConfig).items()
    }
    entries = [
        (f"  - {name}: {_yaml(group.default)}", group.help) for name, group in groups.items()
    ]
    presets = [(f"  - experiment: {_yaml(PRESETS.default)}", PRESETS.help)]
    lines = [
        *("# the defaults of a training", GENERATED, "defaults:"),
        *_aligned(entries),
        "  - _self_",
        *_aligned(presets),
        "  - override hydra/job_logging: none",
        "  - override hydra/hydra_logging: none",
        "",
        *_rows(initial_values(TrainConfig), TrainConfig),
    ]
    return "\n".join(lines) + "\n" + HYDRA


def _rows(values: dict[str, Any], schema: type) -> list[str]:
    fields = key_fields(schema)
    pairs = [
        (f"{name}: {_yaml(value)}", fields[name].metadata["help"]) for name, value in values.items()
    ]
    return _aligned(pairs)


def _aligned(pairs: list[tuple[str, str]]) -> list[str]:
    width = max(len(text) for text, _ in pairs)
    return [f"{text:{width}}  # {about}" if about else text for text, about in pairs]


def _yaml(value: Any) -> str:
    """A value in YAML on one line."""
    is_plain = not isinstance(value, str) or value.isidentifier() or value[:2] in ("${", "??")
    if value == "???" or (isinstance(value, str) and is_plain):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
