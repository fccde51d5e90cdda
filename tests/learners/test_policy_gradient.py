"""Advantages, optimizers, networks by stage and how sure a policy is: against naive loops."""

from typing import Any

import pytest
import torch
from helpers import game_2048, generator, make_agent, rng

import rlgames
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.gradient import RmspropPerMatrix, descend, make_optimizer
from rlgames.players.player import Random
from rlgames.rewards import Reward, generalized_advantage
from rlgames.rollouts.play import GamePool, collect_games
from rlgames.runs.files import read_run
from rlgames.sampling import distance_to_certainty
from rlgames.training.pictures import certainty_by_move

GAMES: dict[str, tuple[Any, str]] = {
    "slide": (game_2048(2, 3), "score_delta"),
    "duel of lines": (KInARow(3, 3, 3, False), "outcome"),
    "turns of three shots": (Battleship(4, 4, [4, 2], 3, "sequential"), "turns"),
}


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("decay", [0.0, 0.6, 1.0])
def test_advantages_are_sums_of_later_errors(name, decay):
    game, scored = GAMES[name]
    moves, results = collect_games(game, [Random(game)], 20, rng(1))
    reward = Reward(game, scored, discount=0.9).rewards(moves, results)
    value = torch.rand(len(moves), generator=generator(2))
    actual = generalized_advantage(reward, value, moves, 0.9, decay)
    for number in range(moves.num_games):
        for seat in range(game.spec.seats):
            own = ((moves.game == number) & (moves.seat == seat)).nonzero()[:, 0].tolist()
            advantage = 0.0
            for place in reversed(range(len(own))):
                row = own[place]
                weight = 0.9 if bool(moves.ends_turn[row]) else 1.0
                next_value = float(value[own[place + 1]]) if place + 1 < len(own) else 0.0
                error = float(reward[row]) + weight * next_value - float(value[row])
                advantage = error + weight * decay * advantage
                assert float(actual[row]) == pytest.approx(advantage, abs=1e-4)


def test_advantages_bootstrap_at_the_end_of_a_window():
    game, scored = GAMES["slide"]
    moves, reached = GamePool(game, [Random(game)], 20, rng(1)).collect(9)
    done = reached.state.done
    assert 0 < int(done.sum()) < len(done)
    value, bootstrap_value = (
        torch.rand(len(moves), generator=generator(2)),
        torch.rand(len(done)) * ~done,
    )
    reward = Reward(game, scored).rewards(moves, reached)
    actual = generalized_advantage(reward, value, moves, 0.9, 0.7, bootstrap_value)
    for number in range(moves.num_games):
        next_value, advantage = float(bootstrap_value[number]), 0.0
        for row in reversed((moves.game == number).nonzero()[:, 0].tolist()):
            error = float(reward[row]) + 0.9 * next_value - float(value[row])
            advantage = error + 0.9 * 0.7 * advantage
            assert float(actual[row]) == pytest.approx(advantage, abs=1e-4)
            next_value = float(value[row])


def test_standardized_returns_weight_games_equally():
    game, _, learner = make_agent("experiment=dedieu_amar_stochastic")
    moves, results = collect_games(game, [Random(game)], 10, rng(1))
    returns = learner.reward.returns(moves, results)
    sums = game.measures(results.state)["grid_sum"]
    assert torch.equal(returns, sums[moves.game])
    weight_of_move = 1 / torch.bincount(moves.game)[moves.game] / 10
    actual = learner._advantage(returns, weight_of_move)
    wanted = (sums - sums.mean()) / sums.std(correction=0)
    assert torch.allclose(actual, wanted[moves.game], atol=1e-5)


def test_rmsprop_per_matrix_scales_by_the_length_of_the_gradient():
    weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    optimizer = RmspropPerMatrix([weight], lr=0.1, rho=0.9)
    wanted, scale = weight.detach().clone(), 0.0
    for gradient in (torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.ones(2, 2)):
        weight.grad = gradient
        optimizer.step()
        scale = 0.9 * scale + 0.1 * float((gradient**2).sum())
        wanted -= 0.1 / (scale**0.5 + 1e-5) * gradient
        assert torch.allclose(weight.detach(), wanted)


