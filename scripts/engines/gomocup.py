"""Plays Gomoku by an engine that speaks Gomocup's protocol, such as Rapfi.

    player=program player.command='python scripts/engines/gomocup.py max_node=1000 pbrain-rapfi'

KEY=VALUE is sent as INFO KEY VALUE, and the rest is the command of the engine. The rule is
freestyle: five or more in a row win.
"""

from __future__ import annotations

import json
import re
import sys
from subprocess import DEVNULL, PIPE, Popen

MOVE = re.compile(r"\d+,\d+\s*")


class Engine:
    """A running engine. command: its words."""

    def __init__(self, command: list[str]) -> None:
        self.process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)

    def ask(self, text: str, pattern: re.Pattern[str]) -> str:
        """The first line that matches, after these lines were sent."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()
        for line in self.process.stdout:
            if pattern.fullmatch(line):
                return line.strip()
        sys.exit("the engine ended")


def rows_of(position: str) -> list[list[str]]:
    """The marks of the cells, by row."""
    lines = (line.split() for line in position.splitlines())
    return [words[1:] for words in lines if words and words[0].isdigit()]


def main(words: list[str]) -> None:
    """Answer each position of the standard input with a move."""
    info = [word for word in words if re.fullmatch(r"\w+=\w+", word)]
    engine = Engine(words[len(info) :])
    settings = "".join(f"INFO {word.replace('=', ' ')}\n" for word in ("rule=0", *info))
    size = 0
    for question in map(json.loads, sys.stdin):
        rows = rows_of(question["position"])
        if len(rows) != size:
            size = len(rows)
            engine.ask(f"START {size}\n", re.compile(r"OK.*\s*"))
        stones = [
            f"{column},{row},{1 if mark == 'XO'[question['seat'] - 1] else 2}\n"
            for row, marks in enumerate(rows)
            for column, mark in enumerate(marks)
            if mark != "."
        ]
        move = engine.ask(f"{settings}BOARD\n{''.join(stones)}DONE\n", MOVE)
        column, row = map(int, move.split(","))
        print(f"{chr(ord('a') + column)}{row + 1}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
