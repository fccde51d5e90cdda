"""Returns, losses, sampling: against naive loops and exact values."""

import math
from dataclasses import replace

import pytest
import torch
from helpers import game_2048, generator, make_agent, make_learner, rng
from markers import quick

from rlgames.config.options import rewards
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse, render
from rlgames.players.player import Agent, Random
from rlgames.rewards import FINAL_TERMS, MOVE_TERMS, SUBTRACTED, Reward
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Stochastic


def some_moves(*rules, games=30):
    game = Battleship(*rules)
    return game, *collect_games(game, [Random(game)], games, rng(1))


@pytest.mark.parametrize(
    "rules", [(1, 10, [3]), (4, 4, [4, 2], 2, "joint"), (4, 4, [4, 2], 3, "sequential")]
)
@pytest.mark.parametrize("minus", ["nothing", "random_shot", "random_turn"])
@pytest.mark.parametrize("scored", ["score_delta", "turns"])
def test_returns_are_the_sums_of_equation_two(rules, minus, scored):
    game, moves, results = some_moves(*rules)
    actual = Reward(game, scored, minus, 0.5).returns(moves, results)
    for row in range(moves.num_games):
        ids = (moves.game == row).nonzero()[:, 0].tolist()
        rewards = {}  # by turn
        shot = hit = 0
        for i in ids:
            if not bool(moves.ends_turn[i]):
                continue
            left = game.num_cells - shot
            fired = min(game.shots, left)
            random_hits = (game.ship_cells - hit) / left
            off = {"nothing": 0, "random_shot": random_hits, "random_turn": random_hits * fired}
            gain = float(moves.score_delta[i]) if scored == "score_delta" else -1.0
            rewards[int(moves.state.turn[i])] = gain - off[minus]
            shot, hit = shot + fired, hit + int(moves.score_delta[i])
        for i in ids:
            now = int(moves.state.turn[i])
            total = sum(r * 0.5 ** (t - now) for t, r in rewards.items() if t >= now)
            assert float(actual[i]) == pytest.approx(total, abs=1e-5)


def learner(game, *overrides):
    return make_learner(game, "policy.layers=[8]", *overrides)


@pytest.mark.parametrize("masked", [True, False])
def test_the_step_is_the_documents_estimator(masked):
    """One game a batch and SGD: θ ← θ + α Σ r ∇ log p, written out move by move."""
    game, moves, results = some_moves(1, 10, [3], games=1)
    words = ["game=battleship", "reward=hits", "lr=0.06", "learner=reinforce"]
    words += [f"learner.masked={masked}", "learner.optimizer=sgd", "learner.baseline=none"]
    words += ["learner.entropy_coef=0", "learner.entropy_coef_end=null"]
    policy, taught = learner(game, *words, "learner.max_grad_norm=null")
    before = [p.detach().clone() for p in policy.parameters()]
    returns = Reward(game, minus="random_shot", discount=0.5).returns(moves, results)
    total = torch.zeros(())
    for i in range(len(moves)):
        logits = policy(game.observe(moves.state[i : i + 1]))[0][0]
        if masked:
            logits = logits[game.legal_action_mask(moves.state)[i]]
            action = int(game.legal_action_mask(moves.state)[i][: moves.action[i]].sum())
        else:
            action = int(moves.action[i])
        total = total + returns[i] * (logits[action] - torch.logsumexp(logits, 0))
    wanted = torch.autograd.grad(total, list(policy.parameters()))
    taught.update(moves, results, 0.0)
    for old, new, gradient in zip(before, policy.parameters(), wanted, strict=True):
        assert torch.allclose(new, old + 0.06 * gradient, atol=1e-6)


