"""Players compared on the same boards and random numbers, in one-player games.

What boards and random numbers do to all players alike cancels out of a difference between two of
them. With a correlation r of their results, a paired comparison needs 1 - r times as many games as
one of separate games (if both vary alike).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.evaluation.estimates import Estimate
from rlgames.evaluation.evaluate import EVAL_BATCH, openings_to_play
from rlgames.games.game import Game
from rlgames.players.player import Player, leaving_out
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, InitialStates, sampled_by_game


@dataclass(frozen=True)
class Comparison:
    """The results of players in the same games.

    is_exact: all ways the games can go were played. metric: "turns" or "score". players: the mean
    of each. pairs: for any two, in both orders, the first one's value minus the second one's, game
    by game, and the correlation of their results, None if one of them does not vary.
    """

    games: int
    is_exact: bool
    metric: str
    players: list[Estimate]
    pairs: dict[tuple[int, int], tuple[Estimate, float | None]]


def compare_paired(
    game: Game[Any],
    players: list[Player],
    games: int,
    rng: Rng,
    failed: dict[int, Exception],
) -> Comparison:
    """Each player plays the same games: the same boards and, after equally many moves, the same
    random numbers, also for choices. Players without chance play each board once, if the boards can
    be listed.

    rng: the stream of the games. failed: as in compete.
    """
    openings, count = openings_to_play(game, "auto"), games
    if openings is not None and all(player.is_deterministic for player in players):
        count, weight = len(openings[0]), openings[1]
        boards = openings[0].to(rng.device)
        starts: InitialStates = lambda first, count, _: boards[first : first + count]  # noqa: E731
    else:
        openings, weight = None, torch.full((count,), 1 / count, dtype=torch.float64)
        starts = sampled_by_game(game)
    values = []
    for player in players:
        pool = GamePool(game, [player], count, rng, batch=EVAL_BATCH, initial_states=starts)
        with leaving_out(players, failed):
            final = pool.run().state
            value = final.turn if game.spec.goal == "turns" else final.score[:, 0]
            values.append(value.cpu().double())
    if failed and len(values) < 2:
        raise next(iter(failed.values()))
    estimate = partial(Estimate.of_games, weight=weight, is_exact=openings is not None)
    pairs = {
        (row, column): (estimate(first - second), _correlation(first, second, weight))
        for (row, first), (column, second) in itertools.permutations(enumerate(values), 2)
    }
    metric, means = "turns" if game.spec.goal == "turns" else "score", [*map(estimate, values)]
    return Comparison(count, openings is not None, metric, means, pairs)


def _correlation(first: Tensor, second: Tensor, weight: Tensor) -> float | None:
    weights = weight.numpy()
    covariance = np.cov(np.stack([first.numpy(), second.numpy()]), aweights=weights, ddof=0)
    spread = float(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1]) / spread**0.5 if spread > 0 else None
