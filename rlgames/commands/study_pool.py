"""Runs lists of commands, several lists at a time, each command in its own process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rlgames.core.errors import ConfigError, report_error
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class CommandList:
    """Commands that run one after another, until one fails.

    name: for messages. folder, output: the file that gets what they print. commands: words behind
    `rlgames`.
    """

    name: str
    folder: Path
    output: str
    commands: Sequence[Sequence[str]]


def run_commands(lists: Sequence[CommandList], jobs: int) -> None:
    """Run lists of commands, so many at a time.

    Raises Interrupted, after the commands have saved.
    """
    stop = threading.Event()
    with (
        Interrupts(on_first_signal=stop.set) as interrupts,
        interrupts.shielded(),
        ThreadPoolExecutor(jobs) as pool,
    ):
        for each in lists:
            pool.submit(_run_list, each, stop)


def _run_list(work: CommandList, stop: threading.Event) -> None:
    if stop.is_set():
        return
    try:
        storage.make_directory(work.folder)
        print(printable(f"{work.name}: starts"), flush=True)
        if all(_run(work, command, stop) == 0 for command in work.commands):
            print(printable(f"{work.name}: done"), flush=True)
    except (OSError, ValueError) as error:
        report_error(ConfigError(f"{work.folder}: {sanitized(error)}"))


def _run(work: CommandList, command: Sequence[str], stop: threading.Event) -> int:
    """Run a command, which saves and ends when the others stop; its exit code."""
    with storage.open_to_append(work.folder, work.output) as output:
        output.write(f"rlgames {shlex.join(command)}\n".encode())
        output.flush()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlgames", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"OMP_NUM_THREADS": "1", **os.environ},
            start_new_session=True,  # so that the terminal sends it no second signal
        )
        while True:
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    process.terminate()
