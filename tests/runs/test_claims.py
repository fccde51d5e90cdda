"""Processes that start at the same moment: each directory gets one owner, and nobody removes what
another has written.

The processes are released together, once per round. They claim the directory and open its files as
`rlgames train` does, without the training.
"""

import contextlib
import dataclasses
import fcntl
import multiprocessing
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from markers import slow

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.runs import directory, run_log
from rlgames.runs.files import read_metrics, read_run
from rlgames.runs.loggers.logger import Loggers
from rlgames.training import train as training_run

RACERS = 4
ROUNDS = [10, slow(1000)]
MAX_WAIT_SECONDS = 60
MAX_DELAY_SECONDS = 0.002
"""A racer starts up to this long after the others, so that rounds differ."""

CONFIG = load_config(TrainConfig, ["game=tictactoe", "logger=null"])
REFUSALS = ("another process", "already holds a", "exists, and a")
FAILING = 0
"""The racer that cannot write, in rounds in which one cannot."""

Start = Callable[[Path, int], contextlib.AbstractContextManager[Path]]
"""Starts a run or a sweep in a folder, and yields its directory. Raises ConfigError."""


@contextmanager
def started_run(out: Path | None) -> Iterator[Path]:
    cfg = CONFIG if out is None else dataclasses.replace(CONFIG, out=str(out))
    with Interrupts() as interrupts:
        log = training_run._open_log(cfg, interrupts)
        try:
            yield log.directory
            log.add(os.getpid(), {})
            assert [line["games"] for line in read_metrics(log.directory / "metrics.jsonl")] == [
                os.getpid()
            ]
            assert read_run(log.directory)["pid"] == os.getpid()
            assert (log.directory / "lock").read_text() == str(os.getpid())
            names = ("config.yaml", "train.log", "checkpoints")
            assert all((log.directory / name).exists() for name in names)
        finally:
            log.close()


def named_run(folder: Path, racer: int) -> contextlib.AbstractContextManager[Path]:
    return started_run(folder / "new" / "run")


@contextmanager
def unnamed_run(folder: Path, racer: int) -> Iterator[Path]:
    with contextlib.chdir(folder), started_run(None) as path:
        yield path


