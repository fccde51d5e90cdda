"""Values: features of boards, expectations over chance, least squares, targets of Q-learning."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from helpers import game_2048, generator, learner_of, make_learner, make_policy, rng
from markers import one_in

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.core.errors import NonFiniteError
from rlgames.games.battleship import Battleship
from rlgames.games.game import HIDDEN
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse
from rlgames.learners.adp import least_squares
from rlgames.learners.replay import ReplayBuffer, ReplayTransitions
from rlgames.players.player import Random
from rlgames.policies.linear import FEATURES, LinearValue
from rlgames.rollouts.play import GamePool, collect_games

THEIRS = ["corner", "vertical", "horizontal", "diagonal"]


def learner(game, *words):
    return make_learner(game, "experiment=null", "sampling=epsilon_greedy", *words)


def adp(game, *words):
    return learner(game, "game=2048", "policy=linear", "learner=adp", *words)


# Features


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        (["16 8 2 .", "8 4 . .", "4 . 2 .", "2 . . ."], [1, 1, 1, 1]),
        (["16 8 2 4", "8 4 . .", "4 . 2 .", "2 . . ."], [1, 1, 0, 1]),
        (["16 8 2 .", ". 4 . .", "4 . 2 .", "2 . . ."], [1, 0, 1, 1]),
        (["16 8 2 .", "8 . . .", "4 . 2 .", "2 . . ."], [1, 1, 1, 0]),
        (["8 16 2 .", "8 4 . .", "4 . 2 .", "2 . . ."], [0, 0, 0, 0]),
        # Every corner can be the one, ...
        ([". . . .", ". . . .", ". . . 2", "2 4 8 16"], [1, 1, 1, 1]),
        # ... equal tiles do not rise, ...
        (["4 4 4 4", ". 4 . .", ". . . .", ". . . ."], [1, 1, 1, 1]),
        # ... and of two corners with the largest tile one goes down, the other across.
        (["16 2 4 16", "8 4 . 2", "4 . 2 4", "2 . . ."], [1, 1, 0, 1]),
        (["16 2 4 .", "2 4 . 2", "4 . 4 4", "16 8 4 2"], [1, 0, 1, 1]),
    ],
)
def test_features_of_boards_written_by_hand(board, expected):
    game = game_2048(4, 4)
    basis = LinearValue(game, False, THEIRS, 1.0)
    state = parse(game, "\n".join(board))
    assert basis.features(game, state)[0].tolist() == expected


def test_the_other_features():
    game = game_2048(2, 3)
    basis = LinearValue(game, False, ["one", "empty", "pairs", "ordered", "rough"], 1.0)
    actual = basis.features(game, parse(game, "8 2 2\n. 4 4"))[0]
    # Touching: 8-2, 2-2, .-4, 4-4 across and 8-., 2-4, 2-4 down.
    assert actual.tolist() == pytest.approx([1, 1 / 6, 2 / 7, 1, (2 + 0 + 2 + 0 + 3 + 1 + 1) / 7])
    assert float(basis.features(game, parse(game, "2 8 2\n4 . 4"))[0, 3]) == pytest.approx(3 / 5)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (2, 3), (4, 4), (3, 5)])
def test_mirrored_boards_have_the_same_features(shape):
    game = game_2048(*shape)
    exponents = torch.randint(0, 4, (400, *shape), generator=generator(1))
    every = LinearValue(game, False, list(FEATURES), 1.0)
    expected = every.features(game, game.from_exponents(exponents))
    for turned in (exponents.flip(1), exponents.flip(2)):
        assert torch.allclose(every.features(game, game.from_exponents(turned)), expected)


# Expectations


@pytest.mark.parametrize("score_scale", [False, True])
@pytest.mark.parametrize("fours", [0.0, 0.1])
def test_an_action_is_worth_the_exact_mean_over_the_new_tile(fours, score_scale):
    game = game_2048(3, 3, fours=fours)
    moves, _ = collect_games(game, [Random(game)], 4, rng(2))
    basis = LinearValue(game, score_scale, list(FEATURES), 1.0)
    basis.weights.copy_(torch.randn(len(FEATURES), generator=generator(3)))
    actual, _ = basis.scores(game, moves.state)
    legal = game.legal_action_mask(moves.state)
    for row in range(0, len(moves), 5):
        state = moves.state[row : row + 1]
        for action in legal[row].nonzero()[:, 0].tolist():
            after = game.apply_action(state, torch.tensor([action]))
            probability, outcomes = game.chance_outcomes(after)
            wanted = float(after.score - state.score) if score_scale else 0.0
            for k in range(probability.shape[1]):
                outcome = outcomes[k : k + 1]
                if float(probability[0, k]) and not (score_scale and bool(outcome.done)):
                    wanted += float(probability[0, k]) * float(
                        (basis.features(game, outcome)[0] * basis.weights).sum()
                    )
            assert float(actual[row, action]) == pytest.approx(wanted, abs=1e-4)


# Fits


def test_least_squares_is_numpys_also_where_features_depend_on_each_other():
    features = torch.randn(300, 5, generator=generator(4), dtype=torch.float64)
    features[:, 4] = features[:, 0] + features[:, 1]
    target = torch.randn(300, generator=generator(5), dtype=torch.float64)
    wanted = np.linalg.lstsq(features.numpy(), target.numpy(), rcond=None)[0]
    assert least_squares(features, target).tolist() == pytest.approx(wanted.tolist())


def test_adp_steps_towards_the_least_squares_solution():
    game = game_2048(3, 3)
    policy, taught = adp(game, "reward=grid_sum", "lr=0.5")
    moves, results = collect_games(game, [Random(game)], 20, rng(6))
    features = policy.features(game, moves.state)
    target = game.measures(results.state)["grid_sum"][moves.game]
    solution = np.linalg.lstsq(features.numpy(), target.numpy(), rcond=None)[0]
    metrics = taught.update(moves, results, 0.0)
    wanted = 1 + 0.5 * (solution - 1)
    assert policy.weights.tolist() == pytest.approx(wanted.tolist(), rel=1e-4)
    assert [metrics[f"weight_{name}"] for name in THEIRS] == pytest.approx(wanted.tolist())


def test_a_gradient_step_is_the_mean_gradient_and_lowers_the_error():
    game = game_2048(3, 3)
    policy, taught = adp(game, "reward=grid_sum", "lr=0.01", "learner.fit=gradient")
    moves, results = collect_games(game, [Random(game)], 20, rng(7))
    features = policy.features(game, moves.state)
    target = game.measures(results.state)["grid_sum"][moves.game]
    weights = policy.weights.clone().requires_grad_()
    (features @ weights - target).square().mean().backward()
    errors = [taught.update(moves, results, 0.0)["squared_error"] for _ in range(3)]
    assert errors == sorted(errors, reverse=True)
    policy.weights.fill_(1.0)
    taught.update(moves, results, 0.0)
    assert torch.allclose(policy.weights, 1 - 0.01 * weights.grad, rtol=1e-4)


@pytest.mark.parametrize("fit", ["gradient", "least_squares"])
def test_adp_rejects_non_finite_rewards(fit):
    game = game_2048(3, 3)
    policy, taught = adp(game, "reward=score", f"learner.fit={fit}")
    moves, results = collect_games(game, [Random(game)], 5, rng(8))
    moves.score_delta[3] = math.inf
    with pytest.raises(NonFiniteError):
        taught.update(moves, results, 0.0)
    assert policy.weights.tolist() == [1.0] * 4


# Moves that are remembered


def remembered(game, *words, games=12, seed=9):
    """Moves of random games, and the learner that would learn from them."""
    policy, taught = learner(game, "learner=dqn", "policy.layers=[16]", *words)
    # Scores that differ, so that the best action does.
    for net in (policy, taught.target_network):
        for p in net.parameters():
            p.data.copy_(torch.randn(p.shape, generator=generator(int(p.sum() * 1e6) % 999)) / 3)
    moves, results = collect_games(game, [Random(game)], games, rng(seed))
    return policy, taught, moves, results


KINDS: dict[str, tuple[Any, list[str]]] = {
    "one seat": (game_2048(2, 2), ["game=2048", "reward=score", "board=2"]),
    "two seats": (KInARow(3, 3, 3, False), ["game=tictactoe", "reward=outcome"]),
    "two seats, gains": (
        KInARow(3, 3, 3, False),
        ["game=tictactoe", "reward=outcome", "reward.scored=score_delta"],
    ),
    "several plies a turn": (
        Battleship(3, 3, [2], 2, "sequential"),
        ["game=salvo", "reward=hits", "board=3", "ships=[2]", "shots=2", "aim=sequential"],
    ),
}


@pytest.mark.parametrize("rewards", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_those_of_a_naive_loop(kind, rewards):
    game, words = KINDS[kind]
    policy, taught, moves, results = remembered(
        game, *words, "reward.discount=0.7", f"learner.n_step={rewards}", games=4
    )
    steps = taught.make_transitions(moves, results)
    actual = taught.td_target(steps, moves.state[steps.next_index])
    paid = taught.reward.rewards(moves, results)

    def later(i):
        """The first move after i that its seat made in the same game."""
        for j in range(i + 1, len(moves)):
            if moves.game[j] == moves.game[i] and moves.seat[j] == moves.seat[i]:
                return j
        return None

    for i in range(len(moves)):
        wanted, weight, at = 0.0, 1.0, i
        for _ in range(rewards):
            wanted += weight * float(paid[at])
            weight *= 0.7 if bool(moves.ends_turn[at]) else 1.0
            at = later(at)
            if at is None:
                break
        if at is not None:
            seen = game.observe(moves.state[at : at + 1])
            legal = game.legal_action_mask(moves.state[at : at + 1])[0].nonzero()[:, 0].tolist()
            online, target = policy(seen)[0][0].detach(), taught.target_network(seen)[0][0]
            best = max(legal, key=lambda action: float(online[action]))
            wanted += weight * float(target[best])
        assert float(actual[i]) == pytest.approx(wanted, rel=1e-5, abs=1e-5)


def test_replay_buffer_has_the_latest_moves_and_next_states():
    """Through several turns of the ring, and with more moves at once than it holds."""
    game = Battleship(1, 5, [2])
    start, zero = game.public(game.example_state()), torch.zeros(1)
    example = ReplayTransitions(start, start.turn, zero, zero, start.turn)
    replay = ReplayBuffer(40, example)
    added = []
    for seed, games in enumerate((3, 5, 2, 20, 4)):
        moves, _ = collect_games(game, [Random(game)], games, rng(seed))
        states: Any = moves.state
        order = torch.arange(len(moves))
        later = [
            next((j for j in range(i + 1, len(moves)) if moves.game[j] == moves.game[i]), None)
            for i in range(len(moves))
        ]
        exists = torch.tensor([j is not None for j in later])
        number = order + 1000.0 * seed
        next_index = torch.tensor([j or 0 for j in later])
        rows = ReplayTransitions(states, moves.action, number, exists.float(), next_index)
        replay.add(rows)
        added += [
            (float(number[i]), states.shot[i].tolist())
            + ((states.shot[j].tolist(),) if (j := later[i]) is not None else (None,))
            for i in range(len(moves))
        ]
        latest = {number: rest for number, *rest in added[-40:]}
        sample: Any = replay.sample_transitions(500, generator(seed))
        drawn, after = sample
        assert len(replay) == len(latest)
        assert set(drawn.reward.tolist()) == set(latest)
        assert drawn.state.ships is HIDDEN
        for i, number in enumerate(drawn.reward.tolist()):
            before, following = latest[number]
            assert drawn.state.shot[i].tolist() == before
            assert bool(drawn.weight[i]) == (following is not None)
            if following is not None:
                assert after.shot[i].tolist() == following


# Learning


def test_target_network_updates():
    game = KInARow(3, 3, 3, gravity=False)
    _, taught, moves, results = remembered(game, "game=tictactoe", "reward=outcome")
    first = [p.detach().clone() for p in taught.policy.parameters()]
    taught.target_every, taught.polyak_tau, taught.updates_per_batch = 3, 0.25, 2
    taught.update(moves, results, 0.0)
    target, online = list(taught.target_network.parameters()), list(taught.policy.parameters())
    assert all(torch.equal(a, b) for a, b in zip(first, target, strict=True))
    taught.updates_per_batch = 1
    taught.update(moves, results, 0.0)
    for begun, old, new in zip(first, target, online, strict=True):
        assert torch.allclose(old, begun + 0.25 * (new - begun), atol=1e-7)


# What the presets reach


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_q_finds_the_optimum_of_case_one(seed, tmp_path):
    words = ["experiment=ramesh_case1_dqn", f"seed={seed}", f"out={tmp_path}/run"]
    run = package.train([*words, "solve_seconds=0"])
    assert package.evaluate(run, ["games=all"])["moves"]["mean"] == pytest.approx(6.0)


@pytest.mark.parametrize("decay", one_in(2, [0.0, 0.7, 1.0]))
def test_a_network_learns_the_returns_of_afterstates(decay):
    """One step down the squared distance to λ-returns that are summed up move by move."""
    words = ["game=2048", "board=2", "columns=3", "learner=td_lambda", "sampling=argmax", "lr=0.1"]
    words += ["policy.layers=[8]", "learner.num_minibatches=1", "learner.optimizer=sgd"]
    words += [f"learner.td_lambda={decay}", "reward.scale=0.1", "reward.discount=0.9"]
    cfg = load_config(TrainConfig, words)
    game = make("game", cfg.game)
    policy: Any = make_policy(cfg, game, 3)
    learner = learner_of(cfg, game, policy, 4)
    moves, reached = GamePool(game, [Random(game)], 12, rng(1)).collect(14)
    open_ = ~reached.state.done
    assert 0 < int(open_.sum()) < 12
    after = game.apply_action(moves.state, moves.action)
    value = policy.value(game, after)
    scores = policy.scores(game, reached.state)[0].detach()
    best = scores.masked_fill(~game.legal_action_mask(reached.state), -torch.inf)
    wanted = torch.zeros(len(moves))
    for number in range(12):
        own = (moves.game == number).nonzero()[:, 0].tolist()
        later = float(best[number].max()) if open_[number] else 0.0
        for place in reversed(range(len(own))):
            wanted[own[place]] = 0.9 * later
            v = float(value.detach()[own[place]])
            gain = 0.1 * float(moves.score_delta[own[place]])
            later = gain + (1 - decay) * v + decay * float(wanted[own[place]])
    loss = (value - wanted).square().mean()
    slopes = torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)
    before = [p.detach().clone() for p in policy.parameters()]
    learner.update(moves, reached, 0.0)
    for old, slope, new in zip(before, slopes, policy.parameters(), strict=True):
        step = 0 if slope is None else 0.1 * slope
        assert torch.allclose(new, old - step, atol=1e-5)
