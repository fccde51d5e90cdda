"""Alpha-beta search: held to the values of all positions, and honest about its budget."""

import time
from functools import cache

import pytest
import torch
from helpers import rng
from markers import one_in

from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers import alphabeta
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.graph import Graph

RULES = [(3, 3, 3), (4, 4, 3), (4, 4, 4), (3, 5, 3), (4, 4, 2), (5, 3, 4), (2, 6, 4), (4, 3, 1)]


def some_positions(game, games=60, seed=1):
    moves, _ = collect_games(game, [Random(game)], games, rng(seed))
    return moves.state


@pytest.mark.parametrize("rules", one_in(2, map(list, RULES)))
def test_best_columns_are_those_of_full_minimax(rules):
    rows, columns, line = rules
    game = KInARow(rows, columns, line, gravity=True)
    graph = Graph(game, 60, 2 << 30)
    solution = graph.solve([None, None])
    state = some_positions(game)
    expected = graph.best_actions(solution, state)
    search = AlphaBeta(*rules)
    for row in range(len(state)):
        result = search.search(int(state.own[row]), int(state.occupied[row]), 60)
        assert result.is_proven
        best = expected[row].nonzero()[:, 0].tolist()
        if result.value == 1:
            assert set(result.columns) <= set(best)
        else:
            assert result.columns == best


def test_the_value_of_the_empty_board_agrees_with_the_graph():
    for rules in RULES:
        graph = Graph(KInARow(*rules, gravity=True), 60, 2 << 30)
        result = AlphaBeta(*rules).search(0, 0, 60)
        assert result.is_proven
        assert result.value == graph.solve([None, None]).mean


def test_an_open_three_wins():
    board = ". . . . . . .\n" * 4 + ". . O O . . .\n. . X X . . .\n1 2 3 4 5 6 7"
    state = KInARow(6, 7, 4, gravity=True).parse(board)
    result = AlphaBeta(6, 7, 4).search(int(state.own[0]), int(state.occupied[0]), 20)
    assert result.is_proven
    assert result.value == 1
    assert set(result.columns) <= {1, 4}


def test_a_short_budget_is_kept_and_owned_up_to():
    start = time.perf_counter()
    result = AlphaBeta(6, 7, 4).search(0, 0, 0.05)
    assert time.perf_counter() - start < 2
    assert not result.is_proven
    assert result.columns == list(range(7))


def test_moves_that_lose_at_once_are_left_out_whatever_the_budget():
    game = KInARow(6, 7, 4, gravity=True)
    state = game.parse(". . . . . . .\n" * 5 + "X X X . . O O\n1 2 3 4 5 6 7")
    result = AlphaBeta(6, 7, 4).search(int(state.own[0]), int(state.occupied[0]), 0.2)
    assert result.columns == [3]


def test_mirrored_positions_have_mirrored_columns():
    game = KInARow(4, 5, 4, gravity=True)
    state = some_positions(game, 8, 2)[40:60]
    for row in range(len(state)):
        mirrored = "\n".join(line[::-1] for line in game.render(state, row).splitlines()[:-1])
        other = game.parse(mirrored + "\n1 2 3 4 5")
        one, two = (
            AlphaBeta(4, 5, 4).search(int(s.own[i]), int(s.occupied[i]), 60)
            for s, i in ((state, row), (other, 0))
        )
        assert one.value == two.value
        assert sorted(4 - column for column in one.columns) == two.columns


def test_no_column_that_loses_at_once_even_without_any_time(monkeypatch):
    monkeypatch.setattr(alphabeta, "CHECK_EVERY", 1)
    game = KInARow(6, 7, 4, gravity=True)
    state = game.parse(". . . . . . .\n" * 5 + "X X X . . O O\n1 2 3 4 5 6 7")
    result = AlphaBeta(6, 7, 4).search(int(state.own[0]), int(state.occupied[0]), 0)
    assert result.columns == [3]
    assert not result.is_proven


