"""Limits on what a solver may use, and what it says when they do not reach the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

TELL_EVERY = 0.1
"""Seconds between calls for progress."""


class OutOfBudget(Exception):
    """The optimum is out of reach of the time or the memory given; the message says which."""


class Budget:
    """The limits on time and memory, and what has been used of them."""

    def __init__(
        self,
        seconds: float | None,
        memory_bytes: int | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.seconds, self.memory_bytes, self.progress = seconds, memory_bytes, progress
        self.start = time.perf_counter()
        self.held, self.found, self.valued = 0, 0, 0
        self.told = -math.inf

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def hold(self, size: int) -> None:
        """Count bytes as in use; a negative size gives them back."""
        self.held += size

    def spare(self, size: int) -> bool:
        """Whether there is memory to keep what can be worked out again."""
        return self.memory_bytes is None or self.held + size < self.memory_bytes / 4

    def check(self, passing: int = 0) -> None:
        """Raise OutOfBudget at a limit. passing: bytes needed in the step to come."""
        far = f"{self.found:,} states found, {self.valued:,} valued"
        if self.seconds is not None and self.elapsed() >= self.seconds:
            raise OutOfBudget(f"not done after {self.seconds:g} s: {far}")
        if self.memory_bytes is not None and self.held + passing > self.memory_bytes:
            size = self.memory_bytes / 2**30
            raise OutOfBudget(f"more than {size:g} GiB of memory would be needed: {far}")
        if self.progress is not None and self.elapsed() > self.told + TELL_EVERY:
            self.told = self.elapsed()
            self.progress(self.found)
