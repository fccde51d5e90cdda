"""Commands in forked processes at a pseudo-terminal; the processes and files of scripts/."""

import fcntl
import os
import pty
import signal
import socket
import struct
import sys
import termios
import time
from contextlib import contextmanager

from forks import Fork as Fork
from forks import Process as Process
from forks import ending_process, type_in
from forks import has_ended as has_ended
from run_files import final_state as final_state
from run_files import flat as flat
from run_files import metrics_without_times as metrics_without_times
from run_files import same as same
from run_files import tensorboard_events as tensorboard_events
from screen import Session


class Terminal(Session):
    """A fork of this process that runs a command at a pseudo-terminal, read as a stream of text."""

    def __init__(self, folder, *words, **environment):
        pid, file = pty.fork()
        if not pid:
            os.environ.update({"TERM": "xterm", "COLUMNS": "80"} | environment)
            self.start(folder, words)
        super().__init__(pid, file)
        self.read_up_to = 0

    def start(self, folder, words):
        with ending_process():
            type_in(folder, words)

    @property
    def shown(self):
        return self.raw.replace("\r\n", "\n")

    def send(self, number):
        os.kill(self.pid, number)

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


def session(folder, *words, rows=40, columns=80, prepare=None, **environment):
    """A command in a fork of this process, at a pseudo-terminal whose screen can be read."""
    pid, file = pty.fork()
    if not pid:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color", "LANG": "C.UTF-8"} | environment)
        with ending_process():
            type_in(folder, words, prepare)
    return Session(pid, file, rows, columns)


@contextmanager
def served(folder, *words):
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
        yield port, process
    finally:
        process.send(signal.SIGINT)
        ended = process.ended(10)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def run(folder, *words, prepare=None):
    return Process(folder, *words, prepare=prepare).wait()
