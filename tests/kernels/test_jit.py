"""Kernels are compiled once, which is said, and kept on disk where that is possible."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "rlgames" / "kernels"

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


ROOT = FOLDER.parents[1]


def run(path, *words, **environment):
    """A program that imports rlgames from a folder."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(path)} | environment,
        timeout=60,
    )


def ended(file, kernel=KERNEL, path=ROOT, **environment):
    """What a program with a kernel writes to standard error."""
    file.write_text(kernel)
    done = run(path, file, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "5\n"
    return done.stderr


def test_one_of_two_processes_compiles_what_both_need(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, tmp_path / "kernel.py"]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) for _ in range(2)]
    reports = [process.communicate(timeout=60)[1].decode() for process in both]
    assert sorted("rlgames: compiled 1 kernel" in report for report in reports) == [
        False,
        True,
    ]


def test_a_terminal_shows_what_is_compiled(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    ours, theirs = os.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, tmp_path / "kernel.py"]
    subprocess.run(command, stderr=theirs, env=environment, timeout=60, check=True)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    first, *others, last = shown.split("\r\x1b[K")
    assert first == ""
    saying = r"rlgames: first start: compiling kernel 1, \d+ s so far"
    assert others
    assert all(re.fullmatch(saying, each) for each in others)
    assert last.startswith("rlgames: compiled 1 kernel (once) in ")


def test_a_view_shows_what_is_compiled_and_nothing_else_is_written(tmp_path):
    """The live view of a training, on a terminal."""
    (tmp_path / "kernel.py").write_text(
        "from rlgames.terminal.progress import training_view\n"
        f"with training_view(10, 'a test'):\n{textwrap.indent(KERNEL, '    ')}"
    )
    ours, theirs = os.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    options: dict[str, Any] = {"stdout": theirs, "stderr": theirs, "env": environment}
    command = [sys.executable, tmp_path / "kernel.py"]
    subprocess.run(command, **options, timeout=60, check=True)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = {line.strip() for line in re.split(r"[\r\n]+", text)} - {""}
    view = r"(a test|0%.*|0 of 10 games, (starting|first start: compiling kernel 1, \d+ s so far))"
    rest = {line for line in lines if not re.fullmatch(view, line)}
    assert len(rest) == 2, rest
    assert "5" in rest
    assert "rlgames: compiled 1 kernel (once) in" in "".join(rest)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_two_kernels_call_each_other(path):
    """A process that loads two such kernels from the cache crashes: numba 0.68 links each of them
    with a call to an address that it never fills in."""
    tree = ast.parse(path.read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = {
        name: {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id != name
        }
        for name, function in functions.items()
    }
    TopologicalSorter(calls).prepare()  # raises CycleError


@pytest.mark.slow
def test_a_kernel_runs_without_a_cache(tmp_path):
    # Where nothing can be written no cache is found, even by root, who can write anywhere.
    found = "NUMBA_CACHE_LOCATOR_CLASSES"
    assert ended(tmp_path / "kernel.py", **{found: "ZipCacheLocator"}).count("\n") == 2
    assert ended(tmp_path / "kernel.py", **{found: "ZipCacheLocator"}).count("\n") == 2


CALLED_BOTH_WAYS = """
from rlgames.kernels.jit import jit

@jit()
def add_one(number):
    return number + 1

@jit()
def factorial(number):
    return 1 if number < 2 else number * factorial(number - 1)

@jit()
def add_both(number):
    return add_one(number) + factorial(number)

print(add_both(3), add_one(3), factorial(3), add_both(3))
"""


@pytest.mark.parametrize("locator", ["UserWideCacheLocator", "ZipCacheLocator"])
def test_a_function_that_kernels_called_first_can_be_called_from_python(tmp_path, locator):
    (tmp_path / "kernel.py").write_text(CALLED_BOTH_WAYS)
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": locator, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):  # the second one loads them, where there is a cache
        done = run(ROOT, tmp_path / "kernel.py", **environment)
        assert (done.returncode, done.stdout) == (0, "10 4 6 10\n"), done.stderr
    assert ("compiled" in done.stderr) == (locator == "ZipCacheLocator")


RULES = """
from typing import NamedTuple
from rlgames.kernels.rules import implement
from rlgames.kernels.words import compiled

class {name}(NamedTuple):
    start: tuple[int]
    actions: int

@compiled
def play(rules, position, action):
    return (position[0] + {added},), False, 0.0

implement({name}, play)
"""

PLAYER = """
import sys
from rlgames.kernels.jit import jit
from rlgames.kernels.rules import play

@jit()
def play_once(rules):
    return play(rules, rules.start, 0)[0][0]

for name in sys.argv[1:]:
    print(name, play_once(getattr(__import__(name), name)((0,), 1)))
"""


@pytest.fixture
def folder(tmp_path):
    """A copy of the kernels, two modules of rules, and a program whose kernel plays by them."""
    package = tmp_path / "rlgames"
    for path in (FOLDER, FOLDER.with_name("core")):
        shutil.copytree(path, package / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    for name, added in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.py").write_text(RULES.format(name=name, added=added))
    (tmp_path / "player.py").write_text(PLAYER)
    return tmp_path


def played(folder, *names):
    """What the program prints, and how many kernels it compiled."""
    done = run(folder, folder / "player.py", *names)
    assert done.returncode == 0, done.stderr
    found = re.search(r"compiled (\d+) kernel", done.stderr)
    return done.stdout.split(), int(found[1]) if found else 0


def test_a_change_to_a_kernel_compiles_again_what_uses_it(folder):
    words, other = folder / "rlgames/kernels/words.py", folder / "rlgames/kernels/mlp.py"
    kernel = KERNEL.replace("from", "from rlgames.kernels.words import count_bits\nfrom", 1)
    first = ended(folder / "kernel.py", kernel, folder)
    begun, done = first.splitlines()
    assert begun == "rlgames: first start: compiling kernels, which are kept for later starts"
    assert re.fullmatch(r"rlgames: compiled 1 kernel \(once\) in \d+\.\d s", done)
    assert ended(folder / "kernel.py", kernel, folder) == ""
    other.write_text(other.read_text() + "# a comment\n")
    assert ended(folder / "kernel.py", kernel, folder) == ""
    words.write_text(words.read_text() + "# a comment\n")
    assert ended(folder / "kernel.py", kernel, folder).startswith("rlgames: first start")


@pytest.mark.slow
def test_a_change_to_rules_compiles_again_only_what_plays_by_them(folder):
    with ThreadPoolExecutor() as both:  # of one kernel, side by side
        found = [*both.map(partial(played, folder), ("one", "two"))]
    assert found == [(["one", "1"], 1), (["two", "2"], 1)]
    assert played(folder, "one", "two") == (["one", "1", "two", "2"], 0)
    (folder / "two.py").write_text(RULES.format(name="two", added=20))
    assert played(folder, "one", "two") == (["one", "1", "two", "20"], 1)


@pytest.mark.slow
def test_a_kernel_that_played_by_rules_runs_where_these_are_missing(folder):
    assert played(folder, "one", "two")[1] == 2
    (folder / "two.py").unlink()
    assert played(folder, "one") == (["one", "1"], 0)


def test_rules_of_one_name_are_refused(folder):
    (folder / "two.py").write_text(RULES.format(name="one", added=2))
    done = run(folder, "-c", "import one\nimport two\n")
    assert "one has rules named one; rename yours" in done.stderr
