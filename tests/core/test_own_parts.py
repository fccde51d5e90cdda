"""What a user's part returns is checked, and an error names the part and what was expected."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import generator, rng
from torch import nn

from rlgames.core.callbacks import Callback, CallbackList
from rlgames.core.errors import ConfigError, NonFiniteError
from rlgames.core.metrics import as_metrics
from rlgames.core.own_parts import checked
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.learner import BatchLearner
from rlgames.players.player import Agent, Decision, Player, Random
from rlgames.policies.policy import Network
from rlgames.rewards import Reward, discounted_returns, generalized_advantage
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Stochastic, greedy_action
from rlgames.search.search import Search

GAME = KInARow(3, 3, 3, gravity=False)
FEW = 7


def start(count=FEW):
    return GAME.initial(count, rng())


@pytest.fixture(scope="module")
def batch():
    return collect_games(GAME, [Random(GAME)], 20, rng(3))


def returning(value):
    """A reward that returns value(number of moves)."""

    class Mine(Reward):
        def rewards(self, trajectories, final_states):
            return value(len(trajectories))

    return checked("reward", "mine", Mine)(GAME)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda moves: torch.ones(20), "returned 20 numbers for {} moves; expected"),
        (lambda moves: torch.ones(moves + 1000), "numbers for {} moves"),
        (lambda moves: torch.ones(0), "returned 0 numbers for {} moves"),
        (lambda moves: torch.ones(moves, 1), "returned the shape [{0}, 1] for {0} moves"),
        (lambda moves: torch.tensor(1.0), "returned the shape [] for {} moves"),
        (lambda moves: [1.0] * moves, "returned a value of type list for {} moves"),
        (lambda moves: 1.0, "returned a value of type float"),
        (lambda moves: None, "returned None for {} moves"),
        (lambda moves: torch.ones(moves, dtype=torch.complex64), "returned complex numbers"),
    ],
)
def test_a_reward_has_one_number_for_each_move(value, message, batch):
    moves = len(batch[0])
    told = re.escape("reward=mine " * message.startswith("returned") + message.format(moves))
    for method in ("rewards", "returns"):
        with pytest.raises(ConfigError, match=told):
            getattr(returning(value), method)(*batch)


def test_a_reward_is_of_real_numbers_of_any_type_and_finite(batch):
    for kind in (torch.int64, torch.float64, torch.bool):
        reward = returning(lambda moves, kind=kind: torch.ones(moves, dtype=kind))
        assert reward.rewards(*batch).dtype == torch.float32
        assert reward.is_own
    for number in (torch.nan, torch.inf):
        with pytest.raises(NonFiniteError, match=f"reward=mine returned {number} as a reward"):
            returning(lambda moves, number=number: torch.full((moves,), number)).rewards(*batch)


def test_no_kernel_reads_or_writes_outside_of_its_arrays(batch):
    moves, _ = batch
    fine, wrong = torch.ones(len(moves)), torch.ones(20)
    for reward, value in ((wrong, fine), (fine, wrong), (fine[:, None], fine)):
        with pytest.raises(ValueError, match=f"for {len(moves)} moves"):
            generalized_advantage(reward, value, moves, 1.0, 1.0)
        with pytest.raises(ValueError, match=f"for {len(moves)} moves"):
            discounted_returns(reward, moves, 1.0, value)
    legal = torch.ones(FEW, 9, dtype=torch.bool)
    for shape in ((FEW, 10), (FEW - 1, 9), (9,), (1, 9)):
        with pytest.raises(ValueError, match="for legal actions"):
            greedy_action(torch.zeros(shape), legal)


def network(scores, value, has_value=True):
    """A network that returns scores and values for a number of positions."""

    class Mine(Network):
        def __init__(self, game, *, value, generator):
            super().__init__()
            self.scale, self.has_value = nn.Parameter(torch.ones(1)), value

        def forward(self, inputs):
            return scores(len(inputs)), value(len(inputs))

    return checked("policy", "mine", Mine)(GAME, value=has_value, generator=generator())


def zeros(*shape):
    return lambda count: torch.zeros([count if each is None else each for each in shape])


@pytest.mark.parametrize(
    ("scores", "value", "message"),
    [
        (zeros(None, 18), zeros(None), "returned the shape [7, 18] as scores for 7 positions"),
        (zeros(None, 4), zeros(None), "expected a tensor of the shape [7, 9]"),
        (zeros(63), zeros(None), "returned the shape [63] as scores"),
        (zeros(1, 9), zeros(None), "returned the shape [1, 9] as scores for 7 positions"),
        (zeros(None, 9), zeros(None, 1), "returned the shape [7, 1] as values"),
        (zeros(None, 9), zeros(), "returned the shape [] as values"),
        (zeros(None, 9), lambda count: None, "returned no values; its learner needs one"),
        (lambda count: torch.zeros(count, 9).long(), zeros(None), "returned int64 as scores"),
        (lambda count: [0.0], zeros(None), "returned a value of type list as scores"),
    ],
)
def test_a_network_has_a_score_for_each_action_and_a_value_if_needed(scores, value, message):
    agent = Agent(GAME, network(scores, value), Stochastic(1.0))
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        agent.act(start(), rng())
    assert "policy=mine " in error.value.error


def test_a_network_whose_first_scores_are_not_finite_is_named():
    agent = Agent(
        GAME, network(lambda n: torch.full((n, 9), torch.nan), zeros(None)), Stochastic(1.0)
    )
    with pytest.raises(NonFiniteError, match="policy=mine returned nan as a score"):
        agent.choose(start(), rng())
    Agent(GAME, network(zeros(None, 9), lambda n: None, False), Stochastic(1.0)).choose(
        start(), rng()
    )


def test_batch_normalization_learns_from_one_row_by_its_running_statistics():
    class Mine(Network):
        def __init__(self, game, *, value, generator):
            super().__init__()
            self.norm, self.has_value = nn.BatchNorm1d(9), value

        def forward(self, inputs):
            return self.norm(inputs[:, 0].flatten(1)), None

    made = checked("policy", "mine", Mine)(GAME, value=False, generator=generator()).train()
    for count in (1, 2):
        made(GAME.observe(start(count)))
        assert made.norm.training
        assert int(made.norm.num_batches_tracked) == count - 1


def player(choose=None, act=None, probabilities=None):
    class Mine(Player):
        def __init__(self, game):
            self.game = game

        def choose(self, state, rng):
            return choose(self.game.legal_action_mask(state))

    if act is not None:
        Mine.act = act
    if probabilities is not None:
        Mine.probabilities = lambda self, state: probabilities(self.game.legal_action_mask(state))
    return checked("player", "mine", Mine)(GAME)


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda legal: (~legal).int().argmax(1) + 9, "chose action 9, which does not exist"),
        (lambda legal: torch.full((FEW,), -1), "chose action -1, which does not exist"),
        (lambda legal: torch.zeros(1, dtype=torch.int64), "returned 1 number as actions for 7"),
        (lambda legal: legal.int().argmax(1)[:, None], "returned the shape [7, 1] as actions"),
        (lambda legal: legal.int().argmax(1).int(), "returned int32 as actions; expected int64"),
        (lambda legal: [0] * FEW, "returned a value of type list as actions"),
        (lambda legal: None, "returned None as actions for 7 positions"),
    ],
)
def test_a_player_returns_an_action_for_each_position(choose, message):
    with pytest.raises(ConfigError, match=re.escape(f"player=mine {message}")):
        player(choose).act(start(), rng())


def test_an_illegal_move_is_named_in_any_position_but_those_that_are_over():
    always_first = player(lambda legal: torch.zeros(len(legal), dtype=torch.int64))
    always_first.act(start(), rng())
    with pytest.raises(
        ConfigError, match="the illegal action 0, A1; legal in that position: 1, 2, 3"
    ):
        collect_games(GAME, [always_first, Random(GAME)], 20, rng())
    state = start()
    while not bool(state.done.all()):
        state = GAME.apply_action(state, Random(GAME).choose(state, rng(4)))
    always_first.act(state, rng())


def test_a_decision_and_a_search_are_checked_as_well():
    def act(self, state, rng, progress=0.0):
        action = torch.zeros(len(state), dtype=torch.int64)
        return Decision(action, log_prob=torch.zeros(len(state), 1))

    with pytest.raises(ConfigError, match=r"player=mine returned the shape \[7, 1\] as log_prob"):
        player(act=act).act(start(), rng())
    with pytest.raises(ConfigError, match="act returns a Decision"):
        player(act=lambda self, state, rng, progress=0.0: 0).act(start(), rng())

    class Mine(Search):
        def __init__(self, game, player):
            pass

        def search(self, state, rng):
            raise NotImplementedError

        def choose(self, state, rng):
            return torch.full((len(state),), 9)

    with pytest.raises(ConfigError, match="search=mine chose action 9"):
        checked("search", "mine", Mine)(GAME, Random(GAME)).choose(start(), rng())


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (lambda legal: legal / legal.sum(1, keepdim=True) * 2, "that sum to 2 in a position"),
        (lambda legal: torch.full(legal.shape, 1 / 9), "of up to 0.1111 for illegal actions"),
        (lambda legal: legal * torch.nan, "as low as nan"),
        (lambda legal: legal.double() - 1, "as low as -1"),
        (lambda legal: torch.ones(len(legal), 18), "the shape [7, 18] as probabilities"),
    ],
)
def test_probabilities_sum_to_1_over_the_legal_actions(probabilities, message):
    state = GAME.apply_action(start(), torch.zeros(FEW, dtype=torch.int64))
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        player(probabilities=probabilities).probabilities(state)
    assert "player=mine returned " in error.value.error
    exact = player(probabilities=lambda legal: legal / legal.sum(1, keepdim=True))
    assert exact.probabilities(state).shape == (FEW, 9)


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("choose", lambda legal: (~legal).int().argmax(1), "chose the illegal action 0"),
        ("choose", lambda legal: torch.zeros(1, dtype=torch.int64), "returned 1 number"),
        ("choose_and_tell", lambda legal: torch.zeros(FEW), "returned a value of type Tensor"),
        ("logits", lambda legal: torch.zeros(FEW, 9), "logits that allow illegal actions"),
        ("logits", lambda legal: torch.zeros(FEW, 18), "the shape [7, 18] as logits"),
        ("probabilities", lambda legal: legal * 1.0, "that sum to 8"),
    ],
)
def test_a_sampling_rule_chooses_legal_actions_only(method, value, message):
    legal = torch.ones(FEW, 9, dtype=torch.bool)
    legal[:, 0] = False
    kind = type("Mine", (Stochastic,), {method: lambda self, *_: value(legal)})
    kind.__module__ = kind.choose.__module__ = "mine"
    rule = checked("sampling", "mine", kind)(1.0)
    more = {"logits": (), "probabilities": (0.0,)}.get(method, (rng(), 0.0))
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        getattr(rule, method)(torch.zeros(FEW, 9), legal, *more)
    assert "sampling=mine " in error.value.error


NUMBERS = [1, 1.0, True, np.float32(1), np.int64(1), np.ones(1), torch.ones(()), torch.ones(1, 1)]


def test_metrics_are_numbers_of_any_kind():
    found = as_metrics("x", {str(index): each for index, each in enumerate(NUMBERS)})
    assert [*map(type, found.values())] == [float] * len(NUMBERS)
    assert {*found.values()} == {1.0}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (None, "learner=mine returned None as metrics; expected a dict of numbers"),
        ([("loss", 1.0)], "a value of type list as metrics"),
        ({"loss": "low"}, "returned 'low' as the metric 'loss'; expected a number"),
        ({"loss": None}, "returned None as the metric 'loss'"),
        ({"loss": torch.ones(3)}, "returned the shape [3] as the metric 'loss'"),
        ({"loss": 1j}, "returned 1j as the metric 'loss'"),
        ({1: 1.0}, "a metric with the name 1"),
    ],
)
def test_other_metrics_are_refused_by_their_names(metrics, message):
    class Mine(BatchLearner):
        def __init__(self):
            pass

        def update(self, trajectories, final_states, progress):
            return metrics

    with pytest.raises(ConfigError, match=re.escape(message)):
        checked("learner", "mine", Mine)().update(None, None, 0.0)


class Told(Callback):
    def __init__(self, more):
        self.more = more

    def on_update(self, games, metrics, moves, final_states):
        return self.more


def test_what_callbacks_return_is_logged_under_names_of_their_own():
    called = [Callback(), Told(None), Told({"a": np.float32(2)}), Told({"b": torch.ones(1)})]
    assert CallbackList(called).on_update(1, {"loss": 0.0}, None, None) == {"a": 2, "b": 1}
    for more, message in (
        ({"loss": 1}, "the callback Told returned the metric 'loss', which is taken"),
        ({"a": "x"}, "the callback Told returned 'x' as the metric 'a'"),
        (3, "the callback Told returned a value of type int as metrics"),
    ):
        with pytest.raises(ConfigError, match=message):
            CallbackList([Told(more)]).on_update(1, {"loss": 0.0}, None, None)


def odd_game(**methods):
    """Tic-tac-toe with other methods, as functions of what they return otherwise."""

    class Mine(KInARow):
        pass

    for name, change in methods.items():
        usual = getattr(KInARow, name)
        replaced = lambda self, *rest, usual=usual, change=change: change(usual(self, *rest))  # noqa: E731
        setattr(Mine, name, replaced)
    return checked("game", "mine", Mine)(3, 3, 3, gravity=False)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"legal_action_mask": torch.zeros_like}, "has no legal action after 0 turns of a game"),
        (
            {"legal_action_mask": lambda legal: legal[:, :4]},
            "returned the shape [7, 4] as legal actions",
        ),
        (
            {"legal_action_mask": lambda legal: legal.int()},
            "returned int32 as legal actions; expected bool",
        ),
        (
            {"observe": lambda planes: planes[:, :1]},
            "returned the shape [7, 1, 3, 3] as observations",
        ),
        ({"apply_action": lambda state: state[:3]}, "returned 3 positions after a move in 7"),
    ],
)
def test_a_game_follows_its_spec(methods, message):
    game, name = odd_game(**methods), next(iter(methods))
    moved = (torch.zeros(FEW, dtype=torch.int64),) if name == "apply_action" else ()
    with pytest.raises(ConfigError, match=re.escape(f"game=mine {message}")):
        getattr(game, name)(game.initial(FEW, rng()), *moved)


def test_a_game_that_goes_on_after_its_limit_is_named():
    game = odd_game()
    game.spec = SimpleNamespace(**{**vars(game.spec), "max_plies": 3})
    with pytest.raises(ConfigError, match=r"20 games of lines go on after spec\.max_plies=3 plies"):
        collect_games(game, [Random(game)], 20, rng())


def test_built_in_parts_are_not_checked_and_parts_of_functions_are():
    assert checked("sampling", "mine", Stochastic) is Stochastic
    assert type(checked("sampling", "mine", lambda: Stochastic(1.0))()) is Stochastic

    class Mine(Reward):
        def rewards(self, trajectories, final_states):
            return None

    made = checked("reward", "mine", lambda game: Mine(game))(GAME)
    assert isinstance(made, Mine)
    with pytest.raises(ConfigError, match="reward=mine returned None"):
        made.rewards([], None)
    assert checked("reward", "mine", Mine).__qualname__ == Mine.__qualname__
    assert Mine.__module__ in sys.modules
