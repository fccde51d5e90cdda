"""The kernels of belief states against the batched rules and plain Python."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import check_uncompiled, make_game

from rlgames.core.bits import pack_bits, unpack_bits
from rlgames.games.fleets.sunk_ships import Seen
from rlgames.solvers.belief.solution import Search, build_problem
from rlgames.solvers.belief.states import belief_key
from rlgames.solvers.budget import Budget

ROOT = Path(__file__).parents[2]
GAMES = [
    ("game=battleship", "board=9", "ships=[3,2]"),
    ("game=salvo", "board=4", "ships=[4,2]"),
    ("game=salvo", "board=5", "ships=[4,2]"),
]


def positions(words, count):
    """A game, its layouts, and random cells shot at and hit, bool [count, N]."""
    game = make_game(*words)
    layouts = game.layouts()
    rng = torch.Generator().manual_seed(0)
    chosen = layouts[torch.randint(len(layouts), (count,), generator=rng)]
    share = torch.rand(count, 1, generator=rng)
    shot = torch.rand(chosen.shape, generator=rng) < share
    return game, layouts, shot, shot & chosen


@pytest.mark.parametrize("words", GAMES)
def test_closed_beliefs_are_those_of_the_batched_rules(words):
    game, layouts, shot, hit = positions(words, 1000)
    symmetries = game.symmetries().numpy()
    problem = build_problem(layouts.numpy(), 1, symmetries)
    search = Search(problem, Budget(None, None))
    seen = np.concatenate([pack_bits(each.numpy()) for each in (shot, hit)], 1)
    weight, sets = search.close(seen)
    agree = game.posterior.agreeing(Seen(shot, hit))
    number = agree @ layouts.float()  # of the agreeing layouts, those with a ship on each cell
    assert torch.equal(torch.from_numpy(weight), agree.sum(1).double())
    ever, always = (unpack_bits(each[:, None], shot.shape[1]) for each in sets.T)
    assert np.array_equal(ever, (number > 0).numpy())
    assert np.array_equal(always, (number == agree.sum(1, keepdim=True)).numpy())
    digits = np.where(always, 2, np.where(ever, 0, 1))
    powers = 3**symmetries  # [G, N]
    keys = (digits @ powers.T).min(1) + 1
    computed = [belief_key(problem.numbers, problem.cells, *row) for row in sets]
    assert np.array_equal(np.array(computed, np.int64), keys)


UNCOMPILED = """
import numpy as np
from rlgames.solvers.belief import solve_belief
layouts = np.array([[c in (i, i + 1) for c in range(6)] for i in range(5)])
symmetries = [list(range(6)), list(range(6))[::-1]]
for shots in (1, 2):
    print(solve_belief(layouts, shots, symmetries).optimal)
"""


def test_uncompiled_kernels_give_the_same_values():
    assert check_uncompiled(UNCOMPILED).split()[0] == "3.2"
