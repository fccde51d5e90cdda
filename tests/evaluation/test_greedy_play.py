"""N-tuple networks of 2048 that play in a kernel: the agent's moves, and when it is used."""

import numpy as np
import pytest
import torch
from helpers import make_agent, rng
from packed_random import PackedRandom

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.evaluation.shards import MIN_GREEDY_GAMES as MIN_GAMES
from rlgames.evaluation.shards import find_greedy_play
from rlgames.players.player import Agent, Random
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
    values.copy_(torch.randint(50, (len(values),), generator=rng(1)).float())
    return Agent(game, player.policy, Argmax())


def test_it_plays_as_the_agent_does(agent):
    start = agent.game.initial(4, rng(2))
    final, num_moves = find_greedy_play(agent.game, agent, MIN_GAMES)(start, seed=7)
    seed = int(np.random.default_rng(7).integers(1 << 62, dtype=np.uint64))
    plain = PackedRandom(agent.game, seed)
    for game in range(4):
        state = start[game : game + 1]
        while not bool(state.done):
            state = plain.spawn(agent.game.apply_action(state, agent.choose(state)))
        assert final.words[game].equal(state.words[0])
        assert final.score[game].equal(state.score[0])
        assert int(final.turn[game]) == int(state.turn)
    assert bool(final.done.all())
    assert num_moves == int(final.turn.sum())


def test_an_evaluation_uses_it_for_many_games_and_in_training(agent):
    game = agent.game
    assert find_greedy_play(game, agent, MIN_GAMES - 1) is None
    assert find_greedy_play(game, Agent(game, agent.policy, Stochastic()), MIN_GAMES) is None
    assert find_greedy_play(game, Agent(game, agent.policy, Argmax("random")), MIN_GAMES) is None
    assert find_greedy_play(game, Random(game), MIN_GAMES) is None
    _, learning, _ = make_agent(*WORDS, "learner.step_size=temporal_coherence")
    assert find_greedy_play(game, learning, 1) is not None
    few, many = (
        evaluate(game, agent, EvaluationSettings(games, batch=100), rng(3))
        for games in (MIN_GAMES - 1, MIN_GAMES)
    )
    assert few.distinct_games is not None
    assert many.distinct_games is None
    assert many.num_moves == int(many.state.turn.sum())
    half = few.score.interval[1] - few.score.value
    assert many.score.value == pytest.approx(few.score.value, abs=2 * half)
