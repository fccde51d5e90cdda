"""Shared settings of the tests: one thread, and rlgames as a person calls it.

pytest-xdist imports this file in one more process, which runs no test: torch is imported later.
"""

import gc
import hashlib
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from rlgames.commands import app

# Torch reads them. A fork of a process whose threads have begun would wait for them for ever.
os.environ["OMP_NUM_THREADS"] = "1"
# Where a test asks for two threads, the one that waits leaves its core to other tests.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
# What survives a loss of power is tested with a recorded disk: power_loss.py.
os.fsync = lambda _: None
# A shell ignores the first in jobs that it starts in the background, nohup the second.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # not on Windows
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


ROOT = Path(__file__).parent.parent

MAX_QUICK_SECONDS = 4.0
"""Of processor time, children included: a quick test that takes longer is named at the end."""


def processor_seconds():
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    item.begun = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        item.user_properties.append(("seconds", processor_seconds() - item.begun))


def pytest_terminal_summary(terminalreporter, config):
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    if reasons := sorted({reason.removeprefix("Skipped: ") for reason in skipped}):
        terminalreporter.line(f"not tested here: {'; '.join(reasons)}")
    if "not slow" not in config.option.markexpr:
        return
    found = {}
    for report in terminalreporter.stats.get("", []):  # those of teardowns
        found[report.nodeid] = dict(report.user_properties).get("seconds", 0.0)
    too_long = [name for name in found if found[name] > MAX_QUICK_SECONDS]
    if too_long:
        terminalreporter.section(f"quick tests of more than {MAX_QUICK_SECONDS:g} s")
    for name in sorted(too_long, key=found.__getitem__, reverse=True):
        terminalreporter.line(f"{found[name]:.1f} s of processor time: {name}")


def pytest_collection_finish():
    """What is imported by then stays: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _empty_folder(tmp_path_factory):
    """Tests run in an empty folder. Files that a library writes into the current folder, such as
    MLflow's artifacts, never reach the checkout."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("current"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_runs():
    """Hundreds of tests train: their runs show no games and ask git once, random play is valued by
    fewer positions or games, and the positions of tic-tac-toe are listed once."""
    from rlgames.evaluation import references
    from rlgames.games.k_in_a_row import KInARow
    from rlgames.runs import log
    from rlgames.training import evaluator, image_callback

    find_graph, graphs = evaluator.find_graph, {}

    def find_graph_once(game, *limits, **more):
        known = (
            type(game),
            *(vars(game).get(name) for name in ("rows", "columns", "line", "gravity")),
        )
        if known != (KInARow, 3, 3, 3, False):
            return find_graph(game, *limits, **more)
        asked = limits, *more.items()
        if asked not in graphs:
            graphs[asked] = find_graph(game, *limits, **more)
        return graphs[asked]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(image_callback, "NUM_SHOWN", 0)
        patched.setattr(references, "MAX_GRAPH_POSITIONS", 6_000)
        patched.setattr(references, "RANDOM_PLAY_GAMES", 100)
        patched.setattr(evaluator, "MAX_GRAPH_POSITIONS", 6_000)
        patched.setattr(evaluator, "find_graph", find_graph_once)
        patched.setattr(log, "_git", cache(log._git))
        yield


@pytest.fixture(scope="module")
def shown_games():
    """Runs show a game."""
    from rlgames.training import image_callback

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(image_callback, "NUM_SHOWN", 1)
        yield


PLACE = re.compile(r"((?:out|run)(?==)|[\w.]+(?==./))='([\w./=,-]+)'")
"""A word that only says where a file or a run lies, which changes nothing else of a config."""


class WithPlaces(pickle.Pickler):
    """Leaves out the places in texts, to be filled in when the object is loaded."""

    def persistent_id(self, item):
        return item if isinstance(item, str) and "{place" in item else None


