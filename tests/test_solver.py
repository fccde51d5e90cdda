"""Exact optima against the figures known for them and against a naive recursion."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from rlgames.games.battleship import Battleship
from rlgames.solvers.belief import OutOfBudget, solve_belief


def solve(game, symmetries=None, **limits):
    if symmetries is None:
        symmetries = game.symmetries()
    layouts = game.layouts().numpy()
    return solve_belief(layouts, [1] * len(layouts), game.shots, symmetries, **limits)


def naive(game):
    """The same by plain recursion over sets of layouts, with nothing left out."""
    layouts = [frozenset(np.flatnonzero(row).tolist()) for row in game.layouts().numpy()]

    @cache
    def turns(alive, shot):
        if all(layouts[i] <= shot for i in alive):
            return 0.0
        left = [cell for cell in range(game.num_cells) if cell not in shot]
        best = math.inf
        for chosen in itertools.combinations(left, min(game.shots, len(left))):
            groups = {}
            for i in alive:
                groups.setdefault(layouts[i] & set(chosen), []).append(i)
            total = sum(len(g) * turns(tuple(g), shot | frozenset(chosen)) for g in groups.values())
            best = min(best, 1 + total / len(alive))
        return best

    return turns(tuple(range(len(layouts))), frozenset())


@pytest.mark.parametrize(
    ("rules", "layouts", "optimal"),
    [
        ((1, 10, [3], 1), 8, 4.5),
        ((4, 4, [4], 1), 8, 6.0),
        ((4, 4, [2], 2), 24, 85 / 24),
        ((4, 4, [4], 2), 8, 3.375),
        ((4, 4, [4, 2], 2), 120, 5.05),
    ],
)
def test_known_optima(rules, layouts, optimal):
    game = Battleship(*rules)
    assert len(game.layouts()) == layouts
    assert solve(game).optimal == pytest.approx(optimal, abs=1e-9)


@pytest.mark.parametrize(
    "rules",
    [
        (1, 6, [2], 1),
        (1, 7, [3, 1], 2),
        (1, 5, [2], 3),
        (1, 6, [2, 2], 1),
        (3, 3, [2], 1),
        (3, 3, [2], 2),
        (2, 3, [2, 1], 1),
        (2, 3, [2, 2], 2),
        (1, 5, [1, 1], 4),
    ],
)
def test_agrees_with_plain_recursion(rules):
    game = Battleship(*rules)
    identity = np.arange(game.num_cells)[None]
    assert solve(game).optimal == pytest.approx(naive(game), abs=1e-9)
    assert solve(game, identity).optimal == pytest.approx(naive(game), abs=1e-9)


def test_gives_up_within_its_budget():
    game = Battleship(5, 5, [4, 2])
    with pytest.raises(OutOfBudget, match="not done"):
        solve(game, seconds=0.2)
    with pytest.raises(OutOfBudget, match="GiB"):
        solve(game, memory_bytes=1000)
    with pytest.raises(ValueError, match="39 cells"):
        solve(Battleship(1, 40, [2]))
