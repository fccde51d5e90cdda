"""Play in one call: the moves of the plain loop, whatever the batch."""

import pytest
import torch
from helpers import generator, make_small_game, ntuple, rng

from rlgames.config.conf import option_names
from rlgames.games.board_game import BoardGame
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Agent, ObservingRandom, Random
from rlgames.policies.embedding import Embedding
from rlgames.policies.mlp import Mlp
from rlgames.rollouts.compiled import CompiledPlay
from rlgames.rollouts.conformance import are_equal
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.sampling import Argmax, EpsilonGreedy, Stochastic

BOARD_GAMES = [
    name for name in option_names("game") if isinstance(make_small_game(name), BoardGame)
]
COLUMNS = ("action", "game", "seat", "player", "score_delta", "ends_turn")


def agent(game, sampling=None, value=True, activation="relu"):
    policy = Mlp(game, [16, 16], activation, "orthogonal", True, value, generator(1), False)
    torch.nn.init.normal_(policy.logits.weight, generator=generator(2))
    return Agent(game, policy, sampling or Stochastic(1.0), records_log_prob=True)


def in_a_loop(pool, plies=None):
    pool._compiled = lambda: None
    return pool.collect(plies)


def check_equal(compiled, looped):
    (moves, final), (expected, expected_final) = compiled, looped
    assert moves.ply_sizes == expected.ply_sizes
    assert are_equal(moves.state, expected.state)
    for name in COLUMNS:
        assert torch.equal(getattr(moves, name), getattr(expected, name)), name
    assert are_equal(final.state, expected_final.state)
    assert final.num_moves == expected_final.num_moves
    for name in ("log_prob", "state_value"):
        column, other = getattr(moves, name), getattr(expected, name)
        assert (column is None) == (other is None), name
        assert column is None or torch.allclose(column, other, atol=2e-5, equal_nan=True), name


@pytest.mark.parametrize("name", BOARD_GAMES)
def test_it_plays_every_board_game_as_the_loop_does(name):
    game = make_small_game(name)
    player = agent(game)
    pools = [GamePool(game, [player], 70, rng(3), batch=23, first_game=5) for _ in range(2)]
    assert pools[0]._compiled() is not None
    check_equal(pools[0].collect(), in_a_loop(pools[1]))


@pytest.mark.parametrize("name", ["tictactoe", "hex", "2048"])
def test_random_players_sit_at_any_seat(name):
    game = make_small_game(name)
    seating = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]]).repeat(20, 1)[:, : game.spec.seats]
    for players in ([agent(game, Argmax("first")), Random(game)], [Random(game)] * 2):
        pools = [GamePool(game, players, 80, rng(3), batch=30, seating=seating) for _ in range(2)]
        assert pools[0]._compiled() is not None
        check_equal(pools[0].collect(), in_a_loop(pools[1]))


@pytest.mark.parametrize("sampling", [Argmax("first"), Stochastic(0.3)], ids=["argmax", "0.3"])
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("activation", ["relu", "tanh", "silu"])
def test_rules_of_sampling_heads_and_activations(sampling, value, activation):
    game = KInARow(3, 3, 3, False)
    player = agent(game, sampling, value, activation)
    pools = [GamePool(game, [player], 90, rng(4)) for _ in range(2)]
    check_equal(pools[0].collect(), in_a_loop(pools[1]))


@pytest.mark.parametrize("name", ["connect4", "2048"])
def test_windows_are_those_of_the_loop(name):
    game = make_small_game(name)
    player = agent(game)
    pools = [GamePool(game, [player], UNLIMITED_GAMES, rng(5), batch=40) for _ in range(2)]
    for plies in (1, 6, 11, 30):
        check_equal(pools[0].collect(plies), in_a_loop(pools[1], plies))
        assert are_equal(pools[0].state, pools[1].state)
        assert torch.equal(pools[0].game_index, pools[1].game_index)


def test_networks_that_read_cells_are_compiled():
    game = make_small_game("connect4")
    keys = {"activation": "relu", "init": "orthogonal", "value": True, "generator": generator(1)}
    policy = Embedding(game, 8, 4, True, 3, [8], **keys)
    player = Agent(game, policy, Stochastic(1.0), records_log_prob=True)
    pools = [GamePool(game, [player], 60, rng(6)) for _ in range(2)]
    assert pools[0]._compiled() is not None
    check_equal(pools[0].collect(), in_a_loop(pools[1]))


@pytest.mark.parametrize("name", ["connect4", "othello", "2048"])
def test_ntuples_are_compiled(name):
    game = make_small_game(name)
    _, rows, columns = game.spec.observation
    cells = torch.arange(rows * columns).view(rows, columns)
    policy = ntuple(game, [cells[0].tolist(), cells[:2, :2].flatten().tolist()], 9, 0.5)
    # Whole numbers: sums are exact in any order.
    policy.values.copy_(torch.randint(50, policy.values.shape, generator=generator(1)).float())
    if policy.has_stones:
        policy.values /= 1024
    for sampling in (Argmax("first"), Stochastic(3.0)):
        player = Agent(game, policy, sampling, records_log_prob=True)
        pools = [GamePool(game, [player], 60, rng(6), batch=9) for _ in range(2)]
        assert pools[0]._compiled() is not None
        check_equal(pools[0].collect(), in_a_loop(pools[1]))


def test_random_tictactoe_ends_as_often_as_theory_says():
    game = KInARow(3, 3, 3, False)
    lead = GamePool(game, [Random(game)], 50_000, rng(3), batch=4096).run().state.score[:, 0]
    rates = [float((lead == sign).double().mean()) for sign in (1, -1, 0)]
    assert rates == pytest.approx([0.5849, 0.2881, 0.1270], abs=0.008)  # over 3.5 standard errors


@pytest.mark.parametrize("batch", [1, 7, 64, 300])
def test_the_batch_changes_no_bit_of_a_game(batch):
    game = make_small_game("2048")
    player = agent(game)
    final = GamePool(game, [player], 300, rng(7), batch=batch).run()
    whole = GamePool(game, [player], 300, rng(7)).run()
    assert are_equal(final.state, whole.state)
    alone = GamePool(game, [player], 9, rng(7), first_game=40).run()
    assert are_equal(alone.state, whole.state[40:49])


def test_others_play_in_the_loop():
    game = KInARow(3, 3, 3, False)
    own = agent(game)

    class Wrapped(Mlp):
        def forward(self, inputs):
            return super().forward(-inputs)

    other = Wrapped(game, [8], "relu", "orthogonal", True, True, generator(1), False)
    others = [
        [own, agent(game)],
        [own, ObservingRandom(game)],
        [Agent(game, own.policy, EpsilonGreedy(0.1, None, "first"))],
        [Agent(game, own.policy, Argmax("random"))],
        [Agent(game, other, Stochastic(1.0))],
    ]
    assert CompiledPlay.find(game, [own, own]) is not None
    assert not any(CompiledPlay.find(game, players) for players in others)
    fleets = make_small_game("battleship")
    assert CompiledPlay.find(fleets, [agent(fleets)]) is None
