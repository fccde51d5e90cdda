"""The behavior policy: its log-probabilities are recorded, and importance ratios use them."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import generator, make_agent, rng

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.learners.ppo import importance_weight
from rlgames.players.player import Agent, Random
from rlgames.rewards import Reward, generalized_advantage
from rlgames.rollouts.play import collect_games
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling, Stochastic
from rlgames.training.parts import build_training

RULES: dict[str, Sampling] = {
    "stochastic": Stochastic(1.0),
    "stochastic at temperature 0.3": Stochastic(0.3),
    "epsilon_greedy": EpsilonGreedy(0.3, 0.1, "first"),
    "argmax": Argmax("first"),
    "argmax with random ties": Argmax("random"),
    "epsilon_greedy with random ties": EpsilonGreedy(0.3, None, "random"),
}


@pytest.mark.parametrize("name", RULES)
def test_the_log_probability_of_an_action_is_that_of_choosing_it(name):
    rule, count = RULES[name], 40_000
    scores = torch.tensor([[2.0, -1.0, 0.5, 2.0, 1e9]]).expand(count, -1)
    legal = torch.tensor([[True, True, True, True, False]]).expand(count, -1)
    action, log_prob = rule.choose_and_tell(scores, legal, rng(1), 0.5)
    assert log_prob.dtype == torch.float32
    for number in range(4):
        rows = action == number
        frequency = float(rows.float().mean())
        expected = float(log_prob[rows][:1].exp().sum())
        assert frequency == pytest.approx(expected, abs=0.01)
    assert bool((log_prob > -math.inf).all())


def test_scores_that_are_not_finite_wait_for_the_learner_to_refuse_them():
    scores, legal = torch.tensor([[math.nan, 1.0]]), torch.ones(1, 2, dtype=torch.bool)
    for rule in RULES.values():
        _, log_prob = rule.choose_and_tell(scores, legal, rng(), 0.0)
        assert bool(log_prob.isfinite().all())


@pytest.mark.parametrize("name", RULES)
def test_played_moves_carry_the_log_probability_of_the_rule(name):
    game, agent, _ = make_agent("game=tictactoe", "policy=mlp", "policy.layers=[8]")
    torch.nn.init.normal_(agent.policy.logits.weight, generator=generator(1))
    agent = Agent(game, agent.policy, RULES[name], records_log_prob=True)
    moves, _ = collect_games(game, [agent], 12, rng(2), progress=0.5)
    chosen = moves.select_games(torch.tensor([7, 2, 7]))
    for part in (moves, chosen):
        scores, _ = agent.policy.scores(game, part.state)
        legal = game.legal_action_mask(part.state)
        expected = agent.sampling.probabilities(scores, legal, 0.5)
        expected = expected.gather(1, part.action[:, None])[:, 0].log().float()
        assert torch.allclose(part.log_prob, expected, atol=1e-5)


def test_log_probabilities_are_recorded_only_where_an_update_needs_them():
    """Values of positions only where the rule samples from the policy's softmax."""
    for learner, rule, records, has_values in (
        ("ppo", "epsilon_greedy", True, False),
        ("ppo", "argmax", True, False),
        ("ppo", "stochastic", True, True),
        ("reinforce", "epsilon_greedy", False, False),
        ("dqn", "epsilon_greedy", False, False),
    ):
        words = ["game=tictactoe", f"learner={learner}", "policy.layers=[8]", "batch=4"]
        parts = build_training(load_config(TrainConfig, [*words, f"sampling={rule}"]))
        moves, _ = parts.source.play(4, 0, 0.0)
        assert (moves.log_prob is not None) == records
        assert (moves.state_value is not None) == has_values


@pytest.mark.parametrize("rule", ["sampling.temperature=1", "sampling.temperature=0.5"])
def test_an_update_from_recorded_values_is_the_one_that_evaluates_the_moves_again(rule):
    weights = []
    for is_recorded in (True, False):
        game, agent, learner = make_agent("experiment=connect4_mlp", "learner.optimizer=sgd", rule)
        torch.nn.init.normal_(agent.policy.logits.weight, generator=generator(1))
        moves, results = collect_games(game, [agent], 6, rng(2))
        assert bool(moves.state_value.isfinite().all())
        if not is_recorded:
            moves = replace(moves, log_prob=None, state_value=None)
        learner.update(moves, results, 0.0)
        weights.append(
            torch.cat([weight.detach().flatten() for weight in agent.policy.parameters()])
        )
    assert torch.allclose(weights[0], weights[1], atol=1e-5)


