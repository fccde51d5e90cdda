"""What is published: the archives and the workflows."""

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import check_site
import chromium
import pytest
import yaml
from helpers import SMALL_TRAINING

from rlgames import __version__, train
from rlgames.runs.files import read_run

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
ARCHIVED = {*PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]}

TAKEN = ["rl-games"]
"""Distributions on PyPI with a name like ours."""


def compared_name(name):
    """What PyPI compares when somebody registers a name: `ultranormalize_name` in its database."""
    return re.sub("[-_.]", "", name).lower().translate(str.maketrans("lio", "110"))


@pytest.mark.parametrize(
    ("name", "other", "is_taken"),
    [
        ("rlgames", "rl-games", True),
        ("RL_Games", "r1.games", True),
        ("rigames", "rlgames", True),
        ("rlgames-lab", "rl-games-1ab", True),
        ("g0", "go", True),
        ("rlgames-lab", "rl-games", False),
    ],
)
def test_names_are_compared_as_pypi_does(name, other, is_taken):
    assert (compared_name(name) == compared_name(other)) is is_taken


def test_the_name_of_the_distribution_can_be_registered():
    assert compared_name(PROJECT["name"]) not in {*map(compared_name, TAKEN)}


def test_extras_are_those_of_the_distribution():
    """On pages and in errors that say what to install."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "rlgames").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    named = {name for text in texts for name in re.findall(r"install '?([\w-]+)\[", text)}
    assert named == {PROJECT["name"]}


def test_a_checkout_without_metadata_works(monkeypatch, typed, tmp_path):
    """As with PYTHONPATH: the version is in the package."""
    find = importlib.metadata.Distribution.from_name.__func__

    def hide_rlgames(cls, name):
        if name.startswith("rlgames"):
            raise importlib.metadata.PackageNotFoundError(name)
        return find(cls, name)

    monkeypatch.setattr(importlib.metadata.Distribution, "from_name", classmethod(hide_rlgames))
    assert typed("--version").stdout == f"rlgames {__version__}\n"
    run = train([*SMALL_TRAINING, "solve_seconds=0", f"out={tmp_path / 'run'}"])
    assert read_run(run)["versions"]["rlgames"] == __version__


def tracked():
    """The files that git tracks or would add; outside a repository the test is skipped."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the git repository")
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def test_the_repository_holds_nothing_that_a_run_left():
    names = tracked()
    assert {name.partition("/")[0] for name in names} == ARCHIVED | {"outputs"}
    assert {name for name in names if name.startswith("outputs/")} == {"outputs/.gitignore"}
    left = ["outputs/a.txt", "outputs/run/.gitignore", "mlruns/1/meta.yaml", "mlflow.db"]
    done = subprocess.run(["git", "check-ignore", *left], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == left


def test_the_installation_page_lists_the_extras():
    page = (ROOT / "docs" / "install.md").read_text()
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert listed == {*PROJECT["optional-dependencies"]}


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## \[(.*)\]", (ROOT / "docs" / "changelog.md").read_text(), re.M)
    assert versions[0] == __version__


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_workflows_call_targets_that_the_makefile_has(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    makefile = (ROOT / "Makefile").read_text()
    targets = {*re.search(r"\.PHONY: (.*?)\n\n", makefile, re.S)[1].replace("\\\n", " ").split()}
    called = re.findall(r"run: make (.+)", text)
    assert {target for line in called for target in line.split()} <= targets
    assert called or "jobs" not in workflow


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The source archive of the tracked files, and the wheel that is built from it."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_the_source_archive_holds_what_git_tracks_and_tests_itself(archives, tmp_path):
    with tarfile.open(archives[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    assert names - {"PKG-INFO"} == tracked() - {"outputs/.gitignore"}
    (source,) = tmp_path.iterdir()
    tests = ["test_structure.py", "test_pages.py", "games/test_symmetry.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{t}" for t in tests)],
        cwd=source, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_configs_agents_and_plugins(archives):
    """Every file, and no other one: those in conf/ are in rlgames/conf/."""
    with zipfile.ZipFile(archives[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    folders = ("rlgames/", "conf/", "hydra_plugins/")
    expected = {name for name in tracked() if name.startswith(folders)}
    assert names == {re.sub("^conf/", "rlgames/conf/", name) for name in expected}
    assert {"rlgames/conf/train.yaml", "rlgames/agents/connect4.safetensors"} <= names


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory):
    """The wheel in an empty environment, with the packages that it depends on from this one. Runs
    its command in an empty folder."""
    venv, folder = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    (site,) = venv.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--quiet", f"--python={python}"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", archives[1]], check=True)
    # The .pth files in that folder are not read: this one does not add the checkout.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*words, typed=""):
        return subprocess.run(
            [venv / "bin" / words[0], *words[1:]], cwd=folder, env=environment, input=typed,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    run.folder, run.site = folder, site
    return run


@pytest.mark.slow
def test_the_wheel_is_what_runs(installed):
    code = (
        "import importlib.metadata, sys, hydra_plugins.rlgames_optuna as plugin, rlgames;"
        f"version = importlib.metadata.version({PROJECT['name']!r});"
        "print(rlgames.__file__, plugin.__file__, version, *sys.path, sep=chr(10))"
    )
    done = installed("python", "-c", code)
    assert done.returncode == 0, done.stderr
    package, plugin, version, *path = done.stdout.splitlines()
    assert Path(package).parents[1] == Path(plugin).parents[1] == installed.site
    assert version == __version__
    assert str(ROOT) not in path
    assert installed("rlgames", "--version").stdout == f"rlgames {__version__}\n"


SMALL = ["games=100", "batch=50", "eval_games=20"]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(installed):
    mine = installed.folder / "mine" / "experiment"
    mine.mkdir(parents=True)
    (mine / "quick.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /game: tictactoe\ngames: 100\nbatch: 50\n"
    )
    for words, typed, expected in [
        (["games"], "", "connect4"),
        (["play", "connect4"], "4\nq\n", "your opponent plays"),
        (["train", "game=tictactoe", "games=400", "batch=50", "out=run"], "", "exploitability"),
        (["eval", "run"], "", "won / drawn / lost"),
        (["report", "run"], "", "best run: rlgames eval run"),
        (["train", "experiment=connect4_mlp", *SMALL, "out=preset"], "", "won / drawn / lost"),
        (["train", "--config-dir", "mine", "experiment=quick", "out=own"], "", "exploitability"),
        (["train", "-m", "game=tictactoe", *SMALL, "seed=1,2", "out=sweep"], "", "seed=2: done"),
    ]:
        done = installed("rlgames", *words, typed=typed)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        assert expected in done.stdout, f"{words}\n{done.stdout}"
    jobs = [path.parent.name for path in installed.folder.glob("sweep/*/run.json")]
    assert sorted(jobs) == ["seed=1", "seed=2"]


@pytest.mark.slow
def test_the_wheels_sweeper_proposes_jobs(installed):
    pytest.importorskip("optuna")
    words = ["-m", "game=tictactoe", *SMALL, "hydra/sweeper=optuna", "lr=interval(0.001,0.1)"]
    done = installed("rlgames", "train", *words, "hydra.sweeper.n_trials=2", "out=optuna")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "best: " in done.stdout


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("properdocs")
    pytest.importorskip("mkdocstrings")
    config, folder = ROOT / ".properdocs.yml", tmp_path / "site"
    words = ["properdocs", "build", "--quiet", "--strict", "-f", config, "-d", folder]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.stem for path in (ROOT / "docs").rglob("*.md") if "dev" not in path.parts}
    pages -= {"README"}
    built = {path.parent.name for path in (tmp_path / "site").rglob("index.html")}
    assert pages <= built
    reference = (tmp_path / "site" / "reference" / "games" / "index.html").read_text()
    assert "the legal actions of the seat to move" in reference  # a docstring
    if chromium.program() and find_spec("playwright"):
        assert not any(check_site.faults_of(tmp_path / "site").values())


@pytest.mark.slow
def test_the_check_of_the_site_finds_faults(tmp_path, monkeypatch):
    pytest.importorskip("playwright")
    if not chromium.program():
        pytest.skip("needs Chromium")
    broken = r"""<html><body><article><p>\frac{1}{2}</p><img src="none.png">
        <div class="language-sh"><pre><code style="display: block; width: 9px; overflow: auto"
        >rlgames train</code></pre></div><div style="width: 3000px">wide</div>
        <script>nothing()</script></article></body></html>"""
    for page in check_site.PAGES:
        (tmp_path / page).mkdir(parents=True, exist_ok=True)
        (tmp_path / page / "index.html").write_text(broken, encoding="utf-8")
    monkeypatch.setattr(check_site, "SEARCH_MS", 100)
    faults = check_site.faults_of(tmp_path)
    assert len(faults.pop("search")) == len(check_site.WORDS)
    for found in map("; ".join, faults.values()):
        for word in ("sideways", "raw LaTeX", "cut off", "no picture", "error: Uncaught"):
            assert word in found
