"""Opens the files of runs and sweeps. Nothing else in the package opens one to write it.

A file is named relative to the directory of its run or sweep, with / between folders. Below that
directory no link is followed, and only regular files are opened: a directory may come from a
stranger. A write survives power loss once it returns, unless its docstring says otherwise.
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

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a FIFO waits for another process."""


def read_file(directory: Path, name: str, max_bytes: int) -> bytes:
    """The content of a file.

    Raises ConfigError for a file that is not regular, and OSError, also for a file that is missing
    or longer than max_bytes.
    """
    with open_to_read(directory, name) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(directory / name))
    return content


def read_end(directory: Path, name: str, max_bytes: int) -> bytes:
    """The last max_bytes of a file. Raises as read_file."""
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
    """Raises ConfigError for a file that is not regular, and OSError."""
    with _parent(directory, name) as (parent, last):
        _check_is_file(directory, name, parent, last)
        return os.fdopen(_open(directory, name, parent, last, os.O_RDONLY), "rb")


def open_to_append(directory: Path, name: str) -> BinaryIO:
    """A file to which lines are added, created if it is missing; sync makes them durable.

    Raises ConfigError for a file that is not regular, that belongs to somebody else or that has
    another name elsewhere, because writing would change that one, and OSError.
    """
    with _parent(directory, name) as (parent, last):
        with contextlib.suppress(FileNotFoundError):
            _check_is_file(directory, name, parent, last)
        handle = _open(directory, name, parent, last, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        status = os.fstat(handle)
        if status.st_nlink > 1 or status.st_uid not in (os.geteuid(), os.fstat(parent).st_uid):
            os.close(handle)
            what = "a hard link" if status.st_nlink > 1 else "another user's file"
            raise _refused(directory, name, what)
        return os.fdopen(handle, "ab")


def cut_file(directory: Path, name: str, num_bytes: int) -> None:
    """Keep only the first bytes of a file. Raises as open_to_append."""
    with open_to_append(directory, name) as file, errors_name(directory / name):
        file.truncate(num_bytes)
        sync_file(file)


def create_file(directory: Path, name: str) -> BinaryIO:
    """A new file, whose content sync makes durable. Raises OSError, also for one that exists."""
    with _parent(directory, name) as (parent, last):
        file = os.fdopen(_create(parent, last), "wb")
        os.fsync(parent)
        return file


def write_file(directory: Path, name: str, content: bytes | str, durable: bool = True) -> None:
    """Replace a file as replace_file does."""
    with replace_file(directory, name, durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replace_file(directory: Path, name: str, durable: bool = True) -> Iterator[BinaryIO]:
    """A temporary file, which replaces a file at the end of the block: whatever happens, that
    holds the whole old or the whole new content. A link in its place is replaced, not followed.

    The temporary file has a name that no other process uses, so that several may replace a file.
    durable: whether the new content survives power loss from then on.
    Raises OSError; the file is then unchanged.
    """
    with _parent(directory, name) as (parent, last):
        temporary = f"{last}.{secrets.token_hex(4)}{TEMPORARY}"
        try:
            with os.fdopen(_create(parent, temporary), "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, last, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:  # a temporary file takes up space
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        if durable:
            os.fsync(parent)


def remove_leftovers(directory: Path, pattern: str) -> None:
    """Remove the temporary files, of this pattern, of processes that died while they wrote."""
    for path in directory.glob(pattern):
        if path.is_file() or path.is_symlink():
            remove_file(directory, path.relative_to(directory).as_posix())


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
    """Remove a file if it exists, durably; of a link only the link. Raises OSError."""
    with (
        contextlib.suppress(FileNotFoundError),
        _parent(directory, name) as (parent, last),
    ):
        os.unlink(last, dir_fd=parent)
        os.fsync(parent)


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

    Raises ConfigError for anything else in their place, and OSError.
    """
    parts = name.split("/")
    for folder in ("/".join(parts[:number]) for number in range(1, len(parts) + 1)):
        with _parent(directory, folder) as (parent, last), contextlib.suppress(FileExistsError):
            os.mkdir(last, dir_fd=parent)
            os.fsync(parent)
    check_folder(directory, name)


def move_folder(directory: Path, name: str, target: str) -> None:
    """Rename a folder of a directory, durably; the folders above the new one are created."""
    check_folder(directory, name)
    make_folder(directory, target.rpartition("/")[0])
    os.rename(directory / name, directory / target)
    sync_directory((directory / name).parent)
    sync_directory((directory / target).parent)


def check_folder(directory: Path, name: str) -> None:
    """Raises ConfigError for anything but a folder inside a run or sweep, and OSError."""
    with _parent(directory, f"{name}/"):
        pass


def check_file(directory: Path, name: str) -> None:
    """Raises ConfigError for anything but a regular file, and OSError."""
    with _parent(directory, name) as (parent, last):
        _check_is_file(directory, name, parent, last)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk. Raises OSError."""
    handle = os.open(path, _DIRECTORY)
    try:
        with errors_name(path):
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _parent(directory: Path, name: str) -> Iterator[tuple[int, str]]:
    """The folder of a file as a descriptor, and the name of the file in it.

    Raises ConfigError where a folder is a link or no folder. An OSError in the block gets the path.
    """
    *folders, last = name.split("/")
    with contextlib.ExitStack() as stack:
        stack.enter_context(errors_name(directory / name))
        handle = os.open(directory, _DIRECTORY)
        stack.callback(os.close, handle)
        for number, folder in enumerate(folders, 1):
            try:
                handle = os.open(folder, _DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
                    raise
                what = "a link or no directory"
                raise _refused(directory, "/".join(folders[:number]), what) from None
            stack.callback(os.close, handle)
        yield handle, last


def _open(directory: Path, name: str, parent: int, last: str, flags: int) -> int:
    """The descriptor of a regular file. Raises ConfigError for anything else, and OSError."""
    try:
        handle = os.open(last, flags | _FILE, 0o666, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
            raise _refused(directory, name) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _refused(directory, name)
    return handle


def _create(parent: int, last: str) -> int:
    return os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=parent)


def _check_is_file(directory: Path, name: str, parent: int, last: str) -> None:
    """Raises ConfigError for anything but a regular file, without opening it: that alone may
    change a device."""
    if not stat.S_ISREG(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode):
        raise _refused(directory, name)


def _refused(directory: Path, name: str, what: str = "a link or no plain file") -> ConfigError:
    return ConfigError(f"{sanitized(directory / name)} is {what}", "remove it from the directory")
