"""Processes that start at the same moment: each directory gets one owner, and nobody removes what
another has written.

The processes are released together, once per round. They claim the directory and open its files as
`rlgames train` does, without the training.
"""

import contextlib
import dataclasses
import json
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
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.runs import directory, log
from rlgames.runs.files import read_metrics, read_run
from rlgames.runs.loggers import Loggers

RACERS = 4
ROUNDS = [10, slow(1000)]
MAX_WAIT_SECONDS = 60
MAX_DELAY_SECONDS = 0.002
"""A racer starts up to this long after the others, so that rounds differ."""

CONFIG = load_config(TrainConfig, ["game=tictactoe", "logger=null"])
REFUSALS = ("another process", "already holds a", "exists, and a")
Start = Callable[[Path], contextlib.AbstractContextManager[Path]]
"""Starts a run in a folder, and yields its directory. Raises ConfigError."""


@contextmanager
def started_run(out: Path | None) -> Iterator[Path]:
    cfg = CONFIG if out is None else dataclasses.replace(CONFIG, out=str(out))
    with contextlib.ExitStack() as stack, Interrupts() as interrupts:
        lock = directory.claim_directory(cfg.out, Path("outputs/tictactoe"))
        stack.callback(lock.release)
        run = log.RunLog(lock, to_plain(cfg), "", "turns", "turns", interrupts)
        try:
            yield run.directory
            run.on_metrics(os.getpid(), {})
            assert [line["games"] for line in read_metrics(run.directory / "metrics.jsonl")] == [
                os.getpid()
            ]
            assert read_run(run.directory)["pid"] == os.getpid()
            names = ("config.yaml", "train.log", "checkpoints")
            assert all((run.directory / name).exists() for name in names)
        finally:
            run.close()


def named_run(folder: Path) -> contextlib.AbstractContextManager[Path]:
    return started_run(folder / "new" / "run")


@contextmanager
def unnamed_run(folder: Path) -> Iterator[Path]:
    with contextlib.chdir(folder), started_run(None) as path:
        yield path


def race(start: Start, folder: Path, racer: int, rounds: int, barrier: Any, results: Any) -> None:
    """Take part in all rounds, and send the directory of each, or why there is none."""
    log._git = lambda *words: None
    os.fsync = lambda handle: None
    rng, ended = random.Random(racer), []
    for number in range(rounds):
        barrier.wait(MAX_WAIT_SECONDS)
        time.sleep(rng.random() * MAX_DELAY_SECONDS)
        with contextlib.ExitStack() as stack:
            try:
                path = stack.enter_context(start(folder / str(number)))
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
def test_one_of_several_processes_owns_a_named_directory(rounds, tmp_path):
    bad = [
        ended
        for ended in all_raced(named_run, tmp_path, rounds)
        if sum(map(is_refused, ended)) != RACERS - 1 or not any(map(is_owned, ended))
    ]
    assert not bad, f"{len(bad)} of {rounds} rounds, such as {bad[0]}"


@pytest.mark.parametrize("rounds", ROUNDS)
def test_each_process_has_its_own_numbered_directory(rounds, tmp_path):
    bad = [
        ended
        for ended in all_raced(unnamed_run, tmp_path, rounds)
        if len({*ended}) != RACERS or not all(map(is_owned, ended))
    ]
    assert not bad, f"{len(bad)} of {rounds} rounds, such as {bad[0]}"


@pytest.mark.parametrize(
    "stage", [(log, "_started"), (log, "_cut_lines"), (log, "build_loggers"), (Loggers, "call")]
)
def test_a_run_that_is_interrupted_at_its_start_can_be_started_again(stage, tmp_path, monkeypatch):
    def interrupted(*_: Any) -> None:
        raise Interrupted(signal.SIGTERM)

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patch:
        patch.setattr(*stage, interrupted)
        with pytest.raises(Interrupted), started_run(tmp_path / "new"):
            pass
    assert os.listdir("/proc/self/fd") == before
    with started_run(tmp_path / "new"):
        pass


def test_a_run_is_not_a_part_of_another_one(tmp_path):
    (tmp_path / "outer/game/run/checkpoints").mkdir(parents=True)
    (tmp_path / "outer/game/run/run.json").write_text("{}")
    for name, reason in {
        "outer": "holds other runs",
        "outer/game": "holds other runs",
        "outer/game/run/inner": f"is inside the run {tmp_path / 'outer/game/run'}",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(reason)):
            directory.check_new_run(tmp_path / name)
    directory.check_new_run(tmp_path / "outer/game/next")
    directory.check_new_run(tmp_path / "outer/game/run/doctor/lr=0.1/0")  # of doctor


def test_a_run_that_ended_before_its_first_checkpoint_may_be_started_again(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/best.safetensors").touch()
    for status, name, is_refused in (
        ("running", "best", False),
        ("done", "best", True),
        ("running", "latest", True),
    ):
        (tmp_path / "run.json").write_text(json.dumps({"status": status}))
        (tmp_path / f"checkpoints/{name}.safetensors").touch()
        refused = pytest.raises(ConfigError, match="already holds a run")
        with refused if is_refused else contextlib.nullcontext():
            directory.check_new_run(tmp_path)
