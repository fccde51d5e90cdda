"""Kernels as WebAssembly: LLVM's text of numba, compiled by llvmlite for another machine.

There is no linker. An object of LLVM becomes a module when its main function is exported, and the
page supplies what it imports: memory, a stack, and a few functions (machine.js).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import llvmlite.binding as llvm

TRIPLE = "wasm32-unknown-unknown"
LAYOUT = "e-m:e-p:32:32-p10:8:8-p20:8:8-i64:64-i128:128-n32:64-S128-ni:1:10:20"
FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+sign-ext,+nontrapping-fptoint"

STRUCTURE = r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}"
"""A structure in LLVM's text, which may have others inside."""

REWRITES = (
    (r"target triple = .*", f'target triple = "{TRIPLE}"'),
    (r"target datalayout = .*", f'target datalayout = "{LAYOUT}"'),
    (r'"target-(cpu|features)"="[^"]*"', ""),
    # Several modules may define these globals; WebAssembly has no common ones.
    (r" = common ", " = weak "),
    # Arrays are not freed one by one: the page forgets them all after each answer.
    (r"(?:tail )?call i8 @llvm\.x86\.atomic\.sub\.cc\.[^\n]*", "add i8 0, 0"),
)

WIDENED = re.compile(rf"(alloca|getelementptr(?: inbounds| nuw| nusw)*) ({STRUCTURE}|ptr\b)")
"""Where the layout of a structure counts. Numba has computed offsets for pointers of eight bytes,
so pointers get as much room here."""

WHOLE = re.compile(rf"(?:load|store) {STRUCTURE}")
"""A structure that is read or written at once, whose layout cannot be kept. Optimized code does
this only to the description of an exception, which nobody reads."""

EXCEPTION = "{ ptr, i32, ptr, ptr, i32 }"

EXPORT_SECTION, ELEMENT_SECTION, CODE_SECTION, DATA_COUNT_SECTION = 7, 9, 10, 12
SYMBOL_TABLE, UNDEFINED, EXPLICIT_NAME = 8, 0x10, 0x40
FUNCTION, DATA, GLOBAL, SECTION, TAG, TABLE = range(6)
"""The kinds of symbols; these numbers are in WebAssembly's conventions for object files."""


class NotSupported(Exception):
    """Code that is not known to be right in WebAssembly."""


def to_wasm(text: str, function: str, name: str) -> bytes:
    """A module that exports one of the functions in LLVM's text under a name.

    Raises NotSupported, or RuntimeError of llvmlite, for code that cannot be translated.
    """
    for pattern, replacement in REWRITES:
        text = re.sub(pattern, replacement, text)
    for whole in WHOLE.findall(text):
        if "ptr" in whole and EXCEPTION not in whole:
            raise NotSupported(f"the code has {whole}")
    text = WIDENED.sub(lambda found: f"{found[1]} {found[2].replace('ptr', 'i64')}", text)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=3, features=FEATURES)
    module = llvm.parse_assembly(text)
    for each in module.functions:
        if not each.is_declaration and each.name != function:
            each.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes.run(module, llvm.create_pass_builder(machine, options))
    return _exporting(machine.emit_object(module), function, name)


def _exporting(code: bytes, function: str, name: str) -> bytes:
    """An object as a module that exports a function, without the sections for linkers."""
    sections = list(_sections(code))
    linking = next(part for kind, part in sections if not kind and part.startswith(b"\7linking"))
    text, index = name.encode(), _function_index(linking, function)
    exports = b"\1" + _number(len(text)) + text + b"\0" + _number(index)
    kept = [(kind, part) for kind, part in sections if kind]
    later = (ELEMENT_SECTION, CODE_SECTION, DATA_COUNT_SECTION)
    kept.insert(
        next(n for n, (kind, _) in enumerate(kept) if kind in later), (EXPORT_SECTION, exports)
    )
    parts = (bytes([kind]) + _number(len(part)) + part for kind, part in kept)
    return code[:8] + b"".join(parts)


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    """The kind and the content of each section; 0 is the kind of those for linkers."""
    at = 8
    while at < len(code):
        size, first = _read(code, at + 1)
        yield code[at], code[first : first + size]
        at = first + size


def _function_index(linking: bytes, function: str) -> int:
    """The index of a function, from the symbols of an object."""
    _, at = _read(linking, len(b"\7linking"))
    while True:
        kind, (size, first) = linking[at], _read(linking, at + 1)
        if kind == SYMBOL_TABLE:
            break
        at = first + size
    count, at = _read(linking, first)
    for _ in range(count):
        kind, (flags, at) = linking[at], _read(linking, at + 1)
        is_defined, index = not flags & UNDEFINED, -1
        if kind in (FUNCTION, GLOBAL, TAG, TABLE):
            index, at = _read(linking, at)
        if kind == SECTION:
            _, at = _read(linking, at)
        elif kind == DATA or is_defined or flags & EXPLICIT_NAME:
            size, at = _read(linking, at)
            symbol, at = linking[at : at + size].decode(), at + size
            if kind == FUNCTION and symbol == function:
                return index
        if kind == DATA and is_defined:
            for _ in range(3):  # its segment, its offset and its size
                _, at = _read(linking, at)
    raise NotSupported(f"the object has no {function}")


def _read(data: bytes, at: int) -> tuple[int, int]:
    """A number in LEB128, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _number(value: int) -> bytes:
    """A number in LEB128."""
    rest, low = value >> 7, value & 127
    return bytes([low | 128]) + _number(rest) if rest else bytes([low])
