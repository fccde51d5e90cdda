"""A checkpoint: one safetensors file of tensors, with everything else as JSON in its header."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import safetensors
import torch
from torch import Tensor, nn

from rlgames.core.errors import ConfigError
from rlgames.core.pages import release_pages
from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import parse_object, sanitized
from rlgames.runs import storage
from rlgames.runs.files import read_header

Tree = dict[str, Any]
"""Maps names without slashes to trees, tensors, numbers, text, None, and lists of these."""

FORMAT = 6
"""Only files of this format are read."""

CHECKSUMS = ("policy_sha256", "sha256")

MAX_FILE_BYTES = 1 << 34
"""Larger files are not read."""

MAX_CONFIG_LENGTH = 1 << 14
"""Longer configs, in characters of JSON, are neither written nor read."""

MAX_GAMES = 10**12

PART_BYTES = 1 << 24
"""Tensors are written and checked in parts, so that neither takes memory for a second copy."""

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""The names of safetensors' format. Its own writer takes only tensors that are contiguous, and
those of a compiled table are not."""


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

    def write(self, path: Path, is_mapped: bool = False) -> None:
        """Write a temporary file, force it to the disk and rename it: path always holds a whole
        checkpoint, the old or the new one.

        is_mapped: the tensors are mapped from a file, and their memory is given back.
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
        read = partial(_parts, is_mapped=is_mapped)
        header |= checksums(header, tensors, lambda name: read(tensors[name]))
        layout, offset = {}, 0
        # The format wants every tensor at a multiple of its size: the largest numbers go first.
        ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
        for name, tensor in ordered:
            ends = [offset, offset + tensor.nbytes]
            dtype = DTYPES[tensor.dtype]
            layout[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": ends}
            offset = ends[1]
        text = json.dumps({"__metadata__": header, **layout}).encode()
        text += b" " * (-len(text) % 8)
        if 8 + len(text) + offset > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        with storage.replace_file(path.parent, path.name) as file, storage.errors_name(path):
            file.write(len(text).to_bytes(8, "little") + text)
            for _, tensor in ordered:
                for part in read(tensor):
                    file.write(part)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a file; no code in it is run.

        Raises BadCheckpoint unless it is a whole regular file in this format.
        """
        while True:
            version = storage.stamp(path)
            try:
                checkpoint = cls._read(path)
            except BadCheckpoint:
                if storage.stamp(path) == version:
                    raise
            else:
                if storage.stamp(path) == version:
                    return checkpoint
            # A training has replaced the file, which is opened several times.

    @classmethod
    def _read(cls, path: Path) -> Checkpoint:
        if not path.exists():
            raise BadCheckpoint(f"there is no checkpoint at {path}")
        if not path.is_file():
            raise BadCheckpoint(f"{path} is not a checkpoint file")
        try:
            if (size := path.stat().st_size) > MAX_FILE_BYTES:
                raise ValueError(f"a file of {size:,} bytes is too large")
            layout, start = read_header(path.parent, path.name)
            with safetensors.safe_open(path, "pt") as content:
                header = dict(content.metadata() or {})
                _check_format(path, header)
                names = list(content.keys())
            tensors = {name: _map_tensor(path, name) for name in names}
            stored = {name: header.pop(name) for name in CHECKSUMS}
            if len(header["config"]) > MAX_CONFIG_LENGTH:
                raise ValueError("its config is too long")
            config, state = (parse_object(header[name]) for name in ("config", "state"))
            games = int(header["games"])
            if not 0 <= games <= MAX_GAMES:
                raise ValueError(f"{games:,} is not a possible number of games")
            with storage.open_to_read(path.parent, path.name) as file:
                offsets = {name: layout[name]["data_offsets"] for name in tensors}
                found = checksums(
                    header, tensors, lambda name: _stored_parts(file, start, offsets[name])
                )
        except (
            safetensors.SafetensorError,
            KeyError,
            ValueError,
            OSError,
            RuntimeError,
            TypeError,
        ) as error:
            if "allocate memory" in str(error):
                raise MemoryError from None
            raise BadCheckpoint(
                f"{path} is not a readable checkpoint ({sanitized(error)})"
            ) from None
        if found != stored:
            raise BadCheckpoint(
                f"{path} is damaged: its content does not match its checksum",
                "use another checkpoint of the run",
            )
        tree: Tree = {"policy": {}, "state": state}
        for name, tensor in tensors.items():
            _insert(tree, name.split("/"), tensor, path)
        return cls(config, games, tree["policy"], state)