@pytest.mark.parametrize("games", [1, 5])
def test_a_step_per_move_uses_the_weights_that_the_step_before_left(games):
    """Landy's loop: one SGD step per move in order of play, on raw logits. Games of one batch take
    their steps together, on the mean over games."""
    _, moves, results = some_moves(1, 10, [3], games=games)
    game, agent, taught = make_agent("experiment=landy_loop")
    _, expected, _ = make_agent("experiment=landy_loop")
    returns = taught.reward.returns(moves, results)
    weights = list(expected.policy.parameters())
    start = 0
    for size in moves.ply_sizes:
        total = torch.zeros(())
        for i in range(start, start + size):
            logits = expected.policy(game.observe(moves.state[i : i + 1]))[0]
            total = total + returns[i] * logits.log_softmax(1)[0, int(moves.action[i])] / games
        start += size
        with torch.no_grad():
            for weight, gradient in zip(weights, torch.autograd.grad(total, weights), strict=True):
                weight += 0.06 * gradient
    metrics = taught.update(moves, results, 0.0)
    assert start == len(moves)
    for new, weight in zip(agent.policy.parameters(), weights, strict=True):
        assert torch.allclose(new, weight, atol=1e-6)
    assert metrics["return"] == pytest.approx(float(returns.mean()))
    assert 1.5 < metrics["distance_to_certainty"] < 2


LEARNERS = {
    **{
        name: ["learner=reinforce", f"learner.baseline={name}"]
        for name in ("none", "mean", "standardized", "value")
    },
    "ppo": ["learner=ppo"],
    "ppo, half the credit": ["learner=ppo", "learner.gae_lambda=0.5", "learner.num_minibatches=2"],
}


@pytest.mark.parametrize("baseline", quick(LEARNERS, "mean", "ppo"))
def test_every_baseline_learns_to_shoot_at_the_ship(baseline):
    """Two cells, of which the ship lies on the first or the second: always on the first here."""
    game = Battleship(1, 2, [1])
    words = ["game=battleship", "board=2", "ships=[1]", "lr=0.02"]
    policy, taught = learner(game, *words, *LEARNERS[baseline])
    agent = Agent(game, policy, Stochastic(1.0))
    first = game.openings(10)[0][torch.zeros(64, dtype=torch.int64)]
    for step in range(60):
        moves, results = collect_games(
            game, [agent], 64, rng(step), initial_states=lambda *_: first
        )
        taught.update(moves, results, step / 60)
    scores, _ = policy(game.observe(first[:1]))
    assert float(scores.detach().softmax(1)[0, 0]) > 0.9


def taught_table(game, *words):
    return make_learner(game, "policy=table", "learner=td", *words, seeds=(0, 0))


def test_td_walks_back_through_each_seats_boards_as_hickman_does():
    game = KInARow(3, 3, 3, gravity=False)
    policy, taught = taught_table(game, "game=tictactoe", "reward=hickman", "lr=0.35")
    values: dict[str, float] = {}
    for seed in range(60):
        moves, results = collect_games(game, [Random(game)], 1, rng(seed))
        taught.update(moves, results, 0.0)
        boards = [
            render(game, game.apply_action(moves.state[i : i + 1], moves.action[i : i + 1]), 0)
            for i in range(len(moves))
        ]
        first = int(results.score[0, 0])
        paid = {1: (1, 0), -1: (0, 1), 0: (0.1, 0.5)}[first]
        for seat in (0, 1):
            target = paid[seat]
            for board in boards[seat::2][::-1]:
                old = values.get(board, 0.0)
                values[board] = old + 0.35 * (0.9 * target - old)
                target = values[board]
    for board, value in values.items():
        actual = policy.value(game, parse(game, board))
        assert float(actual[0]) == pytest.approx(value, abs=1e-5)
    assert int((policy.values != 0).sum()) <= len(values)


def test_td_moves_a_shared_board_like_sequential_updates():
    game = KInARow(1, 3, 3, gravity=False)
    for asked in ([0.5, 0.5, 0.5], [1.0, 0.0, 0.5]):  # towards the mean of what is asked
        policy, taught = taught_table(game, "game=tictactoe", "reward=outcome")
        places = policy.index(game, game.initial(3, rng()))
        taught._correct(places, torch.tensor(asked), 0.5)
        value = 0.0
        for _ in range(3):
            value += 0.5 * (0.5 - value)
        assert policy.values[places].tolist() == [value] * 3


def test_outcome_rewards_per_seat():
    game = KInARow(3, 3, 3, gravity=False)
    moves, results = collect_games(game, [Random(game)], 200, rng(8))
    paid = Reward(game, "outcome", win=2, loss=-3, draws=[0.25, 0.75]).rewards(moves, results)
    for row in range(200):
        for seat in (0, 1):
            own = ((moves.game == row) & (moves.seat == seat)).nonzero()[:, 0]
            won = float(results.score[row, seat])
            expected = 2 if won > 0 else -3 if won < 0 else [0.25, 0.75][seat]
            assert paid[own].tolist() == [0] * (len(own) - 1) + [expected]


class Active(Reward):
    """An outcome, and a little for every move."""

    def rewards(self, trajectories, final_states):
        return super().rewards(trajectories, final_states) + 0.5


def test_a_reward_of_ones_own_is_not_taken_for_what_it_derives_from():
    game = KInARow(3, 3, 3, gravity=False)
    moves, results = collect_games(game, [Random(game)], 20, rng(8))
    for scored in ("outcome", "turns"):
        own, plain = (kind(game, scored) for kind in (Active, Reward))
        paid = own.rewards(moves, results)
        assert torch.equal(paid, plain.rewards(moves, results) + 0.5)
        assert (own.payoffs, own.is_final, own.constant) == (None, False, None)


def test_returns_discount_a_players_own_moves():
    """Connect-Zero: G = R · γ^(n - t), n counting the player's own moves."""
    game = KInARow(4, 4, 3, gravity=True)
    moves, results = collect_games(game, [Random(game)], 50, rng(9))
    actual = Reward(game, "outcome", discount=0.9).returns(moves, results)
    for row in range(50):
        for seat in (0, 1):
            own = ((moves.game == row) & (moves.seat == seat)).nonzero()[:, 0].tolist()
            outcome = float(results.score[row, seat])
            expected = [outcome * 0.9 ** (len(own) - 1 - i) for i in range(len(own))]
            assert actual[own].tolist() == pytest.approx(expected)


def test_a_value_before_a_random_move_replaces_the_return_of_all_earlier_moves():
    game = KInARow(4, 4, 3, gravity=True)
    moves, results = collect_games(game, [Random(game)], 50, rng(9))
    value = torch.where(torch.rand(len(moves), generator=generator(3)) < 0.2, 0.01, torch.nan)
    value *= 1 + torch.arange(len(moves))  # all of them differ
    moves = replace(moves, value=value)
    actual = Reward(game, "outcome", scale=2.0, win=0.5, loss=-0.5).returns(moves, results)
    plain = Reward(game, "outcome", scale=-3.0, draws=[0.1, 0.1])  # a game that is not symmetric
    for row in range(50):
        played = (moves.game == row).nonzero()[:, 0].tolist()
        following, seat = float(results.score[row, 0]), 0
        for move in reversed(played):
            if not math.isnan(value[move]):
                following, seat = float(value[move]), int(moves.seat[move])
            sign = 1 if seat == int(moves.seat[move]) else -1
            assert float(actual[move]) == pytest.approx(sign * following)
    without = plain.returns(replace(moves, value=None), results)
    assert plain.returns(moves, results).equal(without)


def test_trajectories_of_one_player():
    game = KInARow(3, 3, 3, gravity=False)
    seating = torch.tensor([[0, 1], [1, 0]] * 20)
    players = [Random(game), Random(game)]
    moves, results = collect_games(game, players, 40, rng(10), seating=seating)
    mine = moves.by_player(0)
    assert (mine.seat == mine.game % 2).all()
    assert len(mine) + len(moves.by_player(1)) == len(moves) == results.num_moves
    assert sum(mine.ply_sizes) == len(mine)
    reward = Reward(game, "outcome", discount=0.5)
    both = reward.returns(moves, results)
    assert torch.allclose(reward.returns(mine, results), both[moves.player == 0])


def test_the_schema_offers_what_a_reward_can_score_and_subtract():
    game = game_2048(2, 2)
    measured = {*game.measures(game.example_state())}
    assert {*rewards.SCORED} == {"goal", *MOVE_TERMS, *FINAL_TERMS, *measured}
    assert {*rewards.SUBTRACTED} == {"nothing", *SUBTRACTED}
