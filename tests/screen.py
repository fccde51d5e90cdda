"""What a terminal looks like after the control sequences that rich writes."""

import codecs
import os
import re
import select
import signal
import time

SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]|\x1b\][^\x07]*\x07")


class Screen:
    """A screen of characters, without colors. Lines that leave it at the top are forgotten."""

    def __init__(self, rows=40, columns=80):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.rest = ""

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        place = 0
        while place < len(text):
            match = SEQUENCE.match(text, place)
            if match:
                if match[2]:
                    self.control(match[1], match[2])
                place = match.end()
            elif text[place] == "\x1b" and len(text) - place < 20:  # the rest is yet to come
                self.rest = text[place:]
                return
            else:
                self.put(text[place])
                place += 1

    def control(self, arguments, kind):
        numbers = [int(word or 0) for word in arguments.strip("?").split(";")]
        count = max(1, numbers[0])
        if kind in "ABCD":
            down = {"A": -count, "B": count}.get(kind, 0)
            right = {"C": count, "D": -count}.get(kind, 0)
            self.row = min(self.rows - 1, max(0, self.row + down))
            self.column = min(self.columns - 1, max(0, self.column + right))
        elif kind == "H":
            self.row = min(self.rows, count) - 1
            self.column = (numbers[1] if len(numbers) > 1 and numbers[1] else 1) - 1
        elif kind == "G":
            self.column = count - 1
        elif kind == "K":
            start, end = [(self.column, self.columns), (0, self.column + 1), (0, self.columns)][
                numbers[0]
            ]
            self.cells[self.row][start:end] = [" "] * (end - start)
        elif kind == "J":
            if numbers[0] == 0:
                self.control("0", "K")
            first = self.row + 1 if numbers[0] == 0 else 0
            for row in range(first, self.rows):
                self.cells[row] = [" "] * self.columns

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            if self.row + 1 < self.rows:
                self.row += 1
            else:
                self.cells = [*self.cells[1:], [" "] * self.columns]
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character >= " ":
            if self.column == self.columns:
                self.put("\r")
                self.put("\n")
            self.cells[self.row][self.column] = character
            self.column += 1

    @property
    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells).rstrip()


class Session:
    """A process at a pseudo-terminal: its screen, what is typed, how it ends."""

    def __init__(self, pid, file, rows=40, columns=80):
        self.pid, self.file, self.screen = pid, file, Screen(rows, columns)
        self.raw = ""
        # A read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def type(self, text):
        os.write(self.file, text.encode())

    def wait_for(self, text, seconds=120):
        """Wait until a text is on the screen; returns all of it."""
        return self.wait_until(lambda screen: text in screen, seconds)

    def wait_until(self, holds, seconds=120):
        """Wait until this holds for the text on the screen."""
        end = time.monotonic() + seconds
        while not holds(self.screen.text):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(self.screen.text)
        return self.screen.text

    def read(self, seconds):
        """Read what comes within some time; False once the other end is closed."""
        if not select.select([self.file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            data = b""
        text = self._decoder.decode(data)
        self.raw += text
        self.screen.feed(text)
        return bool(data)

    def ended(self, seconds=120):
        """The exit code; that of a kill if it has not ended by then."""
        end = time.monotonic() + seconds
        while self.read(0.2):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)
