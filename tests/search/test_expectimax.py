"""Expectimax: agrees with the solver and with a slow recursion."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import game_2048, generator, ntuple, rng
from markers import one_in

from rlgames.build.players import with_search
from rlgames.config.commands import EvalConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.td_ntuple import ValueTable
from rlgames.players.player import Agent, Random
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Argmax
from rlgames.search.expectimax import Expectimax
from rlgames.search.ntuple_expectimax import downgrade
from rlgames.solvers.graph import Graph


def agent_of(game, marks=16):
    """N-tuples with random values, larger tiles counting as the last of `marks`."""
    policy = ntuple(game, [[0, 1, 2], [0, 1, 3, 4]], marks, score_scale=0.5)
    policy.values.copy_(50 * torch.rand(len(policy.values), generator=generator(3)))
    return Agent(game, policy, Argmax("first"))


def slow(game, policy, state, plies, discount):
    """Q of the legal actions of one position, by action."""
    found = {}
    for action in game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
        after = game.apply_action(state, torch.tensor([action]))
        gained = policy.score_scale * float(after.score - state.score)
        if plies == 1:
            found[action] = gained + float(policy.value(game, after))
            continue
        probability, outcomes = game.chance_outcomes(after)
        total = 0.0
        for k, p in enumerate(probability[0].tolist()):
            if p and not bool(outcomes.done[k]):
                later = slow(game, policy, outcomes[k : k + 1], plies - 1, discount)
                total += p * max(later.values())
        found[action] = gained + discount * total
    return found


def check(search, state):
    found, legal = search.scores(state, search.plies), search.game.legal_action_mask(state)
    chosen = search.choose(state, rng())
    for row in range(len(state)):
        wanted = slow(search.game, search.policy, state[row : row + 1], search.plies, 0.9)
        assert set(wanted) == set(legal[row].nonzero()[:, 0].tolist())
        for action, value in wanted.items():
            assert float(found[row, action]) == pytest.approx(value, rel=1e-5)
        assert wanted[int(chosen[row])] == pytest.approx(max(wanted.values()), rel=1e-5)


@pytest.mark.parametrize(("shape", "plies"), one_in(2, [((2, 3), 3), ((2, 3), 1), ((4, 4), 2)]))
def test_scores_are_those_of_a_slow_recursion(shape, plies):
    """Also beside statistics of the values, and beyond the last value of a cell."""
    game = game_2048(*shape)
    state = collect_games(game, [Random(game)], 2, rng())[0].state[::30]
    search = Expectimax(game, agent_of(game, 5), plies, None, 0.9)
    check(search, state)
    ValueTable(search.policy, "temporal_coherence")
    check(search, state)


@pytest.mark.slow
def test_a_search_to_the_end_finds_the_exact_optimum():
    """Without any values: what the moves themselves gain."""
    game = game_2048(1, 3)
    agent = Agent(game, ntuple(game, [[0]], 16, score_scale=1.0), Argmax("first"))
    search = Expectimax(game, agent, 20, None)
    openings, probability = game.openings(1000)
    best = torch.zeros(len(openings), dtype=torch.float64)
    live = (~openings.done).nonzero()[:, 0]
    scores = search.scores(openings[live], 20)
    best[live] = scores.masked_fill(~game.legal_action_mask(openings[live]), -1).amax(1).double()
    optimum = Graph(game, 20, 1 << 28).solve([None]).mean
    assert float((probability * best).sum()) == pytest.approx(optimum, rel=1e-6)


def test_unsuitable_players_and_games_are_refused():
    game = game_2048(2, 2)
    with pytest.raises(ValueError, match="it needs policy=ntuple"):
        Expectimax(game, Random(game), 2, None)
    with pytest.raises(ValueError, match="larger than 4x4"):
        Expectimax(game_2048(5, 5), agent_of(game_2048(5, 5)), 2, None)
    with pytest.raises(ValueError, match="plays 2048, not tictactoe"):
        Expectimax(KInARow(3, 3, 3, False, "tictactoe"), Random(game), 2, None)


def test_the_discount_is_that_of_the_run():
    game = game_2048(2, 2)
    cfg = load_config(EvalConfig, ["search=expectimax", "search.plies=3", "game=2048", "board=2"])
    reward = load_config(TrainConfig, ["game=2048", "reward.discount=0.7"]).reward
    agent = Agent(game, ntuple(game, None, 16, score_scale=1.0), Argmax("first"))
    search: Any = with_search(agent, game, cfg.search, reward)
    assert (search.plies, search.settings.discount) == (3, 0.7)


def slow_downgrade(tiles, least):
    """The board of a list of tiles (not exponents) by the words of downgrade."""
    while max(tiles) >= least:
        smaller = [2**e for e in range(1, 17) if 2**e < max(tiles)]
        missing = [tile for tile in smaller if tile not in tiles]
        if not missing:
            break
        tiles = [tile // 2 if tile > missing[-1] else tile for tile in tiles]
    return tiles


def downgraded(tiles, least):
    """Exponents [B, 16] by the kernel; least: a tile."""
    state = game_2048(4, 4).from_exponents(tiles.view(-1, 4, 4))
    boards, exponent = state.words.numpy().view(np.uint64), np.uint64((least - 1).bit_length())
    boards[:, 0] = [downgrade(board, exponent) for board in boards[:, 0]]
    return game_2048(4, 4).tiles(state)


def random_tiles(batch, largest):
    """Boards of any tiles, also with two or more of the largest."""
    share = torch.rand(batch, 1, generator=generator(1))
    tiles = torch.randint(1, largest + 1, (batch, 16), generator=generator(2))
    return (tiles * (torch.rand(batch, 16, generator=generator(3)) < share)).long()


def test_a_board_with_every_smaller_tile_stays_as_it_is():
    tiles = torch.tensor([[0, 0, 0, 0, *range(1, 13)], [*range(1, 16), 15]])
    assert downgraded(tiles, 2**12).equal(tiles)


@pytest.mark.parametrize("least", [4, 3000, 4096, 2**14, 2**16])
def test_tiles_are_downgraded_down_to_the_threshold(least):
    tiles = random_tiles(500, 15)
    wanted = [slow_downgrade([2**e if e else 0 for e in row], least) for row in tiles.tolist()]
    found = downgraded(tiles, least)
    assert [[2**e if e else 0 for e in row] for row in found.tolist()] == wanted
    assert found.equal(tiles) == (least == 2**16)


def test_downgraded_boards_have_the_same_moves():
    """Every cell that is equal to another stays so, and no other becomes so."""
    game, tiles = game_2048(4, 4), random_tiles(2000, 15)
    found = downgraded(tiles, 2**13)
    assert not found.equal(tiles)
    same = tiles[:, :, None] == tiles[:, None]
    assert same.equal(found[:, :, None] == found[:, None])
    assert (tiles == 0).equal(found == 0)
    before, after = (game.from_exponents(each.view(-1, 4, 4)) for each in (tiles, found))
    assert game.legal_action_mask(before).equal(game.legal_action_mask(after))
    for action in range(4):
        moved = torch.full((len(tiles),), action)
        full = [game.tiles(game.apply_action(each, moved)) == 0 for each in (before, after)]
        assert full[0].equal(full[1])


def searching_from(tile, agent):
    return Expectimax(agent.game, agent, plies=1, tile_downgrading=tile)


def test_boards_with_large_tiles_are_searched_downgraded():
    game = game_2048(4, 4)
    policy = ntuple(game, [[0, 1, 2], [0, 1, 4, 5]], 16, score_scale=1.0)
    policy.values.copy_(100_000 * torch.rand(len(policy.values), generator=generator(3)))
    agent = Agent(game, policy, Argmax("first"))
    tiles = random_tiles(100, 12)
    tiles[:, :2] = torch.tensor([15, 13])
    state = game.from_exponents(tiles.view(-1, 4, 4))
    known = game.from_exponents(downgraded(tiles, 2**14).view(-1, 4, 4))
    plain, downgrading = (searching_from(tile, agent) for tile in (None, 2**14))
    chosen = downgrading.choose(state, rng())
    assert chosen.equal(plain.choose(known, rng()))
    assert not chosen.equal(plain.choose(state, rng()))
    assert game.tiles(known).amax() == 13
