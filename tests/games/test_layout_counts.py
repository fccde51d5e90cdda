"""Exact counts of layouts against the list of all layouts, and on 10×10."""

import numpy as np
import pytest
import torch
from helpers import made
from markers import slow

from rlgames.games.battleship import Battleship
from rlgames.games.fleets.counts import LayoutCounter
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.sunk_ships import Seen
from rlgames.rng import Rng

FLEETS = [
    (1, 9, [2, 2, 1]),
    (3, 5, [3]),
    (4, 4, [4, 2]),
    (4, 4, [2, 2, 2]),
    (4, 5, [4, 3, 2, 2]),
    (5, 5, [3, 3, 2]),
    (5, 6, [3, 2, 1]),
]


def seen(shot, hit):
    return Seen(torch.from_numpy(shot), torch.from_numpy(hit))


@pytest.mark.parametrize("count", [40, slow(15_000)])
@pytest.mark.parametrize("fleet", FLEETS)
def test_counts_are_those_of_all_layouts(fleet, count):
    rows, columns, ships = fleet
    game = Fleet(rows, columns, ships)
    layouts, counter = (game.layouts > 0).numpy(), LayoutCounter(game)
    rng = np.random.default_rng(count)
    shots, hits, expected = [], [], []
    for number in range(count):
        layout = layouts[rng.integers(len(layouts))]
        shot = rng.random(rows * columns) < (rng.random() if number else 0)
        hit = layout & shot
        shots.append(shot)
        hits.append(hit)
        expected.append(layouts[((layouts & shot) == hit).all(1)].mean(0))
    occupancy, _ = counter.occupancy(seen(np.array(shots), np.array(hits)), 10**9)
    assert occupancy == pytest.approx(np.array(expected), abs=1e-12)


def test_impossible_positions_and_too_long_counts_give_nan():
    counter = LayoutCounter(Fleet(4, 4, [3, 2]))
    none, all_cells = np.zeros((1, 16), bool), np.ones((1, 16), bool)
    shot = np.concatenate([none, all_cells, none])
    occupancy, total = counter.occupancy(seen(shot, np.zeros((3, 16), bool)), 10**9)
    assert np.isnan(occupancy).all(1).tolist() == [False, True, False]
    assert np.isnan(total).tolist() == [False, True, False]
    assert np.isnan(counter.occupancy(seen(none, none), 0)[0]).all()


@pytest.mark.slow
def test_the_first_shot_of_the_classic_fleet():
    """The likeliest cells are the four in the middle; all ships have 17 cells."""
    nothing = np.zeros((1, 100), bool)
    counter = LayoutCounter(Fleet(10, 10, [5, 4, 3, 3, 2]))
    occupancy = counter.occupancy(seen(nothing, nothing), 5_000_000)[0][0]
    assert occupancy.sum() == pytest.approx(17)
    assert occupancy.max() == pytest.approx(0.2135993641754119)
    board = occupancy.reshape(10, 10)
    assert board == pytest.approx(board.T)
    assert board == pytest.approx(board[::-1])


@pytest.mark.parametrize(("steps", "share"), [(10**6, 1.0), (0, 0.0)])
def test_density_says_whether_it_counted(steps, share):
    game = Battleship(6, 6, [3, 2, 2], 1)
    assert not game.posterior.exact
    player = made("player", "density", game, samples=60, steps=steps)
    state = game.initial(3, Rng(0))
    state = game.apply_action(state, torch.tensor([0, 7, 14]))
    rng = Rng(1)
    priority = player.priority(state, rng)
    assert player.statistics() == {"exact_moves": share}
    listed = (game.fleet.layouts > 0).float()
    shot, hit = state.shot, state.hit
    agree = ((listed[None] * shot[:, None]) == hit[:, None].float()).all(2).float()
    exact = agree @ listed / agree.sum(1, keepdim=True)
    assert (priority - exact).abs().max() < (1e-6 if steps else 0.4)


def test_many_equal_ships_with_announced_sunk_ships_are_sampled():
    """Twelve ships, each sunk or not, leave 13! combinations of their numbers."""
    game = Battleship(10, 10, [1] * 12, 1, show=["sunk"])
    player = made("player", "density", game, samples=60, steps=10**6)
    player.choose(game.initial(1, Rng(0)), Rng())
    assert player.statistics() == {"exact_moves": 0.0}
    with pytest.raises(ValueError, match="not too large"):
        made("player", "density_rollout", game, samples=60, steps=10**6)
    assert LayoutCounter(game.fleet).can_count
