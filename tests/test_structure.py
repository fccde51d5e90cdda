"""Folders, files and functions keep their order and size; the pages name what there is."""

import ast
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

import rlgames
from rlgames.config import catalogue, compose, registry
from rlgames.config.catalogue import conf_dir
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.schema import defaults

PACKAGE = Path(compose.__file__).parents[1]
ROOMS = [
    ["core"],
    ["kernels"],
    ["games"],
    ["drawing", "sampling", "solvers", "policies"],
    ["players"],
    ["rollouts", "search"],
    ["reward_terms"],
    ["rewards"],
    ["learners"],
    ["config"],
    ["runs"],
    ["factory"],
    ["evaluation"],
    ["training"],
    ["sweeps", "envs"],
    ["commands"],
    ["cli"],
]
"""Folders and files of the package from the ground up: each imports from itself and from below."""

MAX_TOP_LEVEL_FILES, MAX_FILE_LINES, MAX_FUNCTION_LINES = 8, 350, 50


def level(name):
    return next(i for i, rooms in enumerate(ROOMS) if name in rooms)


def loaded(path):
    """What a file imports at its top level, outside functions and TYPE_CHECKING."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                [f"rlgames.{alias.name}" for alias in node.names if alias.name != "__version__"]
                if node.module == "rlgames"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def files():
    return [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in loaded(path):
        parts = name.split(".")
        if parts[0] == "rlgames":
            assert parts[1] == own or level(parts[1]) < level(own), f"{own} imports {name}"
        assert parts[0] != "matplotlib"  # it is imported when a figure is asked for
        if parts[0] == "numba" or parts[:2] == ["rlgames", "kernels"]:
            assert own == "kernels"  # what calls a kernel imports it then
        if parts[0] == "rich":
            assert own in ("drawing", "cli")
        if parts[0] == "prompt_toolkit":
            assert own == "cli"
        if parts[0] == "hydra":
            assert own in ("config", "sweeps")
        if parts[0] in ("gymnasium", "pettingzoo"):
            assert own == "envs"
        if parts[0] == "ray":
            assert path.name == "ray_library.py"  # loaded by engine=ray alone


def test_every_folder_and_file_has_its_level():
    entries = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    named = {name for rooms in ROOMS for name in rooms}
    assert entries - named <= {"__init__", "__main__", "__pycache__", "py.typed", "agents", "conf"}
    assert named <= entries


def test_few_files_lie_outside_a_folder():
    assert sum(path.is_file() for path in PACKAGE.iterdir()) <= MAX_TOP_LEVEL_FILES


def test_files_are_short():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    long = {name: length for name, length in lengths.items() if length > MAX_FILE_LINES}
    assert not long


def test_functions_are_short():
    lengths = {
        f"{path.relative_to(PACKAGE)}::{node.name}": node.end_lineno - node.lineno + 1
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES}
    assert not long


def test_the_citation_names_the_version():
    assert OmegaConf.load(PACKAGE.parent / "CITATION.cff").version == rlgames.__version__


@pytest.mark.parametrize(
    ("group", "name"), [(g, n) for g, names in registry.REGISTRY.items() for n in names]
)
def test_yaml_and_schema_have_the_same_keys_and_defaults(group, name):
    values = catalogue.option_values(group, name)
    schema = defaults(registry.REGISTRY[group][name].schema)
    keys = {item.name for item in fields(registry.REGISTRY[group][name].schema)}
    assert values.pop("name") == name
    schema.pop("name", None)
    nested = values.pop(group, {})  # a game's rules, as interpolations of the keys at the top
    assert {*values, "name"} == keys
    if nested:
        assert nested == {"name": name} | {key: f"${{{key}}}" for key in values}
    if group == "reward":  # presets of one schema: they share its defaults in a file
        values = catalogue.option_values(group, "_reward")
    derived = {key for key, value in values.items() if str(value).startswith("${")}
    assert {key: values[key] for key in {*values} - derived} == {
        key: value for key, value in schema.items() if key not in derived
    }


def test_every_promise_names_a_test_that_there_is():
    tests = {path.name: path.read_text() for path in Path(__file__).parent.rglob("test_*.py")}
    text = (PACKAGE.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?:(test_\w+\.py)::)?(test_\w+)(?:\[\w+\])?`", text)
    assert len(named) > 60
    for file, name in named:
        places = [tests[file]] if file else tests.values()
        assert any(f"def {name}(" in place for place in places), f"{file}::{name}"


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda config: config.name)
def test_every_key_of_a_command_has_a_default_and_a_help_line(config):
    for item in fields(config.schema):
        assert item.metadata["help"]
        assert item.default is not MISSING or item.default_factory is not MISSING


def test_the_yaml_of_a_training_has_the_values_and_the_help_of_its_schema():
    path = conf_dir() / "train.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    listed = {
        name.rpartition("@")[2]: option
        for item in values.pop("defaults")
        if item != "_self_"
        for name, option in item.items()
        if not name.startswith("override ")
    }
    del values["hydra"]
    assert values == defaults(TRAIN.schema)
    groups = [*TRAIN.groups, TRAIN.presets]
    assert listed == {group.name: group.default for group in groups}
    comments = catalogue.comments(path)
    for name, about in [
        *((item.name, item.metadata["help"]) for item in fields(TRAIN.schema)),
        *((group.name, group.help) for group in groups),
    ]:
        assert comments[name] == about


WRITERS = {
    "rlgames/runs/storage.py": "opens the files of runs and sweeps",
    "rlgames/runs/checkpoint.py": "safetensors writes a temporary file, which storage.py publishes",
    "rlgames/runs/directory.py": "creates and removes directories of runs",
    "rlgames/rollouts/records.py": "games are appended to a file that the user names",
    "rlgames/commands/profiles.py": "tables in files that the user names",
    "rlgames/drawing/figures.py": "figures in files that the user names",
    "rlgames/drawing/animation.py": "animations in files that the user names",
    "rlgames/commands/board_pictures.py": "pictures in files that the user names",
    "rlgames/cli/main.py": "a closed stream becomes the null device",
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
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and changes_files(node)
    }
    assert found <= {*WRITERS}, f"{found - {*WRITERS}}"
    assert {*WRITERS} <= found
