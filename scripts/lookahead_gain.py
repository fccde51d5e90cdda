"""Compares density_rollout with density on the same boards of battleship or salvo.

Both play the same until few enough layouts agree with what they have seen to be listed. From there
on the mean number of turns over all layouts of the list is computed for each of the two, which is
exact. So a few hundred boards tell them apart, where it would take a hundred thousand games.
Several shots per turn are chosen without player.miss_weight. Prints the means and their difference
with 95% intervals, or JSON with format=json. Keys are those of rlgames eval, without player= and
with a number of games; on the standard fleet:

    python scripts/lookahead_gain.py board=10 "ships=[5,4,3,3,2]" shots=1 games=1000 seed=1
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np
import torch

from rlgames.commands.configs import EvalConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.intervals import mean_interval
from rlgames.core.rng import make_generator
from rlgames.factory.agents import build_player
from rlgames.factory.components import build_game
from rlgames.players.density_rollout import DensityRollout

PLAYER = ("player=density_rollout", "player.miss_weight=0")
ROWS = ("density", "density_rollout", "difference")


def turns_of_both(player: DensityRollout, games: int, seed: int) -> np.ndarray:
    """Float64 [games, 2]: the mean turns of density and of the player on boards that are equal
    until the layouts are listed, and the layouts that agree with them from then on."""
    rng = make_generator(seed, "eval")
    state = player.game.initial(games, rng)
    turns: list[tuple[float, float]] = []
    while len(state):
        left = [player.mean_turns_left(state[row : row + 1]) for row in range(len(state))]
        listed = torch.tensor([pair is not None for pair in left])
        played = state.turn[listed].tolist()
        pairs = [pair for pair in left if pair is not None]
        turns += [(turn + a, turn + b) for turn, (a, b) in zip(played, pairs, strict=True)]
        state = state[(~listed).nonzero()[:, 0]]
        if len(state):
            action = player.choose(player.game.public(state), rng)
            state = player.game.step(state, action, rng)
    return np.array(turns)


def main(words: Sequence[str]) -> int:
    """words: keys with their values."""
    for word in words:
        if word.startswith(("player=", "player.miss_weight=")):
            raise ConfigError(f"{word} has no effect here", "both players play without miss_weight")
    cfg = load_config(EvalConfig, ["game=salvo", *words, *PLAYER])
    if not str(cfg.games).isdecimal():
        raise ConfigError(f"games={cfg.games} is not a number", "as in games=1000")
    assert cfg.player is not None
    player = build_player(cfg.player, build_game(cfg.game), cfg.game)
    assert isinstance(player, DensityRollout)
    with torch.inference_mode():
        turns = turns_of_both(player, int(cfg.games), cfg.seed)
    columns = (turns[:, 0], turns[:, 1], turns[:, 1] - turns[:, 0])
    if cfg.format == "json":
        report = {
            name: {"mean": float(column.mean()), "ci95": mean_interval(column)}
            for name, column in zip(ROWS, columns, strict=True)
        }
        print(json.dumps(report))
        return 0
    print(f"| {cfg.games} boards | turns | 95% interval |\n|---|---|---|")
    for name, column in zip(ROWS, columns, strict=True):
        interval = mean_interval(column)
        shown = "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
        print(f"| {name} | {column.mean():.3f} | {shown} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
