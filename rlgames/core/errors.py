"""Errors for users: one line with the cause, and a hint."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys

from rlgames.core.text import json_text, printable

TRACEBACK = "RLGAMES_TRACEBACK"
"""Environment variable: if set, unexpected errors show a traceback."""


class ConfigError(Exception):
    """Bad input: one line that says what was wrong, and a hint how to fix it."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error, self.hint = error, hint
        if hint:
            self.add_note(hint)  # shown in tracebacks


class UnknownPart(ConfigError):
    """A name that no option of its group has."""


def to_user_error(error: Exception) -> ConfigError:
    """An unexpected error as one line for the user."""
    text = "; ".join(" ".join(each.split()) for each in [str(error), *_notes(error)])
    if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", text):
        return ConfigError("out of memory", "smaller batch= or games= may help")
    if isinstance(error, OSError | ArithmeticError):
        return ConfigError(text)
    return ConfigError(f"{type(error).__name__}: {text}", f"{TRACEBACK}=1 shows where")


def _notes(error: BaseException) -> list[str]:
    """Notes that add_note attached to an error."""
    return list(getattr(error, "__notes__", []))


def nearest(word: str, names: list[str]) -> str:
    """A hint with the closest of the names, or with all of them if none is close."""
    matches = difflib.get_close_matches(word, names, 1, 0.5)
    return f"did you mean {matches[0]}?" if matches else "available: " + ", ".join(sorted(names))


def report_error(error: ConfigError, as_json: bool, code: int = 2) -> int:
    """Print an error in one line and return its exit code, by default the one for bad input."""
    if as_json:
        print(json_text({"error": error.error, "hint": error.hint}))
    else:
        line = f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else "")
        print(printable(line), file=sys.stderr)
    return code


def detach_stdout() -> None:
    """Redirect a closed standard output to null, so that Python does not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def nearest_directory(name: str) -> str:
    """A hint for a missing directory: a sibling with a similar name, or nothing."""
    parent, slash, _ = name.rpartition("/")
    siblings: list[str] = []
    with contextlib.suppress(OSError, ValueError), os.scandir(parent + slash or ".") as entries:
        siblings = [f"{parent}{slash}{entry.name}" for entry in entries if entry.is_dir()]
    hint = nearest(name, siblings)
    return hint if hint.startswith("did you mean") else ""
