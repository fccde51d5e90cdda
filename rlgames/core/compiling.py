"""What is said while kernels are compiled, and how long that took. Does not import numba."""

from __future__ import annotations

import atexit
import sys
import time
from contextlib import suppress

from rlgames.core.status import STATUS, can_erase

REFRESH_SECONDS = 0.5


class Compiling:
    """The kernels that this process compiles: what is on disk does not count."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._count, self._seconds, self._said = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        """The time spent so far."""
        return self._seconds + sum(time.perf_counter() - start for start in self._starts[:1])

    def begin(self) -> None:
        """A function is compiled; those that it calls are compiled with it."""
        now = time.perf_counter()
        self._starts.append(now)
        if len(self._starts) == 1 or now - self._said > REFRESH_SECONDS:
            self._said = now
            self._say()

    def end(self) -> None:
        """The function that began last is compiled."""
        seconds = time.perf_counter() - self._starts.pop()
        if not self._starts:
            self._count, self._seconds = self._count + 1, self._seconds + seconds
            STATUS.clear()

    def _say(self) -> None:
        text = f"first start: compiling kernel {self._count + 1}, {self.seconds:.0f} s so far"
        if not can_erase() and not self._count and len(self._starts) == 1:
            _print("first start: compiling kernels, which are kept for later starts")
        STATUS.say(text)

    def report(self) -> None:
        """Say how many kernels were compiled, if any."""
        if self._count:
            kernels = "1 kernel" if self._count == 1 else f"{self._count} kernels"
            _print(f"compiled {kernels} (once) in {self._seconds:.1f} s")


def _print(text: str) -> None:
    with suppress(OSError, ValueError):  # standard error may be closed by now
        print(f"rlgames: {text}", file=sys.stderr, flush=True)


def clock() -> float:
    """Seconds as time.perf_counter() counts them, without those spent on compiling kernels."""
    return time.perf_counter() - COMPILING.seconds


COMPILING = Compiling()
atexit.register(COMPILING.report)
