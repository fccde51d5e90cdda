"""Players compared on the same boards and random numbers, in one-player games.

What boards and random numbers do to all players alike cancels out of a difference between two of
them. With a correlation r of their results, a paired comparison needs 1 - r times as many games as
one of separate games (if both vary alike).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.evaluation.estimates import Estimate
from rlgames.evaluation.evaluate import EVAL_BATCH, openings_to_play
from rlgames.games.capabilities import Chance, find
from rlgames.games.game import Game, State
from rlgames.players.player import Player


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
    names: list[str],
    players: list[Player],
    games: int,
    make_rng: Callable[[str], torch.Generator],
) -> Comparison:
    """Each player plays the same games: the same boards and, after equally many moves, the same
    random numbers. Players without chance play each board once, if the boards can be listed.

    make_rng: the generator of a stream with this name; names: of the players, for their streams.
    """
    openings, count = openings_to_play(game, "auto"), games
    if openings is not None and all(player.is_deterministic for player in players):
        count, weight = len(openings[0]), openings[1]
    else:  # the game samples the boards
        openings, weight = None, torch.full((count,), 1 / count, dtype=torch.float64)
    rngs = [make_rng(f"player {name}") for name in names]
    results: list[list[Tensor]] = [[] for _ in players]
    for first in range(0, count, EVAL_BATCH):
        if openings is None:
            boards = game.initial(min(EVAL_BATCH, count - first), make_rng(f"boards {first}"))
        else:
            boards = openings[0][first : first + EVAL_BATCH].to(rngs[0].device)
        for each, player, rng in zip(results, players, rngs, strict=True):
            final = _play(game, player, boards, make_rng(f"dice {first}"), rng)
            each.append(final.turn if game.spec.goal == "turns" else final.score[:, 0])
    values = [torch.cat(each).cpu().double() for each in results]
    estimate = partial(Estimate.of_games, weight=weight, is_exact=openings is not None)
    pairs = {
        (row, column): (estimate(first - second), _correlation(first, second, weight))
        for (row, first), (column, second) in itertools.permutations(enumerate(values), 2)
    }
    metric, means = "turns" if game.spec.goal == "turns" else "score", [*map(estimate, values)]
    return Comparison(count, openings is not None, metric, means, pairs)


def _play(
    game: Game[Any], player: Player, state: State, dice: torch.Generator, rng: torch.Generator
) -> State:
    """The final positions. Row i gets the same dice at the same ply whatever the player does: they
    are drawn for all rows, also for those that are over."""
    chance = find(game, Chance)
    while len(live := (~state.done).nonzero()[:, 0]):
        before = state[live]
        action = player.choose(game.public(before), rng)
        after = game.apply_action(before, action)
        if chance is not None:
            shape = (len(state), game.spec.num_chance_inputs)
            u = torch.rand(shape, generator=dice, device=dice.device)
            after = chance.apply_chance(after, u[live])
        state = state.put(live, after)
    return state


def _correlation(first: Tensor, second: Tensor, weight: Tensor) -> float | None:
    weights = weight.numpy()
    covariance = np.cov(np.stack([first.numpy(), second.numpy()]), aweights=weights, ddof=0)
    spread = float(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1]) / spread**0.5 if spread > 0 else None
