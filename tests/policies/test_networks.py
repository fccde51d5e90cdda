"""What networks of all kinds have in common."""

import pytest
from helpers import SMALL_RULES, make_agent

from rlgames.config.registry import REGISTRY, load_option
from rlgames.policies.policy import Network
from rlgames.rng import Rng

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
    scores, value = policy.scores(game, game.initial(4, Rng())[:0])
    assert scores.shape == (0, game.spec.actions)
    assert value is None or value.shape == (0,)
