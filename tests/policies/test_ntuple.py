"""N-tuple networks: what they add up, how their values move, how well they play."""

import itertools
from typing import Any

import pytest
import torch
from helpers import game_2048, generator, make_game, ntuple, rng

from rlgames.games.game_2048 import Game2048
from rlgames.players.player import Random
from rlgames.policies.ntuple import reason_not_compiled
from rlgames.policies.tuples import blocks
from rlgames.rollouts.play import collect_games


def filled(game, tuples, marks=16):
    policy = ntuple(game, tuples, marks, score_scale=1.0)
    policy.values.copy_(torch.rand(len(policy.values), generator=generator(1)))
    return policy


def boards(rows, columns, most, count=200):
    return torch.randint(0, most, (count, rows, columns), generator=generator(2))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 4), (4, 4)])
def test_a_board_is_worth_what_its_tuples_hold_wherever_they_lie(rows, columns):
    """Against reading each view of the board apart, where several see the same cells the one from
    which their number is least; cells beyond the marks count as the last."""
    game = game_2048(rows, columns)
    tuples, marks = [[0, 1, 2], [1, 4, 5, 7]], 5
    policy = filled(game, tuples, marks)
    exponents = boards(rows, columns, 7)
    actual = policy.value(game, game.from_exponents(exponents))
    cells = torch.arange(rows * columns).view(rows, columns)
    views = [cells, cells.flip(0), cells.flip(1), cells.flip(0, 1)]
    if rows == columns:
        views += [view.T for view in views]
    for row, board in enumerate(exponents.flatten(1).clamp(max=marks - 1).tolist()):
        total, first = 0.0, 0
        for each in tuples:
            least: dict[Any, Any] = {}
            for view in views:
                seen = view.flatten()[each].tolist()
                number = sum(board[cell] * marks**n for n, cell in enumerate(seen))
                where = frozenset(seen)
                least[where] = min(number, least.get(where, number))
            total += sum(float(policy.values[first + number]) for number in least.values())
            first += marks ** len(each)
        assert float(actual[row]) == pytest.approx(total, rel=1e-5)


def test_places_are_exact_where_floats_of_32_bits_would_not_be():
    game = game_2048(3, 3)
    policy = ntuple(game, [[0, 1, 2, 3, 4, 5, 6, 7]], 9, score_scale=1.0)  # 9^8 values
    cells = torch.tensor([7, 8, 7, 6, 5, 4, 3, 2, 0])
    places = policy.feature_indices(game, game.from_exponents(cells.view(1, 3, 3)))[0].tolist()
    assert sum(int(cells[n]) * 9**n for n in range(8)) in places


def test_the_tuples_of_the_usual_board_are_the_placements_of_the_shapes():
    game = game_2048(4, 4)
    actual = blocks(4, 4, game.symmetries())
    assert all(len(each) == 6 for each in actual)
    assert [0, 1, 2, 4, 5, 6] in actual
    assert [0, 1, 2, 3, 4, 5] in actual
    alike = [
        {tuple(sorted(view)) for view in game.symmetries()[:, each].tolist()} for each in actual
    ]
    for one, other in itertools.combinations(alike, 2):
        assert not one & other
    # 2x3 cells lie in 12 places and on their sides, 4+2 in 6 rows of each of four directions.
    assert sum(map(len, alike)) == 12 + 24
    assert blocks(2, 3, game_2048(2, 3).symmetries()) == [[0, 1, 2, 3, 4, 5]]
    assert blocks(1, 8, game_2048(1, 8).symmetries()) == [list(range(8))]


def test_ntuple_rejects_other_games():
    with pytest.raises(ValueError, match="not salvo"):
        ntuple(make_game("game=salvo"), None, 16, score_scale=1.0)


def test_score_deltas_are_scaled_like_the_reward():
    game = game_2048(2, 2)
    state = collect_games(game, [Random(game)], 20, rng())[0].state
    one, _ = ntuple(game, None, 6, score_scale=1.0).scores(game, state)
    part, _ = ntuple(game, None, 6, score_scale=0.01).scores(game, state)
    assert float(one.max()) > 0
    assert torch.allclose(part, one / 100)


def test_kernels_do_not_play_games_derived_from_2048():
    class Derived(Game2048):
        """Whose rules no kernel knows."""

    for make, reason in ((Game2048, ""), (Derived, "it knows the rules of 2048, not of")):
        game = make(3, 3, 0.1, 2048, "onehot")
        said = reason_not_compiled(game, ntuple(game, [[0, 1]], 6, score_scale=1.0))
        assert said.startswith(reason)
        assert bool(said) == bool(reason)
