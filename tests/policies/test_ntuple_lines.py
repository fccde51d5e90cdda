"""Compiled n-tuple networks of k in a row: places of values, and values of moves."""

import numpy as np
import pytest
import torch
from helpers import check_uncompiled, rng

from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.policies.ntuple import Ntuple, pack_network
from rlgames.rollouts.play import collect_games

BOARDS = {
    (6, 7, 4, True): [[0, 8, 16, 24], [3, 10, 17, 4], [35, 36, 41], [38]],
    (5, 4, 3, True): [[0, 1, 2, 3], [16, 5]],
    (1, 31, 4, True): [[0, 1, 2, 3], [30]],
    (61, 1, 4, True): [[60, 59, 58], [0]],
    (3, 3, 3, False): [[0, 1, 2], [4], [8, 5, 1]],
    (5, 5, 4, False): [[0, 1, 2, 7], [12, 13]],
    (4, 6, 5, False): [[0, 1, 2, 7], [23, 22]],
}


def network(board, radix):
    """A network whose values are small whole numbers, so that sums are exact in any order."""
    game = KInARow(*board)
    policy = Ntuple(game, 0.0, BOARDS[board], radix, 0.0)
    policy.values.copy_(torch.randint(-50, 50, policy.values.shape, generator=rng(5)).float())
    policy.payoffs = 150.0, 5.0
    return game, policy


def states(game, number):
    """Positions of random games in which a move is due."""
    moves, _ = collect_games(game, [Random(game)], max(1, number // 8), rng(3))
    chosen = torch.randperm(len(moves), generator=rng(4))[:number]
    return moves.state[chosen]


def check(board, radix, number, stride=1):
    """What the moves are worth, as the batched policy has it, and where the values are."""
    from rlgames.kernels.ntuple import enter, find_places, make_memory, score_moves
    from rlgames.kernels.rules import load

    game, policy = network(board, radix)
    state, rules = states(game, number), game.rules
    scores, _ = policy.scores(game, state)
    scores = scores.masked_fill(~game.legal_action_mask(state), -torch.inf)
    compiled = pack_network(game, policy, stride)
    table = policy.values.repeat_interleave(stride).numpy()
    memory = make_memory(compiled, game.spec.actions)
    positions = state.words.numpy()
    indices = stride * policy.feature_indices(game, state)
    for row, seat in enumerate(state.current_seat.tolist()):
        position = load(rules.start, positions, row)
        enter(compiled, position, seat, memory)
        # The last move, or that before the first one, was made by the other seat.
        offset = find_places(compiled, position, 1 - seat, memory)
        assert (memory.places + offset).tolist() == indices[row].tolist()
        best = score_moves(compiled, rules, position, seat, table, np.float32(0), memory)
        assert memory.scores.tolist() == scores[row].tolist()
        assert best == int(scores[row].argmax())


@pytest.mark.parametrize("radix", [3, 4])
@pytest.mark.parametrize("board", BOARDS)
def test_moves_are_worth_what_the_batched_policy_says(board, radix):
    check(board, radix, 100)


def test_statistics_may_lie_between_the_values():
    check((6, 7, 4, True), 4, 100, stride=4)


@pytest.mark.slow
@pytest.mark.parametrize("board", [(6, 7, 4, True), (5, 5, 4, False), (3, 3, 3, False)])
def test_they_are_so_on_100_000_positions(board):
    check(board, 4, 100_000)


def test_plain_python_computes_the_same():
    check_uncompiled(
        "import test_ntuple_lines as t\n"
        "t.check((6, 7, 4, True), 4, 5)\n"
        "t.check((3, 3, 3, False), 3, 5)\n"
        "print('equal')"
    )