def test_a_win_at_once_and_a_double_threat_need_no_time():
    game = KInARow(6, 7, 4, gravity=True)
    empty, names = ". . . . . . .\n", "\n1 2 3 4 5 6 7"
    wins = game.parse(empty * 5 + "X X X . O O O" + names)
    result = AlphaBeta(6, 7, 4).search(int(wins.own[0]), int(wins.occupied[0]), 0)
    assert (result.columns, result.value, result.is_proven) == ([3], 1, True)
    lost = game.parse(empty * 4 + ". O O . . . .\n. X X X . . ." + names)
    result = AlphaBeta(6, 7, 4).search(int(lost.own[0]), int(lost.occupied[0]), 0)
    assert (result.columns, result.value, result.is_proven) == (list(range(7)), -1, True)


def test_a_full_board_is_a_draw():
    board = (1 << 2) - 1
    result = AlphaBeta(2, 1, 4).search(0, board, 1)
    assert (result.value, result.is_proven) == (0, True)


@pytest.mark.parametrize("most", [1, 100])
def test_a_table_that_is_dropped_changes_no_value(most, monkeypatch):
    monkeypatch.setattr(alphabeta, "CHECK_EVERY", 8)
    whole = AlphaBeta(4, 5, 4)
    expected = [whole.search(own, occupied, 60) for own, occupied in some_bits()]
    monkeypatch.setattr(alphabeta, "MAX_TABLE_ENTRIES", most)
    search = AlphaBeta(4, 5, 4)
    for (own, occupied), result in zip(some_bits(), expected, strict=True):
        again = search.search(own, occupied, 60)
        assert (again.value, again.is_proven) == (result.value, result.is_proven)
        # Which of the winning columns it finds first does depend on the table.
        assert again.value == 1 or again.columns == result.columns
        # Between two looks: a position each, and those on the way back from the last one.
        assert len(search._proven) + len(search._zero) <= most + 8 + 20


def some_bits():
    state = some_positions(KInARow(4, 5, 4, gravity=True), 8, 3)[60:80]
    return [(int(state.own[row]), int(state.occupied[row])) for row in range(len(state))]


def test_late_positions_against_plain_lists():
    """6 x 7 from 26 stones on, against a minimax that knows of no bits."""
    game = KInARow(6, 7, 4, gravity=True)
    state = some_positions(game, 40, 5)
    stones = torch.tensor([int(taken).bit_count() for taken in state.occupied.tolist()])
    late = (stones >= 26).nonzero()[:8, 0].tolist()
    assert len(late) == 8
    for row in late:
        own, occupied = int(state.own[row]), int(state.occupied[row])
        board = tuple(
            tuple(own >> (7 * c + r) & 1 for r in range(6) if occupied >> (7 * c + r) & 1)
            for c in range(7)
        )
        result = AlphaBeta(6, 7, 4).search(own, occupied, 60)
        assert (result.value, result.is_proven) == (minimax(board), True)


@cache
def minimax(board):
    """The value to the seat to move. board: columns from the bottom up, 1 for its stones."""
    best = None
    for place, column in enumerate(board):
        if len(column) == 6:
            continue
        after = (*board[:place], (*column, 1), *board[place + 1 :])
        if makes_four(after, place, len(column)):
            return 1
        turned = tuple(tuple(1 - stone for stone in each) for each in after)
        value = -minimax(turned)
        if value == 1:
            return 1
        best = value if best is None else max(best, value)
    return 0 if best is None else best


def makes_four(board, column, row):
    def run(across, up):
        count = 0
        c, r = column + across, row + up
        while 0 <= c < 7 and 0 <= r < len(board[c]) and board[c][r] == 1:
            count, c, r = count + 1, c + across, r + up
        return count

    return any(
        run(across, up) + run(-across, -up) >= 3 for across, up in ((1, 0), (0, 1), (1, 1), (1, -1))
    )
