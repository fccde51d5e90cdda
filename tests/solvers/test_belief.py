"""Exact optima against known figures, a naive recursion, and playing them out."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers import make_game

from rlgames.games.battleship import Battleship
from rlgames.rollouts.holdout import split_layouts
from rlgames.solvers.belief import solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.optimum import find_optimum


def layouts_of(height, width, ships):
    """All placements of the ships without overlap, bool [L, N], as sets of cells may repeat."""
    grid = np.arange(height * width).reshape(height, width)
    places = []
    for ship in ships:
        rows = [run[at : at + ship] for run in grid for at in range(width - ship + 1)]
        columns = [run[at : at + ship] for run in grid.T for at in range(height - ship + 1)]
        places.append({frozenset(place.tolist()) for place in rows + columns})
    sets = [frozenset().union(*chosen) for chosen in itertools.product(*places)]
    layouts = [[cell in s for cell in range(grid.size)] for s in sets if len(s) == sum(ships)]
    return np.array(layouts)


def symmetries_of(height, width):
    grid = np.arange(height * width).reshape(height, width)
    turned = [grid, grid.T] if height == width else [grid]
    flips = [f for g in turned for f in (g, g[::-1], g[:, ::-1], g[::-1, ::-1])]
    return np.unique([f.reshape(-1) for f in flips], axis=0)


def solve(height, width, ships, shots, **limits):
    layouts = layouts_of(height, width, ships)
    return solve_belief(layouts, shots, symmetries_of(height, width), **limits)


def naive(layouts, weights, shots):
    """The same by plain recursion over sets of layouts, with nothing left out."""
    cells = layouts.shape[1]
    ships = [frozenset(np.flatnonzero(row).tolist()) for row in layouts]

    @cache
    def turns(alive, shot):
        if all(ships[i] <= shot for i in alive):
            return 0.0
        left = [cell for cell in range(cells) if cell not in shot]
        weight = sum(weights[i] for i in alive)
        best = math.inf
        for chosen in itertools.combinations(left, min(shots, len(left))):
            groups: dict[Any, Any] = {}
            for i in alive:
                groups.setdefault(ships[i] & set(chosen), []).append(i)
            later = sum(
                sum(weights[i] for i in group) * turns(tuple(group), shot | frozenset(chosen))
                for group in groups.values()
            )
            best = min(best, 1 + later / weight)
        return best

    return turns(tuple(range(len(ships))), frozenset())


def played_out(solution, layouts, weights, shots):
    """The mean number of turns when choose plays all layouts."""
    cells = layouts.shape[1]
    shot = np.zeros_like(layouts)
    turns = np.zeros(len(layouts), int)
    going = layouts.any(1)
    while going.any():
        chosen = solution.choose(shot[going], (shot & layouts)[going])
        assert not (chosen & shot[going]).any()
        assert (chosen.sum(1) == np.minimum(shots, cells - shot[going].sum(1))).all()
        shot[going] |= chosen
        turns += going
        going = (layouts & ~shot).any(1)
    return np.average(turns, weights=weights)


KNOWN = [
    ((1, 10, [3], 1), 8, 4.5),
    ((4, 4, [4], 1), 8, 6.0),
    ((4, 4, [2], 2), 24, 85 / 24),
    ((4, 4, [4], 2), 8, 3.375),
    ((4, 4, [4, 2], 2), 120, 5.05),
]


@pytest.mark.parametrize(("board", "count", "optimal"), KNOWN)
def test_known_optima(board, count, optimal):
    game = Battleship(*board)
    layouts = game.layouts().numpy()
    assert len(layouts) == count
    solution = solve_belief(layouts, game.shots, game.symmetries().numpy())
    assert solution.optimal == pytest.approx(optimal, abs=1e-9)
    assert played_out(solution, layouts, None, game.shots) == pytest.approx(optimal, abs=1e-9)


SMALL = [
    (1, 6, [2], 1),
    (1, 7, [3, 1], 2),
    (1, 5, [2], 3),
    (1, 6, [2, 2], 1),
    (1, 7, [2, 2], 2),
    (1, 6, [2, 2], 3),
    (1, 5, [1, 1], 4),
    (1, 4, [4], 3),
    (1, 5, [3], 7),
    (3, 3, [2], 1),
    (3, 3, [2], 2),
    (3, 3, [3, 2], 2),
    (3, 3, [2], 3),
    (2, 3, [2, 1], 1),
    (2, 3, [2, 2], 1),
    (2, 3, [2, 2], 2),
    (2, 4, [3, 2], 3),
]


@pytest.mark.parametrize("board", SMALL)
def test_agrees_with_plain_recursion(board):
    height, width, ships, shots = board
    layouts = layouts_of(height, width, ships)
    weights = np.ones(len(layouts))
    expected = pytest.approx(naive(layouts, weights, shots), abs=1e-9)
    with_symmetries = solve(*board)
    without = solve_belief(layouts, shots, [np.arange(height * width)])
    assert with_symmetries.optimal == expected
    assert without.optimal == expected
    assert with_symmetries.states <= without.states
    assert played_out(with_symmetries, layouts, None, shots) == expected


@pytest.mark.parametrize("seed", range(24))
def test_random_priors(seed):
    """Any sets of as many cells, some of which are there several times."""
    rng = np.random.default_rng(seed)
    cells, shots = int(rng.integers(4, 8)), int(rng.integers(1, 4))
    count, ship_cells = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    layouts = rng.random((count, cells)).argsort(1) < ship_cells
    weights = rng.integers(1, 5, count)
    solution = solve_belief(np.repeat(layouts, weights, 0), shots, [np.arange(cells)])
    expected = naive(layouts, weights, shots)
    assert solution.optimal == pytest.approx(expected, abs=1e-9)
    mean = played_out(solution, layouts, weights, shots)
    assert mean == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shots", [1, 2, 3])
def test_chooses_after_any_play(shots):
    """Also where shots were wasted, or fewer were made than a turn has."""
    layouts = layouts_of(1, 7, [2, 2])
    solution = solve(1, 7, [2, 2], shots)
    rng = np.random.default_rng(shots)
    for _ in range(10):
        shot = np.tile(rng.random(7) < 0.4, (len(layouts), 1))
        result = shot & layouts
        chosen = solution.choose(shot, result)
        assert not (chosen & shot).any()
        for row in range(len(layouts)):
            alive = layouts[((layouts & shot) == result[row]).all(1)]
            rest = played_from(alive, shot[row], shots)
            after = [
                played_from(group, shot[row] | chosen[row], shots) * len(group)
                for group in grouped(alive, chosen[row])
            ]
            if (layouts[row] & ~shot[row]).any():
                assert 1 + sum(after) / len(alive) == pytest.approx(rest, abs=1e-9)


def grouped(alive, chosen):
    keys = [tuple(row) for row in alive & chosen]
    return [alive[[k == key for k in keys]] for key in set(keys)]


def played_from(alive, shot, shots):
    """The naive optimum from a position, on the cells that are left."""
    rest = alive[:, ~shot]
    return naive(rest, np.ones(len(rest)), shots)


def test_choose_rejects_what_cannot_be():
    solution = solve(1, 5, [2], 1)
    none = np.zeros((1, 5), bool)
    assert solution.choose(none[:0], none[:0]).shape == (0, 5)
    with pytest.raises(ValueError, match="no layout"):
        solution.choose(np.ones((1, 5), bool), none)
    with pytest.raises(ValueError, match="not shot at"):
        solution.choose(none, ~none)
    with pytest.raises(ValueError, match="must be"):
        solution.choose(none[0], none[0])


def test_gives_up_within_its_budget():
    with pytest.raises(OutOfBudget, match="not done after 0 s"):
        solve(4, 4, [2], 2, seconds=0)
    with pytest.raises(OutOfBudget, match=r"not done after 0.3 s: [\d,]+ positions so far"):
        solve(5, 5, [4, 2], 1, seconds=0.3)
    with pytest.raises(OutOfBudget, match="of memory"):
        solve(4, 4, [4, 2], 2, memory_bytes=1000)
    with pytest.raises(OutOfBudget, match="of memory"):
        solve(5, 5, [4, 2], 1, memory_bytes=20 << 20)
    assert solve(1, 6, [2], 1, seconds=None, memory_bytes=None).optimal > 1


def test_rejects_boards_with_too_many_cells():
    with pytest.raises(ValueError, match="39 cells"):
        solve(1, 40, [2], 1)


def test_the_largest_board():
    """39 cells: numbers up to 3^39, and masks of more than 31 cells."""
    layouts = np.eye(39, dtype=bool)
    assert solve_belief(layouts, 39, [np.arange(39)]).optimal == 1
    few = layouts[[0, 7, 38]] | layouts[[1, 8, 37]]
    for shots in (1, 2):
        solution = solve_belief(np.repeat(few, [1, 2, 3], 0), shots, [np.arange(39)])
        expected = naive(few[:, few.any(0)], [1, 2, 3], shots)
        assert solution.optimal == pytest.approx(expected, abs=1e-9)
        assert played_out(solution, few, [1, 2, 3], shots) == pytest.approx(expected, abs=1e-9)


@pytest.mark.long
def test_a_ship_of_4_and_one_of_2_on_5x5():
    layouts = layouts_of(5, 5, [4, 2])
    assert len(layouts) == 592
    solution = solve(5, 5, [4, 2], 1, seconds=None)
    assert solution.optimal == pytest.approx(12.1182, abs=1e-4)
    assert played_out(solution, layouts, None, 1) == pytest.approx(solution.optimal, abs=1e-9)


SPLIT_BOARDS = [
    ("game=battleship", "board=7", "ships=[3]"),
    ("game=battleship", "board=7", "ships=[2,1]"),
    ("game=salvo", "board=3", "ships=[2]", "shots=2"),
    ("game=salvo", "board=3", "ships=[3]", "shots=3"),
]


@pytest.mark.parametrize("words", SPLIT_BOARDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_of_some_layouts_is_that_of_brute_force(words, seed):
    game = make_game(*words)
    split = split_layouts(game, 0.4, seed)
    assert split is not None
    values = []
    for layouts in (split.trained_on, split.held_out):
        cells = (layouts.ships > 0).numpy()
        optimum = find_optimum(game, 60, layouts=layouts)
        assert optimum is not None
        expected = naive(cells, [1] * len(cells), game.shots)
        assert optimum.value == pytest.approx(expected, abs=1e-9)
        values.append(optimum.value)
    whole = find_optimum(game, 60)
    assert whole is not None
    # Knowing of which part a layout comes can only help.
    weight = len(split.trained_on) / (len(split.trained_on) + len(split.held_out))
    assert weight * values[0] + (1 - weight) * values[1] <= whole.value + 1e-9
