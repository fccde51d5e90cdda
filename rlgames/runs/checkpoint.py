"""A checkpoint: one safetensors file of tensors, with everything else as JSON in its header."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from rlgames.core.errors import ConfigError
from rlgames.core.tensor_checks import load_weights, parts
from rlgames.core.untrusted import checked_int, parse_object, sanitized
from rlgames.runs import storage

Tree = dict[str, Any]
"""Maps names to trees, tensors, numbers, text, None, and lists of numbers, text and None."""

FORMAT = 7
"""Only files of this format are read."""

NO_CHECKSUM = "0" * 64
"""Replaces the checksum in the content that it is of: the whole file."""

MAX_FILE_BYTES = 1 << 34
"""Larger files are neither written nor read."""

MAX_HEADER_BYTES = 1 << 24
"""Checkpoints with longer headers are not read."""

MAX_GAMES = 10**12

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""By their names in safetensors' format. Its own functions cannot be used: they write only tensors
without gaps, and they open a file by its name, which a training may have replaced meanwhile."""

DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class BadCheckpoint(ConfigError):
    """A file that this version cannot read as a checkpoint; the message says why."""


LARGE_BYTES = 500_000_000
"""If a checkpoint is larger, the run reports its disk use at the start."""

CHECKPOINTS_ON_DISK = 3
"""The best, the latest, and one that is being written."""


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

    def write(self, path: Path) -> None:
        """Replace a file durably: it always holds a whole checkpoint, the old or the new one.

        Raises OSError; the file is then unchanged. Raises ConfigError for what a checkpoint cannot
        hold.
        """
        state, tensors = self._content()
        metadata = {
            "sha256": NO_CHECKSUM,
            "format": str(FORMAT),
            "config": json.dumps(self.config),
            "games": str(self.games),
            "state": state,
        }
        _write_file(path, metadata, tensors)

    def as_read(self) -> Checkpoint:
        """What read returns for the file that write writes, without the file: all names have gone
        through its format, and the tensors are the same. Raises ConfigError as write."""
        state, tensors = self._content()
        config, plain = parse_object(json.dumps(self.config)), parse_object(state)
        return self._of(config, self.games, plain, tensors)

    def _content(self) -> tuple[str, dict[str, Tensor]]:
        """The state without its tensors, as JSON, and all tensors by their names in the file."""
        tensors: dict[str, Tensor] = {}
        plain = _split_off_tensors({"policy": self.policy, "state": self.state}, "", tensors)
        for name, value in plain["policy"].items():
            _check_plain(f"policy/{name}", value, ())
        return json.dumps(plain["state"]), tensors

    @classmethod
    def _of(cls, config: Tree, games: int, state: Tree, tensors: dict[str, Tensor]) -> Checkpoint:
        """A checkpoint of plain values, and of tensors by their names in a file."""
        tree: Tree = {"policy": {}, "state": state}
        for name, tensor in tensors.items():
            _insert(tree, [*map(_unescaped, name.split("/"))], tensor)
        return cls(config, games, tree["policy"], state)

    @property
    def nbytes(self) -> int:
        """The size of its tensors."""
        tensors: dict[str, Tensor] = {}
        _split_off_tensors({"policy": self.policy, "state": self.state}, "", tensors)
        return sum(tensor.nbytes for tensor in tensors.values())

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a file; no code in it is run.

        Its tensors are mapped, not copied: they stay as they are when the file is replaced.
        Raises BadCheckpoint unless it is a whole regular file in this format.
        """
        if not path.exists():
            raise BadCheckpoint(f"there is no checkpoint at {path}")
        if not path.is_file():
            raise BadCheckpoint(f"{path} is not a checkpoint file")
        try:
            with storage.open_to_read(path.parent, path.name) as file:
                return cls._parse(file)
        except BadCheckpoint as error:
            raise BadCheckpoint(f"{path} {error.error}", error.hint) from None
        except (LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise BadCheckpoint(
                f"{path} is not a readable checkpoint ({sanitized(reason)})"
            ) from None

    @classmethod
    def _parse(cls, file: BinaryIO) -> Checkpoint:
        """The content of an open file, after "there is ..." in an error."""
        if (size := os.fstat(file.fileno()).st_size) > MAX_FILE_BYTES:
            raise ValueError(f"a file of {size:,} bytes is too large")
        if not size:
            raise ValueError("it is empty")
        text, layout = _read_header(file)
        metadata = layout.pop("__metadata__")
        if (number := int(metadata["format"])) != FORMAT:
            age = "a newer" if number > FORMAT else "an older"
            raise BadCheckpoint(
                f"has format {sanitized(number, 40)}, which {age} version of rlgames reads; "
                f"this one reads format {FORMAT}"
            )
        if not _is_whole(file, text, str(metadata["sha256"])):
            raise BadCheckpoint(
                "is damaged: its content does not match its checksum",
                "use another checkpoint of the run",
            )
        config, state = (parse_object(metadata[name]) for name in ("config", "state"))
        games = checked_int(int(metadata["games"]), 0, MAX_GAMES)
        content = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        tensors = {name: _mapped(content, len(text), entry) for name, entry in layout.items()}
        return cls._of(config, games, state, tensors)


def _write_file(path: Path, metadata: dict[str, str], tensors: dict[str, Tensor]) -> None:
    """Write a file in safetensors' format. metadata: with NO_CHECKSUM, which is replaced. Raises
    OSError."""
    # The format wants every tensor at a multiple of its size: the largest numbers go first.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, tensor in ordered:
        ends = [offset, offset + tensor.nbytes]
        dtype = DTYPE_NAMES[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": ends}
        offset = ends[1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    text = len(text).to_bytes(8, "little") + text
    if len(text) > MAX_HEADER_BYTES or len(text) + offset > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    with storage.replace_file(path.parent, path.name) as file, storage.errors_name(path):
        digest = hashlib.sha256(text)
        file.write(text)
        for _, tensor in ordered:
            for part in parts(tensor):  # a copy of a whole column of a table takes memory
                data = part.contiguous().view(-1).view(torch.uint8).numpy().data
                digest.update(data)
                file.write(data)
        file.seek(0)
        file.write(text.replace(NO_CHECKSUM.encode(), digest.hexdigest().encode(), 1))


def read_identity(path: Path) -> str | None:
    """What identifies a checkpoint: its checksum; None without a checkpoint."""
    try:
        with storage.open_to_read(path.parent, path.name) as file:
            return str(_read_header(file)[1]["__metadata__"]["sha256"])
    except (LookupError, OSError, TypeError, ValueError):
        return None


def restore_weights(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights. Raises BadCheckpoint unless all have the right name, shape and dtype and are
    finite."""
    try:
        load_weights(module, tensors)
    except ValueError as error:
        raise BadCheckpoint(
            f"{error}", "train it again if another version of rlgames has saved it"
        ) from None


