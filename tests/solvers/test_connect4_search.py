"""The search of k in a row with gravity: completing cells are those of the rules, and its table."""

import pytest
from helpers import rng
from markers import quick

from rlgames.games.board_game import BoardState
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.connect4_search import (
    position_key,
)

BOARDS = [
    *([6, 7, 4], [4, 4, 3], [3, 3, 3], [2, 6, 4], [7, 7, 5], [61, 1, 4], [1, 31, 4], [4, 3, 1]),
]
"""Rows, columns and the length of a line."""


def positions(board, number, seed=0):
    """Positions of random games, as a batch of states."""
    rows, columns, line = board
    game = KInARow(rows, columns, line, gravity=True)
    states: list[BoardState] = []
    rounds = 0
    while sum(map(len, states)) < number:
        moves, _ = collect_games(game, [Random(game)], 256, rng(seed + rounds))
        states.append(moves.state)
        rounds += 1
    return game, [state[: number // rounds + 1] for state in states]


@pytest.mark.parametrize("board", quick(BOARDS, [6, 7, 4], [61, 1, 4]))
def test_no_two_positions_have_the_same_key_unless_they_are_mirrored(board):
    _, states = positions(board, 2000)
    rows, columns, _ = board
    keys: dict[int, tuple[int, int]] = {}
    for state in states:
        for own, occupied in state.words.tolist():
            key = position_key(own, occupied, occupied.bit_count(), rows + 1, columns)
            assert 0 <= key < 1 << (rows + 1) * columns
            mirrored = tuple(mirror(stones, rows + 1, columns) for stones in (own, occupied))
            assert keys.setdefault(key, (own, occupied)) in ((own, occupied), mirrored)


def mirror(stones, height, columns):
    piles = [stones >> c * height & ((1 << height) - 1) for c in range(columns)]
    return sum(pile << c * height for c, pile in enumerate(reversed(piles)))
