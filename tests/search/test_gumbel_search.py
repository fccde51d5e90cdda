"""Gumbel root selection: the visits that were planned, the policy of the paper, better moves."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import generator, make_small_game, rng, some_states, untrained
from markers import quick

from rlgames.config.conf import option_names
from rlgames.config.typed import make_option
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.search.gumbel import halving
from rlgames.search.mcts import Mcts
from rlgames.search.search import SearchPolicy
from rlgames.search.self_play import SearchSelfPlay

INSTALL = "needs the other engines: make test-engines"
TICTACTOE = KInARow(3, 3, 3, gravity=False)
CONNECT4 = KInARow(6, 7, 4, gravity=True)


def by_gumbel(game, **settings):
    """A search by rule=gumbel, guided by a network that learned nothing."""
    return Mcts(
        game,
        untrained(game, 1, value=True),
        make_option("search", "mcts", rule="gumbel", **settings),
    )


def live_states(game, count=12):
    states = some_states(game, count)
    return states[~states.done]


def halved(num_considered, simulations):
    """Sequential halving, phase by phase: the visits of the best, second best, ... action."""
    visits = [0] * max(num_considered, 1)
    phases, remaining = max(1, (num_considered - 1).bit_length()), num_considered
    while sum(visits) < simulations:
        for _ in range(max(1, int(simulations / (phases * max(remaining, 1))))):
            for rank in range(max(remaining, 1)):
                if sum(visits) < simulations:
                    visits[rank] += 1
        remaining = min(max(remaining // 2, 2), num_considered)
    return visits


@pytest.mark.others
def test_every_table_of_considered_visits_is_that_of_mctx():
    pytest.importorskip("mctx", reason=INSTALL)
    from mctx._src.seq_halving import get_sequence_of_considered_visits

    for num_considered in range(1, 33):
        for simulations in range(1, 130):
            expected = get_sequence_of_considered_visits(num_considered, simulations)
            assert tuple(halving(num_considered, simulations)[0]) == expected


def test_considered_visits_are_those_of_sequential_halving():
    for num_considered in range(1, 20):
        for simulations in (1, 2, 7, 16, 50, 200):
            visits = [0] * num_considered
            for considered in halving(num_considered, simulations)[0]:
                visits[visits.index(considered)] += 1
            assert visits == halved(num_considered, simulations)


def test_a_phase_ends_where_actions_are_dropped():
    for num_considered in range(1, 20):
        for simulations in (1, 7, 24, 200):
            visits, found = halving(num_considered, simulations)
            ends = sorted(found)
            assert ends[-1] == simulations
            widths = [visits[start] for start in [0, *ends[:-1]]]
            assert widths == sorted(set(widths))
    assert sorted(halving(8, 24)[1]) == [8, 16, 24]
    assert sorted(halving(8, 13)[1]) == [8, 12, 13]


@pytest.mark.parametrize("num_parallel", [1, 4])
@pytest.mark.parametrize(("simulations", "most"), [(1, 16), (16, 16), (50, 4), (64, 16), (9, 1)])
def test_roots_are_visited_as_planned(simulations, most, num_parallel):
    state = live_states(TICTACTOE)
    search = by_gumbel(
        TICTACTOE,
        simulations=simulations,
        num_parallel=num_parallel,
        max_num_considered_actions=most,
    )
    visits = search.search(state, rng()).visits
    num_legal = TICTACTOE.legal_action_mask(state).sum(1).tolist()
    assert len(set(num_legal)) > 3
    for row, count in enumerate(num_legal):
        planned = halved(min(count, most), simulations)
        found = sorted(visits[row].int().tolist(), reverse=True)
        assert found[: len(planned)] == planned
        assert not any(found[len(planned) :])


def test_one_simulation_per_action_takes_the_best():
    state = live_states(TICTACTOE)[:1]
    player = Random(TICTACTOE)
    settings = make_option(
        "search", "mcts", simulations=9, num_parallel=1, rule="gumbel", gumbel_scale=0
    )
    for seed in range(10):
        result = Mcts(TICTACTOE, player, settings).search(state, rng(seed))
        assert result.visits.tolist() == [[1.0] * 9]
        assert torch.equal(result.action, result.q.argmax(1))
        assert torch.equal(result.action, result.policy.argmax(1))


def test_without_simulations_left_for_others_noise_decides():
    """One simulation visits the action with the highest noise + logits: a sample of the prior."""
    state = TICTACTOE.initial(1, rng())
    prior = by_gumbel(TICTACTOE).player.probabilities(TICTACTOE.public(state))[0].float()
    many = state[torch.zeros(20_000, dtype=torch.int64)]
    action = by_gumbel(TICTACTOE, simulations=1, leaf="value").choose(many, rng())
    assert torch.allclose(action.bincount(minlength=9) / 20_000, prior, atol=0.015)
    still = by_gumbel(TICTACTOE, simulations=1, leaf="value", gumbel_scale=0)
    assert set(still.choose(many[:50], rng()).tolist()) == {int(prior.argmax())}


def test_the_policy_is_that_of_the_paper():
    """softmax(logits + σ(completed q)), with the value head's estimate of the root, from seat 1."""
    state = live_states(TICTACTOE)[1:2]
    search = by_gumbel(
        TICTACTOE, simulations=6, num_parallel=1, leaf="value", max_num_considered_actions=4
    )
    result = search.search(state, rng(8))
    scores, raw_value = search.player.policy.scores(TICTACTOE, state)
    legal, visits = TICTACTOE.legal_action_mask(state), result.visits
    logits = scores.masked_fill(~legal, -torch.inf).log_softmax(1)
    # Outcomes for the seat to move; the result has 0.999 for a certain win.
    q = torch.where(result.q == result.q.new_tensor(0.999), 1.0, 2 * result.q - 1)
    visited = visits > 0
    assert not visited[legal].all()
    mean = (logits.exp() * q * visited).sum() / (logits.exp() * visited).sum()
    mixed = (raw_value.clamp(-1, 1) + 6 * mean) / 7
    completed = torch.where(visited, q, mixed)
    low, high = completed[legal].min(), completed[legal].max()
    sigma = (50 + visits.max()) * 0.1 * (completed - low) / (high - low)
    assert torch.allclose(result.policy, (logits + sigma).softmax(1), atol=1e-4)