@contextmanager
def run_that_may_fail(folder: Path, racer: int) -> Iterator[Path]:
    """A run, which cannot be written by one of the processes, after it has claimed the directory
    and written most of its files."""

    def no_space(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.MonkeyPatch.context() as patch:
        if racer == FAILING:
            patch.setattr(run_log, "build_loggers", no_space)
        with started_run(folder / "new" / "run") as path:
            yield path


def race(start: Start, folder: Path, racer: int, rounds: int, barrier: Any, results: Any) -> None:
    """Take part in all rounds, and send the directory of each, or why there is none."""
    run_log._git = lambda *words: None
    os.fsync = lambda handle: None
    rng, ended = random.Random(racer), []
    for number in range(rounds):
        barrier.wait(MAX_WAIT_SECONDS)
        time.sleep(rng.random() * MAX_DELAY_SECONDS)
        with contextlib.ExitStack() as stack:
            try:
                path = stack.enter_context(start(folder / str(number), racer))
                result = str(folder / str(number) / path)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            barrier.wait(MAX_WAIT_SECONDS)  # everybody has started or was refused
            try:
                stack.close()
            except Exception as error:
                result = f"damaged: {type(error).__name__}: {error}"
        ended.append(result)
    results.put((racer, ended))


def all_raced(start: Start, folder: Path, rounds: int) -> Iterator[list[str]]:
    """What became of each process, by round."""
    for number in range(rounds):
        (folder / str(number)).mkdir()
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(RACERS), context.Queue()
    arguments = [(start, folder, racer, rounds, barrier, results) for racer in range(RACERS)]
    processes = [context.Process(target=race, args=each, daemon=True) for each in arguments]
    for process in processes:
        process.start()
    ended = dict(results.get(timeout=5 * MAX_WAIT_SECONDS) for _ in processes)
    for process in processes:
        process.join()
    return map(list, zip(*(ended[racer] for racer in range(RACERS)), strict=True))


def is_owned(result: str) -> bool:
    return result.startswith("/") and Path(result).is_dir()


def is_refused(result: str) -> bool:
    return result.startswith("ConfigError: ") and any(reason in result for reason in REFUSALS)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("start", [named_run])
def test_one_of_several_processes_owns_a_named_directory(start, rounds, tmp_path):
    bad = [
        ended
        for ended in all_raced(start, tmp_path, rounds)
        if sum(map(is_refused, ended)) != RACERS - 1 or not any(map(is_owned, ended))
    ]
    assert not bad, f"{len(bad)} of {rounds} rounds, such as {bad[0]}"


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("start", [unnamed_run])
def test_each_process_has_its_own_numbered_directory(start, rounds, tmp_path):
    bad = [
        ended
        for ended in all_raced(start, tmp_path, rounds)
        if len({*ended}) != RACERS or not all(map(is_owned, ended))
    ]
    assert not bad, f"{len(bad)} of {rounds} rounds, such as {bad[0]}"


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_process_that_fails_removes_only_what_it_has_written(rounds, tmp_path):
    bad, num_owned = [], 0
    for number, ended in enumerate(all_raced(run_that_may_fail, tmp_path, rounds)):
        owned = [*filter(is_owned, ended)]
        others = [result for result in ended if result not in owned and not is_refused(result)]
        failed = [result for result in others if "No space left on device" in result]
        left = [path for path in (tmp_path / str(number)).rglob("*") if path.is_file()]
        is_right = len(owned) + len(failed) >= 1 and others == failed and len(owned) <= 1
        if not (is_right and bool(owned) == bool(left)):
            bad.append((ended, left))
        num_owned += len(owned)
    assert not bad, f"{len(bad)} of {rounds} rounds, such as {bad[0]}"
    assert num_owned


@pytest.mark.parametrize(
    "stage", [(run_log, "_cut_lines"), (run_log, "build_loggers"), (Loggers, "start_all")]
)
def test_a_run_that_is_interrupted_at_its_start_leaves_nothing(stage, tmp_path, monkeypatch):
    def interrupted(*_: Any) -> None:
        raise Interrupted(signal.SIGTERM)

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patch:
        patch.setattr(*stage, interrupted)
        with pytest.raises(Interrupted), started_run(tmp_path / "new"):
            pass
    assert os.listdir("/proc/self/fd") == before
    assert not (tmp_path / "new").exists()
    with started_run(tmp_path / "new"):
        pass


def test_a_directory_that_vanishes_is_created_again(tmp_path, monkeypatch):
    """The process that created it has failed, and removes it between our creation and our lock."""
    lock = directory.lock_directory
    removed: list[Path] = []

    def removing(path: Path, **more: Any) -> directory.DirectoryLock:
        if len(removed) < 2:
            removed.append(path)
            path.rmdir()
        return lock(path, **more)

    monkeypatch.setattr(directory, "lock_directory", removing)
    with started_run(tmp_path / "new") as path:
        assert removed == [path, path]


def test_a_lock_file_that_its_owner_removed_is_not_locked(tmp_path, monkeypatch):
    """The owner fails after we have opened the file, and before we lock it."""
    first = directory.lock_directory(tmp_path)
    flock, calls = fcntl.flock, []

    def failing(handle: int, operation: int) -> None:
        calls.append(handle)
        if len(calls) == 1:
            first.undo()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", failing)
    second = directory.lock_directory(tmp_path)
    assert (tmp_path / "lock").read_text() == str(os.getpid())
    with pytest.raises(ConfigError, match="another process"):
        directory.lock_directory(tmp_path)
    second.release()


def test_files_of_others_stay_where_a_run_fails(tmp_path, monkeypatch):
    """A directory that was not empty keeps what it held."""
    (tmp_path / "notes").write_text("mine")
    monkeypatch.setattr(run_log, "build_loggers", lambda config: dict[str, int]()["missing"])
    with pytest.raises(KeyError), started_run(tmp_path):
        pass
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_run_is_no_part_of_a_sweep_or_of_another_run(tmp_path):
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep/multirun.yaml").write_text("{}")
    (tmp_path / "outer/game/run/checkpoints").mkdir(parents=True)
    (tmp_path / "outer/game/run/run.json").write_text("{}")
    for name, reason in {
        "sweep": "already holds a sweep",
        "outer": "holds other runs",
        "outer/game": "holds other runs",
        "outer/game/run/inner": f"is inside the run {tmp_path / 'outer/game/run'}",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(reason)):
            directory.check_new_run(tmp_path / name)
    directory.check_new_run(tmp_path / "outer/game/next")
