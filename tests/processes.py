"""Commands in forked processes at a pseudo-terminal; the processes and files of scripts/."""

import codecs
import os
import pty
import select
import signal
import socket
import sys
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection

from forks import Fork as Fork
from forks import Process as Process
from forks import ending_process, type_in
from forks import has_ended as has_ended
from run_files import final_state as final_state
from run_files import flat as flat
from run_files import metrics_without_times as metrics_without_times
from run_files import same as same
from run_files import tensorboard_events as tensorboard_events


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
