"""How kernels are compiled.

A kernel is a function of numbers and numpy arrays. Numba compiles it at its first call and keeps
it on disk. Numba takes a second to import: only games, which every command loads late, import it
with their file; all others import kernels where they call them.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.types import unliteral

P = ParamSpec("P")
R = TypeVar("R")


def jit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compiles a function that uses no Python objects; while it runs, other threads also run.

    options: numba's, for example inline. `parallel` is not for us: its threads do not survive a
    fork. If neither the package's folder nor the user's cache can be written, every process
    compiles them again.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        compiled = numba.njit(function, nogil=True, **options)
        template = compiled.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            # Otherwise a function that is called with 0 and with n would be compiled twice.
            return template(tuple(map(unliteral, args)), kws)

        compiled.get_call_template = get_call_template
        with suppress(RuntimeError):  # no folder can be written
            compiled._cache = _KernelCache(function)
        return compiled  # type: ignore[no-any-return]

    return decorate


RULES_OF_TYPE: dict[type, str] = {}
"""The modules that implement rules, by the types of their tables; see kernels/rules.py."""


class _KernelCache(FunctionCache):
    """A cache that compiles a kernel again after a change to what it uses.

    Numba 0.68 compares only the file of the function itself, so a kernel would keep the old code of
    functions that it calls from other files. Here the file's stamp covers all kernels that it
    imports; and the key of the code for a game's rules covers the files of these rules.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = digest_of_sources(function.__module__)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Waits for another process that compiles the same, as two jobs of a sweep would."""
        load = super().load_overload
        found = load(signature, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            byte = self._byte(signature, target_context.codegen())
            end = time.monotonic() + MAX_WAIT_SECONDS
            while not _lock(self._cache_path, byte) and time.monotonic() < end:
                time.sleep(0.05)
                if found := load(signature, target_context):  # type: ignore[no-untyped-call]
                    break
            else:  # saved in the meantime
                found = load(signature, target_context)  # type: ignore[no-untyped-call]
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        super().save_overload(signature, data)  # type: ignore[no-untyped-call]
        _unlock(self._cache_path, self._byte(signature, data.codegen))

    def _byte(self, signature: Any, codegen: Any) -> int:
        """The byte of the lock file whose lock says that this is being compiled."""
        text = f"{self._cache_file._index_name} {self._index_key(signature, codegen)}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        # The text of the signature: reading the index must not import the modules of all rules.
        _, *others = super()._index_key(signature, codegen)  # type: ignore[no-untyped-call]
        types = signature if isinstance(signature, tuple) else signature.args
        classes = (getattr(each, "instance_class", None) for each in types)
        modules = sorted(RULES_OF_TYPE[each] for each in classes if each in RULES_OF_TYPE)
        rules = [(module, digest_of_sources(module)) for module in modules]
        return (str(signature), *others, *rules)


MAX_WAIT_SECONDS = 100
"""A process that could not compile a kernel holds its lock until it ends."""


def _lock(folder: str, byte: int) -> bool:
    """Whether no other process holds this lock; from now on, this one does."""
    try:
        fcntl.lockf(_lock_file(folder), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, or a folder that cannot be written
        return True
    return True


def _unlock(folder: str, byte: int) -> None:
    with suppress(OSError):
        fcntl.lockf(_lock_file(folder), fcntl.LOCK_UN, 1, byte)


@cache
def _lock_file(folder: str) -> int:
    """Open until the end of the process: to close it would release all of its locks."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return os.open(Path(folder) / "compiling.lock", os.O_RDWR | os.O_CREAT, 0o666)


@cache
def digest_of_sources(module: str) -> str:
    """A digest of the files of a module and of those that it imports, as far as they are the
    package's and compile functions, or belong to the same package of somebody else."""
    others = f"{module.partition('.')[0]}."
    sources: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in sources or file is None:
            continue
        sources[name] = _text(file)
        imported = (
            resolve_name(line[1], name.rpartition(".")[0])
            for line in IMPORT.finditer(sources[name])
        )
        waiting += [each for each in imported if _is_source(each, others)]
    text = "\n".join(sources[name] for name in sorted(sources))
    return hashlib.sha256(text.encode()).hexdigest()


def _is_source(module: str, others: str) -> bool:
    """Whether compiled code may depend on an imported module; others: the package that imports."""
    if module.startswith(f"{__package__}."):
        return True
    if not module.startswith(PACKAGE):
        return module.startswith(others)
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and COMPILES.search(_text(file)) is not None


@cache
def _text(file: str) -> str:
    return Path(file).read_text()


PACKAGE = f"{__package__.partition('.')[0]}."

COMPILES = re.compile(r"^@(?:compiled|jit|found_by_type)\b", re.MULTILINE)

IMPORT = re.compile(r"^(?:from|import) +([\w.]+)", re.MULTILINE)


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
