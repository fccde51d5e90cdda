"""Alpha-beta on the values of n-tuples: what plain negamax computes, and who may use it."""

import pytest
import torch
from helpers import game_2048, generator, make_game, ntuple, rng
from markers import slow

from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello
from rlgames.players.player import Agent, Random
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Argmax
from rlgames.search.alphabeta import AlphaBetaSearch

BOARDS = {
    "connect4": (KInARow(6, 7, 4, True), [[0, 8, 16, 24], [35, 36, 41]]),
    "upright": (KInARow(4, 4, 3, True), [[0, 1, 2, 3], [12, 5]]),
    "tictactoe": (KInARow(3, 3, 3, False), [[0, 1, 2, 4], [4]]),
    "gomoku": (KInARow(9, 9, 5, False), [[0, 1, 2, 4], [40, 80]]),
    "othello": (Othello(4), [[0, 1, 4], [5, 10]]),
    "breakthrough": (make_game("game=breakthrough", "rows=5", "columns=4"), [[0, 1, 4], [10, 14]]),
}


def agent_of(name):
    game, tuples = BOARDS[name]
    policy = ntuple(game, tuples, 16)
    policy.values.copy_(torch.randint(-50, 50, policy.values.shape, generator=generator(5)).float())
    policy.payoffs = 150.0, 5.0
    return game, Agent(game, policy, Argmax("first"))


def negamax(game, policy, state, plies):
    """The value of each legal action, by the batched rules and without bounds."""
    values = {}
    for action in game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
        after = game.apply_action(state, torch.tensor([action]))
        if plies == 1 or bool(after.done):
            values[action] = float(policy.value(game, after))
        else:
            values[action] = -max(negamax(game, policy, after, plies - 1).values())
    return values


def check(name, plies, number):
    game, agent = agent_of(name)
    moves, _ = collect_games(game, [Random(game)], 20, rng(3))
    state = moves.state[torch.randperm(len(moves), generator=generator(4))[:number]]
    search = AlphaBetaSearch(game, agent, plies)
    actions, values = search.search(state)
    for row in range(len(state)):
        expected = negamax(game, agent.policy, state[row : row + 1], plies)
        assert float(values[row]) == max(expected.values())
        assert expected[int(actions[row])] == max(expected.values())
    return state, search


@pytest.mark.parametrize(
    ("name", "plies"),
    [
        ("connect4", 1),
        slow(("connect4", 3)),
        ("upright", 4),
        ("tictactoe", 3),
        ("gomoku", 1),
        ("othello", 4),
        ("breakthrough", 3),
    ],
)
def test_it_finds_what_plain_negamax_finds(name, plies):
    check(name, plies, 8)


def test_one_ply_is_greedy_play_and_finished_rows_are_left_alone():
    state, search = check("connect4", 1, 30)
    game, agent = agent_of("connect4")
    _, final = collect_games(game, [Random(game)], 5, rng())
    both = type(state).cat([state, final.state])
    assert search.choose(both, rng())[:30].equal(agent.choose(state))
    assert search.choose(both, rng())[30:].tolist() == [0] * 5


def test_unsuitable_players_and_games_are_refused():
    game, _ = BOARDS["tictactoe"]
    with pytest.raises(ValueError, match="policy=ntuple"):
        AlphaBetaSearch(game, Random(game), 5)
    other = game_2048(3, 3)
    agent = Agent(other, ntuple(other, [[0, 1]], 6, score_scale=1.0), Argmax("first"))
    with pytest.raises(ValueError, match="not 2048"):
        AlphaBetaSearch(other, agent, 5)
