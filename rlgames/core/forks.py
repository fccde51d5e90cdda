"""Forks of this process that compute something while it goes on."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar, cast

import torch

from rlgames.core.processes import kill_with_parent
from rlgames.core.signals import STOP_SIGNALS

T = TypeVar("T")


def can_fork() -> bool:
    """Whether forks may be used: libraries of macOS start threads, which do not survive a fork;
    daemons may not have children."""
    return sys.platform == "linux" and not current_process().daemon


class Fork(Generic[T]):
    """A fork of this process, which ends with it. It sees everything as it is now.

    Start it where signals are held back (signals.held_back): an interruption in between is lost.

    compute: called in the fork; its values are received one by one.
    others: forks that still run. Their pipes are closed in this one, where they would stay open.
    """

    def __init__(
        self,
        compute: Callable[[], Iterable[T]],
        others: Sequence[Fork[T]] = (),
    ) -> None:
        context = get_context("fork")
        self._reader, writer = context.Pipe(duplex=False)
        readers = [self._reader, *(other._reader for other in others)]
        arguments = (compute, writer, readers, os.getpid())
        self._process = context.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        writer.close()

    def receive(self) -> T:
        """Wait for the next value. Raises what the fork raised, and ChildProcessError if it was
        killed."""
        try:
            result: Any = pickle.loads(self._reader.recv_bytes())
        except EOFError:
            raise ChildProcessError("a forked process was killed") from None
        if isinstance(result, BaseException):
            raise result
        return cast(T, result)

    def end(self) -> None:
        """Kill the fork if it still runs."""
        self._process.kill()
        self._process.join()
        self._reader.close()


def _run(
    compute: Callable[[], Iterable[T]],
    pipe: Connection,
    readers: Sequence[Connection],
    parent: int,
) -> None:
    """In the fork: send each value, or the exception."""
    kill_with_parent(parent)
    for reader in readers:
        reader.close()
    # A terminal or a batch system sends them to all its processes; the parent ends its forks.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    torch.set_num_threads(1)
    try:
        for value in compute():
            pipe.send_bytes(pickle.dumps(value))
    except BrokenPipeError:
        pass  # the parent has stopped reading
    except Exception as error:
        pipe.send_bytes(_pickle_exception(error))


def _pickle_exception(error: Exception) -> bytes:
    """The exception, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled
