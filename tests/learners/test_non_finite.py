"""Numbers that are not finite, or huge: learning stops before a step, and no move is illegal."""

import math
import re
from typing import Any

import pytest
import torch
from helpers import generator, make_agent, make_policy, rng
from hypothesis import given, settings
from hypothesis import strategies as st
from markers import one_in

from rlgames.config.commands import SolveConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.core.errors import NonFiniteError
from rlgames.learners.gradient import descend, make_optimizer
from rlgames.players.player import Agent
from rlgames.rewards import Reward
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Argmax, EpsilonGreedy, Stochastic

RULES = [
    Stochastic(1.0),
    Stochastic(0.01),
    Stochastic(1e6),
    EpsilonGreedy(0.3, None, "first"),
    Argmax("first"),
]
ONE = torch.tensor([1])
EXTREMES = [0.0, -0.0, 1.0, 1e38, -1e38, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan]


@st.composite
def tables(draw, values):
    """Scores [B, A] of these values, and legal [B, A] with an action in each row."""
    rows, actions = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    count = rows * actions
    scores = draw(st.lists(values, min_size=count, max_size=count))
    legal = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    table = torch.tensor(legal).view(rows, actions)
    for row in range(rows):
        table[row, draw(st.integers(0, actions - 1))] = True
    return torch.tensor(scores, dtype=torch.float32).view(rows, actions), table


FINITE = st.sampled_from([x for x in EXTREMES if math.isfinite(x)]) | st.floats(
    allow_nan=False, allow_infinity=False, width=32
)


@pytest.mark.parametrize("rule", RULES)
@given(tables(st.sampled_from(EXTREMES) | FINITE), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_no_move_is_illegal_whatever_the_scores(rule, table, seed):
    scores, legal = table
    action = rule.choose(scores, legal, rng(seed), 0.0)
    assert legal.gather(1, action[:, None]).all()


@pytest.mark.parametrize("rule", RULES)
@given(tables(FINITE), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_probabilities_are_those_of_legal_moves_row_by_row(rule, table, random):
    scores, legal = table
    actual = rule.probabilities(scores, legal, 0.0)
    assert actual.dtype == torch.float64
    assert (actual[~legal] == 0).all()
    assert torch.allclose(actual.sum(1), torch.ones(len(actual), dtype=torch.float64))
    single = legal.sum(1) == 1
    assert (actual[single & legal.any(1)].amax(1) == 1).all()
    order = list(range(len(scores)))
    random.shuffle(order)
    assert torch.equal(rule.probabilities(scores[order], legal[order], 0.0), actual[order])
    log_p = rule.logits(scores, legal).log_softmax(1)
    assert (log_p.exp()[~legal] == 0).all()
    assert not log_p.isnan().any()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rule", RULES)
def test_non_finite_scores_are_rejected(rule, bad):
    scores, legal = torch.tensor([[0.0, bad, 1.0]]), torch.tensor([[True, True, False]])
    for ask in (lambda: rule.logits(scores, legal), lambda: rule.probabilities(scores, legal, 0.0)):
        with pytest.raises(NonFiniteError, match="logit"):
            ask()


def test_permuted_rows_have_permuted_greedy_moves_and_values():
    cfg = load_config(TrainConfig, ["experiment=connect4_mlp"])
    game = make("game", cfg.game)
    policy = make_policy(cfg, game, 0)
    agent = Agent(game, policy, Argmax("first"))
    moves, _ = collect_games(game, [Agent(game, policy, Stochastic(1.0))], 20, rng(1))
    order = torch.randperm(len(moves), generator=generator(2))
    assert torch.equal(agent.choose(moves.state[order]), agent.choose(moves.state)[order])
    value = policy.scores(game, moves.state)[1]
    again = policy.scores(game, moves.state[order])[1]
    assert torch.allclose(again, value[order], atol=1e-6)


LEARNERS = {
    "ppo": ["game=tictactoe", "policy=mlp"],
    "reinforce": ["game=tictactoe", "learner=reinforce"],
    "dqn": ["learner=dqn", "sampling=epsilon_greedy", "reward=outcome", "game=tictactoe"],
    "td": ["game=tictactoe", "policy=table", "learner=td"],
    "td_lambda": ["game=2048", "board=2", "sampling=argmax", "learner=td_lambda"],
}


def parts(words):
    """A game, a policy, its learner, and the moves and results of a few games of its own."""
    game, agent, learner = make_agent(*words, seeds=(0, 1))
    moves, results = collect_games(game, [agent], 8, rng(2))
    return agent.policy, learner, moves, results


def weights_of(policy):
    return {name: weight.clone() for name, weight in policy.state_dict().items()}


@pytest.mark.parametrize("name", one_in(2, LEARNERS))
def test_a_bad_reward_at_a_later_update_stops_before_the_step(name, monkeypatch):
    policy, learner, moves, results = parts(LEARNERS[name])
    for _ in range(2):
        learner.update(moves, results, 0.0)
    before = weights_of(policy)
    for method in ("rewards", "returns"):
        real = getattr(Reward, method)
        monkeypatch.setattr(
            Reward, method, lambda *of, real=real: real(*of).index_fill(0, ONE, math.nan)
        )
    with pytest.raises(NonFiniteError, match=r"a (reward|return) is not a finite number"):
        learner.update(moves, results, 0.5)
    assert all(torch.equal(weight, before[name]) for name, weight in policy.state_dict().items())


@pytest.mark.parametrize("name", ["ppo", "reinforce", "dqn"])
def test_a_non_finite_weight_stops_before_the_step(name):
    policy, learner, moves, results = parts(LEARNERS[name])
    learner.update(moves, results, 0.0)
    weight = dict(policy.named_parameters())["torso.1.weight"]
    with torch.no_grad():
        weight[0, 0] = math.nan
    before = weights_of(policy)
    with pytest.raises(NonFiniteError, match=re.escape("a logit") + "|weight torso.1.weight"):
        learner.update(moves, results, 0.5)
    for key, value in policy.state_dict().items():
        assert torch.equal(value.nan_to_num(7.0), before[key].nan_to_num(7.0))


@pytest.mark.parametrize(
    "optimizer", ["sgd", "adam", "fused_adam", "rmsprop", "rmsprop_per_matrix"]
)
def test_the_tensor_with_the_bad_gradient_is_named(optimizer):
    net: Any = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    made = make_optimizer(optimizer, net, 0.1, 0.9)
    descend(made, net(torch.ones(4, 3)).square().mean(), 0.1, 1.0)
    before = weights_of(net)
    handle = net[0].bias.register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(NonFiniteError, match=r"the gradient of 0\.bias is not a finite number"):
        descend(made, net(torch.ones(4, 3)).square().mean(), 0.1, None)
    handle.remove()
    with pytest.raises(NonFiniteError, match="the loss is not"):
        descend(made, net(torch.ones(4, 3)).sum() * math.inf, 0.1, 1.0)
    with pytest.raises(NonFiniteError, match="the norm of the gradient"):
        descend(made, net(torch.ones(4, 3)).sum() * 1e30, 0.1, None)
    assert all(torch.equal(weight, before[name]) for name, weight in net.state_dict().items())
    with torch.no_grad():
        net[1].weight[0, 0] = math.inf
    with pytest.raises(NonFiniteError, match=r"the weight 1\.weight is not"):
        descend(made, net(torch.ones(4, 3)).sum(), 0.1, 1.0)


def test_divergence_is_reported_in_one_line(typed, tmp_path):
    words = ["game=tictactoe", "policy=mlp", "games=400", "batch=20", "learner.optimizer=sgd"]
    words += ["lr=100", "reward.scale=1000000", "learner.max_grad_norm=null", "out=run"]
    done = typed("train", *words)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "is not a finite number" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["game=salvo", "board=32", "ships=[5]", "shots=1"],
        ["game=battleship", "board=1000", "ships=[5]", "shots=1"],
        ["game=salvo_duel", "board=32", "ships=[5]"],
    ],
)
def test_position_counts_may_exceed_a_float(words):
    assert make("game", load_config(SolveConfig, words).game).spec.max_positions == math.inf
