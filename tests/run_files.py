"""What runs leave behind, except times and paths: two runs of one config leave the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import BEST, LATEST, read_metrics

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