def test_moves_without_a_recorded_value_are_evaluated():
    game, agent, learner = make_agent("game=tictactoe", "policy=mlp", "policy.layers=[8]")
    played, results = collect_games(game, [agent], 3, rng(1))
    recorded, recorded_results = collect_games(game, [Random(game)], 2, rng(2))
    joined = Trajectories.cat([played, recorded])
    assert int(joined.state_value.isnan().sum()) == len(recorded)
    metrics = learner.update(joined, FinalStates.cat([results, recorded_results]), 0.0)
    assert all(math.isfinite(value) for value in metrics.values())


def test_moves_of_an_opponent_have_no_log_probability():
    words = ["game=tictactoe", "learner=ppo", "policy.layers=[8]", "opponent=random", "batch=4"]
    words.append("sampling=epsilon_greedy")
    parts = build_training(load_config(TrainConfig, words))
    moves, _ = parts.source.play(4, 0, 0.0)
    assert moves.log_prob is not None
    assert torch.equal(moves.log_prob.isnan(), moves.player == 1)
    own = moves.by_player(0).log_prob
    assert own is not None
    assert not bool(own.isnan().any())


def test_recorded_games_count_as_played_by_the_policy_that_first_uses_them():
    words = ["game=tictactoe", "policy=mlp", "policy.layers=[8]", "sampling=epsilon_greedy"]
    game, agent, _ = make_agent(*words)
    played, _ = collect_games(game, [agent], 3, rng(1))
    recorded, _ = collect_games(game, [Random(game)], 2, rng(2))
    for joined in map(Trajectories.cat, ([played, recorded], [recorded, played])):
        assert int(joined.log_prob.isnan().sum()) == len(recorded)
        current = torch.full((len(joined),), -3.0)
        weight = importance_weight(current, joined.log_prob)
        assert bool((weight[joined.log_prob.isnan()] == 1).all())
    assert Trajectories.cat([recorded, recorded]).log_prob is None
    assert importance_weight(torch.tensor([-2.0]), None).tolist() == [1.0]


def test_a_move_that_the_behavior_policy_rarely_makes_counts_ten_times_at_most():
    current, behavior = torch.tensor([0.5, 0.5, 0.9]), torch.tensor([1.0, 0.25, 0.001])
    weight = importance_weight(current.log(), behavior.log())
    assert weight.tolist() == pytest.approx([0.5, 2.0, 10.0])


def game_and_words(*words: str) -> tuple[Any, list[str]]:
    chosen = ["game=tictactoe", "learner=ppo", "learner.optimizer=sgd", "policy.layers=[8]"]
    chosen += ["learner.entropy_coef=0", "learner.max_grad_norm=null", "learner.epochs=1", *words]
    return make("game", load_config(TrainConfig, chosen).game), chosen


@pytest.mark.parametrize("rule", ["epsilon_greedy", "argmax", "stochastic"])
def test_the_gradient_of_ppo_is_corrected_for_the_rule_that_chose_the_moves(rule):
    """One step from π: every move counts π ÷ μ times, μ written out here."""
    game, words = game_and_words(f"sampling={rule}", "lr=1", "reward.discount=0.9")
    if rule == "epsilon_greedy":
        words += ["sampling.epsilon=0.4", "sampling.epsilon_end=null"]
    game, agent, learner = make_agent(*words)
    torch.nn.init.normal_(agent.policy.logits.weight, generator=generator(1))
    moves, results = collect_games(game, [agent], 20, rng(1))
    weights = list(agent.policy.parameters())
    before = [p.detach().clone() for p in weights]
    scores, value = agent.policy.scores(game, moves.state)
    legal = game.legal_action_mask(moves.state)
    log_prob = scores.masked_fill(~legal, -torch.inf).log_softmax(1)
    log_prob = log_prob.gather(1, moves.action[:, None])[:, 0]
    mu = torch.ones(len(moves))
    if rule == "epsilon_greedy":
        greedy = scores.masked_fill(~legal, -torch.inf).argmax(1)
        mu = 0.4 / legal.sum(1) + 0.6 * (moves.action == greedy)
    if rule == "stochastic":
        mu = log_prob.detach().exp()
    reward = Reward(game, "outcome", discount=0.9).rewards(moves, results)
    advantage = generalized_advantage(reward, value.detach(), moves, 0.9, 1.0)
    value_target = value.detach() + advantage
    advantage = (advantage - advantage.mean()) / advantage.std(correction=0)
    weight = (log_prob.detach().exp() / mu).clamp(max=10)
    loss = -(weight * advantage * log_prob).mean() + 0.5 * (value - value_target).square().mean()
    gradient = torch.autograd.grad(loss, weights)
    learner.update(moves, results, 0.0)
    for new, old, slope in zip(weights, before, gradient, strict=True):
        assert torch.allclose(new.detach(), old - slope, atol=1e-5)
    assert (rule == "stochastic") == bool(torch.allclose(weight, torch.ones(()), atol=1e-5))
