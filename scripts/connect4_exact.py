"""Plays Connect 4 in the first seat, where every game can be won, against exact play.

The second seat takes any of the replies with the best exact score, all equally likely: it delays a
loss as long as possible, and hurries to win. Replies are those of our own search where that knows
all scores of a position within --seconds of it, or else of bitbully, if that is installed (AGPL-3;
nothing else here needs it), or else of our own search without a limit, which takes minutes for each
of the first positions. Prints a table in Markdown, or the counts with format=json. Usage, players
and keys as in rlgames arena:

    python scripts/connect4_exact.py RUN RUN+alphabeta games=200 search.plies=5
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
from collections.abc import Sequence
from typing import Any

import torch
from label_connect4 import COLUMNS, LINE, ROWS, Board, drop, wins

from rlgames.commands.arena import competitors
from rlgames.core.rng import make_generator
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Player
from rlgames.solvers.alphabeta import AlphaBeta, SearchResult

SECONDS = 0.2
"""How long our own search may take where another one could answer."""

TABLE_ENTRIES = 1 << 25
RESULTS = ("won", "drawn", "lost")


class ExactReplies:
    """The columns with the best exact score; each position is searched once."""

    def __init__(self) -> None:
        self._search = AlphaBeta(ROWS, COLUMNS, LINE, TABLE_ENTRIES)
        self._replies: dict[Board, list[int]] = {}
        try:
            self._bitbully: Any = importlib.import_module("bitbully")
            self._solver = self._bitbully.BitBully()
        except ImportError:
            self._bitbully = None

    def of(self, moves: list[int], board: Board) -> list[int]:
        """The replies to these moves, which lead to the board."""
        if board not in self._replies:
            self._replies[board] = self._ours(board, SECONDS) or self._others(moves, board)
        return self._replies[board]

    def _others(self, moves: list[int], board: Board) -> list[int]:
        if self._bitbully is None:
            return self._ours(board, math.inf)
        scores = self._solver.score_all_moves(self._bitbully.Board.from_moves(moves))
        return [column for column, score in scores.items() if score == max(scores.values())]

    def _ours(self, board: Board, seconds: float) -> list[int]:
        """None within the time: an empty list."""
        return best_columns(self._search.analyze(*board, seconds))


def best_columns(result: SearchResult) -> list[int]:
    """The columns with the best score; none where that is not known."""
    best = max(low for low, _ in result.bounds.values())
    columns = [column for column, (_, high) in result.bounds.items() if high >= best]
    return columns if all(result.bounds[column] == (best, best) for column in columns) else []


def play(player: Player, game: KInARow, replies: ExactReplies, games: int, seed: int) -> list[int]:
    """How many games the first seat wins, draws and loses."""
    dice = random.Random(seed)
    rng = make_generator(seed, "eval")
    live: list[list[int]] = [[] for _ in range(games)]
    counts = [0, 0, 0]
    while live:
        boards = [position(moves) for moves in live]
        own, occupied = (torch.tensor(column) for column in zip(*boards, strict=True))
        actions = player.choose(game.state_from_stones(own, occupied), rng).tolist()
        going = []
        for moves, board, action in zip(live, boards, actions, strict=True):
            result = _after(moves, board, action)
            if result is None:
                board = position(moves)
                reply = dice.choice(replies.of(moves, board))
                result = _after(moves, board, reply)
            if result is None:
                going.append(moves)
            else:
                counts[result] += 1
        live = going
    return counts


def _after(moves: list[int], board: Board, column: int) -> int | None:
    """Make a move; the index of the result if that ends the game."""
    is_won, seat = wins(board, column), len(moves) % 2
    moves.append(column)
    if is_won:
        return 2 * seat
    return 1 if len(moves) == ROWS * COLUMNS else None


def position(moves: Sequence[int]) -> Board:
    board: Board = (0, 0)
    for column in moves:
        after = drop(board, column)
        assert after is not None
        board = after
    return board


def main(words: Sequence[str]) -> int:
    """words: players as in rlgames arena, and keys with their values."""
    overrides = [word for word in words if "=" in word]
    names = [word for word in words if word not in overrides]
    cfg, game, players = competitors(names, ["game=connect4", *overrides])
    assert isinstance(game, KInARow)
    replies = ExactReplies()
    with torch.inference_mode():
        counts = [play(player, game, replies, cfg.games, cfg.seed) for player in players]
    if cfg.format == "json":
        print(json.dumps(dict(zip(names, counts, strict=True))))
        return 0
    print(f"| {cfg.games} games in the first seat | " + " | ".join(RESULTS) + " |")
    print("|---|" + "---|" * len(RESULTS))
    for name, results in zip(names, counts, strict=True):
        print(f"| {name} | " + " | ".join(map(str, results)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
