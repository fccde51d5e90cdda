"""The log-odds of a hit: against a loop, exact posteriors and what a finished game reveals."""

import math
from typing import Any

import pytest
import torch
from helpers import make_agent, make_learner, rng
from torch import nn

from rlgames.games.battleship import Battleship
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.players.player import Agent, Random
from rlgames.policies.policy import Network
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Argmax


class Scores(Network):
    """The same scores at every position."""

    has_value = False

    def __init__(self, count):
        super().__init__()
        self.all = nn.Parameter(torch.linspace(-2, 2, count))

    def forward(self, inputs):
        return self.all.expand(len(inputs), -1), None


@pytest.mark.parametrize(
    "game",
    [
        pytest.param(Battleship(3, 3, [3]), id="one shot"),
        pytest.param(Battleship(3, 3, [3], 2, "sequential"), id="two shots"),
        pytest.param(SalvoDuel(3, 3, [2, 2]), id="duel"),
    ],
)
def test_the_loss_counts_each_open_cell_of_each_position_once(game):
    _, learner = make_learner(game, "experiment=null", "game=salvo", "shots=1", "learner=occupancy")
    learner.policy = policy = Scores(game.spec.actions)
    moves, results = collect_games(game, [Random(game)], 6, rng(1))
    score = policy.all.tolist()
    total, count = 0.0, 0
    states: Any = moves.state
    finals: Any = results.state
    for row in range(len(moves)):
        ships = finals.ships[moves.game[row]]
        ships = ships[1 - moves.seat[row]] if game.spec.seats == 2 else ships
        shot = game.seen(moves.state[row : row + 1]).shot
        for cell in range(game.num_cells):
            if not shot[0, cell] and not states.aimed[row, cell]:
                chance = 1 / (1 + math.exp(-score[cell]))
                total -= math.log(chance if ships[cell] else 1 - chance)
                count += 1
    truth = game.hidden_hits(results.state).float()
    actual = learner.loss(moves, torch.arange(len(moves)), truth)
    assert float(actual.detach()) == pytest.approx(total / count, rel=1e-4)


def test_targets_are_exact_posteriors_where_layouts_can_be_counted():
    """Of a board with too many layouts to list, positions with long counts learn their layout."""
    words = ["game=salvo", "shots=1", "board=6", "ships=[3,2,2]", "learner=occupancy"]
    game, _, learner = make_agent("experiment=null", *words, "learner.posterior_steps=5")
    learner.policy = policy = Scores(36)
    moves, results = collect_games(game, [Random(game)], 2, rng(1))
    truth = game.hidden_hits(results.state).float()
    positions: Any = moves.state
    exact = game.exact_occupancy(positions, 5)
    is_known = ~exact.isnan().any(1)
    assert 0.2 < float(is_known.float().mean()) < 0.8
    for row in (int(is_known.nonzero()[0]), int((~is_known).nonzero()[0])):
        target = exact[row] if is_known[row] else truth[moves.game[row], 0]
        unshot = ~positions.shot[row]
        logits = policy.all.detach()
        losses = -target * logits.sigmoid().log() - (1 - target) * (-logits).sigmoid().log()
        actual = learner.loss(moves, torch.tensor([row]), truth)
        assert float(actual.detach()) == pytest.approx(float(losses[unshot].mean()), rel=1e-4)


@pytest.mark.parametrize(
    ("words", "games"),
    [
        (["game=battleship", "policy.layers=[64]"], 10_000),
        pytest.param(
            ["game=battleship", "policy=belief_propagation", "policy.layers=[8,8]"],
            2500,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_scores_become_the_exact_posterior(words, games):
    words = [*words, "experiment=null", "lr=0.01", "learner.lr_end=0", "learner.minibatch_size=128"]
    game, agent, learner = make_agent(*words, "learner=occupancy")
    for played in range(0, games, 250):
        moves, results = collect_games(game, [agent], 250, rng(5), first_game=played)
        learner.update(moves, results, played / games)
    moves, _ = collect_games(game, [Agent(game, agent.policy, Argmax("first"))], 300, rng(6))
    with torch.no_grad():
        chance = agent.policy.scores(game, moves.state)[0].sigmoid()
    states: Any = moves.state
    exact = game.posterior.occupancy(game.seen(states), 0, rng())
    open_ = ~states.shot
    error = (chance - exact)[open_].abs()
    assert float((exact[open_] - exact[open_].mean()).abs().mean()) > 0.15
    assert float(error.mean()) < 0.03


def test_scores_turn_and_mirror_with_the_board():
    words = ["game=salvo", "shots=1", "policy=belief_propagation", "learner=occupancy"]
    game, agent, _ = make_agent("experiment=null", *words)
    moves, _ = collect_games(game, [Random(game)], 2, rng(1))
    inputs = agent.policy.inputs(game, moves.state)
    scores, _ = agent.policy(inputs)
    for turned in torch.as_tensor(game.symmetries()):
        moved = inputs.flatten(2)[:, :, turned].view_as(inputs)
        assert torch.allclose(agent.policy(moved)[0], scores[:, turned], atol=2e-3)
