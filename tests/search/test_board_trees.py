"""Searches of board games: what a plain search finds, whatever evaluates their leaves."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import game_2048, generator, rng
from markers import quick

from rlgames.config.options.learners import OPTIMIZERS
from rlgames.config.typed import make_option
from rlgames.core.errors import NonFiniteError
from rlgames.games.breakthrough import Breakthrough
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello
from rlgames.kernels.mlp import forward
from rlgames.learners.gradient import descend, make_optimizer
from rlgames.players.player import Agent, Random
from rlgames.policies.canonical import Canonical
from rlgames.policies.conv import Conv
from rlgames.policies.embedding import Embedding
from rlgames.policies.mlp import Mlp
from rlgames.policies.policy import ACTIVATIONS
from rlgames.sampling import Argmax
from rlgames.search.mcts import Mcts
from rlgames.search.search import play_on

CONNECT4 = KInARow(6, 7, 4, gravity=True)
BOARDS = [
    CONNECT4,
    KInARow(3, 3, 3, gravity=False),  # lines and moves from tables, int32
    KInARow(5, 6, 4, gravity=False),
    KInARow(4, 5, 3, gravity=True),
    KInARow(9, 9, 5, gravity=False),  # two words for a set of stones
    Othello(6),
    Hex(4, swap=True),
    Breakthrough(5, 4, 1),
]
SETTINGS = make_option("search", "mcts", simulations=60, num_parallel=5, leaf="value")


def network(game, value=True, layers=(16,), activation="tanh", skip=False):
    """A network that learned nothing, with large outputs."""
    policy = Mlp(game, [*layers], activation, "orthogonal", True, value, generator(1), skip)
    torch.nn.init.normal_(policy.logits.weight, generator=generator(2))
    if value:
        torch.nn.init.normal_(policy.value.weight, generator=generator(3))
    return policy


def embedding(game, line_length=3, num_cell_values=4, open_cells=True):
    keys = {"activation": "relu", "init": "orthogonal", "value": True, "generator": generator(1)}
    policy = Embedding(game, 8, num_cell_values, open_cells, line_length, [5], **keys)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, generator=generator(2))
    return policy


def convolutions(game):
    policy = Conv(game, [4], "relu", "orthogonal", skip=False, value=True, generator=generator(1))
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator(2))
    return policy


class MirroredEmbedding(Embedding):
    """Reads the board with left and right exchanged."""

    def inputs(self, game, state):
        return super().inputs(game, state).flip(3)


def mirrored(game):
    policy = embedding(game)
    policy.__class__ = MirroredEmbedding
    return policy


def live_states(game, plies=7, count=5):
    """Positions after 0, 1, 2, ... random plies that are not over."""
    state, found = game.initial(count, rng(5)), []
    for ply in range(plies):
        found.append(state[~state.done])
        state = game.step(state, Random(game).choose(state, rng(ply)), rng(ply))
    return type(state).cat(found)


def search_of(game, policy, settings=SETTINGS, **units):
    return Mcts(game, Agent(game, policy, Argmax("first")), settings, **units)


class Node:
    """A position of a plain search; visits and sums of values for seat 0, by action."""

    def __init__(self, game, policy, state):
        scores, value = policy.scores(game, state)
        legal = game.legal_action_mask(state)[0]
        self.prior = scores[0].masked_fill(~legal, -torch.inf).softmax(0).tolist()
        self.legal = legal.nonzero()[:, 0].tolist()
        self.state, self.sign = state, 1 - 2 * int(state.current_seat)
        self.value = self.sign * min(max(float(value), -1), 1)
        self.visits, self.sums, self.children = [0] * len(legal), [0.0] * len(legal), {}

    def best_action(self, c_puct):
        """By the rule of AlphaZero; actions without visits have the mean of the node."""
        total = sum(self.visits)
        mean = sum(self.sums) / max(total, 1)

        def priority(action):
            count = self.visits[action]
            q = self.sums[action] / count if count else mean
            bonus = c_puct * math.sqrt(max(total, 1)) * self.prior[action] / (1 + count)
            return (1 + self.sign * q) / 2 + bonus

        return max(self.legal, key=priority)


@torch.no_grad()
def plain_search(game, policy, state, settings):
    """The visits of each action at one position, one simulation after the other."""
    root = Node(game, policy, state)
    for _ in range(settings.simulations):
        node, path, value = root, [], None
        while value is None:
            action = node.best_action(settings.c_puct)
            path.append((node, action))
            if action not in node.children:
                after = game.apply_action(node.state, torch.tensor([action]))
                if bool(after.done):
                    value = float(after.score[0, 0])
                else:
                    node.children[action] = Node(game, policy, after)
                    value = node.children[action].value
            else:
                node = node.children[action]
        for node, action in path:
            node.visits[action] += 1
            node.sums[action] += value
    return root.visits


def check(game, policy, states=None):
    """Leaves that kernels and torch evaluate lead to the visits of a plain search."""
    settings = replace(SETTINGS, simulations=40, num_parallel=1)
    states = live_states(game, count=2) if states is None else states
    found = search_of(game, policy, settings).search(states, rng()).visits
    for row in range(len(states)):
        expected = plain_search(game, policy, states[row : row + 1], settings)
        assert found[row].tolist() == expected


@pytest.mark.parametrize("game", quick(BOARDS, CONNECT4), ids=str)
def test_visits_are_those_of_a_plain_search(game):
    check(game, network(game))


@pytest.mark.parametrize(
    "make",
    [
        embedding,
        lambda game: embedding(game, open_cells=False),
        lambda game: embedding(game, line_length=None, open_cells=False),
        lambda game: embedding(game, num_cell_values=2, open_cells=False),
        mirrored,
        convolutions,
        lambda game: Canonical(game, network(game)),
        lambda game: network(game, layers=[16, 16, 16], activation="relu", skip=True),
    ],
)
def test_leaves_are_evaluated_by_every_policy(make):
    check(CONNECT4, make(CONNECT4))


@pytest.mark.parametrize("line_length", [None, 3])
def test_points_and_the_discounted_value_of_2048(line_length):
    """After one simulation: the points of its move, and what the network says about the board."""
    game = game_2048(3, 3)
    policy = embedding(game, line_length, game.num_cell_values, open_cells=False)
    torch.nn.init.zeros_(policy.value.weight)
    torch.nn.init.constant_(policy.value.bias, 3.0)
    settings = replace(SETTINGS, simulations=1)
    state = live_states(game, plies=20)
    search = search_of(game, policy, settings, discount=0.5, value_scale=20.0)
    result = search.search(state, rng())
    after = game.apply_action(state, result.action)
    expected = (after.score - state.score)[:, 0] + 0.5 * 20 * 3
    is_over = result.value < expected - 1  # the new tile left no move
    assert is_over.float().mean() < 0.2
    assert torch.allclose(result.value, expected - 30 * is_over)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("layers", [[37, 0, 5], [84, 84, 5, 5, 5]])
def test_outputs_of_fully_connected_networks(activation, bias, value, layers):
    skip = layers[0] == layers[1]
    policy = Mlp(CONNECT4, layers, activation, "orthogonal", bias, value, generator(1), skip)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, generator=generator(2))
    inputs = CONNECT4.observe(live_states(CONNECT4, plies=30))
    scores, values = policy(inputs)
    outputs = np.empty((len(inputs), 7 + value), np.float32)
    forward(policy.compiled(CONNECT4).network, inputs.flatten(1).numpy(), outputs)
    expected = scores if values is None else torch.cat([scores, values[:, None]], 1)
    assert torch.allclose(torch.from_numpy(outputs), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("count", [1, 40])
def test_scores_that_are_not_finite_are_an_error(count):
    policy = network(CONNECT4)
    search = search_of(CONNECT4, policy)
    state = CONNECT4.initial(count, rng())
    search.search(state, rng())
    with torch.no_grad():
        policy.logits.weight[3] = torch.nan
    for _ in range(2):  # nothing of it is stored
        with pytest.raises(NonFiniteError):
            search.search(state, rng())


@pytest.mark.parametrize("count", [1, 40])
def test_evaluations_are_cached_until_the_weights_change(count):
    policy = network(CONNECT4)
    search = search_of(CONNECT4, policy)
    state = live_states(CONNECT4, count=count)
    first = search.search(state, rng())
    again = search.search(state, rng())
    assert torch.equal(first.visits, again.visits)
    assert torch.allclose(first.q, again.q, atol=1e-5)
    weights = {name: torch.rand_like(each) for name, each in policy.state_dict().items()}
    for change in (lambda: policy.value.weight.mul_(-1), lambda: policy.load_state_dict(weights)):
        with torch.no_grad():
            change()
        later = search.search(state, rng())
        expected = search_of(CONNECT4, policy).search(state, rng())
        assert torch.allclose(later.q, expected.q, atol=1e-5)
        assert not torch.allclose(later.q, first.q, atol=1e-3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gradient_step_empties_the_cache(name):
    policy = network(CONNECT4)
    search = search_of(CONNECT4, policy)
    state = live_states(CONNECT4)
    search.search(state, rng())
    _, value = policy.scores(CONNECT4, state)
    descend(make_optimizer(name, policy, 0.1, 0.9), value.sum(), 0.1, None)
    later = search.search(state, rng())
    expected = search_of(CONNECT4, policy).search(state, rng())
    assert torch.allclose(later.q, expected.q, atol=1e-5)


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_searches_of_fewer_trees_leave_nothing_behind(rule):
    settings = replace(SETTINGS, rule=rule, gumbel_scale=0.0)
    policy, state = network(CONNECT4), live_states(CONNECT4)
    search = search_of(CONNECT4, policy, settings)
    for count in (9, 4, 9, 1, 6, 9):
        new = search_of(CONNECT4, policy, settings)
        found, expected = (each.search(state[:count], rng()) for each in (search, new))
        assert torch.equal(found.visits, expected.visits)
        assert torch.allclose(found.value, expected.value, atol=1e-5)


PLAYOUTS = make_option("search", "mcts", simulations=40, rollout_policy="uniform", leaf="rollout")


@pytest.mark.parametrize("game", [*quick(BOARDS, BOARDS[1]), game_2048(3, 3)], ids=str)
@pytest.mark.parametrize("value_head", [None, False, True])
def test_random_playouts_reach_what_random_play_reaches(game, value_head):
    player = Random(game)
    if value_head is not None:
        player = Agent(game, network(game, value_head), Argmax("first"))
    state = game.initial(3000, rng(1))
    result = Mcts(game, player, replace(PLAYOUTS, simulations=1)).search(state, rng(2))
    start = game.step(state, result.action, rng(3))
    end = play_on(game, Random(game), start, math.inf, rng(4))
    expected = (end.score - state.score)[:, 0]
    error = ((result.value.var() + expected.var()) / len(state)).sqrt()
    assert abs(result.value.mean() - expected.mean()) < 4 * error + 1e-6


def test_random_playouts_do_not_depend_on_other_trees():
    state, search = live_states(CONNECT4), Mcts(CONNECT4, Random(CONNECT4), PLAYOUTS)
    together, alone = (search.search(each, rng()) for each in (state, state[:1]))
    assert torch.equal(alone.visits, together.visits[:1])
