"""Perft: sequences of legal moves by depth, against published numbers.

A missing, an extra or a wrong move changes the counts from its depth on. Equal positions are
merged, so that hundreds of thousands of sequences take fractions of a second.
"""

from itertools import islice

import pytest
import torch
from helpers import generator, rng
from markers import slow

from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello


def perft(game, state):
    """By depth, from 1 on: sequences of moves and of what chance added, distinct positions, and
    sequences that ended the game."""
    ways = torch.ones(len(state), dtype=torch.int64)
    while len(state):
        row, action = game.legal_action_mask(state).nonzero().unbind(1)
        probability, after = game.chance_outcomes(game.apply_action(state[row], action))
        possible = (probability.flatten() > 0).nonzero()[:, 0]
        state = after[possible]
        ways = ways[row].repeat_interleave(probability.shape[1])[possible]
        content = state.content()
        hashes = content * torch.randint(2**62, content.shape[1:], generator=generator(1))
        positions, group = hashes.sum(1).unique(return_inverse=True)
        total = torch.zeros(len(positions), dtype=torch.int64).index_add_(0, group, ways)
        first = torch.full_like(total, len(state)).scatter_reduce_(
            0, group, torch.arange(len(state)), "amin"
        )
        state, ways = state[first], total
        yield int(ways.sum()), len(positions), int(ways[state.done].sum())
        state, ways = state[~state.done], ways[~state.done]


OTHELLO = [4, 12, 56, 244, 1396, 8200, 55_092, 390_216, 3_005_288, 24_571_284]
"""Leaves of the tree on 8 x 8, as published: a pass is a move, and a game that is over stays a leaf
at every greater depth. The shortest games end after 9 plies, in 228 ways."""


@pytest.mark.others
@pytest.mark.parametrize("depth", [8, slow(10)])
def test_othello_has_the_published_sequences(depth):
    game, leaves, ends, over = Othello(8), [], [], 0
    for ways, _, ended in islice(perft(game, game.initial(1, rng())), depth):
        leaves.append(ways + over)
        ends.append(ended)
        over += ended
    assert leaves == OTHELLO[:depth]
    assert ends[:9] == [0, 0, 0, 0, 0, 0, 0, 0, 228][:depth]


CONNECT4 = [1, 7, 49, 238, 1120, 4263, 16_422, 54_859, 184_275, 558_186, 1_662_623]
"""Positions after each ply on 6 x 7 (OEIS A212693)."""


@pytest.mark.others
@pytest.mark.parametrize("depth", [8, slow(10)])
def test_connect_four_has_the_published_positions(depth):
    game = KInARow(6, 7, 4, gravity=True)
    found = [boards for _, boards, _ in islice(perft(game, game.initial(1, rng())), depth)]
    assert found == CONNECT4[1 : depth + 1]


@pytest.mark.others
def test_tic_tac_toe_has_255168_games_and_5478_boards():
    game = KInARow(3, 3, 3, gravity=False)
    ways, boards, ended = zip(*perft(game, game.initial(1, rng())), strict=True)
    assert ways == (9, 72, 504, 3024, 15_120, 54_720, 148_176, 200_448, 127_872)
    assert (sum(ended), 1 + sum(boards)) == (255_168, 5478)
