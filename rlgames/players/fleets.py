"""Players of hidden fleets: shots next to hits, and shots where most layouts have a ship."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from rlgames.core.bits import WORD, pack_bits, unpack_bits
from rlgames.games.battleship import Battleship
from rlgames.games.fleets.counts import Bools, recall
from rlgames.games.fleets.game import FleetGame
from rlgames.games.fleets.rollouts import Room, choose_turn
from rlgames.games.fleets.sunk_ships import Seen
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.rng import Rng

TIE_BREAK = 1e-6
"""The scale of the noise that breaks ties."""

MISS_WEIGHT = 0.4
"""With several shots per turn; 0.3 to 1 gain about as much."""

MAX_CELLS = 128
"""Sets of cells are two words."""


class BattleshipBot(Player):
    """Shoots at the cells with the highest priority; equal ones in random order."""

    name: str

    def __init__(self, game: Game[Any]) -> None:
        if not isinstance(game, FleetGame):
            raise ValueError(f"{self.name} plays battleship and salvo, not {game.spec.name}")
        self.game: FleetGame[Any] = game

    @abstractmethod
    def priority(self, state: Any, rng: Rng) -> Tensor:
        """Float32 [B, N]: the priority of each cell; ignored where already shot at."""

    def choose(self, state: Any, rng: Rng) -> Tensor:
        shot, rng = self.game.seen(state).shot, rng.rows(len(state))
        priority = torch.zeros(shot.shape, device=shot.device)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            priority[live] = self.priority(state[live], rng[live])
        priority = priority.masked_fill(shot, 0.0)
        if not self.is_deterministic:
            priority = priority + TIE_BREAK * rng.uniform(*priority.shape)
        scores = self.game.score_actions(priority)
        return scores.masked_fill(~self.game.legal_action_mask(state), -torch.inf).argmax(1)


class HuntTarget(BattleshipBot):
    """Shoots at every second cell until there is a hit, then next to hits; cells in line with two
    hits come first."""

    name = "hunt_target"

    def __init__(self, game: Game[Any]) -> None:
        super().__init__(game)
        rows, columns = self.game.fleet.rows, self.game.fleet.columns
        # A ship of two or more cells covers at least one of every second cell.
        checkerboard = (torch.arange(rows)[:, None] + torch.arange(columns)) % 2 == 0
        self._checkerboard = checkerboard.reshape(-1)

    def priority(self, state: Any, rng: Rng) -> Tensor:
        hit = self.game.seen(state).hit
        rows, columns = self.game.fleet.rows, self.game.fleet.columns
        hits = hit.float().view(-1, 1, rows, columns)
        across = max_pool2d(hits, (1, 3), 1, (0, 1))
        down = max_pool2d(hits, (3, 1), 1, (1, 0))
        is_adjacent = torch.maximum(across, down).flatten(1)
        in_column = _extends_two(hits.transpose(2, 3)).transpose(2, 3)
        is_in_line = torch.maximum(_extends_two(hits), in_column).flatten(1)
        target = torch.maximum(4 * is_in_line, 2 * is_adjacent)
        return torch.maximum(target, self._checkerboard.to(hit.device).float())


def _extends_two(hit: Tensor) -> Tensor:
    """Float32 [B, 1, R, C]: 1 at cells next to two hits side by side in their row."""
    padded = pad(hit, (2, 2))
    columns = hit.shape[3]
    left = padded[..., :columns] * padded[..., 1 : columns + 1]
    right = padded[..., 3 : columns + 3] * padded[..., 4 : columns + 4]
    return torch.maximum(left, right)


def has_several_shots(game: Game[Any]) -> bool:
    """Whether this is battleship or one-player Salvo with several shots per turn."""
    return isinstance(game, Battleship) and game.shots > 1


def can_count(game: Game[Any]) -> bool:
    """Whether this is battleship or one-player Salvo with a fleet whose layouts can be counted."""
    return isinstance(game, Battleship) and game.layout_counter.can_count


class Density(BattleshipBot):
    """Shoots at the cell that most of the layouts that are still possible occupy.

    steps: ways to place all ships but two. miss_weight: of the probability given that the cells
    chosen before in the same turn are misses; 1 - miss_weight is the weight of the probability
    without them. Cells that are likely together are then not shot at in one turn.
    """

    name = "density"

    def __init__(self, game: Game[Any], samples: int, steps: int, miss_weight: float) -> None:
        super().__init__(game)
        self.samples, self.steps = samples, steps
        if miss_weight and not has_several_shots(game):
            raise ValueError(
                f"player.miss_weight={miss_weight:g} spreads the shots of a turn of battleship or "
                "salvo with shots=2 or more; use player.miss_weight=0"
            )
        is_known = self.game.posterior.exact or (steps and can_count(game))
        if miss_weight and not is_known:
            raise ValueError(
                f"player.miss_weight={miss_weight:g} needs layouts that are listed or counted, and "
                "here they are sampled; use player.steps=1 or more, which counts fleets that are "
                "not too large, or player.miss_weight=0"
            )
        self.miss_weight = miss_weight
        self.is_deterministic = self.game.posterior.exact
        self.reset_statistics()

    def priority(self, state: Any, rng: Rng) -> Tensor:
        self._num_moves += len(state)
        result = self.game.exact_occupancy(state, self.steps)
        sampled = result.isnan().any(1)
        if bool(sampled.any()):
            rows = sampled.nonzero()[:, 0]
            result[rows] = self.game.occupancy(state[rows], self.samples, rng[rows].fold_in(-1))
        self._num_exact += len(state) - int(sampled.sum())
        return self._spread(state, result) if self.miss_weight else result

    def _spread(self, state: Any, occupancy: Tensor) -> Tensor:
        """Float32 [B, N]: the priority with miss_weight; with aim=joint, 1 for the best cells."""
        assert isinstance(self.game, Battleship)
        if self.game.sequential:
            return self._given_misses(state, occupancy, state.aimed)
        chosen = torch.zeros_like(state.shot)
        for _ in range(self.game.shots):
            priority = self._given_misses(state, occupancy, chosen)
            best = priority.masked_fill(state.shot | chosen, -1.0).argmax(1, keepdim=True)
            chosen = chosen.scatter(1, best, True)
        return chosen.float()

    def _given_misses(self, state: Any, occupancy: Tensor, chosen: Tensor) -> Tensor:
        """The probabilities of ships, mixed with those given that the chosen cells are misses."""
        rows = chosen.any(1).nonzero()[:, 0]
        if not len(rows):
            return occupancy
        shot = state.shot[rows] | chosen[rows]
        missed = self.game.exact_occupancy(replace(state[rows], shot=shot), self.steps)
        # Some layout agrees with the hits, but none may agree with the misses.
        is_known = ~missed.isnan().any(1, keepdim=True) & (missed.sum(1, keepdim=True) > 0)
        mixed = torch.lerp(occupancy[rows], missed, self.miss_weight)
        result = occupancy.clone()
        result[rows] = torch.where(is_known, mixed, occupancy[rows])
        return result

    def statistics(self) -> dict[str, float]:
        """How many of its moves rest on all layouts, not on samples."""
        return {"exact_moves": self._num_exact / self._num_moves} if self._num_moves else {}

    def reset_statistics(self) -> None:
        self._num_moves = self._num_exact = 0


class DensityRollout(Density):
    """Plays as density; where few layouts are left, it chooses the turn after which density needs
    the fewest turns, mean over these layouts (Tesauro and Galperin 1996). It compares the likeliest
    cells and all turns with one of them replaced by one of the next_cells next likeliest cells.
    """

    name = "density_rollout"

    def __init__(
        self,
        game: Game[Any],
        samples: int,
        steps: int,
        miss_weight: float | None,
        layouts: int,
        next_cells: int,
    ) -> None:
        if not isinstance(game, Battleship):
            raise ValueError(f"{self.name} plays battleship and salvo, not {game.spec.name}")
        if game.num_cells > MAX_CELLS:
            raise ValueError(
                f"{self.name} plays boards of at most {MAX_CELLS} cells, not {game.num_cells}"
            )
        if not (steps and can_count(game)):
            raise ValueError(
                f"{self.name} has to count layouts; use player.steps=1 or more and a fleet that is "
                "not too large, or player=density"
            )
        if miss_weight is None:
            miss_weight = MISS_WEIGHT if has_several_shots(game) else 0.0
        super().__init__(game, samples, steps, miss_weight)
        self._shots, self._ship_cells = game.shots, game.ship_cells
        self._max_layouts, self._next_cells = layouts, next_cells
        self._counter = game.layout_counter
        self._memo: OrderedDict[bytes, Bools] = OrderedDict()

    def priority(self, state: Any, rng: Rng) -> Tensor:
        result = super().priority(state, rng)
        _, total = self.game.count_layouts(state, self.steps)
        few = ((total > 1) & (total <= self._max_layouts)).nonzero()[:, 0]
        if not len(few):
            return result
        seen = self.game.seen(state[few]).cpu()
        turns = recall(
            self._memo,
            seen.position_keys(),
            lambda rows: [self._best_turn(seen[row : row + 1]) for row in rows],
        )
        result[few] = torch.from_numpy(np.array(turns)).to(result)
        return result

    def _best_turn(self, seen: Seen) -> Bools:
        """Bool [N]: the cells of the best turn of one game."""
        layouts, room = self._kernel_arrays
        count = self._counter.write_list(seen, layouts)
        assert count > 0, "counted, but not listed"
        room.frames[0] = 0, count, self._ship_cells - int(seen.hit.sum())
        free, turn = pack_bits(~seen.shot[0].numpy()), np.zeros(MAX_CELLS // WORD, np.uint64)
        room.free[0, : len(free)], room.free[0, len(free) :] = free, 0
        choose_turn(layouts, room, np.int64(0), self._shots, turn)
        return unpack_bits(turn, seen.shot.shape[1])

    @cached_property
    def _kernel_arrays(self) -> tuple[Any, Any]:
        """A list of layouts, and room to play over it."""
        rows = self._max_layouts + 2
        room = Room(
            frames=np.zeros((rows, 3), np.int64),
            free=np.zeros((rows, MAX_CELLS // WORD), np.uint64),
            counts=np.zeros(MAX_CELLS, np.int64),
            order=np.zeros(self._shots + self._next_cells, np.int64),
        )
        return self._counter.make_list(self._max_layouts), room