class FilledIn(pickle.Unpickler):
    def __init__(self, file, places):
        super().__init__(file)
        self.places = places

    def persistent_load(self, text):
        for name, place in self.places.items():
            text = text.replace(f"{{place of {name}}}", place)
        return text


@pytest.fixture(scope="session")
def composed(request, tmp_path_factory):
    """A folder for configs that Hydra has composed: kept until the files change that they are
    composed from. All processes share it."""
    import hydra
    import omegaconf

    content = hashlib.sha256(repr((sys.version, hydra.__version__, omegaconf.__version__)).encode())
    for folder in ("conf", "rlgames/config", "hydra_plugins"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml"):
                content.update(bytes(path) + path.read_bytes())
    name = f"composed-{content.hexdigest()[:16]}"
    if request.config.pluginmanager.hasplugin("cacheprovider"):
        folder = request.config.cache.mkdir(name)
        for other in folder.parent.glob("composed-*"):
            if other.name != name:
                shutil.rmtree(other, ignore_errors=True)
        return folder
    return tmp_path_factory.mktemp(name)


@pytest.fixture(scope="module", autouse=True)
def _composed_once(request, composed):
    """Hydra composes the same words once, which takes 0.15 s, except in the tests of what is there
    to be composed, and except for words that depend on plugins or on the folders or the environment
    of a user."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.utils import JobRuntime

    from rlgames.config.conf import conf_dir
    from rlgames.config.registry import REGISTRY

    compose, list_options = ConfigLoaderImpl.load_configuration, ConfigLoaderImpl.get_group_options
    options = {}

    def is_bundled(loader):
        plugins = (
            each.values is not None for table in REGISTRY.values() for each in table.values()
        )
        paths = [place.path for place in loader.get_search_path().get_path()]
        return paths == ["pkg://hydra.conf", str(conf_dir()), "structured://"] and not any(plugins)

    def list_options_once(loader, *group, **settings):
        asked = repr((group, settings))
        if not is_bundled(loader):
            return list_options(loader, *group, **settings)
        if asked not in options:
            options[asked] = list_options(loader, *group, **settings)
        return options[asked]

    def compose_once(loader, config_name, overrides, **settings):
        has_more = any(re.search(r"\$\{|searchpath", word) for word in overrides)
        if has_more or not is_bundled(loader):
            return compose(loader, config_name=config_name, overrides=overrides, **settings)
        matches = filter(None, map(PLACE.fullmatch, overrides))
        places = {match[1]: match[2] for match in matches}
        words = [PLACE.sub(r"\1='{place of \1}'", word) for word in overrides]
        asked = (JobRuntime().get("name"), config_name, words, sorted(settings.items()))
        path = composed / hashlib.sha256(repr(asked).encode()).hexdigest()
        if not path.exists():
            config = compose(loader, config_name=config_name, overrides=words, **settings)
            with tempfile.NamedTemporaryFile(dir=composed, delete=False) as file:
                WithPlaces(file).dump(config)
            os.replace(file.name, path)
        with open(path, "rb") as file:
            config = FilledIn(file, places).load()
        config.hydra.runtime.cwd = os.getcwd()
        return config

    with pytest.MonkeyPatch.context() as patched:
        if request.path.stem not in ("test_conf", "test_plugins"):
            patched.setattr(ConfigLoaderImpl, "load_configuration", compose_once)
            patched.setattr(ConfigLoaderImpl, "get_group_options", list_options_once)
        yield


@pytest.fixture
def rlgames(tmp_path):
    """Run `rlgames …` as a process, a fork of this one, in a directory of its own."""
    from processes import Process

    def run(*words):
        return Process(tmp_path, *words, apart=True).ended(300)

    return run


@pytest.fixture
def typed(tmp_path, monkeypatch, capfd):
    """The same within this process, which is quicker: for what ends before anything is learnt."""

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["rlgames", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main()
        return subprocess.CompletedProcess(words, ended.value.code, *capfd.readouterr())

    return run
