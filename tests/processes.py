"""Commands in forked processes, and what they leave behind.

Everything that a command imports is imported here once: in each fork it would take a second or two.
"""

import importlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any

import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from rlgames.cli import job_worker, main
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics

PARTS = [
    f"rlgames.{name}"
    for name in (
        "cli.display",
        "games.game_2048",
        "cli.live_view",
        "cli.report_tables",
        "training.run",
    )
]
COMMANDS = ["arena", "evaluate", "listing", "play", "report", "resume", "show", "solve", "sweep"]
OTHERS = ["PIL.GifImagePlugin", "PIL.PngImagePlugin", "numpy.random", "torch._dynamo"]
OTHERS += ["tensorboard.plugins.hparams.api_pb2", "hydra._internal.core_plugins.basic_sweeper"]
for module in (*PARTS, *(f"rlgames.commands.{name}" for name in COMMANDS), *OTHERS):
    importlib.import_module(module)


class Process:
    """A fork of this process that runs a command, with its output in a temporary file.

    prepare: called in the fork first. apart: standard output and error have a file each.
    """

    def __init__(self, folder, *words, prepare=None, apart=False):
        files = [tempfile.TemporaryFile("w+") for _ in range(1 + apart)]  # noqa: SIM115
        self.streams = [files[0], files[-1]]
        self.pid = os.fork()
        if not self.pid:
            try:
                self._type(folder, words, prepare)
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(99)

    def _type(self, folder, words, prepare):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        for number, stream in enumerate(self.streams, 1):
            os.dup2(stream.fileno(), number)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        type_in(folder, words, prepare)

    def send(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=60):
        """The exit code, negative for a signal, and everything that was printed."""
        ended = self.ended(seconds)
        return ended.returncode, ended.stdout

    def ended(self, seconds):
        """The exit code and both streams."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return subprocess.CompletedProcess(self.pid, code, *self._output())
            time.sleep(0.005)
        self.send(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"it did not end: {self._output()}")

    def _output(self):
        for stream in self.streams:
            stream.seek(0)
        return [stream.read() for stream in self.streams]


class Terminal:
    """A fork of this process that runs a command at a pseudo-terminal, and what it has shown."""

    def __init__(self, folder, *words, **environment):
        self.pid, self.file = pty.fork()
        self.shown, self.read_up_to = "", 0
        if not self.pid:
            try:
                os.environ.update({"TERM": "xterm", "COLUMNS": "80"} | environment)
                sys.stdin, sys.stdout, sys.stderr = (
                    open(number, mode, closefd=False)  # noqa: SIM115
                    for number, mode in enumerate(["r", "w", "w"])
                )
                type_in(folder, words)
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(99)

    def send(self, number):
        os.kill(self.pid, number)

    def type(self, text):
        os.write(self.file, text.encode())

    def wait_for(self, *texts, seconds=60):
        """Wait for one of the texts. Returns the output before it, and the text, or None if
        the output ends first."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            new = self.shown[self.read_up_to :]
            matches = [(new.index(text), text) for text in texts if text in new]
            if matches:
                position, text = min(matches)
                self.read_up_to += position + len(text)
                return new[:position], text
            if not select.select([self.file], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.file, 4096)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                return new, None
            self.shown += data.decode().replace("\r\n", "\n")
        raise AssertionError(f"none of {texts} came: {self.shown}")

    def ended(self):
        """The exit code."""
        self.wait_for("\0nothing")
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


def type_in(folder, words, prepare=None):
    """Become the command that consists of these words; prepare is called first."""
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    sys.argv = ["rlgames", *words]
    try:
        if prepare is not None:
            prepare()
        main.main()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code or 0)


class Forked:
    """A job's process as a fork of this one, which starts faster than a new one."""

    def __init__(self, words, output):
        reading, writing = os.pipe()
        sys.stdout.flush()
        self.pid, self.code = os.fork(), None
        if not self.pid:
            try:
                os.close(writing)
                os.dup2(reading, 0)
                os.setsid()
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                sys.argv = ["rlgames.cli.job_worker", *words]
                job_worker.main()
            except SystemExit as end:
                sys.stdout.flush()
                os._exit(end.code or 0)
            finally:
                traceback.print_exc()
                os._exit(99)
        os.close(reading)
        self.stdin = open(writing, "wb")  # noqa: SIM115

    def poll(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.005)

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)


def run(folder, *words, prepare=None):
    return Process(folder, *words, prepare=prepare).wait()


def has_ended(pid):
    """Whether a process is gone, or a zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def final_state(directory):
    """Everything in the last checkpoint and the best weights, except times."""
    latest = Checkpoint.read(directory / "checkpoints" / "latest.safetensors")
    best = Checkpoint.read(directory / "checkpoints" / "best.safetensors")
    tensors = {"best": best.policy, "latest": latest.policy}
    return flat(tensors | {"state": latest.state, "games": latest.games})


def flat(tree, prefix=""):
    """The leaves of a tree by path, except times and TensorBoard's events, which may fail."""
    leaves: dict[Any, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            leaves |= flat(value, f"{prefix}{name}/")
        elif name not in ("seconds", "num_events"):
            leaves[prefix + name] = value
    return leaves


def same(one, two):
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, two[name]), name
        else:
            assert value == two[name], name


def metrics_without_times(directory):
    """The lines of metrics.jsonl as text, in which NaN equals itself, except times."""
    lines = read_metrics(directory / "metrics.jsonl")
    return [
        json.dumps({name: value for name, value in line.items() if not name.startswith("time/")})
        for line in lines
    ]


def tensorboard_events(run):
    """What all event files of a run hold, in order, except times: steps with tags and values."""
    events: list[Any] = []
    for path in sorted(run.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag == "_hparams_/session_start_info":  # with the time
                    events.append((event.step, value.tag))
                elif not value.tag.startswith(("time/", "_hparams_")):
                    events.append((event.step, value.SerializeToString(deterministic=True)))
    return events
