"""A checkpoint: one safetensors file of tensors, with everything else as JSON in its header."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
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
from rlgames.runs import storage
from rlgames.runs.files import MAX_HEADER_BYTES

Tree = dict[str, Any]
"""Maps names without slashes to trees, tensors, numbers, text, None, and lists of these."""

FORMAT = 5
"""Only files of this format are read."""

MAX_FILE_BYTES = 1 << 34
"""Larger files are not read."""

MAX_CONFIG_LENGTH = 1 << 14
"""Longer configs, in characters of JSON, are neither written nor read."""

MAX_GAMES = 10**12


class BadCheckpoint(ConfigError):
    """A file that this version cannot read as a checkpoint; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """What a run saves.

    config: of the run, plain; as read from a file it is not checked. games: played so far.
    policy: its tensors by name. state: what the run resumes from; empty if only the policy was
    saved.
    """

    config: dict[str, Any]
    games: int
    policy: dict[str, Tensor]
    state: Tree

    @property
    def num_parameters(self) -> int:
        """Numbers in the policy's tensors."""
        return sum(tensor.numel() for tensor in self.policy.values())

    @property
    def num_bytes(self) -> int:
        """Bytes in all tensors."""
        return sum(tensor.nbytes for tensor in _tensors({"policy": self.policy, **self.state}))

    def write(self, path: Path) -> None:
        """Write a temporary file, force it to the disk and rename it: path always holds a whole
        checkpoint, the old or the new one.

        Raises OSError, and BadCheckpoint for a config that is too long; path is then unchanged.
        """
        tensors: dict[str, Tensor] = {}
        plain = _split_off_tensors({"policy": self.policy, "state": self.state}, "", tensors)
        header = {
            "format": str(FORMAT),
            "config": json.dumps(self.config),
            "games": str(self.games),
            "state": json.dumps(plain["state"]),
        }
        if len(header["config"]) > MAX_CONFIG_LENGTH:
            raise BadCheckpoint(f"the config is longer than {MAX_CONFIG_LENGTH:,} characters")
        header["sha256"] = _digest(header, tensors)
        temporary = path.with_name(storage.temporary_name(path.name))
        # Otherwise a link of this name would be followed.
        storage.remove_file(path.parent, temporary.name)
        try:
            save_file(tensors, temporary, header)
        except safetensors.SafetensorError as error:
            raise _as_os_error(error, temporary) from None
        if temporary.stat().st_size > MAX_FILE_BYTES:
            storage.remove_file(path.parent, temporary.name)
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(temporary))
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        storage.publish_file(path.parent, path.name)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a file; no code in it is run.

        Raises BadCheckpoint unless it is a whole regular file in this format.
        """
        while True:
            version = _version(path)
            try:
                return cls._read(path)
            except BadCheckpoint:
                # A training may have replaced the file, which safetensors opens twice.
                if _version(path) == version:
                    raise

    @classmethod
    def _read(cls, path: Path) -> Checkpoint:
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
            digest = header.pop("sha256")
            if len(header["config"]) > MAX_CONFIG_LENGTH:
                raise ValueError("its config is too long")
            config, state = (_object(header[name]) for name in ("config", "state"))
            games = int(header["games"])
            if not 0 <= games <= MAX_GAMES:
                raise ValueError(f"{games:,} is not a possible number of games")
            is_whole = digest == _digest(header, tensors)
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
        if not is_whole:
            raise BadCheckpoint(
                f"{path} is damaged: its content does not match its checksum",
                "use another checkpoint of the run",
            )
        tree: Tree = {"policy": {}, "state": state}
        for name, tensor in tensors.items():
            _insert(tree, name.split("/"), tensor, path)
        return cls(config, games, tree["policy"], state)


def read_identity(path: Path) -> str | None:
    """What identifies the weights of a checkpoint: its config and its games, which its header has;
    None without a checkpoint."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            header = file.metadata() or {}
    except (OSError, safetensors.SafetensorError):
        return None
    return hashlib.sha256(f"{header.get('config')} {header.get('games')}".encode()).hexdigest()


