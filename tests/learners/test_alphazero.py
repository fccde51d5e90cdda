"""Learning from search: what is learnt is what was found, and noise stays where it belongs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import learner_of, make_policy, rng

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.config.typed import make_option
from rlgames.evaluation.positions import read_positions
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.alphazero import SearchTargets
from rlgames.players.player import Agent, Random
from rlgames.rollouts.play import collect_games
from rlgames.search.search import SearchResult
from rlgames.search.self_play import SearchSelfPlay
from rlgames.search.tree import SearchTree
from rlgames.search.utility import Utility
from rlgames.training.parts import build_self_play_search
from rlgames.training.train import train

TICTACTOE = KInARow(3, 3, 3, gravity=False)
CONNECT4 = KInARow(6, 7, 4, gravity=True)
SMALL = ["experiment=tictactoe_alphazero", "policy.layers=[32]", "search.simulations=16"]


def made(*words):
    """The player and the learner of a small run, around one network."""
    cfg = load_config(TrainConfig, [*SMALL, *words])
    policy = make_policy(cfg, TICTACTOE, 0)
    sampling = make("sampling", cfg.sampling)
    learner = learner_of(cfg, TICTACTOE, policy)
    agent = Agent(TICTACTOE, policy, sampling)
    return build_self_play_search(cfg, TICTACTOE, agent), learner


@pytest.fixture(scope="module")
def explorer():
    return made()[0]


@pytest.fixture(scope="module")
def games(explorer):
    return collect_games(TICTACTOE, [explorer], 20, rng(1))


def test_targets_are_visit_fractions(explorer):
    state = TICTACTOE.initial(6, rng())
    state = TICTACTOE.apply_action(state, torch.tensor([0, 1, 2, 3, 4, 5]))
    decision = explorer.act(state, rng(3))
    action, target = decision.action, decision.target
    visits = explorer.search.search(state, rng(3)).visits
    assert torch.equal(target, visits / 16)
    assert torch.allclose(target.sum(1), torch.ones(6))
    assert (target.gather(1, action[:, None]) > 0).all()


def test_moves_are_sampled_in_proportion_to_visits(explorer):
    fixed = torch.tensor([0.0, 1.0, 3.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0])

    class Found:
        game, explores, utility = TICTACTOE, False, Utility(TICTACTOE, None)

        def search(self, state, rng):
            visits = fixed.repeat(len(state), 1)
            value = torch.full((len(state),), 0.25)
            return SearchResult(visits, visits, visits / 16, visits.argmax(1), value)

    player = SearchSelfPlay(explorer.agent, Found())
    start = TICTACTOE.initial(16_000, rng())
    action = player.act(start, rng(4)).action
    frequency = torch.bincount(action, minlength=9) / 16_000
    assert torch.allclose(frequency, fixed / 16, atol=0.015)
    assert not frequency[fixed == 0].any()

    # In the opening a part of the moves is random; the targets are those of the search.
    player = SearchSelfPlay(explorer.agent, Found(), opening_epsilon=0.5, opening_turns=2)
    second = TICTACTOE.apply_action(start, torch.full_like(action, 4))
    decision = player.act(second, rng(5))
    legal = TICTACTOE.legal_action_mask(second[:1])[0]
    expected = fixed / 32 + legal / 16  # half of each; one of eight cells
    assert torch.allclose(
        torch.bincount(decision.action, minlength=9) / 16_000, expected, atol=0.015
    )
    assert torch.equal(decision.target, fixed.repeat(16_000, 1) / 16)
    # What follows a random move does not tell the value of the position, but the search does.
    assert set(decision.value[~decision.value.isnan()].tolist()) == {0.25}
    assert abs(float((~decision.value.isnan()).float().mean()) - 0.5) < 0.02
    assert not decision.value[fixed[decision.action] == 0].isnan().any()
    third = TICTACTOE.apply_action(second, torch.full_like(action, 0))
    decision = player.act(third, rng(6))
    frequency = torch.bincount(decision.action, minlength=9) / 16_000
    assert torch.allclose(frequency, fixed / 16, atol=0.015)
    assert decision.value.isnan().all()


def test_games_with_random_openings_carry_values_and_learn_from_them():
    player, learner = made("learner.opening_epsilon=0.5", "learner.opening_turns=3")
    moves, results = collect_games(TICTACTOE, [player], 40, rng(1))
    is_random = ~moves.value.isnan()
    assert 30 < int(is_random.sum()) < 90  # of 120 moves
    assert (moves.state.turn[is_random] < 3).all()
    assert (moves.value[is_random].abs() < 1).all()
    learner.update(moves, results, 0.0)
    assert learner.buffer[torch.arange(len(moves))].value[is_random].equal(moves.value[is_random])


def test_the_value_of_a_search_is_the_mean_of_its_simulations(explorer):
    state = TICTACTOE.apply_action(TICTACTOE.initial(6, rng()), torch.arange(6))
    result = explorer.search.search(state, rng(3))
    expected = 2 * (result.visits * result.q).sum(1) / 16 - 1
    assert torch.allclose(result.value, expected, atol=0.01)  # q is at most 0.999


def test_only_searching_players_give_targets(explorer):
    seating = torch.tensor([[0, 1], [1, 0]]).repeat(3, 1)
    players = [explorer, Random(TICTACTOE)]
    moves, _ = collect_games(TICTACTOE, players, 6, rng(2), seating=seating)
    total = moves.target.sum(1)
    assert torch.allclose(total, (moves.player == 0).float())
    assert torch.equal(moves.by_player(0).target, moves.target[moves.player == 0])
    chosen = moves.select_games(torch.tensor([4, 1]))
    assert torch.equal(
        chosen.by_player(0).target.sum(1).round(), torch.ones(len(chosen.by_player(0)))
    )
    plain, _ = collect_games(TICTACTOE, [Random(TICTACTOE)], 3, rng())
    assert plain.target is None


def test_noise_is_drawn_from_dirichlets_distribution():
    """Of k equal parameters a the mean is 1/k, the variance (k - 1) / k² / (k a + 1)."""
    tree = SearchTree(40_000, 1, 7, make_option("search", "mcts"), (-1.0, 1.0))
    drawn = tree.prior
    drawn[:], drawn[:, 1:5] = -torch.inf, 0.25
    tree.add_noise(40_000, 1.0, 10.0, rng())
    assert (drawn[:, [0, 5, 6]] == -torch.inf).all()
    actual = drawn[:, 1:5]
    assert torch.allclose(actual.sum(1), torch.ones(40_000))
    assert torch.allclose(actual.mean(0), torch.full((4,), 0.25), atol=0.005)
    assert torch.allclose(actual.var(0), torch.full((4,), 3 / 16 / 11), rtol=0.05)


def test_the_loss_is_that_of_visits_and_outcomes():
    """Of a network that knows nothing: the logarithm of the choices, and the mean square."""
    _, learner = made("learner.symmetries=false")
    with torch.no_grad():
        for weight in learner.policy.parameters():
            weight.zero_()
    state = TICTACTOE.apply_action(TICTACTOE.initial(2, rng()), torch.tensor([0, 4]))
    target = torch.zeros(2, 9)
    target[:, 1] = 1
    with torch.no_grad():
        actual = learner.losses(SearchTargets(state, target, torch.tensor([1.0, -0.5])))
    assert float(actual[0]) == pytest.approx(torch.tensor(8.0).log().item())
    assert float(actual[1]) == pytest.approx((1 + 0.25) / 2)


def test_learning_lowers_the_loss(games):
    """Of games in which the search is sure of the first free cell."""
    moves, results = games
    first_free = TICTACTOE.legal_action_mask(moves.state).float().argmax(1)
    sure = replace(moves, target=torch.nn.functional.one_hot(first_free, 9).float())
    _, learner = made("learner.updates_per_batch=60", "learner.symmetries=false")
    first = learner.update(sure, results, 0.0)
    second = learner.update(sure, results, 0.0)
    assert first["target_entropy"] == pytest.approx(0)
    assert second["policy_loss"] < 0.5 * first["policy_loss"]
    assert second["value_loss"] < 0.9 * first["value_loss"]
    assert second["buffer_size"] == 2 * len(moves)


def test_no_test_position_is_among_those_that_select_networks():
    folder = Path(__file__).parents[2] / "scripts/checks"
    used, test = (
        read_positions(folder / f"connect4_{name}.txt", CONNECT4).state.words.tolist()
        for name in ("positions", "test_positions")
    )
    boards = set(map(tuple, test))
    assert len(boards) == len(test) == 6000
    assert not boards & set(map(tuple, used))


@pytest.mark.slow
def test_tic_tac_toe_becomes_unexploitable(tmp_path):
    actual = train(
        load_config(TrainConfig, ["experiment=tictactoe_alphazero", f"out={tmp_path / 'run'}"])
    )
    assert actual.best.metrics["exploitability"] == 0
