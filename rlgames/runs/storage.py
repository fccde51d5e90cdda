"""Opens the files of runs and studies. Nothing else in the package opens one to write it.

A file is named relative to its directory, with / between folders. A directory may come from a
stranger: check_plain comes first. A write survives power loss once it returns. All functions raise
OSError.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized

TEMPORARY = ".tmp"
"""How the names of incomplete files end."""


def check_plain(directory: Path) -> None:
    """Raises ConfigError if there is anything in a directory but folders and regular files: reading
    it might never end, and writing might change something elsewhere."""
    folders = [str(directory)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                # A training next to this process may replace a file at any moment.
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
                    elif not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                        is_file = stat.S_ISREG(status.st_mode)
                        what = "a hard link" if is_file else "a link or not a regular file"
                        hint = "remove it from the directory"
                        raise ConfigError(f"{sanitized(entry.path)} is {what}", hint)


def open_to_read(directory: Path, name: str) -> BinaryIO:
    return _open(directory / name, os.O_RDONLY, "rb")


def open_to_append(directory: Path, name: str) -> BinaryIO:
    """A file that lines are added to, created if it is missing; sync_file makes them durable."""
    return _open(directory / name, os.O_RDWR | os.O_APPEND | os.O_CREAT, "ab")


def read_file(directory: Path, name: str, max_bytes: int) -> bytes:
    """The content of a file. Also raises ValueError for one longer than max_bytes."""
    with open_to_read(directory, name) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it is longer than {max_bytes:,} bytes")
    return content


def write_file(directory: Path, name: str, content: bytes | str) -> None:
    """Replace a file as replace_file does."""
    with replace_file(directory, name) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replace_file(directory: Path, name: str) -> Iterator[BinaryIO]:
    """A temporary file, which replaces a file at the end of the block: whatever happens, that
    holds the whole old or the whole new content.

    The temporary file has a name that no other process uses, so that several may replace a file.
    If an error is raised, the file is unchanged.
    """
    path = directory / name
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    with errors_name(path):
        try:
            with _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb") as file:
                yield file
                sync_file(file)
            os.replace(temporary, path)
        except BaseException:  # a temporary file takes up space
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    sync_directory(path.parent)


def move_folder(directory: Path, name: str, target: str) -> None:
    """Rename a folder of a directory; the folders above the new one are created."""
    make_directory((directory / target).parent)
    os.rename(directory / name, directory / target)
    sync_directory((directory / name).parent)
    sync_directory((directory / target).parent)


def remove_file(directory: Path, name: str) -> None:
    """Remove a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(directory / name)
        sync_directory((directory / name).parent)


def make_directory(path: Path, is_new: bool = False) -> None:
    """Create a directory and those around it if they are missing. Raises FileExistsError if there
    is a file instead; is_new: or a directory."""
    missing = [folder for folder in path.parents if not folder.is_dir()]
    if is_new or not path.is_dir():
        path.mkdir(parents=True, exist_ok=not is_new)
    for folder in (path, *missing):
        with contextlib.suppress(PermissionError):
            sync_directory(folder.parent)


def sync_file(file: BinaryIO) -> None:
    """Force what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with errors_name(path):
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """A block where an OSError gets this path, for example while an open file is written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
            del error.filename2  # None would be shown
        raise


def _open(path: Path, flags: int, mode: str) -> BinaryIO:
    return os.fdopen(os.open(path, flags | os.O_CLOEXEC, 0o666), mode)  # type: ignore[return-value]