def test_fused_adam_takes_the_steps_of_adam():
    nets = [torch.nn.Linear(5, 3) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    names = ("adam", "fused_adam")
    optimizers = [
        make_optimizer(name, net, 0.01, 0.9) for name, net in zip(names, nets, strict=True)
    ]
    for step in range(20):
        inputs = torch.randn(8, 5, generator=generator(step))
        for net, optimizer in zip(nets, optimizers, strict=True):
            before = net.weight._version
            descend(optimizer, net(inputs).square().mean(), 0.01 / (1 + step), 1.0)
            assert net.weight._version > before
        assert torch.allclose(nets[0].weight, nets[1].weight, atol=1e-6)


def test_each_stage_has_its_own_network():
    game, agent, _ = make_agent(
        "game=2048", "policy=staged", "policy.layers=[8]", "policy.at=[8,64]"
    )
    exponents = torch.zeros(3, 4, 4, dtype=torch.int64)
    exponents[:, 0, 0] = torch.tensor([2, 3, 6])  # tiles of 4, 8 and 64
    state = game.from_exponents(exponents)
    scores, value = agent.policy.scores(game, state)
    for row, network in enumerate(agent.policy.stages):
        own, worth = network(game.observe(state[row : row + 1]))
        assert torch.allclose(scores[row], own[0])
        assert torch.allclose(value[row], worth[0])
    (scores[0].sum() + value[0]).backward()
    learnt = [
        any(w.grad is not None and bool(w.grad.any()) for w in n.parameters())
        for n in agent.policy.stages
    ]
    assert learnt == [True, False, False]


def test_distance_to_certainty():
    probability = torch.tensor([[0.25] * 4, [1.0, 0, 0, 0], [0.7, 0.1, 0.1, 0.1]])
    assert distance_to_certainty(probability).tolist() == pytest.approx([1.5, 0.0, 0.6])
    game, agent, learner = make_agent("experiment=dedieu_amar_stochastic")
    uncertainty = certainty_by_move(game, agent.policy, rng())
    # New networks are nearly indifferent; moves that cannot be made leave fewer than four.
    assert 1.0 < float(uncertainty.mean()) <= 1.5
    moves, results = collect_games(game, [agent], 10, rng())
    logged = learner.update(moves, results, 0.0)["distance_to_certainty"]
    assert logged == pytest.approx(float(uncertainty.mean()), abs=0.1)


def test_the_clipped_loss_written_out_move_by_move():
    """The second of two epochs: ratios have left 1, and some are clipped."""
    words = ["game=tictactoe", "learner=ppo", "learner.optimizer=sgd", "lr=5"]
    words += ["learner.clip_range=0.01", "learner.max_grad_norm=null"]
    words += ["learner.gae_lambda=0.8", "reward.discount=0.9", "policy.layers=[8]"]
    words += ["learner.entropy_coef=0.05", "learner.entropy_coef_end=null"]
    game, agent, learner = make_agent(*words, "learner.epochs=2")
    moves, results = collect_games(game, [agent], 20, rng(1))
    inputs, legal = agent.policy.inputs(game, moves.state), game.legal_action_mask(moves.state)
    rows = torch.arange(len(moves))

    def log_p():
        scores, value = agent.policy(inputs)
        return scores.masked_fill(~legal, -torch.inf).log_softmax(1), value

    with torch.no_grad():
        old, value = log_p()
        reward = Reward(game, "outcome", discount=0.9).rewards(moves, results)
        advantage = generalized_advantage(reward, value, moves, 0.9, 0.8)
        wanted = value + advantage
        advantage = (advantage - advantage.mean()) / advantage.std(correction=0)
    weights = list(agent.policy.parameters())
    twin = [p.detach().clone() for p in weights]
    learner.update(moves, results, 0.0)
    learnt = [p.detach().clone() for p in weights]
    for weight, before in zip(weights, twin, strict=True):
        weight.data.copy_(before)
    for _ in range(2):
        new, expected = log_p()
        total, clipped = torch.zeros(()), 0
        for row in rows.tolist():
            a = int(moves.action[row])
            ratio = min((new[row, a] - old[row, a]).exp(), torch.tensor(10.0))
            clipped_ratio = ratio.clamp(0.99, 1.01)
            clipped += bool(ratio != clipped_ratio)
            total = total - torch.minimum(ratio * advantage[row], clipped_ratio * advantage[row])
            total = total + 0.5 * (expected[row] - wanted[row]) ** 2
            p = new[row][legal[row]]
            total = total + 0.05 * (p.exp() * p).sum()
        for weight, slope in zip(weights, torch.autograd.grad(total, weights), strict=True):
            weight.data -= 5 * slope / len(moves)
    assert clipped > 0
    for weight, actual in zip(weights, learnt, strict=True):
        assert torch.allclose(weight.detach(), actual, atol=1e-5)


def test_batches_in_which_the_agent_never_moves_teach_nothing(tmp_path):
    """On one cell the first seat wins with its first move."""
    words = ["game=tictactoe", "board=1", "line=1", "opponent=random", "experiment=null"]
    more = ["batch=1", "games=4", "eval_games=2", "solve_seconds=0", f"out={tmp_path}/run"]
    run = rlgames.train([*words, "reward=outcome", *more])
    assert read_run(run)["status"] == "done"
