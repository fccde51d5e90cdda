"""How kernels are compiled.

A kernel is a function of numbers and numpy arrays. Numba compiles it at its first call and keeps
it on disk. Numba takes a second to import, so commands load what imports kernels late.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.types import unliteral

from rlgames.core.compiling import COMPILING
from rlgames.core.locks import locked
from rlgames.kernels.linking import is_compiling, keep_unwrapped

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
        compiled._compiler._customize_flags = keep_unwrapped
        template, compile_one = compiled.get_call_template, compiled.compile
        add_callable = compiled.add_overload
        inner = set[Any]()  # types that only other kernels have called it with
        with suppress(RuntimeError):  # no folder can be written
            compiled._cache = _KernelCache(function)

        def get_call_template(args: Any, kws: Any) -> Any:
            # Otherwise a function that is called with 0 and with n would be compiled twice.
            return template(tuple(map(unliteral, args)), kws)

        def compile_or_wait(signature: Any) -> Any:
            lock, types = getattr(compiled._cache, "lock", None), argument_types(signature)
            codegen = compiled.targetctx.codegen()
            with global_compiler_lock, lock(signature, codegen) if lock else nullcontext():
                if types in inner and not is_compiling():
                    inner.remove(types)
                    del compiled.overloads[types]  # that one cannot be called from Python
                return compile_one(signature)

        def add_overload(result: Any) -> None:
            if is_compiling():
                types = argument_types(result.signature)
                compiled.overloads[types] = result
                inner.add(types)
            else:
                add_callable(result)

        compiled.get_call_template = get_call_template
        compiled.compile, compiled.add_overload = compile_or_wait, add_overload
        return compiled  # type: ignore[no-any-return]

    return decorate


def argument_types(signature: Any) -> tuple[Any, ...]:
    """The types of a call, or of a signature with its result."""
    return tuple(signature if isinstance(signature, tuple) else signature.args)


class _KernelCache(FunctionCache):
    """A cache with one file for each function, signature, and state of the sources it depends on.

    Numba's cache compares only the file of the function itself, so a kernel would keep the old code
    of functions that it calls from other files. Its index is also shared by all signatures, and two
    processes that write it at once could exchange their code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = self  # type: ignore[assignment]  # loads and saves the files below
        self._folder = Path(self._cache_path)

    def _index_key(self, signature: Any, codegen: Any) -> Path:
        _, *others = super()._index_key(signature, codegen)  # type: ignore[no-untyped-call]
        types = argument_types(signature)
        # A table of rules is a named tuple of the module that implements them.
        tables = [each.instance_class for each in types if hasattr(each, "instance_class")]
        modules = sorted({each.__module__ for each in (self._py_func, *tables)})
        sources = _short_hash(numba.__version__, others, *map(digest_of_sources, modules))
        return self._folder / f"{self._name_of(signature)}.{sources}.nbc"

    def _name_of(self, signature: Any) -> str:
        return f"{self._impl.filename_base}.{_short_hash(signature, is_compiling())}"

    def load(self, path: Path) -> Any:
        """What is in a file; None if there is none."""
        try:
            return pickle.loads(path.read_bytes())
        except FileNotFoundError:
            return None

    def save(self, path: Path, data: Any) -> None:
        """Write a file instead of the one for other sources."""
        for other in self._folder.glob(f"{path.name.rsplit('.', 2)[0]}.*.nbc"):
            other.unlink(missing_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(dumps(data))
        unfinished.replace(path)

    @contextmanager
    def lock(self, signature: Any, codegen: Any) -> Iterator[None]:
        """Wait for another process that compiles the same, as two jobs of a sweep would."""
        if self._index_key(signature, codegen).exists():
            yield
            return
        path = self._folder / f"{self._name_of(signature)}.lock"
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        # Numba compiles in one thread at a time: with its lock first, no two threads wait in turn.
        with global_compiler_lock, locked(path):
            yield


def kept_on_disk(kernel: Any, modules: Iterable[str], key: Any, make: Callable[[], bytes]) -> bytes:
    """Something made of a kernel and of the sources of some modules: from the folder of compiled
    kernels if it is there, otherwise made and kept. key: what else it depends on."""
    cache = getattr(kernel, "_cache", None)
    if not isinstance(cache, _KernelCache):
        return make()
    names = sorted({kernel.__module__, *modules})
    sources = _short_hash(numba.__version__, *map(digest_of_sources, names))
    path = cache._folder / f"{cache._impl.filename_base}.{_short_hash(key)}.{sources}.nbc"
    found: bytes | None = cache.load(path)
    if found is None:
        found = make()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            cache.save(path, found)
    return found


def _short_hash(*parts: Any) -> str:
    return hashlib.sha256(str(parts).encode()).hexdigest()[:16]


@cache
def digest_of_sources(module: str) -> str:
    """A digest of the files of a module and of those that it imports, as far as they are the
    package's and compile functions, or belong to the same package of somebody else."""
    package, sources, waiting = module.partition(".")[0], dict[str, str](), [module]
    while waiting:
        name = waiting.pop()
        if name in sources or name.partition(".")[0] not in (package, OUR_PACKAGE):
            continue
        text = _text(name)
        is_ours = name.startswith(f"{OUR_PACKAGE}.") and name != module
        if is_ours and not name.startswith(f"{__package__}.") and not COMPILES.search(text):
            continue
        sources[name] = text
        lines = IMPORT.finditer(text)
        waiting += [resolve_name(line[1], name.rpartition(".")[0]) for line in lines]
    return _short_hash(sorted(sources.items()))


@cache
def _text(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).read_text(encoding="utf-8") if file else ""


OUR_PACKAGE = __package__.partition(".")[0]

COMPILES = re.compile(r"^@(?:compiled|jit|found_by_type)\b", re.MULTILINE)

IMPORT = re.compile(r"^(?:from|import) +([\w.]+)", re.MULTILINE)


class _Listener(event.Listener):
    def on_start(self, event: Any) -> None:
        COMPILING.begin()

    def on_end(self, event: Any) -> None:
        COMPILING.end()


# Loading what is on disk does not count as compiling.
event.register("numba:compile", _Listener())
