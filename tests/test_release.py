"""What is published: the archives and the workflows."""

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

from rlgames import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_installation_page_lists_the_extras():
    page = (ROOT / "docs" / "install.md").read_text()
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert listed == {*PROJECT["project"]["optional-dependencies"]}


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
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    with tarfile.open(archives[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    tracked = {name for name in listed.stdout.splitlines() if not name.startswith("outputs/")}
    assert tracked - names == set()
    (source,) = tmp_path.iterdir()
    tests = ["test_structure.py", "test_pages.py", "games/test_symmetry.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{t}" for t in tests)],
        cwd=source, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(archives, tmp_path):
    """Commands in an empty folder; the packages it depends on are those of this environment."""
    with zipfile.ZipFile(archives[1]) as wheel:
        names = wheel.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        described = wheel.read(metadata).decode()
    assert "rlgames/conf/train.yaml" in names
    assert "rlgames/agents/connect4.safetensors" in names
    assert {name.partition("/")[0] for name in names} == {
        "hydra_plugins",
        "rlgames",
        f"rlgames-{__version__}.dist-info",
    }
    assert f"Version: {__version__}" in described
    venv, folder = tmp_path / "venv", tmp_path / "empty"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    (site,) = venv.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--quiet", f"--python={python}"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", archives[1]], check=True)
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def rlgames(*words, typed=""):
        return subprocess.run(
            [venv / "bin" / "rlgames", *words], cwd=folder, env=environment, input=typed,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    place = subprocess.run(
        [python, "-c", "import rlgames; print(rlgames.__file__)"],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert place.stdout.startswith(str(site))
    assert rlgames("--version").stdout == f"rlgames {__version__}\n"
    for words, typed, expected in [
        (["games"], "", "connect4"),
        (["play", "connect4"], "4\nq\n", "your opponent plays"),
        (["train", "game=tictactoe", "games=400", "batch=50", "out=run"], "", "exploitability"),
        (["eval", "run"], "", "won / drawn / lost"),
        (["report", "run"], "", "best run: rlgames eval run"),
    ]:
        done = rlgames(*words, typed=typed)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        assert expected in done.stdout, f"{words}\n{done.stdout}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    words = ["build", "--quiet", "--strict", "-f", ROOT / ".mkdocs.yml", "-d", tmp_path / "site"]
    done = subprocess.run([sys.executable, "-m", "mkdocs", *words], capture_output=True, text=True)
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
def test_the_check_of_the_site_finds_faults(tmp_path):
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
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text("{}")
    faults = check_site.faults_of(tmp_path)
    assert len(faults.pop("search")) == len(check_site.WORDS)
    for found in map("; ".join, faults.values()):
        for word in ("sideways", "raw LaTeX", "cut off", "no picture", "error: Uncaught"):
            assert word in found
