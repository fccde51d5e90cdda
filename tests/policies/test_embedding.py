"""Networks on embeddings of all runs of a few cells."""

import pytest
import torch
from helpers import game_2048, generator, rng

from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.policies.embedding import Embedding, board_runs

CONNECT4 = KInARow(6, 7, 4, gravity=True)


def network(game, line_length, num_cell_values=4, open_cells=True):
    keys = {"activation": "relu", "init": "orthogonal", "value": True, "generator": generator()}
    return Embedding(game, 8, num_cell_values, open_cells, line_length, [5], **keys)


def played(game, count, plies):
    state = game.initial(count, rng())
    for ply in range(plies):
        state = game.apply_action(state, Random(game).choose(state, rng(ply)))
    return state


def test_runs_of_cells():
    runs, shared = board_runs(KInARow(2, 3, 2, True), 2)
    across, down, diagonal = [[0, 1], [1, 2], [3, 4], [4, 5]], [[0, 3], [1, 4], [2, 5]], [[0, 4]]
    diagonal += [[1, 5], [1, 3], [2, 4]]
    assert sorted(runs) == sorted(across + down + diagonal)
    assert shared == list(range(11))
    assert len(board_runs(CONNECT4, 4)[0]) == 69  # all lines of four
    assert board_runs(KInARow(2, 3, 2, True), 3)[0] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match=r"policy.line_length=4 is longer than a board of 2x3"):
        board_runs(KInARow(2, 3, 2, True), 4)


def test_vectors_of_runs_are_added():
    policy, state = network(CONNECT4, 4), played(CONNECT4, 30, 12)
    torch.nn.init.normal_(policy.bias, generator=generator(3))
    runs, _ = board_runs(CONNECT4, 4)
    scores, value = policy.scores(CONNECT4, state)
    for row, cells in enumerate(policy.inputs(CONNECT4, state).flatten(1).long().tolist()):
        total = policy.bias.clone()
        for number, run in enumerate(runs):
            content = sum(cells[cell] * 4**place for place, cell in enumerate(run))
            total += policy.vectors.weight[number * 256 + content]
        features = policy.torso(total[None])
        assert torch.allclose(policy.logits(features)[0], scores[row], atol=1e-5)
        assert torch.allclose(policy.value(features)[0, 0], value[row], atol=1e-5)


def test_cells_where_a_stone_can_fall_have_a_value_of_their_own():
    state = played(CONNECT4, 1, 0)
    for action in (3, 3, 0):
        state = CONNECT4.apply_action(state, torch.tensor([action]))
    cells = network(CONNECT4, 4).inputs(CONNECT4, state)[0, 0]
    assert cells[5].tolist() == [2, 3, 3, 2, 3, 3, 3]  # the seat to move has the other stone
    assert cells[4].tolist() == [3, 0, 0, 1, 0, 0, 0]
    assert cells[3].tolist() == [0, 0, 0, 3, 0, 0, 0]
    assert not cells[:3].any()


@pytest.mark.parametrize("game", [KInARow(3, 3, 3, False), KInARow(9, 9, 5, False)], ids=str)
def test_open_cells_are_those_that_a_legal_action_takes(game):
    state = played(game, 20, 3)
    state = state[~state.done]
    cells = network(game, 3, game.num_cell_values + 1).inputs(game, state).flatten(1)
    num_cells = cells.shape[1]
    is_empty = game.relative_cells(state).flatten(1) == 0
    legal = game.legal_action_mask(state)[:, :num_cells] & is_empty
    assert torch.equal(cells == game.num_cell_values, legal)
    assert torch.equal(cells[~legal], game.relative_cells(state).flatten(1)[~legal].float())


def test_games_whose_moves_take_no_empty_cell_have_no_open_cells():
    with pytest.raises(ValueError, match="needs MoverCells, which game=2048 does not have"):
        network(game_2048(4, 4), None)


def test_open_cells_need_a_value():
    with pytest.raises(ValueError, match=r"policy.num_cell_values=3 leaves none .* use 4 or more"):
        network(CONNECT4, 4, num_cell_values=3)