def disk_costs(checkpoint: Checkpoint, directory: Path) -> str:
    """What the checkpoints of a run take on the disk, in words; empty if it is little.

    checkpoint: the first one, which may not have optimizers yet.
    """
    size = checkpoint.nbytes
    if size < LARGE_BYTES:
        return ""
    free, most = shutil.disk_usage(directory).free / 1e9, CHECKPOINTS_ON_DISK * size / 1e9
    sizes = f"a checkpoint takes {size / 1e9:.1f} GB, so the run takes up to {most:.1f} GB"
    return f"{sizes}; {free:.1f} GB are free"


def _split_off_tensors(tree: Tree, prefix: str, tensors: dict[str, Tensor]) -> Tree:
    """The tree without its tensors, which are added to tensors by path. Raises ConfigError for a
    value that a checkpoint cannot hold."""
    plain: Tree = {}
    for name, value in tree.items():
        path = prefix + _escaped(str(name))
        if isinstance(value, Tensor):
            if value.dtype not in DTYPE_NAMES:
                raise ConfigError(f"a checkpoint cannot hold {path}, which is {value.dtype}")
            tensors[path] = value.detach().cpu()
        elif isinstance(value, dict):
            plain[str(name)] = _split_off_tensors(value, f"{path}/", tensors)
        else:
            _check_plain(path, value)
            plain[str(name)] = value
    return plain


def _check_plain(
    path: str, value: Any, kinds: tuple[type, ...] = (bool, int, float, str, NoneType)
) -> None:
    """Raises ConfigError unless a value is of one of these kinds, or a list of such values."""
    if isinstance(value, list | tuple) and kinds:
        for each in value:
            _check_plain(path, each, kinds)
    elif not isinstance(value, kinds):
        hint = "use a dict of tensors, numbers, texts, None, and lists of the last three"
        raise ConfigError(f"a checkpoint cannot hold {path}, a {type(value).__name__}", hint)


def _escaped(name: str) -> str:
    """A name as one part of a path (as in JSON pointers, RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _insert(tree: Tree, path: list[str], tensor: Tensor) -> None:
    """Put a tensor where its path leads. Raises BadCheckpoint if it leads nowhere."""
    parent: Any = tree if len(path) > 1 else None
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or path[-1] in parent:
        shown = sanitized("/".join(path), 60)
        raise BadCheckpoint(f"has a tensor '{shown}' that belongs nowhere")
    parent[path[-1]] = tensor


def _read_header(file: BinaryIO) -> tuple[bytes, dict[str, Any]]:
    """The bytes before the first tensor, and the JSON object in them.

    Raises ValueError for a header that is too long, repeats a name or is not a JSON object.
    """
    length = file.read(8)
    if (num_bytes := int.from_bytes(length, "little")) > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {num_bytes:,} bytes is too large")
    text = file.read(num_bytes)
    return length + text, parse_object(text)


def _is_whole(file: BinaryIO, text: bytes, checksum: str) -> bool:
    """Whether a file has this checksum. It was read up to the end of its header, text."""
    if len(checksum) != len(NO_CHECKSUM):
        return False
    digest = hashlib.sha256(text.replace(checksum.encode(), NO_CHECKSUM.encode()))
    done = hashlib.file_digest(file, lambda: digest)  # type: ignore[arg-type]
    return done.hexdigest() == checksum


def _mapped(content: mmap.mmap, start: int, entry: Any) -> Tensor:
    """A tensor of a mapped file. start: of the tensors. Raises ValueError, LookupError, TypeError
    or RuntimeError for an entry of the header that cannot be right."""
    dtype, shape = DTYPES[entry["dtype"]], [checked_int(size, 0) for size in entry["shape"]]
    first, end = (checked_int(place, 0, len(content) - start) for place in entry["data_offsets"])
    count = math.prod(shape)
    if end - first != count * dtype.itemsize or first % dtype.itemsize:
        raise ValueError("a tensor has not the size that it says")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(content, dtype=dtype, count=count, offset=start + first).view(shape)
