"""A scripted player of battleship that looks ahead where few layouts are left."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.battleship import Battleship
from rlgames.games.game import Game
from rlgames.games.layout_counts import MAX_MEMO, WORD, Bools
from rlgames.games.sinkings import Seen
from rlgames.players.battleship_bots import Density, can_count, has_several_shots

MISS_WEIGHT = 0.4
"""With several shots per turn; 0.3 to 1 gain about as much."""

MAX_CELLS = 128
"""Sets of cells are two words."""


class DensityRollout(Density):
    """Plays as density; where few layouts are left, it chooses the turn after which density needs
    the fewest turns, mean over these layouts (Tesauro and Galperin 1996).

    miss_weight: None: MISS_WEIGHT with several shots per turn, else 0. layouts: the most layouts
    with which it looks ahead. next_cells: it compares the likeliest cells and all turns with one of
    them replaced by one of this many next likeliest cells.
    """

    name = "density_rollout"

    def __init__(
        self,
        game: Game[Any],
        samples: int,
        steps: int = 0,
        miss_weight: float | None = None,
        layouts: int = 10_000,
        next_cells: int = 3,
    ) -> None:
        if not isinstance(game, Battleship):
            raise ValueError(f"{self.name} plays battleship and salvo, not {game.spec.name}")
        if game.num_cells > MAX_CELLS:
            raise ValueError(
                f"{self.name} plays boards of at most {MAX_CELLS} cells, not {game.num_cells}"
            )
        if not steps:
            raise ValueError(
                f"{self.name} has to count layouts; use player.steps=1 or more, or player=density"
            )
        if not can_count(game):
            raise ValueError(
                f"{self.name} cannot count the layouts of so large a fleet whose sinkings are "
                "announced; use player=density"
            )
        if miss_weight is None:
            miss_weight = MISS_WEIGHT if has_several_shots(game) else 0.0
        super().__init__(game, samples, steps, miss_weight)
        self._shots, self._ship_cells = game.shots, game.ship_cells
        self._max_layouts, self._next_cells = layouts, next_cells
        self._counter = game.layout_counter("sunk" in game.show)
        self._memo: OrderedDict[bytes, Bools] = OrderedDict()
        self._arrays: Any = None

    def priority(self, state: Any, rng: torch.Generator) -> Tensor:
        result = super().priority(state, rng)
        _, total = self.game.count_layouts(state, self.steps)
        few = ((total > 1) & (total <= self._max_layouts)).nonzero()[:, 0]
        if not len(few):
            return result
        seen = self.game.seen(state[few]).cpu()
        for place, key in enumerate(seen.position_keys()):
            if key not in self._memo:
                self._memo[key] = self._best_turn(seen[place : place + 1])
            result[few[place]] = torch.from_numpy(self._memo[key]).to(result)
        while len(self._memo) > MAX_MEMO:
            self._memo.popitem(last=False)
        return result

    def _best_turn(self, seen: Seen) -> Bools:
        """Bool [N]: the cells of the best turn of one game."""
        from rlgames.kernels.fleet_rollouts import choose_turn

        count = self._list_layouts(seen)
        assert count > 0, "counted, but not listed"
        layouts, room, turn = self._arrays
        choose_turn(layouts, room, np.int64(0), self._shots, turn)
        cells = np.unpackbits(turn.view(np.uint8), bitorder="little")
        return cells[: seen.shot.shape[1]].astype(bool)

    def _list_layouts(self, seen: Seen) -> int:
        """Have the kernels begin with the layouts that agree with the observations of one game;
        their number, or -1 if there are too many."""
        if self._arrays is None:
            self._arrays = self._make_arrays()
        layouts, room, _ = self._arrays
        count = self._counter.write_list(seen, layouts)
        room.frames[0] = 0, count, self._ship_cells - int(seen.hit.sum())
        free = np.zeros(MAX_CELLS, bool)
        free[: seen.shot.shape[1]] = ~seen.shot[0].numpy()
        room.free[0] = np.packbits(free, bitorder="little").view(np.uint64)
        return count

    def _make_arrays(self) -> tuple[Any, Any, Any]:
        """What the kernel reads and writes."""
        from rlgames.kernels.fleet_rollouts import Room

        rows = self._max_layouts + 2
        room = Room(
            frames=np.zeros((rows, 3), np.int64),
            free=np.zeros((rows, MAX_CELLS // WORD), np.uint64),
            counts=np.zeros(MAX_CELLS, np.int64),
            order=np.zeros(self._shots + self._next_cells, np.int64),
        )
        return self._counter.make_list(self._max_layouts), room, np.zeros(2, np.uint64)
