"""Players of battleship that follow a rule: hunt and target, and the likeliest cell."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from rlgames.games.fleets import FleetGame
from rlgames.games.game import Game
from rlgames.players.player import Player


class BattleshipBot(Player):
    """Shoots where `wanted` is highest, ties broken at random."""

    name: str

    def __init__(self, game: Game[Any]) -> None:
        if not isinstance(game, FleetGame):
            raise ValueError(f"{self.name} plays battleship and salvo, not {game.spec.name}")
        self.game: FleetGame[Any] = game

    def wanted(self, shot: Tensor, hit: Tensor, rng: torch.Generator) -> Tensor:
        """Float32 [B, N]: how much each cell is wanted; what was shot at does not matter."""
        raise NotImplementedError

    def choose(self, state: Any, rng: torch.Generator) -> Tensor:
        shot, hit = self.game.shots_and_hits(state)
        wanted = torch.zeros(shot.shape, device=shot.device)
        live = (~state.done).nonzero()[:, 0]
        wanted[live] = self.wanted(shot[live], hit[live], rng)
        wanted = wanted.masked_fill(shot, 0.0)
        if not self.deterministic:
            wanted = wanted + 1e-6 * torch.rand(wanted.shape, generator=rng, device=rng.device)
        scores = self.game.score_actions(wanted)
        return scores.masked_fill(~self.game.legal_action_mask(state), -torch.inf).argmax(1)


class HuntTarget(BattleshipBot):
    """Every second cell until there is a hit, then beside hits, first where two are in a row."""

    name = "hunt_target"

    def __init__(self, game: Game[Any]) -> None:
        super().__init__(game)
        rows, columns = self.game.fleet.rows, self.game.fleet.columns
        # A ship of two cells or more cannot miss every second cell.
        self._every_other = (
            (torch.arange(rows)[:, None] + torch.arange(columns)) % 2 == 0
        ).reshape(-1)

    def wanted(self, shot: Tensor, hit: Tensor, rng: torch.Generator) -> Tensor:
        rows, columns = self.game.fleet.rows, self.game.fleet.columns
        hits = hit.float().view(-1, 1, rows, columns)
        across = max_pool2d(hits, (1, 3), 1, (0, 1))
        down = max_pool2d(hits, (3, 1), 1, (1, 0))
        beside = torch.maximum(across, down).flatten(1)
        turned = _beyond_two(hits.transpose(2, 3)).transpose(2, 3)
        in_line = torch.maximum(_beyond_two(hits), turned)
        every_other = self._every_other.to(hit.device)
        beside = torch.maximum(4 * in_line.flatten(1), 2 * beside)
        return torch.maximum(beside, every_other.float())


def _beyond_two(hit: Tensor) -> Tensor:
    """Float32 [B, 1, R, C]: 1 at cells that continue two hits in a row, across."""
    wide = torch.nn.functional.pad(hit, (2, 2))
    columns = hit.shape[3]
    left = wide[..., :columns] * wide[..., 1 : columns + 1]
    right = wide[..., 3 : columns + 3] * wide[..., 4 : columns + 4]
    return torch.maximum(left, right)


class Density(BattleshipBot):
    """Shoots where most of the layouts that are still possible have a ship.

    samples: layouts drawn for each board, where they are too many to be listed.
    """

    name = "density"

    def __init__(self, game: Game[Any], samples: int) -> None:
        super().__init__(game)
        self.samples = samples
        self.deterministic = self.game.posterior.exact

    def wanted(self, shot: Tensor, hit: Tensor, rng: torch.Generator) -> Tensor:
        generator = rng if rng.device.type == "cpu" else torch.Generator().manual_seed(0)
        found = self.game.posterior.occupancy(shot.cpu(), hit.cpu(), self.samples, generator)
        return found.to(shot.device)
