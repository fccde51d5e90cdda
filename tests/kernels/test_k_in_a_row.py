"""Kernels of k in a row: the same cells and lines as the batched rules, whatever the board."""

import random

import pytest
from helpers import check_uncompiled, rng
from markers import quick

from rlgames.games.k_in_a_row import KInARow, KInARowState
from rlgames.kernels.lines import completing_cells, has_line, line_argument
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.transposition import lookup, make_table, position_key, store

BOARDS = [
    *([6, 7, 4], [4, 4, 3], [3, 3, 3], [2, 6, 4], [7, 7, 5], [61, 1, 4], [1, 31, 4], [4, 3, 1]),
]
"""Rows, columns and the length of a line."""


def positions(board, number, seed=0):
    """Positions of random games, as a batch of states."""
    rows, columns, line = board
    game = KInARow(rows, columns, line, gravity=True)
    states: list[KInARowState] = []
    rounds = 0
    while sum(map(len, states)) < number:
        moves, _ = collect_games(game, [Random(game)], 256, rng(seed + rounds))
        states.append(moves.state)
        rounds += 1
    return game, [state[: number // rounds + 1] for state in states]


def check(board, number):
    game, states = positions(board, number)
    rows, _, line = board
    argument, cells = line_argument(rows, line), game.layout.all_cells
    for state in states:
        other = state.own ^ state.occupied
        expected = game.completing_actions(state, other).tolist()
        lines = game.layout.has_line(state.own | cells & ~state.occupied).tolist()
        for row in range(len(state)):
            own, occupied = int(state.own[row]), int(state.occupied[row])
            completing = completing_cells(own ^ occupied, argument, rows + 1, cells)
            fallen = game.layout.lowest_empty_cells(state.occupied[row]).tolist()
            assert [bool(cell & completing) for cell in fallen] == expected[row]
            assert has_line(own | cells & ~occupied, argument, rows + 1) == lines[row]


@pytest.mark.parametrize("board", BOARDS)
def test_completing_cells_and_lines_are_those_of_the_batched_rules(board):
    check(board, 300)


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS[:5])
def test_they_are_so_on_100_000_positions(board):
    check(board, 100_000)


@pytest.mark.parametrize("board", quick(BOARDS, [6, 7, 4], [61, 1, 4]))
def test_no_two_positions_have_the_same_key_unless_they_are_mirrored(board):
    _, states = positions(board, 2000)
    rows, columns, _ = board
    keys: dict[int, tuple[int, int]] = {}
    for state in states:
        for own, occupied in zip(state.own.tolist(), state.occupied.tolist(), strict=True):
            key = position_key(own, occupied, occupied.bit_count(), rows + 1, columns)
            assert 0 <= key < 1 << (rows + 1) * columns
            mirrored = tuple(mirror(stones, rows + 1, columns) for stones in (own, occupied))
            assert keys.setdefault(key, (own, occupied)) in ((own, occupied), mirrored)


def mirror(stones, height, columns):
    piles = [stones >> c * height & ((1 << height) - 1) for c in range(columns)]
    return sum(pile << c * height for c, pile in enumerate(reversed(piles)))


@pytest.mark.parametrize("key_bits", [12, 49, 62])
def test_a_table_returns_what_was_stored_or_nothing(key_bits):
    table, rest_bits = make_table(key_bits, 64)
    stored, remembered = {}, 0
    generator = random.Random(0)
    for number in range(2000):
        key = generator.randrange(1 << key_bits)
        low = generator.randint(-31, 31)
        stored[key] = (low, generator.randint(low, 31))
        store(table, rest_bits, key, *stored[key], number)
        assert lookup(table, rest_bits, key) == stored[key]
    for key, bounds in stored.items():
        found = lookup(table, rest_bits, key)
        assert found in (bounds, (-31, 31))
        remembered += found == bounds
    assert remembered >= min(table.size // 4, 20)
    assert lookup(*make_table(key_bits, 64), 1) == (-31, 31)


def test_the_search_is_plain_python_without_compilation():
    check_uncompiled(
        "from rlgames.solvers.connect4 import AlphaBeta\n"
        "for rules in [(4, 4, 3), (6, 7, 4)]:\n"
        "    search = AlphaBeta(*rules, 1 << 12)\n"
        "    print(search.search(0, 0, max_positions=300), search.positions)"
    )
