"""Round-robin tournaments: a cross table, and Elo ratings with intervals."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.evaluation.evaluate import OUTCOMES, Evaluation, EvaluationSettings, evaluate
from rlgames.games.game import Game
from rlgames.players.player import Player

Floats = NDArray[np.float64]

NUM_BOOTSTRAP_SAMPLES = 300

MAX_NEWTON_STEPS = 200


@dataclass(frozen=True)
class Arena:
    """The result of a tournament of N players.

    names: [N]. evaluations: of the pairs (row, column) with row < column, for the row's player.
    points: [N, N], the fraction of games that row won against column, where draws count half;
    NaN on the diagonal. elo: [N], with mean 0. low, high: [N], bootstrap 95 % intervals.
    """

    names: list[str]
    evaluations: dict[tuple[int, int], Evaluation]
    points: Floats
    elo: Floats
    low: Floats
    high: Floats


def compete(
    game: Game[Any], names: list[str], players: list[Player], games: int, rng: torch.Generator
) -> Arena:
    """Each pair plays this many games, half of them in each seat."""
    count = len(players)
    evaluations: dict[tuple[int, int], Evaluation] = {}
    table = np.zeros((count, count, 3))  # games that row won, drew and lost against column
    for row, column in itertools.combinations(range(count), 2):
        settings = EvaluationSettings(games)
        result = evaluate(game, players[row], settings, rng, players[column])
        evaluations[row, column] = result
        outcomes = [result.outcome_rate(name).count for name in OUTCOMES]
        table[row, column] = outcomes
        table[column, row] = outcomes[::-1]
    with np.errstate(invalid="ignore"):
        points = (table[..., 0] + table[..., 1] / 2) / table.sum(2)
    low, high = np.percentile(_bootstrap_ratings(table, games), [2.5, 97.5], axis=0)
    return Arena(names, evaluations, points, elo_ratings(table), low, high)


def elo_ratings(table: Floats) -> Floats:
    """Elo [N] from the games won, drawn and lost, [N, N, 3], by maximum likelihood.

    The model is that of Bradley and Terry (1952); a draw counts as half a win. Half a drawn game
    is added to each pair that met, so that the rating of an undefeated player is finite.
    """
    has_met = table.sum(2) > 0
    wins = table[..., 0] + table[..., 1] / 2 + 0.25 * has_met
    games = wins + wins.T
    strength = np.zeros(len(table))
    for _ in range(MAX_NEWTON_STEPS):
        expected = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        gradient = (wins - games * expected).sum(1)
        curvature = (games * expected * (1 - expected)).sum(1)
        step = gradient / np.maximum(curvature, 1e-12)
        strength += np.clip(step, -1, 1) * 0.9
        strength -= strength.mean()
        if np.abs(step).max() < 1e-9:
            break
    elo: Floats = strength * 400 / math.log(10)
    return elo


def _bootstrap_ratings(table: Floats, games: int) -> Floats:
    """Ratings [R, N] of tables that are resampled from the games of each pair."""
    rng = np.random.default_rng(0)
    ratings = []
    for _ in range(NUM_BOOTSTRAP_SAMPLES):
        resampled = np.zeros_like(table)
        for row, column in itertools.combinations(range(len(table)), 2):
            resampled[row, column] = rng.multinomial(games, table[row, column] / games)
            resampled[column, row] = resampled[row, column][::-1]
        ratings.append(elo_ratings(resampled))
    return np.array(ratings)
