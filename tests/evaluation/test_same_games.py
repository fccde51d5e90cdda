"""What an evaluation plays depends on nothing but seed, stream, game and ply."""

import pytest
import torch
from helpers import game_2048, made, make_game, make_small_game, rng, untrained

from rlgames.config.typed import make_option
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.players.player import Agent, Random
from rlgames.rollouts.conformance import are_equal
from rlgames.rollouts.play import GamePool
from rlgames.sampling import Argmax, EpsilonGreedy, Stochastic
from rlgames.search.mcts import Mcts

LINES = make_small_game("connect4")
FLEET = make_small_game("battleship")
DUEL = make_small_game("salvo_duel")


def searched(game, **keys):
    keys = {"simulations": 6, "leaf": "value", "num_parallel": 2} | keys
    return Mcts(game, untrained(game, 1, value=True), make_option("search", "mcts", **keys))


def explored(game, rule):
    return Agent(game, untrained(game, 2).policy, rule)


CASES = {
    "random": (LINES, Random(LINES)),
    "random, 2048": (game_2048(2, 2), Random(game_2048(2, 2))),
    "softmax": (LINES, explored(LINES, Stochastic(1.0))),
    "epsilon": (LINES, explored(LINES, EpsilonGreedy(0.3, None, "random"))),
    "ties": (LINES, explored(LINES, Argmax("random"))),
    "win_or_block": (LINES, made("player", "win_or_block", LINES)),
    "puct with noise": (LINES, searched(LINES, dirichlet_fraction=0.3)),
    "gumbel": (LINES, searched(LINES, rule="gumbel")),
    "playouts": (LINES, searched(LINES, leaf="rollout", rollout_policy="uniform")),
    "rollouts": (DUEL, made("search", "rollout", DUEL, Random(DUEL), simulations=2)),
    "density": (FLEET, made("player", "density", FLEET)),
    "duel": (DUEL, explored(DUEL, Stochastic(1.0))),
}


@pytest.mark.parametrize("name", CASES)
def test_batch_and_threads_change_no_game(name, monkeypatch):
    game, player = CASES[name]
    opponent = Random(game) if game.spec.seats == 2 else None
    played = []
    for batch, threads in ((60, 1), (1000, 1), (7, 1), (25, 2)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        settings = EvaluationSettings(60, batch=batch)
        played.append(evaluate(game, player, settings, rng(3), opponent))
    for other in played[1:]:
        assert are_equal(other.state, played[0].state)
        assert other.num_moves == played[0].num_moves
        assert other.distinct_games == played[0].distinct_games > 1


@pytest.mark.parametrize("name", ["softmax", "density", "random, 2048"])
def test_a_longer_evaluation_begins_with_the_shorter_one(name):
    game, player = CASES[name]
    opponent = Random(game) if game.spec.seats == 2 else None
    few, many = (
        evaluate(game, player, EvaluationSettings(games, opening_turns=2), rng(4), opponent)
        for games in (20, 50)
    )
    assert are_equal(few.state, many.state[:20])


def test_random_openings_are_the_same_in_both_seats():
    game = LINES
    players = [Random(game), Random(game)]
    evaluation = evaluate(
        game, players[0], EvaluationSettings(40, opening_turns=3), rng(5), players[1], records=True
    )
    moves = evaluation.trajectories
    first = moves.action[moves.state.turn < 3].clone()
    games = moves.game[moves.state.turn < 3]
    opening = torch.stack([first[games == game] for game in range(40)])
    assert torch.equal(opening[::2], opening[1::2])
    assert len(opening.unique(dim=0)) > 10


def test_a_game_alone_is_the_game_in_its_batch():
    policy = explored(LINES, Stochastic(1.0))
    whole, _ = GamePool(LINES, [policy, Random(LINES)], 30, rng(6)).collect()
    for game in (0, 7, 29):
        alone, _ = GamePool(LINES, [policy, Random(LINES)], 1, rng(6), first_game=game).collect()
        assert torch.equal(alone.action, whole.action[whole.game == game])


@pytest.mark.parametrize("words", [("game=salvo", "aim=sequential"), ("game=salvo_duel",)])
def test_each_ply_of_a_turn_has_numbers_of_its_own(words):
    game = make_game(*words, "board=3", "ships=[2]")
    keys = []

    class Watched(Random):
        def choose(self, state, rng):
            keys.extend(rng.keys[(~state.done).numpy()].tolist())
            return super().choose(state, rng)

    GamePool(game, [Watched(game)], 40, rng(8)).run()
    assert len({*keys}) == len(keys) > 100
