"""Actions that are sets of cells: the salvos of battleship.

Letters in shapes: A actions, N cells, G symmetries.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from rlgames.games.fleets.layouts import MAX_TABLE_CELLS
from rlgames.games.state import Tables

MAX_JOINT_ACTIONS = 200_000
"""The most actions of joint aim."""

MAX_AUTO_JOINT_ACTIONS = 512
"""aim="auto" uses joint aim up to this many actions."""


def is_sequential(aim: str, cells: int, shots: int) -> bool:
    """Whether the cells of a turn are chosen one after another, not as a set.

    Raises ValueError for more shots than cells and for too many joint actions.
    """
    if shots > cells:
        raise ValueError(f"shots={shots} is more than the board's {cells} cells")
    actions = math.comb(cells, shots)
    if aim == "auto":
        aim = "joint" if actions <= MAX_AUTO_JOINT_ACTIONS else "sequential"
    if aim == "sequential" and shots > 1:
        return True
    max_actions = min(MAX_JOINT_ACTIONS, MAX_TABLE_CELLS // cells)
    if actions > max_actions:
        raise ValueError(
            f"aim=joint would need {actions:,} actions, one for each set of {shots} of {cells} "
            f"cells, and {max_actions:,} is the most; aim=sequential needs {cells}"
        )
    return False


def random_turns(cells: int, ship_cells: int, shots: int, power: int = 1) -> float:
    """The mean power of the turn of the last hit when cells are shot at in random order.

    The last of T ship cells among N is the m-th shot with probability C(m-1, T-1) / C(N, T).
    """
    total = math.comb(cells, ship_cells)
    return sum(
        float(math.ceil(m / shots) ** power) * math.comb(m - 1, ship_cells - 1) / total
        for m in range(ship_cells, cells + 1)
    )


class Salvos(Tables):
    """All sets of `shots` of the N cells, in lexicographic order.

    cells: bool [A, N], the cells of each set. cells_t: float32 [N, A], the same transposed.
    cells_or_none: bool [A + 1, N], with an empty set at the end.
    """

    def __init__(self, num_cells: int, shots: int) -> None:
        sets = list(itertools.combinations(range(num_cells), shots))
        self.cells = torch.zeros(len(sets), num_cells, dtype=torch.bool)
        self.cells.scatter_(1, torch.tensor(sets), True)
        self.cells_t = self.cells.T.float().contiguous()
        self.cells_or_none = torch.cat([self.cells, self.cells.new_zeros(1, num_cells)])

    def __len__(self) -> int:
        return len(self.cells)

    def symmetries(self, permutations: Tensor) -> Tensor:
        """Int64 [G, A]: the permutations of the sets, given the cells', int64 [G, N]."""
        # Sorted, the sets are the same before and after.
        order = self.cells.unique(dim=0, return_inverse=True)[1].argsort()
        images = [self.cells[:, permutation.argsort()] for permutation in permutations]
        return torch.stack([order[i.unique(dim=0, return_inverse=True)[1]] for i in images])
