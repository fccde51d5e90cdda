"""How kernels are compiled.

A kernel is a function of numbers and numpy arrays. Numba compiles it at its first call and keeps
it on disk. Numba takes a second to import, so files import kernels where they call them.
"""

from __future__ import annotations

import atexit
import hashlib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")


def jit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compiles a function that uses no Python objects; while it runs, other threads run, too.

    options: numba's, for example inline. `parallel` is not for us: its threads do not survive a
    fork. Where neither the package's folder nor the user's cache can be written, every process
    compiles them again.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        try:
            compiled = numba.njit(function, cache=True, nogil=True, **options)
            _cache_by_all_sources(compiled)
        except RuntimeError:
            compiled = numba.njit(function, nogil=True, **options)
        return compiled  # type: ignore[no-any-return]

    return decorate


@cache
def _digest_of_all_kernels() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_by_all_sources(compiled: Any) -> None:
    """Compile again after a change to any kernel.

    Numba 0.68 compares only the file of the function itself, so that a kernel would keep the old
    code of functions that it calls from other files. Without compilation there is no cache.
    """
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        stamp = cache_file._source_stamp
        cache_file._source_stamp = (stamp, _digest_of_all_kernels())


class _Progress(event.Listener):
    """Says on standard error what is compiled: on a terminal in a line that is erased afterwards,
    and at the end of the process in a line with the number of kernels and the total time."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._count, self._seconds = 0, 0.0

    def on_start(self, event: Any) -> None:
        if not self._starts:  # functions that it calls are compiled with it
            name = event.data["dispatcher"].py_func.__name__
            self._show(f"\rrlgames: compiling kernels (once): {self._count + 1}, {name} ...")
        self._starts.append(time.perf_counter())

    def on_end(self, event: Any) -> None:
        seconds = time.perf_counter() - self._starts.pop()
        if not self._starts:
            self._count, self._seconds = self._count + 1, self._seconds + seconds
            self._show("\r\x1b[K")

    def _show(self, text: str) -> None:
        if sys.stderr.isatty():
            print(text, end="", file=sys.stderr, flush=True)

    def report(self) -> None:
        if self._count:
            kernels = "1 kernel" if self._count == 1 else f"{self._count} kernels"
            text = f"rlgames: compiled {kernels} (once) in {self._seconds:.1f} s"
            with suppress(OSError, ValueError):  # standard error may be closed by now
                print(text, file=sys.stderr, flush=True)


# Loading what is on disk does not count as compiling.
_progress = _Progress()
event.register("numba:compile", _progress)
atexit.register(_progress.report)
