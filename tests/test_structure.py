"""Folders and files keep their order; the pages name what there is."""

import ast
import re
from dataclasses import FrozenInstanceError, fields
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from house import IMPORTS
from omegaconf import OmegaConf

import rlgames
from rlgames.config import compose
from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, key_fields

PACKAGE = Path(compose.__file__).parents[1]
SCRIPTS = PACKAGE.parent / "scripts" / "docs"
MAX_TOP_LEVEL_FILES = 8


def modules():
    """Every file of the package by the name of its module; a folder's is that of its __init__."""
    paths = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")]
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): PACKAGE.parent / path
        for path in paths
    }


MODULES = modules()


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path, nodes):
    """The modules that the statements among these nodes of a file import."""
    folder = path.relative_to(PACKAGE.parent).parent.parts
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = folder[: len(folder) - node.level + 1] if node.level else ()
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in MODULES else base


@cache
def all_imports(path):
    """What a file imports anywhere, in functions and for type checkers too."""
    return {*imported(path, ast.walk(tree(path)))}


def room(name):
    """The folder, or the file beside the folders, of a module of the package."""
    own = MODULES[name].relative_to(PACKAGE).parts[0]
    return own.removesuffix(".py")


def files():
    return [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]


def test_folders_import_what_the_table_says_and_only_from_below():
    imports: dict[str, set[str]] = {name: set() for name in IMPORTS}
    for name, path in MODULES.items():
        imports[room(name)] |= {room(other) for other in all_imports(path) if other in MODULES}
    below: set[str] = set()
    for name, others in IMPORTS.items():
        assert imports[name] - {name} == {*others.split()}, name
        assert {*others.split()} <= below, f"{name} imports from above"
        below.add(name)


def test_no_file_imports_itself_through_others():
    graph = {name: all_imports(path) & {*MODULES} for name, path in MODULES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


LOADERS = {
    "matplotlib": (),  # it is imported when a figure is asked for
    "rich": ("drawing", "terminal", "cli"),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "hydra": ("config", "app.py"),
    "gymnasium": ("envs",),
    "pettingzoo": ("envs",),
    "ray": ("ray_source.py",),  # loaded by engine=ray alone
}
"""The folders or the file whose import may load a library; functions load it when it is needed."""


def test_libraries_are_loaded_where_they_belong():
    for path in files():
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported(path, tree(path).body):
            for library, places in LOADERS.items():
                if f"{name}.".startswith(f"{library}."):
                    assert {own, path.name} & {*places}, f"{path} imports {name}"


def test_every_folder_and_file_is_in_the_house():
    entries = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    assert entries - {*IMPORTS} <= {"__pycache__", "py.typed", "agents", "conf"}


def test_few_files_lie_outside_a_folder():
    assert sum(path.is_file() for path in PACKAGE.iterdir()) <= MAX_TOP_LEVEL_FILES


def test_the_citation_names_the_version():
    assert OmegaConf.load(PACKAGE.parent / "CITATION.cff").version == rlgames.__version__


TESTS = {path.name: path.read_text() for path in Path(__file__).parent.rglob("test_*.py")}


def named_tests(page):
    """The file, if there is one, and the name of each test on a page."""
    text = (PACKAGE.parent / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"`(?:(test_\w+\.py)::)?(test_\w+)(?:\[\w+\])?`", text)


@pytest.mark.parametrize(("page", "at_least"), [("dev/promises", 60), ("dev/checked", 20)])
def test_every_promise_names_a_test_that_there_is(page, at_least):
    named = named_tests(page)
    assert len(named) > at_least
    for file, name in named:
        places = [TESTS[file]] if file else TESTS.values()
        assert any(f"def {name}(" in place for place in places), f"{file}::{name}"


def test_every_comparison_with_others_is_on_its_page():
    marked = set(re.findall(r"def (test_\w+)", TESTS["test_other_engines.py"]))
    for text in TESTS.values():
        for test in re.split(r"\n\n\n", text):
            if "@pytest.mark.others\n" in test:
                marked |= set(re.findall(r"^def (test_\w+)", test, re.M))
    assert marked <= {name for _, name in named_tests("dev/checked")}


OPTIONS = [option.schema for options in REGISTRY.values() for option in options.values()]
SCHEMAS = [*COMMAND_SCHEMAS.values(), *OPTIONS]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_schemas_are_frozen_and_each_key_has_help(schema):
    config = schema(**dict.fromkeys(item.name for item in fields(schema)))
    for item in fields(schema):
        with pytest.raises(FrozenInstanceError):
            setattr(config, item.name, None)
    helps = {name: item.metadata["help"] for name, item in key_fields(schema).items()}
    helps |= {name: group.help for name, group in groups_of(schema).items()}
    assert all(text for name, text in helps.items() if name != "name")


WRITERS = {
    "rlgames/runs/storage.py": "opens the files of runs and studies",
    "rlgames/rollouts/records.py": "games are appended to a file that the user names",
    "rlgames/core/output_files.py": "the folders of files that the user names",
    "rlgames/drawing/figures.py": "figures in files that the user names",
    "rlgames/commands/export.py": "pages in files that the user names",
    "rlgames/commands/board_pictures.py": "pictures in files that the user names",
    "rlgames/kernels/jit.py": "compiled kernels",
    "rlgames/core/locks.py": "lock files",
    "rlgames/commands/app.py": "a closed stream becomes the null device",
    "rlgames/core/jobs.py": "what a job prints goes to a file in its directory",
    "rlgames/core/signals.py": "a closed stream becomes the null device",
    "rlgames/core/errors.py": "a closed stream becomes the null device",
}
"""The files of the package that open or create files, and why."""

CHANGING = {"write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "unlink", "rmtree"}
CHANGING |= {"symlink_to", "hardlink_to", "save_file", "truncate"}


def changes_files(node):
    """Whether a call opens a file to write it, or creates, renames or removes one."""
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    is_os = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "os"
    if name == "open" and not is_os:
        at = 1 if isinstance(function, ast.Name) else 0
        modes = [*node.args[at : at + 1], *(k.value for k in node.keywords if k.arg == "mode")]
        return any(not isinstance(m, ast.Constant) or {*str(m.value)} & {*"wax+"} for m in modes)
    return name in CHANGING or (is_os and name in ("open", "replace", "remove", "fdopen"))


def test_one_module_writes_the_files_of_runs():
    found = {
        str(path.relative_to(PACKAGE.parent))
        for path in files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and changes_files(node)
    }
    assert found <= {*WRITERS}, f"{found - {*WRITERS}}"
    assert {*WRITERS} <= found
