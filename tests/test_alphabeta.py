"""Alpha-beta search: held to the values of all positions, and honest about its budget."""

import time

import pytest
import torch

from rlgames.games.lines import Lines
from rlgames.play import play
from rlgames.players.player import Random
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.graph import Graph

RULES = [(3, 3, 3), (4, 4, 3), (4, 4, 4), (3, 5, 3), (4, 4, 2), (5, 3, 4), (2, 6, 4), (4, 3, 1)]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def some_positions(game, games=60, seed=1):
    moves, _ = play(game, [Random(game)], games, rng(seed))
    return moves.state


@pytest.mark.parametrize("rules", RULES)
def test_best_columns_are_those_of_full_minimax(rules):
    game = Lines(*rules, gravity=True)
    graph = Graph(game, 60, 2 << 30)
    values = graph.value([None, None])
    state = some_positions(game)
    expected = graph.best(values, state)
    search = AlphaBeta(*rules)
    for row in range(len(state)):
        found = search.best(int(state.own[row]), int(state.occupied[row]), 60)
        assert found.exact
        best = expected[row].nonzero()[:, 0].tolist()
        if found.value == 1:
            assert set(found.columns) <= set(best)
        else:
            assert found.columns == best


def test_the_empty_board_is_worth_what_the_graph_says():
    for rules in RULES:
        graph = Graph(Lines(*rules, gravity=True), 60, 2 << 30)
        value, exact = AlphaBeta(*rules).value(0, 0, 60)
        assert exact
        assert value == graph.value([None, None]).mean


def test_an_open_three_wins():
    board = ". . . . . . .\n" * 4 + ". . O O . . .\n. . X X . . .\n1 2 3 4 5 6 7"
    state = Lines(6, 7, 4, gravity=True).parse(board)
    found = AlphaBeta(6, 7, 4).best(int(state.own[0]), int(state.occupied[0]), 20)
    assert found.exact
    assert found.value == 1
    assert set(found.columns) <= {1, 4}


def test_a_short_budget_is_kept_and_owned_up_to():
    start = time.perf_counter()
    found = AlphaBeta(6, 7, 4).best(0, 0, 0.05)
    assert time.perf_counter() - start < 2
    assert not found.exact
    assert found.columns == list(range(7))


def test_moves_that_lose_at_once_are_left_out_whatever_the_budget():
    game = Lines(6, 7, 4, gravity=True)
    state = game.parse(". . . . . . .\n" * 5 + "X X X . . O O\n1 2 3 4 5 6 7")
    found = AlphaBeta(6, 7, 4).best(int(state.own[0]), int(state.occupied[0]), 0.2)
    assert found.columns == [3]


def test_mirrored_positions_have_mirrored_columns():
    game = Lines(4, 5, 4, gravity=True)
    state = some_positions(game, 8, 2)[40:60]
    for row in range(len(state)):
        mirrored = "\n".join(line[::-1] for line in game.render(state, row).splitlines()[:-1])
        other = game.parse(mirrored + "\n1 2 3 4 5")
        one, two = (
            AlphaBeta(4, 5, 4).best(int(s.own[i]), int(s.occupied[i]), 60)
            for s, i in ((state, row), (other, 0))
        )
        assert one.value == two.value
        assert sorted(4 - column for column in one.columns) == two.columns