@pytest.mark.others
@pytest.mark.slow
@pytest.mark.parametrize("simulations", [4, 16, 32])
def test_policies_are_those_of_mctx(simulations):
    """gumbel_muzero_policy with the same network, in Connect 4 on columns too high to fill: mctx
    counts illegal actions in the range of q."""
    jax = pytest.importorskip("jax", reason=INSTALL)
    mctx = pytest.importorskip("mctx", reason=INSTALL)
    game = KInARow(11, 5, 4, gravity=True)
    words = {"num_parallel": 1, "leaf": "value", "gumbel_scale": 0}
    search = by_gumbel(game, simulations=simulations, **words)
    known: list[Any] = []
    state = live_states(game, 5)

    def numbered(states):
        known.extend(states[row : row + 1] for row in range(len(states)))
        return np.arange(len(known) - len(states), len(known), dtype=np.int32)

    def network(states):
        scores, value = search.player.policy.scores(game, states)
        logits = scores.log_softmax(1).detach().numpy()
        return logits, (value.clamp(-1, 1) * ~states.done).detach().numpy()

    def step(number, action):
        before, action = [known[n] for n in number.tolist()], torch.tensor(action.tolist())
        before = type(state).cat(before)
        assert (game.legal_action_mask(before).all(1) | before.done).all()
        after = game.apply_action(before, action)
        reward = after.score.gather(1, before.current_seat[:, None])[:, 0] * ~before.done
        discount = torch.where(after.done, 0.0, -1.0)
        return *network(after), reward.float().numpy(), discount.numpy(), numbered(after)

    rows, floats = len(state), jax.numpy.float32
    shapes = [jax.ShapeDtypeStruct(shape, floats) for shape in ((rows, 5), *[(rows,)] * 3)]
    shapes.append(jax.ShapeDtypeStruct((rows,), jax.numpy.int32))

    def recurrent(_, key, action, number):
        logits, value, reward, discount, after = jax.pure_callback(step, shapes, number, action)
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        )
        return output, after

    logits, value = map(jax.numpy.asarray, network(state))
    number = jax.numpy.asarray(numbered(state))
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=number)
    key = jax.random.PRNGKey(0)
    theirs = mctx.gumbel_muzero_policy((), key, root, recurrent, simulations, gumbel_scale=0.0)
    found = search.search(state, rng())
    visits = np.asarray(theirs.search_tree.summary().visit_counts)
    assert found.visits.tolist() == visits.tolist()
    assert found.action.tolist() == theirs.action.tolist()
    assert found.policy.numpy() == pytest.approx(np.asarray(theirs.action_weights), abs=1e-5)


@pytest.mark.parametrize("settings", [{}, {"leaf": "value"}, {"depth": 2, "fixed_depth": True}])
@pytest.mark.parametrize("name", quick(option_names("game"), "2048", "salvo_duel", "tictactoe"))
def test_every_game_is_searched_and_only_legal_actions_count(name, settings):
    game = make_small_game(name)
    state = live_states(game)
    search = by_gumbel(game, simulations=21, rollout=3, **settings)
    result = search.search(state, rng(1))
    legal = game.legal_action_mask(state)
    assert torch.equal(result.action, search.choose(state, rng(1)))
    assert legal.gather(1, result.action[:, None]).all()
    assert (result.visits.sum(1) == 21).all()
    assert not result.visits[~legal].any()
    assert not result.policy[~legal].any()
    assert torch.allclose(result.policy.sum(1), torch.ones(len(state)))
    most = result.visits.gather(1, result.action[:, None])[:, 0]
    assert torch.equal(most, result.visits.amax(1))


@pytest.mark.parametrize("settings", [{}, {"depth": 4, "fixed_depth": True}])
def test_rows_are_searched_independently(settings):
    state = live_states(CONNECT4, 20)
    search = by_gumbel(
        CONNECT4, simulations=60, num_parallel=5, leaf="value", gumbel_scale=0, **settings
    )
    result = search.search(state, rng())
    row = torch.randperm(len(state), generator=generator())
    assert torch.equal(search.search(state[row], rng(9)).visits, result.visits[row])


def test_self_play_takes_the_searched_action_and_learns_its_policy():
    search = by_gumbel(TICTACTOE, simulations=16, leaf="value")
    state = live_states(TICTACTOE)
    decision = SearchSelfPlay(search.player, search).act(state, rng(3))
    result = search.search(state, rng(3))
    assert torch.equal(decision.action, result.action)
    assert torch.equal(decision.target, result.policy)
    policy = SearchPolicy(search).probabilities(state, rng(3))
    assert torch.equal(policy, result.policy.double())
