"""The text of conf/, from the schemas: a file for each option, train.yaml and preset.schema.json.

The experiments in conf/experiment/ are written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from rlgames.config.compose import RUN_DIR, SWEEP_DIR, SWEEP_SUBDIR
from rlgames.config.files import Files, conf_dir
from rlgames.config.keys import PRESETS, option_names
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    groups_of,
    initial_values,
    key_fields,
    kind_of,
    members,
)
from rlgames.config.commands import TrainConfig

GENERATED = "# Generated from rlgames/config by `make conf`; edit the schema instead."
SCHEMA = "preset.schema.json"

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
    yield conf_dir() / SCHEMA, json.dumps(json_schema(), ensure_ascii=False) + "\n"


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


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a preset, for editors: every key of every option of a training."""
    option_files = Files()
    properties: dict[str, Any] = {
        "defaults": {"type": "array", "description": "options, as in `- override /game: salvo`"},
        "hydra": {"type": "object", "description": "Hydra's own keys"},
    }
    for name, group in groups_of(TrainConfig).items():
        keys: dict[str, Any] = {}
        for option in option_names(group, option_files):
            schema = REGISTRY[group.folder][option].schema
            node = {key: _key_schema(schema, key) for key in key_fields(schema)}
            if group.is_list:
                keys[option] = _object(node)
                continue
            for key, each in node.items():
                known = keys.setdefault(key, {"anyOf": []})["anyOf"]
                known += [each] if each not in known else []
        properties[name] = {**_object(keys), "description": group.help}
    properties |= {key: _key_schema(TrainConfig, key) for key in key_fields(TrainConfig)}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "rlgames preset", **_object(properties)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _key_schema(schema: type, name: str) -> dict[str, Any]:
    limits, kind = key_fields(schema)[name].metadata, kind_of(schema, name)
    kinds = [_kind_schema(part, limits) for part in members(kind)]
    interpolation = {"type": "string", "pattern": r"\$\{"}
    about = {"description": limits["help"]} if limits.get("help") else {}
    return {**about, "anyOf": [*kinds, interpolation]}


def _kind_schema(kind: Any, limits: Any) -> dict[str, Any]:
    if get_origin(kind) is list:
        return {"type": "array", "items": _kind_schema(get_args(kind)[0], limits)}
    if kind in (int, float):
        ends = {"minimum": limits.get("low"), "maximum": limits.get("high")}
        finite = {name: end for name, end in ends.items() if end is not None and abs(end) < 1e300}
        return {"type": "integer" if kind is int else "number", **finite}
    if kind is NoneType:
        return {"type": "null"}
    if kind is bool:
        return {"type": "boolean"}
    return {"enum": list(limits["of"])} if limits.get("of") else {"type": "string"}
