"""N-tuple policies: what they add up, on symmetric boards too, and which games they have."""

import re

import numpy as np
import pytest
import torch
from helpers import rng

from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.games.game_2048 import Game2048
from rlgames.games.symmetry import Symmetries
from rlgames.policies.ntuple_logits import NtupleLogits
from rlgames.policies.packed_ntuple import PackedLogits
from rlgames.training.components import build_components

TUPLES = [[0, 1, 2], [1, 2, 4, 5]]


def filled(game, num_cell_values=6, value=True):
    tuples = TUPLES if min(game.rows, game.columns) > 1 else [[0, 1], [1, 2, 3]]
    policy = NtupleLogits(game, tuples, num_cell_values, value)
    policy.entries.copy_(torch.rand(policy.entries.shape, generator=rng(1)))
    return policy


def boards(game, most=8, count=100):
    return torch.randint(0, most, (count, game.rows, game.columns), generator=rng(2))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 4), (4, 4)])
def test_symmetric_boards_have_symmetric_logits_and_equal_values(rows, columns):
    game = Game2048(rows, columns)
    policy, symmetries, exponents = filled(game), Symmetries(game, "cpu"), boards(game)
    logits, value = policy.scores(game, game.from_exponents(exponents))
    for number in range(symmetries.count):
        index = torch.full((len(exponents),), number)
        turned = exponents.flatten(1)[:, symmetries.cells[number]].view_as(exponents)
        turned_logits, turned_value = policy.scores(game, game.from_exponents(turned))
        expected = symmetries.transform_action_values(logits, index)
        assert torch.allclose(turned_logits, expected, rtol=1e-5)
        assert torch.allclose(turned_value, value, rtol=1e-5)


def test_an_entry_holds_the_logits_of_the_view_that_reads_it():
    """One tuple on 2×2: its entry for a board adds to the actions as they are in that view."""
    game = Game2048(2, 2)
    policy = NtupleLogits(game, [[0, 1]], 4, False)
    policy.entries[1 + 4 * 2] = torch.tensor([1.0, 10.0, 100.0, 1000.0])  # a 2, then a 4
    logits, value = policy.scores(game, game.from_exponents(torch.tensor([[[1, 2], [0, 0]]])))
    assert value is None
    # Only the board itself and its transposed mirror image have a 2 before a 4 in the first row.
    assert logits.tolist() == [[1.0, 10.0, 100.0, 1000.0]]
    logits, _ = policy.scores(game, game.from_exponents(torch.tensor([[[2, 1], [0, 0]]])))
    assert logits.tolist() == [[1.0, 1000.0, 100.0, 10.0]]  # mirrored


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 4), (4, 4), (1, 4), (4, 1)])
def test_kernels_compute_the_same_logits(rows, columns):
    from rlgames.kernels.ntuple_logits import STRIDE, sum_logits
    from rlgames.kernels.ntuple_values import find_entries

    game = Game2048(rows, columns)
    policy, state = filled(game), game.from_exponents(boards(game))
    packed = PackedLogits(game, policy, STRIDE)
    table = np.zeros((len(policy.entries), STRIDE), np.float32)
    table[:, :5] = policy.entries.numpy()
    entries = np.zeros(packed.network.num_entries, np.uint64)
    logits = np.zeros(4, np.float32)
    expected, _ = policy.scores(game, state)
    for row, board in enumerate(packed.pack(state.tiles)):
        packed.network.find_entries(board, packed.network, entries, np.uint64(0))
        arguments = (entries, np.uint64(0), packed.network.num_entries, packed.permutations)
        sum_logits(table.reshape(-1), *arguments, logits)
        assert logits == pytest.approx(expected[row].numpy(), rel=1e-5)
    assert callable(find_entries)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("game=tictactoe learner=a2c", "not of tictactoe"),
        ("game=2048 learner=ppo", "learner=ppo does not train policy=ntuple_logits"),
        ("game=2048 learner=a2c reward=score policy.tuples=[[0,16]]", "cells from 0 to 15"),
        ("game=2048 learner=a2c reward=score policy.tuples=[[0,1,2,3,4,5,6,7,8,9,10]]", "need"),
        ("game=2048 learner=a2c reward=score board=5", "larger than 4x4"),
        ("game=2048 learner=a2c reward=score sampling=argmax", "sampling=stochastic"),
        ("game=2048 learner=a2c reward=grid_sum", "reward=score alone"),
        ("game=2048 learner=dagger teacher=random sampling=argmax", "the run of a policy=ntuple"),
        ("game=2048 learner=dagger teacher=random", "sampling=argmax"),
        ("game=2048 learner=dagger sampling=argmax", "needs a teacher"),
        ("game=2048 learner=a2c reward=score teacher=random", "learner=a2c has no teacher"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(words, reason):
    small = "policy.tuples=[[0,1,2]] policy.num_cell_values=6"
    known = {word.partition("=")[0] for word in words.split()}
    rest = [word for word in small.split() if word.partition("=")[0] not in known]
    cfg = load_config(TrainConfig, ["policy=ntuple_logits", *words.split(), *rest])
    with pytest.raises(ConfigError, match=re.escape(reason)):
        build_components(cfg)
