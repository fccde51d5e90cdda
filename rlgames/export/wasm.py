"""Kernels as WebAssembly: LLVM's text of numba, compiled by llvmlite for another machine.

There is no linker: an object of LLVM is a module already. The page supplies what it imports:
memory, a stack, a few functions, and a table, in which its main function comes last (machine.js).
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

TRIPLE = "wasm32-unknown-unknown"
LAYOUT = "e-m:e-p:32:32-p10:8:8-p20:8:8-i64:64-i128:128-n32:64-S128-ni:1:10:20"
FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+sign-ext,+nontrapping-fptoint"

STRUCTURE = r"\{[^{}]*\}"
for _ in range(5):
    STRUCTURE = rf"\{{[^{{}}]*(?:{STRUCTURE}[^{{}}]*)*\}}"
"""A structure in LLVM's text, which may have others inside, six deep."""

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


class NotSupported(Exception):
    """Code that is not known to be right in WebAssembly."""


def to_wasm(text: str, function: str) -> bytes:
    """A module that puts one of the functions in LLVM's text last in its table.

    Raises NotSupported, or RuntimeError of llvmlite, for code that cannot be translated.
    """
    for pattern, replacement in REWRITES:
        text = re.sub(pattern, replacement, text)
    for whole in WHOLE.findall(text):
        if "ptr" in whole and EXCEPTION not in whole:
            raise NotSupported(f"the code has {whole}")
    text = WIDENED.sub(lambda found: f"{found[1]} {found[2].replace('ptr', 'i64')}", text)
    text += f'\n@entry = constant ptr @"{function}"\n'
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=3, features=FEATURES)
    module = llvm.parse_assembly(text)
    for each in module.functions:
        if not each.is_declaration:
            each.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes.run(module, llvm.create_pass_builder(machine, options))
    return machine.emit_object(module)
