"""Othello: exact values, symmetry, text, and passing."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from rlgames.games import othello
from rlgames.games.notation import parse, parse_action, render
from rlgames.games.othello import Othello
from rlgames.kernels.rules import implement
from rlgames.kernels.words import Array, compiled, count_bits
from rlgames.solvers.graph import Graph
from rlgames.solvers.optimum import find_optimum

ONLY_O_HAS_A_MOVE = """X to move
X O O O
. . . .
O X . .
. . . .
"""


class DiscRules(NamedTuple):
    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    steps: Array
    forward: Array
    backward: Array


@compiled
def play(rules, position, action):
    """The points at the end are the difference of the discs."""
    (own, other, moves), is_over, points = othello.play(rules, position, action)
    lead = count_bits(np.uint64(other)) - count_bits(np.uint64(own))
    return (own, other, moves), is_over, points * np.float32(abs(lead))


implement(DiscRules, play, othello.is_legal, othello.write_cells, othello.set_up)


class Discs(Othello):
    """The score is the difference of the discs."""

    def __init__(self, board):
        super().__init__(board)
        self.rules = DiscRules(*self.rules)


@pytest.mark.others
@pytest.mark.slow
def test_the_second_seat_wins_4x4_by_eight_discs():
    """As published: 3 to 11 discs with the best play (Feinstein 1993 solved 6x6 as 16 to 20)."""
    optimum = find_optimum(Othello(4), seconds=60)
    assert optimum is not None
    assert optimum.value == -1
    graph = Graph(Discs(4), 60, 2**30)
    assert graph.solve([None, None]).mean == -8


def test_a_pass_is_legal_only_without_a_move():
    game = Othello(4)
    state = parse(game, ONLY_O_HAS_A_MOVE)
    assert game.legal_action_mask(state)[0].nonzero()[:, 0].tolist() == [16]
    assert game.action_to_string(state, 0, 16) == "pass"
    after = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "pass")]))
    assert render(game, after, 0).splitlines()[0] == "O to move"
    assert (after.turn - state.turn).tolist() == [1]
    legal = game.legal_action_mask(after)[0].nonzero()[:, 0].tolist()
    assert [game.action_to_string(after, 0, action) for action in legal] == ["C3"]
    with pytest.raises(ValueError, match="the game is not over"):
        parse(game, ONLY_O_HAS_A_MOVE.replace("X to move", "game over"))


def test_positions_say_who_is_to_move_or_that_the_game_is_over():
    game = Othello(4)
    over = parse(game, "game over\nX X X X\nX X X X\nX X X X\nX X X .")
    assert over.done.all()
    assert over.score.tolist() == [[1, -1]]
    assert render(game, over, 0).startswith("game over\n")
    for text, reason in [
        ("Z to move\n" + ". . . .\n" * 4, "X to move, O to move or game over"),
        ("X to move\n" + ". . . .\n" * 4, "four discs"),
        ("X to move\n. . .", "rows"),
    ]:
        with pytest.raises(ValueError, match=reason):
            parse(game, text)


@pytest.mark.parametrize("size", [2, 5, 10])
def test_boards_of_odd_or_extreme_sizes_are_refused(size):
    with pytest.raises(ValueError, match="even number from 4 to 8"):
        Othello(size)
