"""A checkpoint: one safetensors file of tensors, with everything else as JSON in its header."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from rlgames.core.errors import ConfigError
from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import parse_json, sanitized

FORMAT = 3
MAX_HEADER_BYTES = 1 << 24
MAX_FILE_BYTES = 1 << 34
"""Larger headers and files are not read."""

MAX_CONFIG_LENGTH = 1 << 14
"""Longer configs, in characters of JSON, are not written and not read."""

MAX_GAMES = 10**12

Tree = dict[str, Any]
"""Names, without slashes, to tensors, numbers, words, lists of these, None, and trees."""


class BadCheckpoint(ConfigError):
    """A file that is not a checkpoint this version can read; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """config: the run's, plain, and not yet checked. games: how many had been played. policy: its
    tensors by name. state: what the run goes on from, empty where the policy alone was saved."""

    config: dict[str, Any]
    games: int
    policy: dict[str, Tensor]
    state: Tree

    @property
    def numbers(self) -> int:
        """How many the policy has."""
        return sum(tensor.numel() for tensor in self.policy.values())

    def write(self, path: Path) -> None:
        """Save beside path, force it to the disk, then rename: path is always old or new, whole.

        Raises OSError, and BadCheckpoint for a config that is too long; path is then as it was.
        """
        tensors: dict[str, Tensor] = {}
        numbers = _apart({"policy": self.policy, "state": self.state}, "", tensors)
        header = {
            "format": str(FORMAT),
            "config": json.dumps(self.config),
            "games": str(self.games),
            "state": json.dumps(numbers["state"]),
        }
        if len(header["config"]) > MAX_CONFIG_LENGTH:
            raise BadCheckpoint(f"the config is longer than {MAX_CONFIG_LENGTH:,} characters")
        header["sha256"] = _digest(header, tensors)
        temporary = path.with_name(path.name + ".tmp")
        # A link that somebody left there would be written through.
        temporary.unlink(missing_ok=True)
        try:
            save_file(tensors, temporary, header)
        except safetensors.SafetensorError as error:
            raise _as_os_error(error, temporary) from None
        if temporary.stat().st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(temporary))
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Nothing in the file is ever run.

        Raises BadCheckpoint for anything else than a whole, regular file in this format.
        """
        if not path.exists():
            raise BadCheckpoint(f"there is no checkpoint at {path}")
        if not path.is_file():
            raise BadCheckpoint(f"{path} is not a checkpoint file")
        try:
            _check_header(path)
            with safetensors.safe_open(path, "pt") as file:
                header = dict(file.metadata() or {})
                _check_format(path, header)
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            told = header.pop("sha256")
            if len(header["config"]) > MAX_CONFIG_LENGTH:
                raise ValueError("its config is too long")
            config, state = (_object(header[name]) for name in ("config", "state"))
            games = int(header["games"])
            if not 0 <= games <= MAX_GAMES:
                raise ValueError("so many games cannot be")
            whole = told == _digest(header, tensors)
        except (
            safetensors.SafetensorError,
            KeyError,
            ValueError,
            OSError,
            RuntimeError,
            TypeError,
        ) as error:
            raise BadCheckpoint(
                f"{path} is not a readable checkpoint ({sanitized(error)})"
            ) from None
        if not whole:
            raise BadCheckpoint(
                f"{path} is damaged: its content does not match its checksum",
                "take another checkpoint of the run",
            )
        tree: Tree = {"policy": {}, "state": state}
        for name, tensor in tensors.items():
            _put(tree, name.split("/"), tensor, path)
        return cls(config, games, tree["policy"], tree["state"])


def remove_leftovers(directory: Path) -> None:
    """Remove what a process that died in the middle of saving has left."""
    for pattern in ("*.tmp", ".tmp*"):
        for path in directory.glob(pattern):
            if path.is_file() or path.is_symlink():
                path.unlink()


def restore_weights(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights, every one of the right name, shape and type, and finite; raises BadCheckpoint
    otherwise."""
    try:
        load_weights(module, tensors)
    except ValueError as error:
        raise BadCheckpoint(str(error)) from None


def _apart(tree: Tree, prefix: str, tensors: dict[str, Tensor]) -> Tree:
    """The tree without its tensors, which are put into tensors by path."""
    kept: Tree = {}
    for name, value in tree.items():
        if isinstance(value, Tensor):
            tensors[f"{prefix}{name}"] = _own(value, tensors.values())
        elif isinstance(value, dict):
            kept[str(name)] = _apart(value, f"{prefix}{name}/", tensors)
        else:
            kept[str(name)] = value
    return kept


def _own(tensor: Tensor, others: Iterable[Tensor]) -> Tensor:
    """The tensor on the CPU, in memory that it shares with nothing else that is saved."""
    tensor = tensor.detach().cpu().contiguous()
    shared = any(tensor.data_ptr() == other.data_ptr() for other in others)
    part = tensor.untyped_storage().nbytes() != tensor.nbytes
    return tensor.clone() if shared or part else tensor


def _put(tree: Tree, path: list[str], tensor: Tensor, file: Path) -> None:
    """Put a tensor where its path leads. Raises BadCheckpoint where it leads nowhere."""
    place: Any = tree if len(path) > 1 else None
    for name in path[:-1]:
        place = place.get(name) if isinstance(place, dict) else None
    if not isinstance(place, dict) or path[-1] in place:
        told = sanitized("/".join(path), 60)
        raise BadCheckpoint(f"{file} has a tensor '{told}' that belongs nowhere")
    place[path[-1]] = tensor


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _check_header(path: Path) -> None:
    """Raises ValueError for a file or a header too large to be read, and for a header in which
    a name comes twice."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size > MAX_FILE_BYTES or length > MAX_HEADER_BYTES:
            raise ValueError(f"{size:,} bytes, {length:,} of them in its header, are too many")
        parse_json(file.read(length))


def _check_format(path: Path, header: dict[str, str]) -> None:
    """Raises BadCheckpoint for a format of another version."""
    found = int(header.get("format", 0))
    if found > FORMAT:
        raise BadCheckpoint(
            f"{path} was written by a newer version of rlgames (format {sanitized(found, 40)}, "
            f"here {FORMAT})",
            "install that version",
        )
    if found < FORMAT:
        raise BadCheckpoint(
            f"{path} is of format {found}, and only {FORMAT} can be read",
            "an older version of rlgames wrote it; train anew, or install that version",
        )


def _object(text: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError for other text."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("its JSON is no object")
    return value


def _sync(path: Path) -> None:
    """Force a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _as_os_error(error: Exception, path: Path) -> OSError:
    """What went wrong in writing, as the system would have told it."""
    found = re.search(r"os error (\d+)", str(error))
    number = int(found[1]) if found else 5
    return OSError(number, os.strerror(number), str(path))
