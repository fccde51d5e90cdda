"""Errors told in one line, with a hint that mends bad input; text that is safe to print."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from typing import Any

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


def explained(error: Exception) -> ConfigError:
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


def json_text(value: Any) -> str:
    return json.dumps(value)


def printable(text: str) -> str:
    """Text in one line, in which what controls a terminal is spelt out: names and paths may hold
    anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def stop(error: ConfigError, as_json: bool, code: int = 2) -> int:
    """Say what was wrong in one line; the exit code, by default that for bad input."""
    if as_json:
        print(json_text({"error": error.error, "hint": error.hint}))
    else:
        line = f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else "")
        print(printable(line), file=sys.stderr)
    return code


def silence() -> None:
    """Whoever read standard output has gone; leave nothing that Python would complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
