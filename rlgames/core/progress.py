"""How much of a long computation is done, for whoever listens: nobody by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float], None]
"""Called with the fraction of a computation that is done."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """A block whose progress this listener hears, in this thread; None: nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(index: int, count: int) -> Iterator[None]:
    """A block that is one of `count` equal parts of what the listener waits for."""
    outer = _listener.get()
    inner = None if outer is None else lambda fraction: outer((index + fraction) / count)
    with listening(inner):
        yield
    report((index + 1) / count)


def has_listener() -> bool:
    """Whether anybody listens, if a fraction takes time to compute."""
    return _listener.get() is not None


def report(fraction: float) -> None:
    """Tell the listener, if there is one, which fraction is done."""
    listener = _listener.get()
    if listener is not None:
        listener(fraction)
