"""Positions with the exact result of each action, and how often a player's move loses value there.

A move loses value if it turns a won position into a drawn or lost one, or a drawn into a lost one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.evaluation.statistics import Rate
from rlgames.games.game import Game
from rlgames.players.player import Player

RESULTS = {"+": 1, "=": 0, "-": -1, ".": -2}
"""What an action leads to for the player to move, by its mark; the last one is illegal."""


@dataclass(frozen=True)
class LabeledPositions:
    """state: [B]. outcome: int64 [B, A], exact results by action. group: B names of classes."""

    state: Any
    outcome: Tensor
    group: list[str]

    @classmethod
    def read(cls, path: Path, game: Game[Any]) -> LabeledPositions:
        """Read a file whose lines have a class, the actions played from the start as digits from 1
        (- for none), the mark of each action, and who says so.

        Raises ConfigError for a file that does not fit the game.
        """
        try:
            lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
            lines = [line for line in lines if line and line[0] != "#"]
            moves = [[int(each) - 1 for each in line[-3].strip("-")] for line in lines]
            outcome = [[RESULTS[mark] for mark in line[-2]] for line in lines]
        except (OSError, LookupError, ValueError) as error:
            raise ConfigError(f"{path} holds no labeled positions ({error})") from None
        if not lines or {*map(len, outcome)} != {game.spec.actions} or game.spec.num_chance_inputs:
            raise ConfigError(f"{path} holds no positions of {game.spec.name}")
        group = ["_".join(line[:-3]) for line in lines]
        return cls(_played(moves, game, path), torch.tensor(outcome), group)


def _played(moves: list[list[int]], game: Game[Any], path: Path) -> Any:
    """The positions after these actions."""
    rng = torch.Generator().manual_seed(0)
    state = game.initial(len(moves), rng)
    for ply in range(max(map(len, moves))):
        rows = torch.tensor([row for row, played in enumerate(moves) if len(played) > ply])
        action = torch.tensor([moves[row][ply] for row in rows.tolist()])
        legal = game.legal_action_mask(state[rows])
        if not bool(((action >= 0) & legal.gather(1, action[:, None].clamp(0))[:, 0]).all()):
            raise ConfigError(f"{path} holds an illegal move of {game.spec.name}")
        state = state.put(rows, game.step(state[rows], action, rng))
    return state


def value_losses(
    player: Player, positions: LabeledPositions, rng: torch.Generator
) -> dict[str, Any]:
    """By class and for all: the rate of moves that lose value, and how many positions allow one."""
    action = player.choose(positions.state, rng)
    best = positions.outcome.amax(1)
    lost = positions.outcome.gather(1, action[:, None])[:, 0] < best
    allows = ((positions.outcome > RESULTS["."]) & (positions.outcome < best[:, None])).any(1)
    losses: dict[str, Any] = {}
    for name in [*dict.fromkeys(positions.group), "all"]:
        rows = torch.tensor([name in (group, "all") for group in positions.group])
        rate = Rate(int(lost[rows].sum()), int(rows.sum()))
        losses[name] = rate.as_dict() | {"positions": rate.games, "allow": int(allows[rows].sum())}
    return losses
