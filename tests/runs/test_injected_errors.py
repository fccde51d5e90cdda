"""Every operation on the files of a run or a sweep fails in turn, and nothing is lost.

A first pass records the operations. Then one of them fails, in this process, with an error that a
disk, a quota or a file system may return, and the command is repeated without it.
"""

import contextlib
import errno
import fcntl
import io
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest
from run_files import final_state, metrics_without_times, same

from rlgames.core.signals import Interrupted
from rlgames.runs import directory, log, storage
from rlgames.runs.files import LATEST, read_run
from rlgames.training import pictures
from rlgames.training.sources import GameSource

pytestmark = pytest.mark.usefixtures("shown_games")

WORDS = ["experiment=null", "game=salvo", "board=2", "ships=[1]", "shots=1", "policy.layers=[2]"]
WORDS += ["games=8", "batch=4", "log_every=4", "save_every=4", "eval_every=4", "keep_every=8"]
WORDS += ["eval_games=4", "solve_seconds=0"]

OPERATIONS = ("open", "write", "fsync", "replace", "mkdir", "unlink", "truncate", "flock")
ERRORS = ("EIO", "ENOSPC", "EINTR", "EDQUOT", "EROFS")
LASTING = ("ENOSPC", "EDQUOT", "EROFS")
"""A full disk stays full: after one of these errors, the operation fails until the command ends."""

OPTIONAL = re.compile(r"\w+ run/(events\.out\.|pictures/)|(?!open)\w+ run/train\.log")
"""Operations that may fail while the run continues; no run begins without its train.log."""

Command = Callable[..., CompletedProcess[str]]


class Site(NamedTuple):
    """The number-th operation of one kind on one path, which is relative to the working directory;
    an event file is called events.out.*"""

    operation: str
    path: str
    number: int = 1


@dataclass
class Faults:
    """Records the operations on the files of a directory, and fails one of them, if any."""

    directory: Path
    site: Site | None = None
    error: str = "EIO"
    sites: list[Site] = field(default_factory=list)
    failed: list[Site] = field(default_factory=list)

    def fails(self, operation: str, path: str) -> bool:
        """Record an operation. Returns whether it is to fail."""
        if not Path(path).is_relative_to(self.directory):
            return False
        path = os.path.relpath(path, self.directory.parent)
        path = re.sub(r"events\.out\..*", "events.out.*", path)
        path = re.sub(r"\.[0-9a-f]{8}\.tmp$", ".tmp", path)
        number = 1 + sum(site[:2] == (operation, path) for site in self.sites)
        site = Site(operation, path, number)
        self.sites.append(site)
        is_same_error = (
            bool(self.failed) and self.error in LASTING and operation == self.failed[0].operation
        )
        if site == self.site or is_same_error:
            self.failed.append(site)
        return site in self.failed

    def os_error(self, *names: Any) -> OSError:
        number = getattr(errno, self.error)
        return OSError(number, os.strerror(number), *names)

    def is_named(self, text: str) -> bool:
        """Whether a text names the error and a file that it hit."""
        paths = [site.path.removesuffix(".tmp").removesuffix("*") for site in self.failed]
        return self.os_error().strerror in text and any(path in text for path in paths)


