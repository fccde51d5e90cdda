"""Plays Hex by MoHex (https://github.com/cgao3/benzene-vanilla-cmake).

    player=program player.command='python scripts/engines/mohex.py "param_mohex max_games 99" mohex'

Commands of GTP come first, and the last word is the engine. Its swap differs from that of rlgames,
so it gets each position by its stones. Where MoHex has proven that it loses, it may stop with an
error; then the first legal move is played.
"""

from __future__ import annotations

import json
import sys
from subprocess import DEVNULL, PIPE, Popen

from gomocup import rows_of


class Engine:
    """A running engine, which starts again where it has ended."""

    def __init__(self, command: str, setup: list[str]) -> None:
        self.command, self.setup = command, setup
        self.start()

    def start(self) -> None:
        self.process = Popen([self.command], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)
        for line in self.setup:
            self.ask(line)

    def ask(self, line: str) -> str:
        """The answer to a command of GTP; empty if there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = ""
        for text in self.process.stdout:
            if answer and not text.strip():
                return answer[1:].strip() if answer[0] == "=" else ""
            answer = answer or text.strip()
        self.start()
        return ""


def main(words: list[str]) -> None:
    """Answer each position of the standard input with a move."""
    engine = Engine(words[-1], words[:-1])
    for question in map(json.loads, sys.stdin):
        rows, legal = rows_of(question["position"]), question["legal"]
        engine.ask(f"boardsize {len(rows)}")
        engine.ask(f"param_game allow_swap {int('swap' in legal)}")
        for row, marks in enumerate(rows):
            for column, mark in enumerate(marks):
                if mark != ".":
                    color = "black" if mark == "X" else "white"
                    engine.ask(f"play {color} {chr(ord('a') + column)}{row + 1}")
        move = engine.ask(f"genmove {('black', 'white')[question['seat'] - 1]}")
        move = "swap" if move == "swap-pieces" else move
        print(move if move in map(str.lower, legal) else legal[0], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
