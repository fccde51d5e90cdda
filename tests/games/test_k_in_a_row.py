"""k in a row: lines, keys, impossible positions, scripted players and large boards."""

from dataclasses import replace

import pytest
import torch
from helpers import rng

from rlgames.games.capabilities import ExactKey, find
from rlgames.games.k_in_a_row import KInARow, connect4, gomoku
from rlgames.games.notation import parse, parse_action
from rlgames.players.player import Random
from rlgames.players.scripted import WinOrBlock
from rlgames.rollouts.play import collect_games


@pytest.mark.parametrize(
    ("shape", "gravity"),
    [
        *[((4, 4, 3), False), ((5, 6, 4), False), ((9, 9, 5), False), ((6, 5, 1), False)],
        *[((6, 7, 4), True), ((2, 20, 5), True), ((61, 1, 4), True), ((3, 3, 3), True)],
    ],
)
def test_the_actions_that_complete_a_line_are_those_after_which_the_game_is_won(shape, gravity):
    rows, columns, line = shape
    game = KInARow(rows, columns, line, gravity)
    moves, _ = collect_games(game, [Random(game)], 50, rng(1))
    state = moves.state
    for of_other, seen in ((False, state), (True, with_other_to_move(game, state))):
        completing = game.completing_actions(state, of_other)
        for action in range(game.spec.actions):
            after = game.apply_action(seen, torch.full((len(seen),), action))
            legal = game.legal_action_mask(state)[:, action]
            assert torch.equal(completing[:, action], legal & after.score.any(1))


def with_other_to_move(game, state):
    return game.state_from_cells(game.cells(state).flatten(1), 1 - state.current_seat)


def test_scripted_players_win_and_block_on_large_boards():
    game = gomoku(9, 5)
    moves, _ = collect_games(game, [Random(game)], 20, rng(1))
    player = WinOrBlock(game)
    options = player.options(moves.state)
    assert not (options & ~game.legal_action_mask(moves.state)).any()
    text = [["."] * 9 for _ in range(9)]
    for place in range(4):
        text[3 + place][3 + place], text[8][2 + place] = "X", "O"
    state = parse(game, "\n".join(" ".join(row) for row in text))
    wins = options_of(game, player, state)
    assert wins == ["C3", "H8"]
    after = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "A1")]))
    assert options_of(game, player, after) == ["B9", "G9"]
    won = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "C3")]))
    assert won.score.tolist() == [[1, -1]]


def options_of(game, player, state):
    actions = player.options(state)[0].nonzero()[:, 0].tolist()
    return [game.action_to_string(state, 0, action) for action in actions]


def test_impossible_positions_are_not_valid():
    game = connect4(6, 7, 4)
    state = game.initial(4, rng())
    words = state.words.clone()
    words[0], words[1], words[2] = torch.tensor([[0, 1], [0, 2], [1, 0]])
    one = torch.ones_like(state.turn)
    assert game.is_valid(replace(state, words=words, turn=one, current_seat=one)).tolist() == [
        *(True, False, False, False)
    ]


def test_large_boards():
    assert find(gomoku(7, 5), ExactKey) is None
    assert find(connect4(6, 7, 4), ExactKey) is not None
    with pytest.raises(ValueError, match="62 is the most"):
        KInARow(8, 8, 4, True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [15, 19])
def test_boards_of_many_words_are_played_to_their_end(size):
    game = gomoku(size, 5)
    assert collect_games(game, [Random(game)], 2, rng(2))[1].state.done.all()
