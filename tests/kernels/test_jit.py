"""Kernels are compiled once, which is said, and kept on disk where that is possible."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

KERNEL = """
from rlgames.kernels.jit import jit

@jit()
def add_one(number):
    return number + 1

@jit()
def add_two(number):
    return add_one(add_one(number))

print(add_two(3))
"""


def ended(path, **environment):
    path.write_text(KERNEL)
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "5\n"
    return done.stderr


def test_a_kernel_is_compiled_once_and_says_so(tmp_path):
    first = ended(tmp_path / "kernel.py")
    assert re.fullmatch(r"rlgames: compiled 1 kernel \(once\) in \d+\.\d s\n", first)
    assert ended(tmp_path / "kernel.py") == ""


def test_a_terminal_shows_what_is_compiled(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    ours, theirs = os.openpty()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, tmp_path / "kernel.py"]
    subprocess.run(command, stderr=theirs, env=environment, timeout=60, check=True)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    live = "\rrlgames: compiling kernels (once): 1, add_two ...\r\x1b[K"
    assert shown.startswith(live)
    assert shown.removeprefix(live).startswith("rlgames: compiled 1 kernel (once) in ")


def test_a_kernel_runs_without_a_cache(tmp_path):
    # Where nothing can be written no cache is found, even by root, who can write anywhere.
    found = "NUMBA_CACHE_LOCATOR_CLASSES"
    assert ended(tmp_path / "kernel.py", **{found: "ZipCacheLocator"}).count("\n") == 1
    assert ended(tmp_path / "kernel.py", **{found: "ZipCacheLocator"}).count("\n") == 1


def test_a_change_to_another_kernel_compiles_again(tmp_path):
    package = tmp_path / "rlgames"
    shutil.copytree(Path(__file__).parents[2] / "rlgames" / "kernels", package / "kernels")
    (package / "__init__.py").touch()
    environment = {"PYTHONPATH": str(tmp_path)}
    assert ended(tmp_path / "kernel.py", **environment)
    assert ended(tmp_path / "kernel.py", **environment) == ""
    (package / "kernels" / "new.py").write_text("# another kernel\n")
    assert ended(tmp_path / "kernel.py", **environment).startswith("rlgames: compiled")


def test_a_kernel_is_plain_python_without_compilation(tmp_path):
    assert ended(tmp_path / "kernel.py", NUMBA_DISABLE_JIT="1") == ""
