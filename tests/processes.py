"""Commands of rlgames in forked processes, which start faster than new ones, and at terminals.

Everything that a command imports is imported here once: in each fork it would take a second or two.
"""

import codecs
import importlib
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psutil
import torch

from rlgames.commands import app

PARTS = ["terminal.progress", "games.game_2048", "training.train"]
COMMANDS = ["arena", "evaluate", "games", "play", "report", "resume", "show", "solve", "train"]
OTHERS = ["PIL.GifImagePlugin", "PIL.PngImagePlugin", "numpy.random", "torch._dynamo"]
OTHERS += ["tensorboard.plugins.hparams.api_pb2", "hydra._internal.core_plugins.basic_sweeper"]
for module in (*PARTS, *(f"commands.{name}" for name in COMMANDS)):
    importlib.import_module(f"rlgames.{module}")
for module in OTHERS:
    importlib.import_module(module)

# A fork hangs at its first operation by several threads if this process has had some, too.
torch.set_num_threads(1)

Prepare = Callable[[], object]

INHERITED: list[object] = []
"""The streams of the processes before a fork. Closing one would wait for ever if a thread was
writing to it."""


@contextmanager
def ending_process() -> Iterator[None]:
    """A block that this process, a fork, ends with: by SystemExit or, otherwise, with 99."""
    INHERITED.extend((sys.stdin, sys.stdout, sys.stderr))
    try:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        yield
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)


class Fork:
    """A fork of this process that calls `run`. files: its standard input, output and error."""

    def __init__(self, files: Sequence[int], run: Callable[[], object]) -> None:
        self.code: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        for number, file in enumerate(files):
            os.dup2(file, number)
        with ending_process():
            run()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code


class Process(Fork):
    """A fork of this process that runs a command, with its output in a temporary file.

    prepare: called in the fork first. apart: standard output and error have a file each.
    """

    def __init__(
        self, folder: Path, *words: str, prepare: Prepare | None = None, apart: bool = False
    ) -> None:
        files = [tempfile.TemporaryFile("w+") for _ in range(1 + apart)]  # noqa: SIM115
        self.streams = [files[0], files[-1]]
        with open(os.devnull) as empty:
            numbers = [each.fileno() for each in (empty, *self.streams)]
            super().__init__(numbers, lambda: type_in(folder, words, prepare))

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = 60) -> tuple[int, str]:
        """The exit code, negative for a signal, and everything that was printed."""
        ended = self.ended(seconds)
        return ended.returncode, ended.stdout

    def ended(self, seconds: float) -> subprocess.CompletedProcess[str]:
        """The exit code and both streams."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            code = self.poll()
            if code is not None:
                return subprocess.CompletedProcess(str(self.pid), code, *self.output())
            time.sleep(0.005)
        self.send(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"it did not end: {self.output()}")

    def output(self) -> list[str]:
        """What it has printed to standard output and error."""
        for stream in self.streams:
            stream.seek(0)
        return [stream.read() for stream in self.streams]


def type_in(folder: Path, words: Sequence[str], prepare: Prepare | None = None) -> None:
    """Become the command that consists of these words; prepare is called first."""
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    sys.argv = ["rlgames", *words]
    if prepare is not None:
        prepare()
    app.main()


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody has waited for."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


class Terminal:
    """A fork of this process that runs a command at a pseudo-terminal, read as a stream of text."""

    def __init__(self, folder, *words, **environment):
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.environ.update({"TERM": "xterm", "COLUMNS": "80"} | environment)
            self.start(folder, words)
        self.raw, self.read_up_to = "", 0
        # A read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def start(self, folder, words):
        with ending_process():
            type_in(folder, words)

    @property
    def shown(self):
        return self.raw.replace("\r\n", "\n")

    def send(self, number):
        os.kill(self.pid, number)

    def type(self, text):
        os.write(self.file, text.encode())

    def read(self, seconds):
        """Read what comes within some time; False once the other end is closed."""
        if not select.select([self.file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            data = b""
        self.raw += self._decoder.decode(data)
        return bool(data)

    def ended(self, seconds=120):
        """The exit code; that of a kill if it has not ended by then."""
        end = time.monotonic() + seconds
        while self.read(0.2):
            if time.monotonic() > end:
                self.send(signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)

    def wait_for(self, *texts, seconds=60):
        """Wait for one of the texts. Returns the output before it, and the text, or None if
        the output ends first."""
        end, is_open = time.monotonic() + seconds, True
        while time.monotonic() < end:
            new = self.shown[self.read_up_to :]
            matches = [(new.index(text), text) for text in texts if text in new]
            if matches:
                position, text = min(matches)
                self.read_up_to += position + len(text)
                return new[:position], text
            if not is_open:
                return new, None
            is_open = self.read(0.2)
        raise AssertionError(f"none of {texts} came: {self.shown}")


class FreshTerminal(Terminal):
    """The same as a new process, which imports rlgames from PYTHONPATH."""

    def start(self, folder, words):
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "rlgames", *words])


@contextmanager
def served(folder, *words, at="127.0.0.1"):
    """A page served by a command in a fork of this process, at a free port: the port and the
    process. Ctrl-C ends it, and it must end well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*(word for word in words if not word.startswith(("port=", "open="))), f"port={port}"]
    process = Process(folder, *words, "open=false", apart=True)
    try:
        end = time.monotonic() + 60
        while not process.output()[0]:
            assert time.monotonic() < end
            assert process.poll() is None, process.output()
            time.sleep(0.01)
        with closing(HTTPConnection(at, port, timeout=60)) as connection:
            connection.request("GET", "/")
            connection.getresponse()
        yield port, process
    finally:
        process.send(signal.SIGINT)
        ended = process.ended(10)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def run(folder, *words, prepare=None):
    return Process(folder, *words, prepare=prepare).wait()
