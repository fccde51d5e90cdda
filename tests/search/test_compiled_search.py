"""Searches whose moves a kernel makes find what the same searches find with the rules in torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import rng
from markers import quick
from rlgames.search.settings import MctsSettings

from rlgames.config.options.learners import OPTIMIZERS
from rlgames.core.errors import NonFiniteError
from rlgames.games.board_game import BoardState
from rlgames.games.breakthrough import Breakthrough
from rlgames.games.game_2048 import Game2048
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello
from rlgames.kernels.mlp import forward
from rlgames.kernels.rules import add_chance
from rlgames.kernels.simulations import roll_out
from rlgames.kernels.stepping import Games
from rlgames.learners.gradient import descend, make_optimizer
from rlgames.players.player import Agent, Random
from rlgames.policies.canonical import Canonical
from rlgames.policies.embedding import Embedding
from rlgames.policies.mlp import Mlp
from rlgames.policies.policy import ACTIVATIONS
from rlgames.sampling import Argmax
from rlgames.search import compiled as compiled_search
from rlgames.search.mcts import Mcts

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
SETTINGS = MctsSettings(simulations=60, num_parallel=5, leaf="value")


def network(game, value=True):
    """A network that learned nothing, with large outputs."""
    policy = Mlp(game, [16], "tanh", "orthogonal", bias=True, value=value, rng=rng(1))
    torch.nn.init.normal_(policy.logits.weight, generator=rng(2))
    if value:
        torch.nn.init.normal_(policy.value.weight, generator=rng(3))
    return policy


def live_states(game, plies=7, count=5):
    """Positions after 0, 1, 2, ... random plies that are not over."""
    state, found = game.initial(count, rng(5)), []
    for ply in range(plies):
        found.append(state[~state.done])
        state = game.step(state, Random(game).choose(state, rng(ply)), rng(ply))
    return type(state).cat(found)


def check_both(game, policy, settings):
    search = Mcts(game, Agent(game, policy, Argmax()), settings)
    state = live_states(game)
    assert search._compiled is not None
    compiled = search.search(state, rng())
    search._compiled = None
    plain = search.search(state, rng())
    assert torch.equal(compiled.visits, plain.visits)
    assert torch.equal(compiled.action, plain.action)
    assert torch.allclose(compiled.q, plain.q, atol=1e-5)
    assert torch.allclose(compiled.policy, plain.policy, atol=1e-4)


@pytest.mark.parametrize("game", quick(BOARDS, CONNECT4), ids=str)
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


def embedding(game, line_length=3, num_cell_values=4, open_cells=True):
    keys = {"activation": "relu", "init": "orthogonal", "value": True, "rng": rng(1)}
    policy = Embedding(game, 8, num_cell_values, open_cells, line_length, [5], **keys)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, generator=rng(2))
    return policy


@pytest.mark.parametrize("game", quick(BOARDS[:5], CONNECT4), ids=str)
def test_embeddings_of_lines(game):
    check_both(game, embedding(game), SETTINGS)
    check_both(game, embedding(game, open_cells=False), SETTINGS)


@pytest.mark.parametrize("keys", [{"line_length": None}, {"num_cell_values": 2}], ids=str)
def test_embeddings_that_torch_evaluates(keys):
    check_both(CONNECT4, embedding(CONNECT4, open_cells=False, **keys), SETTINGS)


@pytest.mark.parametrize("open_cells", [True, False])
def test_outputs_of_embeddings_of_lines(open_cells):
    policy = embedding(CONNECT4, 4, open_cells=open_cells)
    inputs = policy.inputs(CONNECT4, live_states(CONNECT4, plies=30))
    scores, values = policy(inputs)
    outputs = np.empty((len(inputs), 8), np.float32)
    forward(policy.packed(), inputs.flatten(1).numpy(), outputs)
    expected = torch.cat([scores, values[:, None]], 1)
    assert torch.allclose(torch.from_numpy(outputs), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("line_length", [None, 3])
def test_embeddings_of_2048(line_length):
    game = Game2048(3, 3)
    policy = embedding(game, line_length, game.num_cell_values, open_cells=False)
    search = Mcts(game, Agent(game, policy, Argmax()), SETTINGS)
    root = game.initial(2, rng())
    search._compiled.begin(root, torch.zeros(2, 2), rng())
    _, value = policy.scores(game, root)
    assert torch.allclose(search._compiled.root_value(), value, atol=1e-5)
    search._compiled.simulate([5])


class MirroredEmbedding(Embedding):
    """Reads the board with left and right exchanged."""

    def inputs(self, game, state):
        return super().inputs(game, state).flip(3)


def test_embeddings_with_other_inputs():
    policy = embedding(CONNECT4)
    policy.__class__ = MirroredEmbedding
    check_both(CONNECT4, policy, SETTINGS)


def test_networks_that_read_more_than_observations():
    check_both(CONNECT4, Canonical(CONNECT4, network(CONNECT4)), SETTINGS)


@pytest.mark.parametrize("count", [1, 40])
def test_scores_that_are_not_finite_are_an_error(count):
    policy = network(CONNECT4)
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS)
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
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS)
    state = live_states(CONNECT4, count=count)
    first = search.search(state, rng())
    assert (~np.isnan(search._compiled._evaluator._caches[0].value)).sum() > 200
    again = search.search(state, rng())
    assert torch.equal(first.visits, again.visits)
    assert torch.allclose(first.q, again.q, atol=1e-5)
    weights = {name: torch.rand_like(each) for name, each in policy.state_dict().items()}
    for change in (lambda: policy.value.weight.mul_(-1), lambda: policy.load_state_dict(weights)):
        with torch.no_grad():
            change()
        later = search.search(state, rng())
        expected = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS).search(state, rng())
        assert torch.allclose(later.q, expected.q, atol=1e-5)
        assert not torch.allclose(later.q, first.q, atol=1e-3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gradient_step_empties_the_cache(name):
    policy = network(CONNECT4)
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS)
    state = live_states(CONNECT4)
    search.search(state, rng())
    _, value = policy.scores(CONNECT4, state)
    descend(make_optimizer(name, policy, 0.1, 0.9), value.sum(), 0.1, None)
    later = search.search(state, rng())
    expected = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), SETTINGS).search(state, rng())
    assert torch.allclose(later.q, expected.q, atol=1e-5)


def test_a_cache_that_is_too_small_changes_nothing(monkeypatch):
    monkeypatch.setattr(compiled_search, "MAX_CACHE_BYTES", 7 * 4 * 8)
    check_both(CONNECT4, network(CONNECT4), SETTINGS)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("activation", "count"), [("relu", 3), ("tanh", 3), ("tanh", 10**6)], ids=str
)
def test_batches_that_torch_and_kernels_evaluate(activation, count, skip, monkeypatch):
    monkeypatch.setattr(compiled_search, "MAX_COMPILED_ROWS", count)
    policy = Mlp(CONNECT4, [16, 16, 16], activation, "orthogonal", True, True, rng(1), skip)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=rng(2))
    check_both(CONNECT4, policy, SETTINGS)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("layers", [[37, 0, 5], [84, 84, 5, 5, 5]])
def test_outputs_of_fully_connected_networks(activation, bias, value, layers):
    skip = layers[0] == layers[1]
    policy = Mlp(CONNECT4, layers, activation, "orthogonal", bias, value, rng(1), skip)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, generator=rng(2))
    inputs = CONNECT4.observe(live_states(CONNECT4, plies=30))
    scores, values = policy(inputs)
    outputs = np.empty((len(inputs), 7 + value), np.float32)
    forward(policy.packed(), inputs.flatten(1).numpy(), outputs)
    expected = scores if values is None else torch.cat([scores, values[:, None]], 1)
    assert torch.allclose(torch.from_numpy(outputs), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("keys", [{}, {"rule": "gumbel"}, {"num_parallel": 3}], ids=str)
@pytest.mark.parametrize("make", [network, embedding])
def test_the_number_of_threads_changes_nothing(make, keys, monkeypatch):
    monkeypatch.setattr(compiled_search, "MAX_COMPILED_ROWS", 20)  # torch evaluates some leaves
    settings = replace(SETTINGS, dirichlet_fraction=0.0 if "rule" in keys else 0.25, **keys)
    policy, state = make(CONNECT4), live_states(CONNECT4)
    one, two, many = (
        Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), replace(settings, threads=threads))
        for threads in (1, 2, 64)
    )
    expected = one.search(state, rng())
    for search in (two, many):
        for _ in range(2):  # the second time with a full cache
            result = search.search(state, rng())
            assert torch.equal(result.visits, expected.visits)
            assert torch.equal(result.action, expected.action)
            assert torch.allclose(result.policy, expected.policy, atol=1e-4)
            assert torch.allclose(result.value, expected.value, atol=1e-4)
    if make is embedding:
        for result in (two.search(state, rng()), many.search(state, rng())):
            assert all(
                torch.equal(getattr(result, name), each) for name, each in vars(expected).items()
            )


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_searches_of_fewer_trees_leave_nothing_behind(rule):
    settings = replace(SETTINGS, rule=rule, gumbel_scale=0.0)
    policy, state = network(CONNECT4), live_states(CONNECT4)
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), settings)
    for count in (9, 4, 9, 1, 6, 9):
        new = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), settings)
        found, expected = (each.search(state[:count], rng()) for each in (search, new))
        assert torch.equal(found.visits, expected.visits)
        assert torch.allclose(found.value, expected.value, atol=1e-5)


def test_errors_in_threads_are_raised():
    policy = network(CONNECT4)
    with torch.no_grad():
        policy.logits.weight[3] = torch.nan
    search = Mcts(CONNECT4, Agent(CONNECT4, policy, Argmax()), replace(SETTINGS, threads=2))
    with pytest.raises(NonFiniteError):
        search.search(CONNECT4.initial(5, rng()), rng())


def test_threads_are_refused_where_no_kernel_searches():
    agent = Agent(CONNECT4, network(CONNECT4), Argmax())
    cut_short = {"leaf": "rollout", "rollout_policy": "uniform", "rollout": 5}
    for keys in ({"leaf": "rollout"}, cut_short, {"fixed_depth": True, "depth": 2}):
        with pytest.raises(ValueError, match=r"needs a game with compiled rules"):
            Mcts(CONNECT4, agent, replace(SETTINGS, threads=2, **keys))


class TilesOfTheKernel(Game2048):
    """New tiles as in the only tree of a compiled search, from the seed of its generator."""

    random = np.zeros(1, np.uint64)

    def apply_chance(self, state, u):
        games = Games(*map(np.copy, state.games()))
        for row in (~state.done).nonzero()[:, 0].tolist():
            position = tuple(games.words[row].tolist())
            games.words[row], games.done[row] = add_chance(self.rules, position, self.random)
        return BoardState.of(games)

    def step(self, state, action, rng):
        return self.apply_chance(self.apply_action(state, action), None)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"rule": "gumbel", "gumbel_scale": 0.0},
        {"discount": 0.9, "depth": 4, "q_scale": 50.0},
        {"num_parallel": 1},
        {"simulations": 400, "num_parallel": 50},  # torch evaluates some leaves
    ],
    ids=str,
)
def test_points_and_chance(keys):
    game = TilesOfTheKernel(3, 3)
    settings = replace(SETTINGS, value_scale=20.0, **keys)
    search = Mcts(game, Agent(game, network(game), Argmax()), settings)
    states = live_states(game, plies=30, count=1)
    for row in range(0, len(states), 7):
        root = states[row : row + 1]
        compiled = search.search(root, rng(4))
        general = Mcts(game, search.player, settings)
        general._compiled = None
        seeds = torch.randint(compiled_search.MAX_SEED, (1, 1), generator=rng(4))
        game.random = seeds[0].numpy().view(np.uint64)
        plain = general.search(root, rng(4))
        assert torch.equal(compiled.visits, plain.visits)
        assert torch.equal(compiled.action, plain.action)
        assert torch.allclose(compiled.q, plain.q, atol=1e-4)
        assert torch.allclose(compiled.value, plain.value, rtol=1e-4)


def test_threads_draw_the_same_tiles():
    game = Game2048(4, 4)
    agent, state = Agent(game, network(game), Argmax()), live_states(game)
    one, two = (
        Mcts(game, agent, replace(SETTINGS, threads=threads)).search(state, rng())
        for threads in (1, 2)
    )
    assert torch.equal(one.visits, two.visits)


class PlaysLikeTheKernel(Mcts):
    """Random play as in the only tree of a compiled search, from the seed of its generator."""

    def search(self, state, rng):
        seed = torch.randint(compiled_search.MAX_SEED, (1, 1), generator=rng)
        self.random = seed[0].numpy().view(np.uint64)
        return super().search(state, rng)

    def _evaluate(self, start, leaf, leaf_value, gains, rng):
        compiled = self.game.compiled_rules()
        positions = compiled.pack(leaf).tolist()
        sign_factor = -1 if self.game.spec.seats == 2 else 1
        value = self.utility.realized(start, leaf)
        for row in (~leaf.done).nonzero()[:, 0].tolist():
            points = roll_out(compiled.rules, tuple(positions[row]), sign_factor, self.random)
            value[row] += points * (1 - 2 * leaf.current_seat[row])
        return value


PLAYOUTS = MctsSettings(simulations=40, rollout_policy="uniform", leaf="rollout")


@pytest.mark.parametrize("game", quick(BOARDS, *BOARDS[:2]), ids=str)
@pytest.mark.parametrize("rule", ["puct", "gumbel"])
@pytest.mark.parametrize("value_head", [None, False, True])
def test_random_playouts(game, rule, value_head):
    settings = replace(PLAYOUTS, rule=rule, num_parallel=3)
    player = Random(game)
    if value_head is not None:
        player = Agent(game, network(game, value_head), Argmax())
    compiled, plain = Mcts(game, player, settings), PlaysLikeTheKernel(game, player, settings)
    plain._compiled = None
    states = live_states(game, plies=3, count=1)
    for row in range(len(states)):
        root = states[row : row + 1]
        found, expected = compiled.search(root, rng(4)), plain.search(root, rng(4))
        assert torch.equal(found.visits, expected.visits)
        assert torch.equal(found.action, expected.action)
        assert torch.allclose(found.value, expected.value, atol=1e-5)


def test_random_playouts_for_points():
    game = TilesOfTheKernel(3, 3)
    state = game.initial(500, rng(1))
    compiled = Mcts(game, Random(game), replace(PLAYOUTS, simulations=1))
    plain = Mcts(game, Random(game), replace(PLAYOUTS, simulations=1))
    plain._compiled = None
    found, expected = (each.search(state, rng(2)).value for each in (compiled, plain))
    error = (found.var() / 500 + expected.var() / 500).sqrt()
    assert abs(found.mean() - expected.mean()) < 4 * error


def test_random_playouts_do_not_depend_on_other_trees():
    state = live_states(CONNECT4)
    one, two = (
        Mcts(CONNECT4, Random(CONNECT4), replace(PLAYOUTS, threads=threads)).search(state, rng())
        for threads in (1, 2)
    )
    assert torch.equal(one.visits, two.visits)
    alone = Mcts(CONNECT4, Random(CONNECT4), PLAYOUTS).search(state[:1], rng())
    assert torch.equal(alone.visits, one.visits[:1])


def test_games_of_points_for_two_are_searched_in_torch():
    game = KInARow(4, 4, 3, gravity=True)
    game.spec = replace(game.spec, goal="score")
    settings = replace(SETTINGS, value="outcome")
    assert Mcts(game, Agent(game, network(game), Argmax()), settings)._compiled is None
