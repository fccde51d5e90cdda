"""Records of random games, for the tests that read them back or damage them."""

from functools import cache

import helpers
from helpers import rng

from rlgames.players.player import Random
from rlgames.rollouts import records
from rlgames.rollouts.play import collect_games

GAMES = 6


make_game_and_rules = cache(helpers.make_game_and_rules)


def players_of(game):
    return [f"player {seat}" for seat in range(game.spec.seats)]


def record(path, *words, games=GAMES, seed=0):
    """Random games of some rules appended to a record; returns them as they were played."""
    game, rules = make_game_and_rules(*words)
    players = [Random(game) for _ in range(game.spec.seats)]
    moves, results = collect_games(game, players, games, rng(seed))
    records.append(path, game, rules, players_of(game), moves, results)
    return moves, results