def _version(path: Path) -> tuple[int, int] | None:
    """What differs once a file is replaced; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def drop_state(path: Path) -> None:
    """Replace a checkpoint by one of its policy alone. Raises BadCheckpoint and OSError.

    The state is not read, because it may be large; nor is the checksum of all tensors checked.
    """
    try:
        _check_header(path)
        with safetensors.safe_open(path, "pt") as file:
            header = dict(file.metadata() or {})
            _check_format(path, header)
            names = [name for name in file.keys() if name.startswith("policy/")]  # noqa: SIM118
            policy = {name.removeprefix("policy/"): file.get_tensor(name) for name in names}
        checkpoint = Checkpoint(_object(header["config"]), int(header["games"]), policy, {})
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise BadCheckpoint(f"{path} is not a readable checkpoint ({sanitized(error)})") from None
    checkpoint.write(path)


def restore_weights(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights. Raises BadCheckpoint unless all have the right name, shape and dtype and are
    finite."""
    try:
        load_weights(module, tensors)
    except ValueError as error:
        raise BadCheckpoint(str(error)) from None


def _split_off_tensors(tree: Tree, prefix: str, tensors: dict[str, Tensor]) -> Tree:
    """The tree without its tensors, which are added to tensors by path."""
    plain: Tree = {}
    for name, value in tree.items():
        if isinstance(value, Tensor):
            tensors[f"{prefix}{name}"] = _unshared(value, tensors.values())
        elif isinstance(value, dict):
            plain[str(name)] = _split_off_tensors(value, f"{prefix}{name}/", tensors)
        else:
            plain[str(name)] = value
    return plain


def _tensors(tree: Tree) -> Iterator[Tensor]:
    for value in tree.values():
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict):
            yield from _tensors(value)


def _unshared(tensor: Tensor, others: Iterable[Tensor]) -> Tensor:
    """The tensor on the CPU, in memory that it shares with no other tensor to be saved."""
    tensor = tensor.detach().cpu().contiguous()
    is_shared = any(tensor.data_ptr() == other.data_ptr() for other in others)
    is_part = tensor.untyped_storage().nbytes() != tensor.nbytes
    return tensor.clone() if is_shared or is_part else tensor


def _insert(tree: Tree, path: list[str], tensor: Tensor, file: Path) -> None:
    """Put a tensor where its path leads. Raises BadCheckpoint if the path does not fit the tree."""
    parent: Any = tree if len(path) > 1 else None
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or path[-1] in parent:
        shown = sanitized("/".join(path), 60)
        raise BadCheckpoint(f"{file} has a tensor '{shown}' that belongs nowhere")
    parent[path[-1]] = tensor


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_header(path: Path) -> None:
    """Raises ValueError for a file or header that is too large, and for a header that repeats a
    name."""
    size = path.stat().st_size
    with storage.open_to_read(path.parent, path.name) as file:
        length = int.from_bytes(file.read(8), "little")
        if size > MAX_FILE_BYTES or length > MAX_HEADER_BYTES:
            raise ValueError(f"a file of {size:,} bytes with a header of {length:,} is too large")
        parse_json(file.read(length))


def _check_format(path: Path, header: dict[str, str]) -> None:
    """Raises BadCheckpoint for a file of another format."""
    number = int(header.get("format", 0))
    if number != FORMAT:
        age = "a newer" if number > FORMAT else "an older"
        raise BadCheckpoint(
            f"{path} has format {sanitized(number, 40)}, which {age} version of rlgames reads; "
            f"this one reads format {FORMAT}"
        )


def _object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError for other text."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("its JSON is not an object")
    return value


def _as_os_error(error: Exception, path: Path) -> OSError:
    """The system's error behind one of safetensors."""
    match = re.search(r"os error (\d+)", str(error))
    number = int(match[1]) if match else errno.EIO
    return OSError(number, os.strerror(number), str(path))
