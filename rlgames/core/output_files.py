"""Files that a person names for a command to write."""

from __future__ import annotations

import os
from pathlib import Path

from rlgames.core.errors import ConfigError


def check_writable(name: str, path: Path) -> None:
    """Make the folder of a file. Raises ConfigError if the file cannot be written, before any work
    is done for it. name: what the error calls it, such as picture=board.png."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "its folder is a file" if is_file else error.strerror
        raise ConfigError(f"{name} cannot be written: {reason}") from None
    if is_folder:
        raise ConfigError(f"{name} cannot be written: it is a folder")
    if not os.access(path if exists else path.parent, os.W_OK):
        raise ConfigError(f"{name} cannot be written: Permission denied")
