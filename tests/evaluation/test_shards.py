"""Long evaluations are played in shards."""

import pytest
import torch
from helpers import rng

from rlgames.evaluation.shards import BATCHES_PER_SHARD, ShardedGames
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import sampled_by_game

GAMES = 2 * 8 * BATCHES_PER_SHARD + 5
"""With batches of 8 games: two whole shards and a bit."""


def collect(game, players, seating=None):
    games = ShardedGames(game, players, GAMES, 8, sampled_by_game(game), seating)
    played = games.play(rng(3), records=True)
    return played.trajectories, played.final


@pytest.mark.parametrize("game", [KInARow(3, 3, 3, False), Battleship(3, 3, [2])])
def test_shards_together_have_all_games(game):
    moves, results = collect(game, [Random(game)])
    assert torch.equal(torch.bincount(moves.game), results.turns)
    assert results.num_moves == len(moves)
    assert len(results.turns.unique()) > 1
    assert len(results.turns) == GAMES


def test_shards_have_their_own_seats_and_random_streams():
    game = KInARow(3, 3, 3, False)
    seating = torch.randint(2, (GAMES, 1)).repeat(1, 2)
    seating[:, 1] = 1 - seating[:, 0]
    moves, _ = collect(game, [Random(game), Random(game)], seating)
    assert torch.equal(moves.player, seating[moves.game, moves.seat])
    first = [
        moves.action[moves.game == at * 8 * BATCHES_PER_SHARD + row]
        for at in (0, 1)
        for row in range(8)
    ]
    assert any(not torch.equal(a, b) for a, b in zip(first[:8], first[8:], strict=True))
