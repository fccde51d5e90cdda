"""Belief propagation against exact posteriors, and the games that it is refused for."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import generator, make_agent, rng

from rlgames.games.battleship import Battleship
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.players.player import Random
from rlgames.policies.belief_propagation import BeliefPropagation
from rlgames.rollouts.play import collect_games


def uncorrected(game, num_layers, step):
    """A network whose corrections are zero, and whose messages move this logit of the way."""
    network = BeliefPropagation(game, [4] * num_layers, 2, False, generator())
    with torch.no_grad():
        for layer in [*network.layers, network.logits]:
            layer.outputs.zero_()
        network.steps.fill_(step)
    return network


def error_by_cell(game, network, num_hits):
    """Float32 [K]: the errors of the posterior at the cells not shot at, after so many hits."""
    moves, _ = collect_games(game, [Random(game)], 60, rng(1))
    positions: Any = moves.state
    state = positions[positions.hit.sum(1) == num_hits]
    with torch.no_grad():
        probability = network.scores(game, state)[0].sigmoid()
    return (probability - game.occupancy(state)).abs()[~state.shot]


@pytest.mark.parametrize("num_hits", [0, 1, 2])
def test_without_corrections_the_belief_in_one_ship_is_the_exact_posterior(num_hits):
    game = Battleship(4, 5, [3])
    # The score of a cell that certainly has a ship is finite.
    assert error_by_cell(game, uncorrected(game, 3, 20.0), num_hits).max() < 0.01


def test_without_corrections_the_belief_in_two_ships_improves_with_layers():
    game = Battleship(5, 5, [3, 2])
    errors = [error_by_cell(game, uncorrected(game, n, 0.0), 2).mean() for n in (1, 2, 6)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.06


@pytest.mark.parametrize(
    "words",
    [
        ["game=salvo", "shots=1", "board=4", "ships=[3,2]", "encoding=signed"],
        ["game=salvo", "shots=3", "aim=sequential", "board=4", "ships=[3,2]", "show=[sunk]"],
        ["game=battleship", "ships=[2,1]"],
        ["game=salvo_duel", "board=4", "ships=[2,2]", "reward=outcome"],
    ],
)
def test_any_game_with_a_fleet_and_an_action_per_cell_trains(words):
    parts = ["experiment=null", "policy=belief_propagation", "policy.layers=[4,4]"]
    game, agent, learner = make_agent(*words, *parts, "learner=occupancy")
    moves, results = collect_games(game, [agent] * game.spec.seats, 6, rng(1))
    assert learner.update(moves, results, 0.0)["loss"] > 0


def test_shots_at_the_own_board_change_the_value_and_no_score():
    """An opponent that is trained against the network could mislead it by them."""
    game = SalvoDuel(4, 4, [2, 2])
    network = BeliefPropagation(game, [4, 4], 2, True, generator())
    state: Any = collect_games(game, [Random(game)] * 2, 8, rng(1))[0].state
    state = state[~state.done]
    shot, hit_turn, row = state.shot.clone(), state.hit_turn.clone(), torch.arange(len(state))
    shot[row, 1 - state.current_seat] ^= True
    hit_turn[row, 1 - state.current_seat] = 0
    changed = replace(state, own=state.own.flip(1), shot=shot, hit_turn=hit_turn)
    with torch.no_grad():
        scores, value = network(network.inputs(game, state))
        same, other = network(network.inputs(game, changed))
    assert scores.equal(same)
    assert not value.isclose(other).any()
