"""How a process starts without delay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A block of a command's start that makes many objects and little garbage, as imports do.

    Later collections skip these objects.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
