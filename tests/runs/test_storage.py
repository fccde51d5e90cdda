"""A directory from a stranger, or with a user's own files: nothing outside is changed, nothing is
overwritten, and a refusal leaves nothing behind."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from markers import one_in
from untrusted_files import QUICK, RUNS, plain_error_line

from rlgames.runs import directory, storage
from rlgames.runs.files import read_run

WORDS = [*RUNS["plain"], *QUICK]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a finished run."""
    folder = tmp_path_factory.mktemp("whole")
    assert rlgames(folder, "train", *WORDS, "out=run") == 0
    return folder


def rlgames(folder, *words):
    from processes import run

    return run(folder, *words)[0]


@pytest.fixture
def copies(whole, tmp_path):
    shutil.copytree(whole / "run", tmp_path / "run")
    (tmp_path / "mine").write_text("mine\n")
    return tmp_path


def link(path, mine):
    path.symlink_to(mine)


def dangling_link(path, mine):
    path.symlink_to(mine.with_name("missing"))


def hard_link(path, mine):
    os.link(mine, path)


def fifo(path, mine):
    os.mkfifo(path)


def device(path, mine):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root may create devices")


KINDS = [link, dangling_link, hard_link, fifo, device]
RUN_FILES = [*directory.NEW_FILES, "lock", "checkpoints/latest.safetensors", "reports/eval.json"]
RUN_FILES += ["pictures/values.png", "checkpoints", "pictures", "notes/another"]


def replaced(path, kind, mine):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    kind(path, mine)


@pytest.mark.parametrize(
    ("name", "kind"), one_in(4, [(name, kind) for name in RUN_FILES for kind in KINDS])
)
def test_odd_files_in_a_run_are_refused_by_name(name, kind, copies, typed):
    replaced(copies / "run" / name, kind, copies / "mine")
    what = "a hard link" if kind is hard_link else "a link or not a regular file"
    for words in (["resume", "run", "games=16"], ["eval", "run", "games=4"]):
        assert f"run/{name} is {what}" in plain_error_line(typed(*words))
    assert (copies / "mine").read_text() == "mine\n"
    assert not (copies / "missing").exists()
    assert "damaged: run: " in typed("report", "run").stdout or name == "run.json"


# ---------------------------------------------------------------- a user's own files


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


OWN = [*directory.NEW_FILES, "checkpoints/best.safetensors", "checkpoints/notes", "pictures/me.png"]


@pytest.mark.parametrize("name", OWN)
def test_a_run_overwrites_nothing(name, tmp_path, typed):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('{"name": "mine"}')
    before = files(tmp_path)
    said = plain_error_line(typed("train", *WORDS, "out=."))
    assert name.split("/")[0] in said or "already holds a run" in said
    assert files(tmp_path) == before


def test_other_files_beside_a_run_are_left_alone(tmp_path, typed):
    (tmp_path / "notes.txt").write_text("mine")
    assert typed("train", *WORDS, "out=.").returncode == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert read_run(tmp_path)["status"] == "done"


@pytest.mark.parametrize(
    "words", [["train", *WORDS, "out=\udcff"], ["eval", "\udcff"], ["train", "-m", "out=a\udcff"]]
)
def test_a_name_that_is_no_utf_8_is_refused(words, tmp_path, typed):
    said = plain_error_line(typed(*words))
    assert "\\xff' is not valid UTF-8" in said
    assert not list(tmp_path.iterdir())


def test_a_locale_without_utf_8_is_named(typed, monkeypatch):
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    assert "is not valid ASCII; set PYTHONUTF8=1" in plain_error_line(typed("eval", "\udce6"))


def test_two_processes_may_replace_a_file_at_once(tmp_path):
    with storage.replace_file(tmp_path, "eval.json") as file:
        file.write(b"one")
        storage.write_file(tmp_path, "eval.json", "the other")
        assert (tmp_path / "eval.json").read_text() == "the other"
        file.write(b" whole")
    assert [path.name for path in tmp_path.iterdir()] == ["eval.json"]
    assert (tmp_path / "eval.json").read_text() == "one whole"


def test_whoever_locks_a_directory_removes_what_dead_owners_did_not_complete(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "pictures").mkdir()
    leftovers = ["run.json.1.tmp", "checkpoints/latest.safetensors.tmp"]
    leftovers += ["pictures/values.png.1.tmp"]
    kept = ["eval.json.1.tmp", "mine.tmp", "checkpoints/latest.safetensors"]
    for name in (*leftovers, *kept):
        (tmp_path / name).touch()
    directory.lock_directory(tmp_path).release()
    assert [name for name in leftovers if (tmp_path / name).exists()] == []
    assert [name for name in kept if not (tmp_path / name).exists()] == []


@pytest.mark.parametrize("out", [["out=new/run"], []], ids=["out", "default"])
@pytest.mark.parametrize("stage", ["run", "lock"])
def test_a_directory_without_permission_is_named(stage, out, tmp_path, typed, monkeypatch):
    """Root may write everywhere, so the refusal is injected."""

    def refusing(call):
        def there(path, *args, **kwargs):
            name = os.fspath(path) if not isinstance(path, int) else ""
            is_run = stage == "run" and ("new" in name or "outputs" in name)
            if is_run or Path(name).name == stage:
                raise PermissionError(13, os.strerror(13), path)
            return call(path, *args, **kwargs)

        return there

    with monkeypatch.context() as patched:
        for name in ("open", "mkdir", "replace"):
            patched.setattr(os, name, refusing(getattr(os, name)))
        said = plain_error_line(typed("train", *WORDS, *out))
    assert "cannot be written: Permission denied" in said
