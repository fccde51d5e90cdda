"""A checkpoint: one safetensors file of tensors, with everything else as JSON in its header."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import save
from torch import Tensor, nn

from rlgames.config import ConfigError

FORMAT = 1


class BadCheckpoint(ConfigError):
    """A file that is not a checkpoint this version can read; the message says why."""


def write(path: Path, tensors: dict[str, Tensor], config: dict[str, Any], games: int) -> None:
    """Save beside path, force it to the disk, then rename: path is always old or new, whole."""
    header = {"format": str(FORMAT), "config": json.dumps(config), "games": str(games)}
    data = save({name: tensor.detach().cpu() for name, tensor in tensors.items()}, header)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the config of a checkpoint; nothing in the file is ever run.

    Raises BadCheckpoint for anything else than a regular file in this format.
    """
    if not path.is_file():
        raise BadCheckpoint(f"{path} is not a checkpoint file")
    try:
        with safetensors.safe_open(path, "pt") as file:
            header = file.metadata() or {}
            if int(header.get("format", 0)) > FORMAT:
                raise BadCheckpoint(f"{path} was written by a newer version of rlgames")
            config = json.loads(header["config"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, KeyError, ValueError, OSError, RecursionError) as error:
        raise BadCheckpoint(f"{path} is not a readable checkpoint ({error})") from None
    if not isinstance(config, dict):
        raise BadCheckpoint(f"{path} holds no config")
    return tensors, config


def restore(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights, every one of the right name and shape; raises BadCheckpoint otherwise."""
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise BadCheckpoint(" ".join(str(error).split())) from None
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise BadCheckpoint("some weights are not finite numbers")
