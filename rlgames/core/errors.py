"""Errors: one line that says what was wrong, and a hint that helps."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys

from rlgames.core.text import json_text, printable

TRACEBACK = "RLGAMES_TRACEBACK"
"""An environment variable; where it is set, errors that nobody foresaw show where they arose."""


class ConfigError(Exception):
    """Bad input: one line that says what was wrong, and a hint that mends it."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error, self.hint = error, hint
        if hint:
            self.add_note(hint)  # for whoever reads a traceback


class UnknownPart(ConfigError):
    """A part by a name that no option has."""


def to_user_error(error: Exception) -> ConfigError:
    """What to say of an error that is nobody's input."""
    text = "; ".join(" ".join(each.split()) for each in [str(error), *_notes(error)])
    if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", text):
        return ConfigError("the memory is not enough", "smaller batch= or games= may help")
    if isinstance(error, OSError | ArithmeticError):
        return ConfigError(text)
    return ConfigError(f"{type(error).__name__}: {text}", f"{TRACEBACK}=1 shows where")


def _notes(error: BaseException) -> list[str]:
    """What was added to an error where it passed."""
    return list(getattr(error, "__notes__", []))


def nearest(word: str, names: list[str]) -> str:
    """A hint with the nearest of names, or with all of them where none is near."""
    near = difflib.get_close_matches(word, names, 1, 0.5)
    return f"did you mean {near[0]}?" if near else "there is: " + ", ".join(sorted(names))


def report_error(error: ConfigError, as_json: bool, code: int = 2) -> int:
    """Say what was wrong in one line; the exit code, by default that for bad input."""
    if as_json:
        print(json_text({"error": error.error, "hint": error.hint}))
    else:
        line = f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else "")
        print(printable(line), file=sys.stderr)
    return code


def detach_stdout() -> None:
    """Whoever read standard output has gone; leave nothing that Python would complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def nearest_directory(name: str) -> str:
    """A hint for a directory that is not there: another one beside it, if its name is near."""
    folder, stroke, _ = name.rpartition("/")
    found: list[str] = []
    with contextlib.suppress(OSError, ValueError), os.scandir(folder + stroke or ".") as entries:
        found = [f"{folder}{stroke}{entry.name}" for entry in entries if entry.is_dir()]
    hint = nearest(name, found)
    return hint if hint.startswith("did you mean") else ""
