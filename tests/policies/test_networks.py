"""What networks of all kinds have in common."""

import pytest
import torch
from helpers import SMALL_RULES, make_agent, rng

from rlgames.config.registry import REGISTRY, load_option
from rlgames.policies.policy import Network, computing_in

NETWORKS = [name for name in REGISTRY["policy"] if issubclass(load_option("policy", name), Network)]


def game_and_policy(name):
    """A small game, and the policy of this name for it."""
    fitting, reward = {"embedding": ("2048", "score"), "staged": ("2048", "score")}.get(
        name, ("salvo_duel", "outcome")
    )
    words = [f"game={fitting}", *SMALL_RULES[fitting], f"policy={name}", f"reward={reward}"]
    game, agent, _ = make_agent(*words, "experiment=null")
    return game, agent.policy


@pytest.mark.parametrize("name", NETWORKS)
def test_no_positions_have_no_scores(name):
    game, policy = game_and_policy(name)
    scores, value = policy.scores(game, game.initial(4, torch.Generator())[:0])
    assert scores.shape == (0, game.spec.actions)
    assert value is None or value.shape == (0,)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_in_bfloat16_returns_nearly_the_same_float32_numbers(name):
    game, policy = game_and_policy(name)
    state = game.initial(5, rng(1))
    with torch.no_grad():
        for parameter in policy.parameters():  # the last layers begin with weights near zero
            torch.nn.init.normal_(parameter, 0, 0.1, generator=rng(2))
        exact = policy.scores(game, state)
        with computing_in(policy, torch.bfloat16):
            rounded = policy.scores(game, state)
        again = policy.scores(game, state)
    for before, during, after in zip(exact, rounded, again, strict=True):
        if before is not None:
            assert during.dtype == torch.float32
            assert torch.allclose(during, before, rtol=0.05, atol=0.05)
            assert torch.equal(after, before)


def test_gradients_in_bfloat16_are_float32_and_nearly_the_same():
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        game, agent, _ = make_agent("game=tictactoe", "policy=mlp")
        state = game.initial(300, torch.Generator())
        with computing_in(agent.policy, dtype):
            scores, value = agent.policy.scores(game, state)
            (scores.square().sum(1) + value).mean().backward()
        gradients.append([parameter.grad for parameter in agent.policy.parameters()])
    for exact, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == torch.float32
        assert float((rounded - exact).norm()) <= 0.02 * float(exact.norm()) + 1e-6
