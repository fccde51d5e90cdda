"""Searches whose moves a kernel makes find what the same searches find with the rules in torch."""

from dataclasses import replace

import pytest
import torch
from helpers import rng

from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Agent, Random
from rlgames.policies.canonical import Canonical
from rlgames.policies.mlp import Mlp
from rlgames.sampling import Argmax, NonFiniteError
from rlgames.search.mcts import Mcts, MctsSettings

CONNECT4 = KInARow(6, 7, 4, gravity=True)
BOARDS = [
    CONNECT4,
    KInARow(3, 3, 3, gravity=False),  # lines and moves from tables, int32
    KInARow(5, 6, 4, gravity=False),
    KInARow(4, 5, 3, gravity=True),
]
SETTINGS = MctsSettings(simulations=60, num_parallel=5, leaf="value")


def network(game):
    """A network that learned nothing, with large outputs."""
    policy = Mlp(game, [16], "tanh", "orthogonal", bias=True, value=True, rng=rng(1))
    torch.nn.init.normal_(policy.logits.weight, generator=rng(2))
    torch.nn.init.normal_(policy.value.weight, generator=rng(3))
    return policy


def live_states(game, plies=7, count=5):
    """Positions after 0, 1, 2, ... random plies that are not over."""
    state, found = game.initial(count, rng(5)), []
    for ply in range(plies):
        found.append(state[~state.done])
        state = game.apply_action(state, Random(game).choose(state, rng(ply)))
    return type(state).cat(found)


def check_both(game, policy, settings):
    search = Mcts(game, Agent(game, policy, Argmax()), settings)
    state = live_states(game)
    assert search._compiles_moves
    compiled = search.search(state, rng())
    search._compiles_moves = False
    plain = search.search(state, rng())
    assert torch.equal(compiled.visits, plain.visits)
    assert torch.equal(compiled.action, plain.action)
    assert torch.allclose(compiled.q, plain.q, atol=1e-5)
    assert torch.allclose(compiled.policy, plain.policy, atol=1e-4)


@pytest.mark.parametrize("game", BOARDS, ids=str)
def test_all_boards(game):
    check_both(game, network(game), SETTINGS)


@pytest.mark.parametrize(
    "keys",
    [
        {"rule": "gumbel", "gumbel_scale": 0.0},
        {"rule": "dedieu_amar"},
        {"depth": 3},
        {"num_parallel": 1},
        {"temperature": 0.5, "value_scale": 2.0},
        {"dirichlet_fraction": 0.25},
        {"q_scale": 2.0},
    ],
    ids=str,
)
def test_all_settings(keys):
    check_both(CONNECT4, network(CONNECT4), replace(SETTINGS, **keys))


def test_networks_that_read_more_than_observations():
    check_both(CONNECT4, Canonical(CONNECT4, network(CONNECT4)), SETTINGS)


def test_scores_that_are_not_finite_are_an_error():
    policy = network(CONNECT4)
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS)
    state = live_states(CONNECT4)
    search.search(state, rng())
    tree, values = search.new_tree(state), policy.forward

    def broken(inputs):
        scores, value = values(inputs)
        return (scores if len(inputs) == len(state) else scores * torch.nan), value

    policy.forward = broken  # the roots are valued, their children are not
    assert len(tree[1]) == len(state)
    with pytest.raises(NonFiniteError):
        search.search(state, rng())
