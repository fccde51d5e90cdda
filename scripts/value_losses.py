"""How often players of Connect 4 throw away what they had, by stage of the game.

A move loses value if it turns a won position into a drawn or lost one, or a drawn into a lost one;
connect4_test_positions.txt has the exact result of each move. Prints a table in Markdown, or the
counts with format=json. Usage, players and keys as in rlgames arena:

    python scripts/value_losses.py random RUN RUN+mcts search.simulations=400 search.leaf=value
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from label_connect4 import TEST_FILE, played
from torch import Tensor

from rlgames.commands.arena import competitors
from rlgames.core.rng import make_generator
from rlgames.games.k_in_a_row import KInARow, KInARowState
from rlgames.players.player import Player

WORTH = {"+": 1, "=": 0, "-": -1, ".": -2}
"""By the marks of the file; a full column is never chosen."""


@dataclass(frozen=True)
class Positions:
    """state: [B]. outcome: int64 [B, 7], exact results by column. group: B names of classes."""

    state: KInARowState
    outcome: Tensor
    group: list[str]

    @classmethod
    def read(cls, path: Path, game: KInARow) -> Positions:
        lines = [line.split() for line in path.read_text().splitlines() if line[0] != "#"]
        boards = [played(moves) for _, _, moves, _, _ in lines]
        own, occupied = (torch.tensor(column) for column in zip(*boards, strict=True))
        outcome = torch.tensor([[WORTH[mark] for mark in outcomes] for *_, outcomes, _ in lines])
        return cls(
            game.state_from_stones(own, occupied), outcome, [f"{a} {b}" for a, b, *_ in lines]
        )


def count_losses(
    player: Player, positions: Positions, rng: torch.Generator
) -> dict[str, list[int]]:
    """By class: moves that lost value, positions where one could, and all positions."""
    action = player.choose(positions.state, rng)
    best = positions.outcome.amax(1)
    lost = positions.outcome.gather(1, action[:, None])[:, 0] < best
    could = ((positions.outcome > -2) & (positions.outcome < best[:, None])).any(1)
    counts = {}
    for name in dict.fromkeys(positions.group):
        rows = torch.tensor([group == name for group in positions.group])
        counts[name] = [int(lost[rows].sum()), int(could[rows].sum()), int(rows.sum())]
    return counts


def main(words: Sequence[str]) -> int:
    """words: players as in rlgames arena, and keys with their values."""
    overrides = [word for word in words if "=" in word]
    names = [word for word in words if word not in overrides]
    cfg, game, players = competitors(names, ["game=connect4", *overrides])
    assert isinstance(game, KInARow)
    positions = Positions.read(TEST_FILE, game)
    counts = {
        name: count_losses(player, positions, make_generator(cfg.seed, "eval"))
        for name, player in zip(names, players, strict=True)
    }
    if cfg.format == "json":
        print(json.dumps(counts))
        return 0
    print("| value-losing moves | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for group in dict.fromkeys(positions.group):
        _, could, count = counts[names[0]][group]
        shares = [f"{counts[name][group][0] / count:.1%}" for name in names]
        print(f"| {group} ({count}, {could} allow one) | " + " | ".join(shares) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
