"""Packed boards of 2048 have the values and grow as the batched ones."""

import numpy as np
import pytest
import torch
from helpers import check_uncompiled, rng
from markers import slow

from rlgames.games.game_2048 import Game2048
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import num_entries, sum_values
from rlgames.policies.ntuple import Ntuple, pack_network
from rlgames.policies.ntuple_2048 import write_entries

U = np.uint64
SHAPES = [(4, 4), (3, 3), (2, 4), (4, 3), (1, 3), (2, 2)]
TUPLES = {
    (4, 4): [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [5, 6, 9, 10], [9, 2, 14], [0, 1, 4, 5]],
    (3, 3): [[0, 1, 2, 3, 4], [4], [0, 1, 3, 4], [8, 1, 5]],
    (2, 4): [[0, 1, 2, 4, 5], [1, 2]],
    (4, 3): [[0, 1, 2, 3, 4], [4, 7]],
    (1, 3): [[0, 1, 2], [1]],
    (2, 2): [[0, 1, 2, 3], [0, 3]],
}


def positions(game, count, most=15, seed=1):
    """Random boards, from almost empty to full."""
    shape = (count, game.num_cells)
    tiles = torch.randint(1, most + 1, shape, generator=rng(seed))
    is_filled = torch.rand(shape, generator=rng(seed + 1)) < torch.rand(
        (count, 1), generator=rng(seed + 2)
    )
    return game.from_exponents((tiles * is_filled).view(count, game.rows, game.columns))


def packed_network(shape, radix, stage_tiles=()):
    """A network whose values are small whole numbers, so that sums are exact in any order."""
    game = Game2048(*shape)
    policy = Ntuple(game, 1.0, TUPLES[shape], radix, 0.0, stage_tiles=stage_tiles)
    policy.values.copy_(torch.randint(0, 1000, policy.values.shape, generator=rng(5)).float())
    return game, policy, pack_network(game, policy, 1)


def packed_boards(state):
    """Uint64 [B]."""
    return state.words.numpy().view(U)[:, 0]


def check_values(shape, count, radix, stage_tiles=()):
    game, policy, network = packed_network(shape, radix, stage_tiles)
    state = positions(game, count, most=15 if shape == (4, 4) else game.num_cells + 1)
    boards, table = packed_boards(state), policy.values.numpy()
    values = network_values(boards, network, table)
    assert values.tolist() == policy.value(game, state).tolist()


@jit()
def network_values(boards, network, table):
    """The values of boards: the sums of their entries."""
    values = np.empty(len(boards), np.float32)
    num = num_entries(network)
    entries = np.empty(num + U(3), np.uint64)
    for number in range(len(boards)):
        write_entries(boards[number], network, entries, U(3))
        values[number] = sum_values(table, entries, U(3), num, U(0))
    return values


@pytest.mark.parametrize(
    ("shape", "radix"),
    [((4, 4), 16), *((shape, 5) if shape == (3, 3) else slow((shape, 5)) for shape in SHAPES)],
)
def test_packed_boards_have_the_values_of_the_batched_ones(shape, radix):
    """Also where several symmetries put a tuple on the same cells, and beyond the last value."""
    check_values(shape, 300, radix)


@pytest.mark.parametrize(
    ("shape", "radix", "tiles"), [slow(((4, 4), 14, [1024, 8192])), ((3, 3), 9, [128])]
)
def test_packed_boards_have_the_values_of_their_stage(shape, radix, tiles):
    check_values(shape, 300, radix, tiles)


def test_uncompiled_kernels_compute_the_same():
    check_uncompiled("import test_ntuple_2048 as t\nt.check_values((3, 3), 5, 5); print('equal')")
