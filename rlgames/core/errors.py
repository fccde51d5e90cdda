"""Errors for users: one line with the cause, and a hint."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec

from rlgames.core.text import printable

TRACEBACK = "RLGAMES_TRACEBACK"
"""Environment variable: if set, unexpected errors show a traceback."""


class ConfigError(Exception):
    """Bad input: one line that names the mistake, and a hint how to fix it."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(f"{error}; {hint}" if hint else error)
        self.error, self.hint = error, hint


@contextlib.contextmanager
def value_errors(before: str = "", hint: str = "") -> Iterator[None]:
    """A block whose ValueErrors are the user's mistakes. before: each message, in the ConfigError
    that is raised instead."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{before}{error}", hint) from None


class NonFiniteError(ArithmeticError):
    """A NaN or an infinity that did not reach the weights; the message names the tensor."""


class UnknownOption(ConfigError):
    """A name that no option of its group has."""


class JobsFailed(ConfigError):
    """Some jobs of a sweep are not done."""


def to_user_error(error: Exception, hint: str = f"{TRACEBACK}=1 shows where") -> ConfigError:
    """An unexpected error as one line for the user, who may have written what failed.

    hint: how to see its traceback.
    """
    texts = [_reason(error), *getattr(error, "__notes__", [])]
    text = "; ".join(" ".join(each.split()) for each in texts)
    if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", text):
        return ConfigError("out of memory", "smaller batch= or games= may help")
    place = own_place(error)
    if isinstance(error, OSError | ArithmeticError) and not place:
        return ConfigError(text)
    return ConfigError(
        f"{type(error).__name__}: {text}", f"it was raised in {place}; {hint}" if place else hint
    )


def _reason(error: Exception) -> str:
    """The message of an error; of the system's, without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def own_place(error: BaseException) -> str:
    """The file and the line where an error came from, in code that belongs neither to rlgames nor
    to an installed library; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_installed(frame.filename)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else ""


def _is_installed(file: str) -> bool:
    """Whether a file of code belongs to rlgames, to Python or to an installed library."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    plugins = os.path.join(os.path.dirname(package), "hydra_plugins")
    starts = tuple(f"{folder}{os.sep}" for folder in (package, plugins, *folders))
    is_script = os.path.basename(file) in ("rlgames", "__main__.py")
    return file.startswith(("<", *starts)) or is_script


def closest(word: str, names: Iterable[str]) -> str | None:
    """The name that a word may be a typing error of; None if none is close."""
    matches = difflib.get_close_matches(word, [*names], 1, 0.7)
    return matches[0] if matches else None


def nearest(word: str, names: Sequence[str], otherwise: str = "") -> str:
    """A hint with the closest of the names. If none is close, another one, or all names; the keys
    of a listed group, as in group.key, are not listed as well."""
    if (name := closest(word, names)) is not None:
        return f"did you mean {name}?"
    listed = sorted(name for name in names if name.rpartition(".")[0] not in names)
    return otherwise or "available: " + ", ".join(listed)


def report_error(error: ConfigError, as_json: bool = False, code: int = 2) -> int:
    """Print an error in one line and return its exit code, by default the one for bad input."""
    if as_json:
        print(json.dumps({"error": error.error, "hint": error.hint}))
    else:
        line = f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else "")
        print(printable(line), file=sys.stderr)
    return code


def detach_stdout() -> None:
    """Redirect a closed standard output to null, so that Python does not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_progress(line: str) -> None:
    """Print a line of work that continues where nobody can read it, as on a full disk."""
    try:
        print(printable(line), flush=True)
    except OSError as error:
        detach_stdout()
        if not isinstance(error, BrokenPipeError):
            report_error(ConfigError(f"standard output: {error.strerror}", "the work continues"))


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Raises ConfigError unless these packages, which an extra of rlgames installs, are there."""
    missing = " and ".join(name for name in packages if find_spec(name) is None)
    if missing:
        raise ConfigError(f"{what} needs {missing}", f"pip install 'rlgames-lab[{extra}]'")
