"""How actions are chosen from scores: ties, and in a kernel."""

import pytest
import torch
from helpers import generator, make_policy, rng

import rlgames
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.players.player import Agent, Random
from rlgames.sampling import (
    Argmax,
    EpsilonGreedy,
    Stochastic,
    greedy_action,
    illegal_mask,
    scaled,
)
from rlgames.solvers.graph import Graph, exploitability

SCORES = torch.tensor([[3.0, 1.0, 3.0, 3.0]])
LEGAL = torch.tensor([[True, True, True, False]])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Argmax("first"), [1.0, 0.0, 0.0, 0.0]),
        (Argmax("random"), [0.5, 0.0, 0.5, 0.0]),
        (EpsilonGreedy(0.3, None, "first"), [0.8, 0.1, 0.1, 0.0]),
        (EpsilonGreedy(0.3, None, "random"), [0.45, 0.1, 0.45, 0.0]),
    ],
)
def test_ties_are_broken_as_the_probabilities_say(rule, expected):
    games = 20_000
    probability = rule.probabilities(SCORES, LEGAL, 0.0)
    assert probability[0].tolist() == pytest.approx(expected)
    chosen = rule.choose(SCORES.expand(games, -1), LEGAL.expand(games, -1), rng(), 0.0)
    frequency = torch.bincount(chosen, minlength=4) / games
    assert frequency.tolist() == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 1e-30])
def test_the_kernel_samples_from_the_softmax_that_torch_computes(temperature):
    scores = 10 * torch.randn(500, 7, generator=generator())
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38, -3e38, 0.0, -0.0])
    scores[torch.rand(500, 7, generator=generator(1)) < 0.2] = special[2]
    scores[::3] = special[torch.randint(7, scores[::3].shape, generator=generator(2))]
    legal = torch.rand(500, 7, generator=generator(3)) < 0.6
    legal[:, 3] = True
    rule, progress = Stochastic(temperature), 0.0
    logits = scaled(scores.nan_to_num(), legal, temperature)
    probability = logits.double().softmax(1)
    count = torch.zeros(500, 7, dtype=torch.float64)
    for draw in range(400):
        action, log_prob = rule.choose_and_tell(scores, legal, rng(draw), progress)
        assert torch.equal(rule.choose(scores, legal, rng(draw), progress), action)
        expected = logits.log_softmax(1).gather(1, action[:, None])[:, 0]
        assert torch.allclose(log_prob, expected, atol=1e-5)
        count += torch.nn.functional.one_hot(action, 7)
    assert not bool(count[probability == 0].any())
    deviation = (count - 400 * probability) / (400 * probability * (1 - probability)).sqrt()
    assert deviation[(probability > 0.01) & (probability < 0.99)].abs().max() < 5
    highest = (scores.nan_to_num() + illegal_mask(legal)).argmax(1)
    assert torch.equal(greedy_action(scores, legal), highest)


def test_only_the_first_of_equal_actions_is_deterministic():
    assert Argmax("first").deterministic
    assert not Argmax("random").deterministic


def test_an_untrained_table_with_random_ties_is_as_exploitable_as_random_play():
    cfg = load_config(TrainConfig, ["experiment=hickman"])
    game = make("game", cfg.game)
    rule = make("sampling", cfg.sampling)
    assert isinstance(rule, EpsilonGreedy)
    assert rule.greedy.is_random
    graph, policy = Graph(game, 60, 1 << 30), make_policy(cfg, game, 0)
    players = {name: Agent(game, policy, Argmax(name)) for name in ("first", "random")}
    _, shuffled = exploitability(graph, players["random"].probabilities)
    _, ordered = exploitability(graph, players["first"].probabilities)
    assert shuffled == exploitability(graph, Random(game).probabilities)[1]
    assert ordered != shuffled


def test_a_run_breaks_ties_in_evaluations_as_in_training(tmp_path):
    words = ["experiment=hickman", "games=100", f"out={tmp_path}/run"]
    run = rlgames.train(words)
    by_ties = {
        ties: rlgames.evaluate(run, ["games=100", f"sampling.ties={ties}"])["exact_seats"]
        for ties in ("null", "random", "first")
    }
    assert by_ties["null"] == by_ties["random"] != by_ties["first"]
