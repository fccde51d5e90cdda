"""Opens the files of runs and sweeps. Nothing else in the package opens one to write it.

A file is named relative to the directory of its run or sweep, with / between folders. A directory
may come from a stranger: check_plain comes first. A write survives power loss once it returns,
unless its docstring says otherwise.
"""

from __future__ import annotations

import contextlib
import errno
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
"""How the names of files end that are not complete."""


def check_plain(directory: Path) -> None:
    """Raises ConfigError if there is anything in a directory but folders and regular files: reading
    it might never end, and writing might change something elsewhere. Also raises OSError."""
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


def read_file(directory: Path, name: str, max_bytes: int) -> bytes:
    """The content of a file. Raises OSError, also for one longer than max_bytes."""
    with open_to_read(directory, name) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(directory / name))
    return content


def read_end(directory: Path, name: str, max_bytes: int) -> bytes:
    """The last max_bytes of a file. Raises OSError."""
    with open_to_read(directory, name) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - max_bytes))
        return file.read(max_bytes)


def stamp(path: str | Path) -> tuple[int, ...] | None:
    """What changes when a file does, the time first; None without one."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_size, status.st_ino


def cache_folder() -> Path:
    """The folder of caches; without a home directory, as in some containers, one that can be
    neither read nor made."""
    home = os.path.expanduser("~")
    home = os.devnull if home == "~" else home
    return Path(os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache")


def open_to_read(directory: Path, name: str) -> BinaryIO:
    """Raises OSError."""
    return _open(directory / name, os.O_RDONLY, "rb")


def open_to_append(directory: Path, name: str) -> BinaryIO:
    """A file to which lines are added, created if it is missing; sync_file makes them durable.
    Raises OSError."""
    return _open(directory / name, os.O_RDWR | os.O_APPEND | os.O_CREAT, "ab")


def cut_file(directory: Path, name: str, num_bytes: int) -> None:
    """Keep only the first bytes of a file. Raises OSError."""
    with open_to_append(directory, name) as file, errors_name(directory / name):
        file.truncate(num_bytes)
        sync_file(file)


def create_file(directory: Path, name: str) -> BinaryIO:
    """A new file, whose content sync_file makes durable. Raises OSError, also for one that
    exists."""
    file = _open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb")
    sync_directory((directory / name).parent)
    return file


def write_file(directory: Path, name: str, content: bytes | str, durable: bool = True) -> None:
    """Replace a file as replace_file does."""
    with replace_file(directory, name, durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replace_file(directory: Path, name: str, durable: bool = True) -> Iterator[BinaryIO]:
    """A temporary file, which replaces a file at the end of the block: whatever happens, that
    holds the whole old or the whole new content.

    The temporary file has a name that no other process uses, so that several may replace a file.
    durable: whether the new content survives power loss from then on.
    Raises OSError; the file is then unchanged.
    """
    path = directory / name
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    with errors_name(path):
        try:
            with _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:  # a temporary file takes up space
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    if durable:
        sync_directory(path.parent)


def sync_file(file: BinaryIO) -> None:
    """Force what was written to the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """A block in which an OSError gets this path, for example while an open file is written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
            del error.filename2  # None would be shown
        raise


def remove_file(directory: Path, name: str) -> None:
    """Remove a file if it exists, durably. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(directory / name)
        sync_directory((directory / name).parent)


def make_directory(path: Path) -> list[Path]:
    """Create a directory and its parents, durably; those that were created, outermost first.

    Raises OSError. FileExistsError means that the path itself is not a directory, FileNotFoundError
    that another process has removed it just now.
    """
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)][::-1]
    created = []
    for each in missing:
        try:
            each.mkdir()
        except FileExistsError:  # by another process, just now
            continue
        created.append(each)
        sync_directory(each.parent)
    if not stat.S_ISDIR(path.stat().st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    if not created:  # a launcher may have made it just now
        with contextlib.suppress(PermissionError):
            sync_directory(path.parent)
    return created


def make_folder(directory: Path, name: str) -> None:
    """Create a folder inside a run or sweep, and those around it, if they are missing, durably.
    Raises OSError."""
    folder = directory
    for part in name.split("/"):
        folder /= part
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            sync_directory(folder.parent)


def move_folder(directory: Path, name: str, target: str) -> None:
    """Rename a folder of a directory, durably; the folders above the new one are created."""
    make_folder(directory, target.rpartition("/")[0])
    os.rename(directory / name, directory / target)
    sync_directory((directory / name).parent)
    sync_directory((directory / target).parent)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with errors_name(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def _open(path: Path, flags: int, mode: str) -> BinaryIO:
    return os.fdopen(os.open(path, flags | os.O_CLOEXEC, 0o666), mode)  # type: ignore[return-value]
