# mypy: disallow-untyped-calls=False
"""Functions that only kernels call are optimized as parts of these kernels.

Numba optimizes each function that a kernel calls, wraps it for Python and turns it into machine
code before it links the function into the kernel, where all of it is optimized again. That takes
more than half of the time of compiling, and the kernel is the same without it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen, RuntimeLinker
from numba.core.targetconfig import ConfigStack


def is_compiling() -> bool:
    """Whether this thread is compiling a kernel, so that what it compiles next is called by it."""
    return ConfigStack.top_or_none() is not None


def keep_unwrapped(flags: Any) -> Any:
    """Numba's flags for a function: Python calls only kernels, and C calls nothing."""
    flags.no_cfunc_wrapper = True
    flags.no_cpython_wrapper = is_compiling()
    return flags


class Library(JITCodeLibrary):
    """The code of a function and of those that it calls.

    is_part: Python cannot call the function, so its code is neither optimized nor made executable,
    only linked.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        flags = ConfigStack.top_or_none()  # of what is being compiled
        # Numba finishes a function with the flag no_compile by itself.
        self.is_part = flags is not None and flags.no_cpython_wrapper and not flags.no_compile

    @property
    def codegen(self) -> Any:
        return NoEnvironments if self.is_part else super().codegen

    def _optimize_final_module(self) -> None:
        module = self._final_module
        # Recursive calls are linked by the address of the function.
        if any(each.name.startswith(RuntimeLinker.PREFIX) for each in module.global_variables):
            self.is_part = False
        if not self.is_part:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if not self.is_part:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0 if self.is_part else super().get_pointer_to_function(name)

    def serialize_using_object_code(self) -> Any:
        if not self.is_part:
            return super().serialize_using_object_code()
        return self.name, "part", self._get_module_for_linking().as_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, code = state
        if kind != "part":
            return super()._unserialize(codegen, state)
        library = codegen.create_library(name)
        library.is_part = True
        library._final_module = llvm.parse_bitcode(code)
        library._finalize_final_module()
        return library


class NoEnvironments:
    """What numba asks of a part that is not in memory as machine code."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Numba keeps there what functions with Python objects need, and kernels have none."""


JITCPUCodegen._library_class = Library
