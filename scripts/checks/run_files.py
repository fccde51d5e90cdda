"""What runs leave behind, except times and paths: two runs of one config leave the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import BEST, LATEST, read_metrics

EVENTS = "events.out.tfevents.*"

IGNORED = {"lock", "train.log", "output.log", "multirun.yaml"}
"""Files with times, process numbers or nothing in them."""

JSON_FIELDS = {"run.json": ("status", "games"), "reports": ("command", "config", "result")}
"""The fields that depend on the config alone, by the name of a file or its folder."""

TIMES = ("seconds", "moves_per_s")

UNEQUAL = ("seconds", "phases")
"""Times of a checkpoint that differ between two runs of one config."""


def final_state(directory: Path) -> dict[str, Any]:
    """Everything in the last checkpoint and the best weights, except times."""
    latest = Checkpoint.read(directory / "checkpoints" / LATEST)
    best = Checkpoint.read(directory / "checkpoints" / BEST)
    tensors = {"best": best.policy, "latest": latest.policy}
    return flat(tensors | {"state": latest.state, "games": latest.games})


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of a tree by path, except times."""
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        if name in UNEQUAL:
            continue
        if isinstance(value, dict):
            leaves |= flat(value, f"{prefix}{name}/")
        else:
            leaves[prefix + name] = value
    return leaves


def same(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Assert that two flat trees are equal, to the last bit."""
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, two[name]), name
        else:
            assert value == two[name], name


def metrics_without_times(directory: Path) -> list[str]:
    """The lines of metrics.jsonl as text, in which NaN equals itself, except times."""
    lines = read_metrics(directory / "metrics.jsonl")
    return [
        json.dumps({name: value for name, value in line.items() if not name.startswith("time/")})
        for line in lines
    ]


def tensorboard_events(directory: Path) -> dict[str, dict[int, Any]]:
    """What TensorBoard shows of a run, except times and text: scalars and pictures by name and
    step."""
    events = EventAccumulator(str(directory), {"scalars": 0, "images": 0}).Reload()
    names = [name for name in events.Tags()["scalars"] if not name.startswith("time/")]
    shown = {name: {each.step: repr(each.value) for each in events.Scalars(name)} for name in names}
    for name in events.Tags()["images"]:
        shown[name] = {each.step: repr(each.encoded_image_string) for each in events.Images(name)}
    return shown


def differing_files(one: Path, two: Path) -> list[str]:
    """The files that only one of two directories has, and those that differ in more than times."""
    files = [_files(directory) for directory in (one, two)]
    names = files[0].keys() & files[1].keys()
    differing = [name for name in names if not _is_same(files[0][name], files[1][name])]
    return sorted([*differing, *(files[0].keys() ^ files[1].keys())])


def _files(directory: Path) -> dict[str, Path]:
    """The files that matter by their names; a run's event files count as one."""
    files: dict[str, Path] = {}
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        is_hidden = any(part.startswith(".") for part in path.relative_to(directory).parts[:-1])
        # An evaluation that was killed leaves its temporary file: it does not own the run.
        is_left = path.match("reports/*.json.*.tmp")
        if path.is_dir() or is_hidden or is_left or path.name in IGNORED:
            continue
        if path.match(EVENTS):
            name = str(path.relative_to(directory).with_name("events"))
        files[name] = path
    return files


def _is_same(one: Path, two: Path) -> bool:
    if one.match(EVENTS):
        return tensorboard_events(one.parent) == tensorboard_events(two.parent)
    if one.name == "metrics.jsonl":
        return metrics_without_times(one.parent) == metrics_without_times(two.parent)
    try:
        if one.suffix == ".safetensors":
            same(*(_leaves(Checkpoint.read(path)) for path in (one, two)))
            return True
        if one.suffix == ".json":
            return _fields(one) == _fields(two)
        if one.name == "config.yaml":
            texts = [path.read_text(encoding="utf-8") for path in (one, two)]
            return _without_path(texts[0]) == _without_path(texts[1])
    except (AssertionError, ConfigError, ValueError):
        return False
    return one.read_bytes() == two.read_bytes()


def _leaves(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config | {"out": ""}
    parts = {"config": config, "policy": checkpoint.policy, "state": checkpoint.state}
    return flat(parts | {"games": checkpoint.games})


def _without_path(config: str) -> list[str]:
    """The lines of a config, except that of its directory."""
    return [line for line in config.splitlines() if not line.strip().startswith("out:")]


def _fields(path: Path) -> str:
    """What depends on the config alone in a JSON file, as text, in which NaN equals itself."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    names = JSON_FIELDS.get(path.name) or JSON_FIELDS.get(path.parent.name, fields)
    return json.dumps({name: _timeless(fields.get(name)) for name in sorted(names)})


def _timeless(value: Any) -> Any:
    is_object = isinstance(value, dict)
    return {k: v for k, v in value.items() if k not in TIMES} if is_object else value
