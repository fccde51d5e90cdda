"""Everybody against everybody: a cross table, and ratings with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.evaluation.evaluate import Evaluation, evaluate
from rlgames.games.game import Game
from rlgames.players.player import Player

Floats = NDArray[np.float64]

RESAMPLES = 300


@dataclass(frozen=True)
class Arena:
    """names: [N]. points: [N, N], the share of games that row won against column, draws half;
    NaN on the diagonal. elo: [N], with a mean of 0. low, high: [N], bootstrap 95 % intervals."""

    names: list[str]
    pairs: dict[tuple[int, int], Evaluation]
    points: Floats
    elo: Floats
    low: Floats
    high: Floats


def compete(
    game: Game[Any], names: list[str], players: list[Player], games: int, rng: torch.Generator
) -> Arena:
    """Each pair plays so many games, half of them in each seat."""
    count = len(players)
    pairs: dict[tuple[int, int], Evaluation] = {}
    table = np.zeros((count, count, 3))  # games that row won, drew and lost against column
    for one in range(count):
        for other in range(one + 1, count):
            found = evaluate(game, players[one], games, games, rng, players[other])
            pairs[one, other] = found
            wins, draws, losses = (found.share(name).count for name in ("win", "draw", "loss"))
            table[one, other] = wins, draws, losses
            table[other, one] = losses, draws, wins
    elo = ratings(table)
    spread = _bootstrap(table, games)
    with np.errstate(invalid="ignore"):
        points = (table[..., 0] + table[..., 1] / 2) / table.sum(2)
    low, high = np.percentile(spread, [2.5, 97.5], axis=0)
    return Arena(names, pairs, points, elo, low, high)


def ratings(table: Floats) -> Floats:
    """Elo [N] from games won, drawn and lost, [N, N, 3], by maximum likelihood.

    The model is Bradley and Terry's (1952) with a draw as half a win. Half a drawn game is added
    to each pair that met, so that someone who won everything gets a finite rating.
    """
    met = table.sum(2) > 0
    won = table[..., 0] + table[..., 1] / 2 + 0.25 * met
    games = won + won.T
    strength = np.zeros(len(table))
    for _ in range(200):
        expected = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        slope = (won - games * expected).sum(1)
        curve = (games * expected * (1 - expected)).sum(1)
        step = slope / np.maximum(curve, 1e-12)
        strength += np.clip(step, -1, 1) * 0.9
        strength -= strength.mean()
        if np.abs(step).max() < 1e-9:
            break
    elo: Floats = strength * 400 / math.log(10)
    return elo


def _bootstrap(table: Floats, games: int) -> Floats:
    """Ratings [R, N] of tables drawn anew from the games of each pair."""
    random = np.random.default_rng(0)
    count = len(table)
    found = []
    for _ in range(RESAMPLES):
        drawn = np.zeros_like(table)
        for one in range(count):
            for other in range(one + 1, count):
                drawn[one, other] = random.multinomial(games, table[one, other] / games)
                drawn[other, one] = drawn[one, other][::-1]
        found.append(ratings(drawn))
    return np.array(found)
