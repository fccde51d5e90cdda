"""N-tuple networks of 2048 that play in a kernel: the agent's moves, and when it is used."""

import pytest
import torch
from helpers import generator, make_agent, rng

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.evaluation.played import MIN_GREEDY_GAMES as MIN_GAMES
from rlgames.evaluation.played import GamesToPlay, find_kernel, play_greedily
from rlgames.players.player import Agent
from rlgames.rollouts.conformance import are_equal
from rlgames.rollouts.play import GamePool, first_places, sampled_by_game
from rlgames.sampling import Argmax, Stochastic

WORDS = [
    *("experiment=null", "game=2048", "board=3", "reward=score", "policy=ntuple"),
    *("sampling=argmax", "learner=td_ntuple"),
    *("policy.tuples=[[0,1,2],[3,4,5],[0,1,3,4]]", "policy.num_cell_values=9", "reward.scale=0.5"),
]


@pytest.fixture(scope="module")
def agent():
    game, player, _ = make_agent(*WORDS)
    values = player.policy.values  # whole numbers: sums are exact in any order
    values.copy_(torch.randint(50, (len(values),), generator=generator(1)).float())
    return Agent(game, player.policy, Argmax("first"))


def test_it_plays_as_the_agent_does(agent):
    game = agent.game
    start = sampled_by_game(game)(0, 40, first_places(rng(7), 0, 40))
    final, num_moves = play_greedily(game, agent.policy, start, rng(7).rows(40))
    played = GamePool(game, [agent], 40, rng(7), batch=9).run()
    assert are_equal(final, played.state)
    assert num_moves == played.num_moves == int(final.turn.sum())
    assert bool(final.done.all())


def test_an_evaluation_uses_it_for_many_games_and_in_training(agent):
    game = agent.game

    def has_kernel(player, games=MIN_GAMES):
        played = GamesToPlay(game, [player], games, 100, sampled_by_game(game))
        return find_kernel(played, torch.device("cpu")) is not None

    assert has_kernel(agent)
    assert not has_kernel(agent, MIN_GAMES - 1)
    assert not has_kernel(Agent(game, agent.policy, Stochastic(1.0)))
    assert not has_kernel(Agent(game, agent.policy, Argmax("random")))
    _, learning, _ = make_agent(*WORDS, "learner.step_size=temporal_coherence")
    assert has_kernel(learning, 1)
    few, many = (
        evaluate(game, agent, EvaluationSettings(games, batch=100), rng(3))
        for games in (MIN_GAMES - 1, MIN_GAMES)
    )
    assert few.distinct_games is not None
    assert many.distinct_games is None
    assert many.num_moves == int(many.state.turn.sum())
    assert are_equal(few.state, many.state[: MIN_GAMES - 1])