def read_identity(path: Path) -> str | None:
    """What identifies a policy and how it was trained: the checksum of its tensors, its config and
    its games, which the header of a checkpoint has; None without a checkpoint."""
    try:
        header = read_header(path.parent, path.name)[0]["__metadata__"]
        text = " ".join(str(header.get(name)) for name in ("policy_sha256", "config", "games"))
    except (AttributeError, LookupError, OSError, ValueError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def resume_state_bytes(path: Path) -> int:
    """The bytes of a checkpoint's tensors that only a resume needs; 0 without any."""
    try:
        header, _ = read_header(path.parent, path.name)
        sizes = [
            entry["data_offsets"][1] - entry["data_offsets"][0]
            for name, entry in header.items()
            if name.startswith("state/")
        ]
    except (ConfigError, LookupError, OSError, TypeError, ValueError):
        return 0  # no checkpoint of ours
    return sum(map(int, sizes))


def drop_state(path: Path) -> None:
    """Replace a checkpoint by one of its policy and its progress. Raises BadCheckpoint and OSError.

    The state, which may be large, is read for its checksum alone, and never in memory as a whole.
    """
    checkpoint = Checkpoint.read(path)
    progress = {name: value for name, value in checkpoint.state.items() if name == "progress"}
    replace(checkpoint, state=progress).write(path, is_mapped=True)


def restore_weights(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights. Raises BadCheckpoint unless all have the right name, shape and dtype and are
    finite."""
    try:
        load_weights(module, tensors)
    except ValueError as error:
        raise BadCheckpoint(
            f"{error}", "train it again if another version of rlgames has saved it"
        ) from None


def _split_off_tensors(tree: Tree, prefix: str, tensors: dict[str, Tensor]) -> Tree:
    """The tree without its tensors, which are added to tensors by path."""
    plain: Tree = {}
    for name, value in tree.items():
        if isinstance(value, Tensor):
            tensors[f"{prefix}{name}"] = value.detach().cpu()
        elif isinstance(value, dict):
            plain[str(name)] = _split_off_tensors(value, f"{prefix}{name}/", tensors)
        else:
            plain[str(name)] = value
    return plain


def _insert(tree: Tree, path: list[str], tensor: Tensor, file: Path) -> None:
    """Put a tensor where its path leads. Raises BadCheckpoint if the path does not fit the tree."""
    parent: Any = tree if len(path) > 1 else None
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or path[-1] in parent:
        shown = sanitized("/".join(path), 60)
        raise BadCheckpoint(f"{file} has a tensor '{shown}' that belongs nowhere")
    parent[path[-1]] = tensor


def checksums(
    header: dict[str, str],
    tensors: Mapping[str, Tensor],
    content: Callable[[str], Iterable[bytes | memoryview]],
) -> dict[str, str]:
    """The CHECKSUMS of a checkpoint: of its policy's tensors, and of everything.

    content: of the tensor of a name, in parts.
    """
    policy = hashlib.sha256()
    rest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest = policy if name.startswith("policy/") else rest
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        for part in content(name):
            digest.update(part)
    rest.update(policy.digest())
    return dict(zip(CHECKSUMS, (policy.hexdigest(), rest.hexdigest()), strict=True))


def _parts(tensor: Tensor, is_mapped: bool = False) -> Iterator[memoryview]:
    """The content of a tensor, which may have gaps, in parts of at most PART_BYTES or one row.

    is_mapped: give back the memory of each part afterwards.
    """
    if not tensor.numel():
        return
    rows = tensor if tensor.dim() else tensor[None]
    for part in rows.split(max(1, PART_BYTES * len(rows) // rows.nbytes)):
        yield part.contiguous().view(-1).view(torch.uint8).numpy().data
        if is_mapped:
            release_pages(part)


def _stored_parts(file: BinaryIO, start: int, ends: Sequence[int]) -> Iterator[bytes]:
    """The same, read from a file, so that no page of a mapping is touched."""
    file.seek(start + ends[0])
    for left in range(ends[1] - ends[0], 0, -PART_BYTES):
        yield file.read(min(left, PART_BYTES))


def _map_tensor(path: Path, name: str) -> Tensor:
    """A tensor of a file: a mapping by itself, so that its memory is free as soon as it is."""
    with safetensors.safe_open(path, "pt") as file:
        return cast(Tensor, file.get_tensor(name))


def _check_format(path: Path, header: dict[str, str]) -> None:
    """Raises BadCheckpoint for a file of another format."""
    number = int(header.get("format", 0))
    if number != FORMAT:
        age = "a newer" if number > FORMAT else "an older"
        raise BadCheckpoint(
            f"{path} has format {sanitized(number, 40)}, which {age} version of rlgames reads; "
            f"this one reads format {FORMAT}"
        )
