"""What becomes of memory that is freed."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Names of glibc's settings, see malloc.h."""

LARGEST = 32 << 20
"""Bytes: glibc takes no larger limit for what it maps anew each time."""


def keep_freed_memory() -> None:
    """Have glibc keep what is freed for what comes next; elsewhere nothing is done.

    Otherwise the large tensors of each operation are given back to the system and fetched again,
    page by page.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGEST)
        mallopt(TRIM_THRESHOLD, 2**31 - 1)
