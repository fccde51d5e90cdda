"""Makes connect4_positions.txt: positions of Connect 4, and the exact result of each move.

With --test connect4_test_positions.txt, which has none of these positions: only for figures that
are reported, never to choose between networks or settings.

Positions come up in games of random moves that complete no line, and the mover cannot complete one
either. Each is labelled by our own alpha-beta search where that is done within --seconds; otherwise
by bitbully, if it is installed (AGPL-3; nothing else here needs it), or left out. Usage:

    python scripts/label_connect4.py [--each 100] [--seconds 0.5] [--seed 0]
    python scripts/label_connect4.py --test --each 1000 --seconds 0.05 --seed 2
"""

from __future__ import annotations

import argparse
import importlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

from rlgames.solvers.alphabeta import AlphaBeta

FILE = Path(__file__).with_name("connect4_positions.txt")
TEST_FILE = Path(__file__).with_name("connect4_test_positions.txt")
ROWS, COLUMNS, LINE = 6, 7, 4
STAGES = {"beginning": (0, 14), "middle": (15, 28), "end": (29, 41)}
"""Stones on the board."""

LEVELS = {"easy": (0, 13), "medium": (14, 28), "hard": (29, 42)}
"""Moves of both sides to the end, about, if the winner hurries."""

CLASSES = (
    *("end easy", "middle easy", "middle medium"),
    *("beginning easy", "beginning medium", "beginning hard"),
)
HEAD = """\
# Positions of Connect 4 from random moves, made by label_connect4.py; no mover wins at once.
# Stage (up to 14, 28, 41 stones), level (up to 13, 28, 42 moves to the end), the columns played
# from the start, the result of each column for the mover (+ won, = drawn, - lost, . full), and who
# says so: ours, the search in rlgames/solvers/alphabeta.py, or bitbully, the solver of that name.
"""

Board = tuple[int, int]
"""The mover's stones and all stones, as AlphaBeta has them."""


class Labels:
    """The exact result of every move of a position, for the mover, and how far away the end is."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        try:
            self._bitbully: Any = importlib.import_module("bitbully")
            self._solver = self._bitbully.BitBully()
        except ImportError:
            self._bitbully = None

    def of(self, moves: list[int], board: Board) -> tuple[str, int, str] | None:
        """Outcomes, plies to the end, who says so; None where nobody knows."""
        return self._ours(board) or (self._theirs(moves) if self._bitbully else None)

    def _ours(self, board: Board) -> tuple[str, int, str] | None:
        result = AlphaBeta(ROWS, COLUMNS, LINE).analyze(*board, self.seconds)
        outcomes, plies = "", []
        for column in range(COLUMNS):
            if column not in result.bounds:
                outcomes += "."
                continue
            outcome, length = result.outcome(column), result.plies(column)
            if outcome is None or length is None:
                return None
            outcomes += "-=+"[outcome + 1]
            if outcome == result.value:
                plies.append(length)
        # The winner hurries, and the loser delays.
        return outcomes, min(plies) if result.value == 1 else max(plies), "ours"

    def _theirs(self, moves: list[int]) -> tuple[str, int, str]:
        score = self._solver.score_all_moves(self._bitbully.Board.from_moves(moves))
        best, stones = max(score.values()), len(moves)
        left = 42 - stones  # a score of ±s: the winner's last stone is its (22 - s)th
        if best > 0:
            left = 2 * (22 - best - stones // 2) - 1
        elif best < 0:
            left = 2 * (22 + best - (stones + 1) // 2)
        signs = {c: "-=+"[(s > 0) - (s < 0) + 1] for c, s in score.items()}
        return "".join(signs.get(c, ".") for c in range(COLUMNS)), left, "bitbully"


BOTTOM = sum(1 << (column * (ROWS + 1)) for column in range(COLUMNS))


def drop(board: Board, column: int) -> Board | None:
    """The position after a stone in a column; None where that is full."""
    own, occupied = board
    pile = ((1 << ROWS) - 1) << (column * (ROWS + 1))
    stone = (occupied + BOTTOM) & pile
    return (own ^ occupied, occupied | stone) if stone else None


def wins(board: Board, column: int) -> bool:
    """Whether a stone there completes a line."""
    after = drop(board, column)
    stones = 0 if after is None else after[0] ^ after[1]
    return any(stones & stones >> s & stones >> 2 * s & stones >> 3 * s for s in (1, 6, 7, 8))


def random_position(rng: random.Random, stones: int) -> tuple[list[int], Board] | None:
    """A position after `stones` random moves that complete no line; None where none is left, or
    where the mover can complete one."""
    board: Board = (0, 0)
    moves: list[int] = []
    while len(moves) < stones:
        open_ = [c for c in range(COLUMNS) if drop(board, c) and not wins(board, c)]
        if not open_:
            return None
        moves.append(rng.choice(open_))
        board = drop(board, moves[-1]) or board
    return None if any(wins(board, column) for column in range(COLUMNS)) else (moves, board)


def played(moves: str) -> Board:
    """The position after these columns, from 1; "-" stands for none."""
    board: Board = (0, 0)
    for column in moves.strip("-"):
        board = drop(board, int(column) - 1) or board
    return board


def boards_of(file: Path) -> list[Board]:
    """The positions of a file that this script made."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [played(line.split()[2]) for line in lines if not line.startswith("#")]


def within(ranges: dict[str, tuple[int, int]], number: int) -> str:
    return next(name for name, (low, high) in ranges.items() if low <= number <= high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=100, help="positions of each class")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="our search's most time a position"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="make connect4_test_positions.txt")
    words = parser.parse_args()
    rng, labels = random.Random(words.seed), Labels(words.seconds)
    labeled: dict[str, list[str]] = {name: [] for name in CLASSES}
    seen = set(boards_of(FILE)) if words.test else set()
    while any(len(lines) < words.each for lines in labeled.values()):
        short = [name for name, lines in labeled.items() if len(lines) < words.each]
        low, high = STAGES[short[0].split()[0]]
        drawn = random_position(rng, rng.randint(low, high))
        if drawn is None or drawn[1] in seen:
            continue
        seen.add(drawn[1])
        label = labels.of(*drawn)
        if label is None:
            continue
        outcomes, plies, who = label
        name = f"{within(STAGES, len(drawn[0]))} {within(LEVELS, plies)}"
        if len(labeled[name]) < words.each:
            moves = "".join(str(column + 1) for column in drawn[0])
            labeled[name].append(f"{name} {moves or '-'} {outcomes} {who}")
    text = HEAD + "".join(line + "\n" for lines in labeled.values() for line in lines)
    (TEST_FILE if words.test else FILE).write_text(text)
    print(Counter(f"{n}: {line.split()[-1]}" for n, lines in labeled.items() for line in lines))


if __name__ == "__main__":
    main()
