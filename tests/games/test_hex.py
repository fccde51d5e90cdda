"""Hex: exact values, openings, symmetry, text, and the swap rule."""

import pytest
import torch
from helpers import rng
from markers import slow

from rlgames.games.hex import CAN_SWAP, Hex
from rlgames.games.notation import parse, parse_action, render
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.graph import Graph

SHORT_DIAGONAL = {2: "B1 A2", 3: "C1 A2 B2 C2 A3", 4: "D1 C2 B3 A4"}
"""The winning openings, as published, by the size of the board."""


def some_positions(game):
    moves, _ = collect_games(game, [Random(game)], 30, rng(2))
    return moves.state[torch.arange(0, len(moves), 7)]


@pytest.mark.others
@pytest.mark.parametrize("size", [2, 3, slow(4)])
def test_the_published_openings_win(size):
    game = Hex(size, False)
    graph = Graph(game, 600, 8 * 2**30)
    solution = graph.solve([None, None])
    assert solution.mean == 1
    start = game.initial(1, rng())
    best = graph.best_actions(solution, start)[0].nonzero()[:, 0].tolist()
    names = " ".join(game.action_to_string(start, 0, action) for action in best)
    assert names == SHORT_DIAGONAL[size]


@pytest.mark.parametrize("size", [2, 3])
def test_with_the_swap_rule_the_second_seat_wins(size):
    assert Graph(Hex(size, True), 60, 2**30).solve([None, None]).mean == -1


@pytest.mark.parametrize("swap", [False, True])
def test_both_seats_see_the_same_game(swap):
    """A position whose stones change places and colors is the same for the other seat."""
    game = Hex(4, swap)
    state = some_positions(game)
    state = state[state.turn > 1]  # before, only the second seat may swap
    assert len(state) > 20
    cells = game.cells(state).transpose(1, 2).flatten(1)
    twin = game.state_from_cells(torch.tensor([0, 2, 1])[cells], 1 - state.current_seat)
    assert torch.equal(game.observe(twin), game.observe(state))
    legal = game.legal_action_mask(state)
    assert torch.equal(game.legal_action_mask(twin), legal)
    for action in (legal.long().argmax(1), 15 - legal[:, :16].flip(1).long().argmax(1)):
        after, other = game.apply_action(state, action), game.apply_action(twin, action)
        assert torch.equal(after.score, other.score.flip(1))
        assert torch.equal(game.observe(after), game.observe(other))


def test_planes_show_what_is_linked_to_each_edge():
    game = Hex(3, True)
    state = parse(game, "O to move\n. X .\nO X .\nO . X")
    assert game.observe(state)[0].long().tolist() == [
        [[0, 1, 1], [0, 0, 0], [0, 0, 0]],  # O's stones, who sees the columns as rows
        [[0, 0, 0], [1, 1, 0], [0, 0, 1]],
        [[0, 1, 1], [0, 0, 0], [0, 0, 0]],  # linked to the top: the left edge
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [1, 1, 0], [0, 0, 0]],  # X's, linked to the left: the top edge
        [[0, 0, 0], [0, 0, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
    assert game.action_to_string(state, 0, 3) == "B1"
    assert game.action_cells(state, 0)[3].nonzero().tolist() == [[1]]


def test_words_that_do_not_follow_from_the_stones_are_invalid():
    game = Hex(3, True)
    state = some_positions(game)
    for word, flag in ((0, 1 << 20), (1, 1), (1, int(CAN_SWAP)), (3, 1 << 40)):
        changed = state[state.turn != 1]
        changed.words[:, word] |= flag
        assert not game.is_valid(changed).any()


def test_swapping_mirrors_the_stone_at_the_long_diagonal():
    game = Hex(3, True)
    state = game.initial(1, rng())
    assert not game.legal_action_mask(state)[0, 9]
    state = game.apply_action(state, torch.tensor([2]))  # C1
    state = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "swap")]))
    text = render(game, state, 0)
    assert text == "X to move\n   A B C\n 1 . . .\n  2 . . .\n   3 O . ."
    assert state.turn.tolist() == [2]
    assert not game.legal_action_mask(state)[0, 9]
    assert torch.equal(parse(game, text).turn, state.turn)


@pytest.mark.parametrize(
    ("swap", "text", "reason"),
    [
        (False, "X to move\n. . .\n. . .\nO . .", "did not take turns"),
        (True, "O to move\n. . .\n. . .\nO . .", "did not take turns"),
        (True, "X to move\nX X .\n. . .\n. . .", "did not take turns"),
        (True, "game over\nX . .\n. . .\nO . .", "not over"),
        (True, "Z to move\n. . .\n. . .\n. . .", "X to move, O to move or game over"),
    ],
)
def test_impossible_positions_are_refused(swap, text, reason):
    with pytest.raises(ValueError, match=reason):
        parse(Hex(3, swap), text)


def test_a_finished_game_reads_back():
    game = Hex(2, True)
    state = parse(game, "game over\nX O\nX .")
    assert state.done.all()
    assert state.score.tolist() == [[1, -1]]
    assert render(game, state, 0).splitlines()[0] == "game over"


def test_boards_of_more_than_11x11_are_refused():
    with pytest.raises(ValueError, match="more than 11"):
        Hex(12, True)