class FailingFile(io.FileIO):
    """A file of which the system writes the first half of some bytes, and then refuses the rest."""

    def __init__(self, faults: Faults, handle: int, mode: str) -> None:
        super().__init__(handle, mode)
        self.faults, self.path, self.is_half_written = faults, path_of(handle), False

    def write(self, data: Any) -> int:
        if self.is_half_written:
            self.is_half_written = False
            raise self.faults.os_error()
        if self.faults.fails("write", self.path):
            if len(data) < 2:
                raise self.faults.os_error()
            self.is_half_written = True
            return super().write(memoryview(data)[: len(data) // 2])
        return super().write(data)

    def truncate(self, size: int | None = None) -> int:
        if self.faults.fails("truncate", self.path):
            raise self.faults.os_error()
        return super().truncate(size)


def path_of(handle: int) -> str:
    """The path of a descriptor."""
    return os.readlink(f"/proc/self/fd/{handle}")


@contextlib.contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """A context where operations on files fail."""

    def by_path(operation: str, call: Any) -> Any:
        def replaced(path: Any, *args: Any, **kwargs: Any) -> Any:
            if faults.fails(operation, os.path.abspath(path)):
                raise faults.os_error(path)
            return call(path, *args, **kwargs)

        return replaced

    def by_handle(operation: str, call: Any) -> Any:
        def replaced(handle: int, *args: Any) -> Any:
            if faults.fails(operation, path_of(handle)):
                raise faults.os_error()
            return call(handle, *args)

        return replaced

    def fdopen(handle: int, mode: str) -> Any:
        file = FailingFile(faults, handle, mode)
        return io.BufferedReader(file) if mode == "rb" else io.BufferedWriter(file)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "replace", "mkdir", "unlink"):
            patch.setattr(os, name, by_path(name, getattr(os, name)))
        patch.setattr(os, "fsync", by_handle("fsync", os.fsync))
        patch.setattr(fcntl, "flock", by_handle("flock", fcntl.flock))
        patch.setattr(os, "fdopen", fdopen)
        yield


# ---------------------------------------------------------------- one file


def lock(folder: Path) -> None:
    directory.lock_directory(folder).release()


CALLS: dict[str, Callable[[Path], object]] = {
    "write": lambda folder: storage.write_file(folder, "file", "new content"),
    "append": lambda folder: storage.open_to_append(folder, "another").close(),
    "remove": lambda folder: storage.remove_file(folder, "file"),
    "make a directory": lambda folder: storage.make_directory(folder / "one" / "two"),
    "lock": lock,
}
CONTENTS = {"write": ["new content"], "remove": [""]}
"""What a call may leave instead of the old content."""


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", CALLS)
def test_a_file_is_whole_and_named_after_an_error(name, error, tmp_path):
    folder = tmp_path / "run"

    def call(faults: Faults) -> OSError | None:
        """Call it on a directory with an old file; the error that it raises."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "file").write_text("old content")
        with injected(faults):
            try:
                CALLS[name](folder)
            except OSError as raised:
                return raised
        return None

    recorded = Faults(folder)
    assert call(recorded) is None
    for site in recorded.sites:
        faults = Faults(folder, site, error)
        raised = call(faults)
        assert faults.failed, site
        if raised is None:  # a write is repeated, and a lock may stay until the process ends
            assert (site.operation, error) == ("write", "EINTR") or site.operation == "flock"
        else:
            assert faults.is_named(str(raised))
            assert "None" not in str(raised)
        content = (folder / "file").read_text() if (folder / "file").exists() else ""
        assert content in {*CONTENTS.get(name, ()), "old content"}
        assert not list(folder.glob("*.tmp"))
        CALLS[name](folder)  # without the error


# ---------------------------------------------------------------- a run


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are small, and nothing waits."""

    monkeypatch.setattr(log, "_git", lambda *words: None)
    monkeypatch.setattr(pictures, "line_chart", lambda *args, **keys: None)
    monkeypatch.setattr(pictures, "encode_png", lambda image: b"PNG")
    monkeypatch.setattr(pictures, "draw_game", lambda *args: ([None], b"GIF"))


@contextlib.contextmanager
def interrupted() -> Iterator[None]:
    """A context where a run is interrupted before its second batch."""
    collect = GameSource.prepare

    def collect_first(self: GameSource, games: int, progress: float) -> Any:
        if games:
            raise Interrupted(signal.SIGTERM)
        return collect(self, games, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GameSource, "prepare", collect_first)
        yield


class Bench:
    """Trains or resumes a run with injected errors, from the same start each time.

    start: "new" for a new run, "resumed" for one that was interrupted.
    """

    def __init__(self, start: str, folder: Path, typed: Command) -> None:
        self.typed, self.run, self.begun = typed, folder / "run", folder / "begun"
        self.command = ["train", *WORDS, "out=run"]
        if start == "resumed":
            with interrupted():
                assert typed(*self.command).returncode == 128 + signal.SIGTERM
            self.run.rename(self.begun)
            self.command = ["resume", "run"]
        self.prepare()
        recorded = Faults(self.run)
        with injected(recorded):
            assert typed(*self.command).returncode == 0
        self.sites = recorded.sites
        self.state, self.metrics = final_state(self.run), metrics_without_times(self.run)

    def prepare(self) -> None:
        shutil.rmtree(self.run, ignore_errors=True)
        if self.begun.exists():
            shutil.copytree(self.begun, self.run)

    def check(self, site: Site, error: str) -> None:
        """Assert that nothing is lost by an error."""
        self.prepare()
        faults = Faults(self.run, site, error)
        with injected(faults):
            ended = self.typed(*self.command)
        assert faults.failed, site
        assert "Traceback" not in ended.stdout + ended.stderr
        lines = [line for line in ended.stderr.splitlines() if line.startswith("rlgames: ")]
        if ended.returncode == 0:
            self.continued(faults, lines)
        else:
            operations = [f"{site.operation} {site.path}" for site in faults.failed]
            assert not all(map(OPTIONAL.match, operations)), lines
            assert faults.is_named(lines[-1]), lines
            is_refused = lines[-1].endswith("name another out=")
            is_refused |= "is not a readable checkpoint" in lines[-1]
            assert ended.returncode == (2 if is_refused else 3)
            has_latest = (self.run / "checkpoints" / LATEST).exists()
            again = self.typed(*(["resume", "run"] if has_latest else self.command))
            assert (again.returncode, again.stderr) == (0, "")
        self.is_whole()

    def continued(self, faults: Faults, lines: list[str]) -> None:
        """Assert that an error which did not end the run was reported once for each kind of file,
        unless it needs no report: a write is repeated, the log lacks a message, the lock is
        released by the end of the process, or a new directory is searched for an earlier run."""
        if lines:
            assert all(faults.is_named(line) for line in lines), lines
            kinds = {line.partition(" (")[2] for line in lines}
            assert len(kinds) == len(lines) <= 2, lines
            return
        for operation, path, _ in faults.failed:
            is_repeated = operation == "write" and faults.error == "EINTR"
            assert is_repeated or path == "run/train.log" or operation in ("flock", "open")

    def is_whole(self) -> None:
        same(self.state, final_state(self.run))
        assert self.metrics == metrics_without_times(self.run)
        provenance = read_run(self.run)
        assert provenance["status"] == "done"
        assert provenance["versions"]
        assert not [path for path in self.run.rglob("*") if "tmp" in path.name]


def without_repetitions(sites: list[Site]) -> list[Site]:
    """Of each operation on a path the first and the last."""
    ends = {site[:2]: site for site in sites}
    return [site for site in sites if site.number == 1 or site == ends[site[:2]]]


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", ["new", "resumed"])
def test_an_error_loses_nothing(start, operation, quickly, typed, tmp_path):
    bench = Bench(start, tmp_path, typed)
    sites = [site for site in without_repetitions(bench.sites) if site.operation == operation]
    for number, site in enumerate(sites):
        bench.check(site, ERRORS[number % len(ERRORS)])
