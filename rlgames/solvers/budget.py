"""Limits on the time and memory of a solver."""

from __future__ import annotations

import time

MAX_MEMORY = 4 * 2**30
"""Bytes that a solver takes if nothing else is asked for."""


class OutOfBudget(Exception):
    """A solver needs more than its limit of time or memory; the message says which."""


class Budget:
    """The limits on time and memory, and what is in use."""

    def __init__(self, seconds: float | None, memory_bytes: int | None) -> None:
        self.seconds, self.memory_bytes = seconds, memory_bytes
        self.start = time.perf_counter()
        self.bytes_in_use, self.states_found = 0, 0

    def check(self, needed: int = 0) -> None:
        """Raise OutOfBudget at a limit. needed: bytes that the next step takes for itself."""
        progress = f"{self.states_found:,} positions so far"
        if self.seconds is not None and time.perf_counter() - self.start >= self.seconds:
            raise OutOfBudget(f"not done after {self.seconds:g} s: {progress}")
        if self.memory_bytes is not None and self.bytes_in_use + needed > self.memory_bytes:
            size = self.memory_bytes / 2**30
            raise OutOfBudget(f"more than {size:g} GiB of memory would be needed: {progress}")
