"""Random numbers by place: a function of seed, stream, game and ply, and nothing else."""

import itertools
import math

import numpy as np
import pytest
import torch

from rlgames.kernels.words import GOLDEN_RATIO, mix, next_random
from rlgames.rng import CHANCE, Rng

NUM_GAMES, NUM_PLIES = 4000, 50


def deviation(count, expected):
    """How many standard deviations a chi-square lies from its mean."""
    chi_square = ((count - expected) ** 2 / expected).sum()
    freedom = len(count) - 1
    return (chi_square - freedom) / math.sqrt(2 * freedom)


def plies(rng, games=NUM_GAMES, turns=NUM_PLIES):
    game = torch.arange(games).repeat_interleave(turns)
    return rng.plies(game, torch.arange(turns).repeat(games))


def test_the_numbers_of_a_key_are_those_of_splitmix64():
    """Of which the first ones from 0 are published: Steele, Lea and Flood 2014."""
    rng = Rng().with_keys(np.zeros((), np.uint64))
    published = 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F
    assert [int(rng.fold_in(number).keys) for number in range(3)] == [*published]
    state = np.zeros(1, np.uint64)
    assert [int(next_random(state)) for _ in range(3)] == [*published]
    with np.errstate(over="ignore"):
        assert int(mix(GOLDEN_RATIO)) == published[0]


def test_places_are_told_apart_by_all_bits_of_seed_stream_game_and_ply():
    seeds = [Rng(seed, "play") for seed in (7, 7 + 2**32, 7 + 2**61)]
    streams = [Rng(7, name) for name in ("eval", "final", "report", "")]
    keys = [int(rng.keys) for rng in (*seeds, *streams)]
    assert len({*keys}) == len(keys)
    every = plies(Rng(0, "play"), 1000, 1000).keys
    assert len(np.unique(every)) == len(every)
    assert not np.isin(plies(Rng(0, "play"), 1000, 10).fold_in(CHANCE).keys, every).any()


def test_neither_the_batch_nor_the_order_of_rows_changes_a_number():
    rng, game, turn = Rng(3, "x"), torch.arange(90), torch.arange(90) % 7
    whole = rng.plies(game, turn)
    numbers = whole.uniform(90, 4)
    order = Rng(0).permutation(90)
    assert torch.equal(rng.plies(game[order], turn[order]).uniform(90, 4), numbers[order])
    assert torch.equal(whole[order].uniform(90, 4), numbers[order])
    assert torch.equal(rng.plies(game[30:] - 30, turn[30:], 30).uniform(60, 4), numbers[30:])
    assert torch.equal(rng[game].fold_in(turn).uniform(90, 4), numbers)
    assert torch.equal(whole[5:6].uniform(1, 4), numbers[5:6])


def test_a_stream_stands_for_as_many_rows_as_are_asked_for():
    rng = Rng(1, "x")
    assert torch.equal(rng.uniform(5, 3), rng.rows(9).uniform(9, 3)[:5])
    assert torch.equal(rng[torch.tensor([4, 2])].uniform(2), rng.uniform(5)[[4, 2]])
    with pytest.raises(ValueError, match="9 rows for 5"):
        rng.rows(9).uniform(5)


def test_more_numbers_begin_with_the_same_ones():
    rng = Rng(2).rows(6)
    for draw in (rng.uniform, rng.normal, rng.exponential, rng.gumbel):
        assert torch.equal(draw(6, 7)[:, :3], draw(6, 3))
        assert torch.equal(draw(6, 2, 3).flatten(1), draw(6, 6))
    assert torch.equal(rng.integers(9, 6, 7)[:, :3], rng.integers(9, 6, 3))


def test_uniform_numbers_are_uniform_in_high_and_low_bits():
    numbers = plies(Rng(0, "quality")).uniform(NUM_GAMES * NUM_PLIES, 5).flatten()
    assert 0 <= numbers.min() < numbers.max() < 1
    cells = (numbers.double() * 2**24).long()
    for part in (cells >> 16, cells & 255):
        count = torch.bincount(part, minlength=256).double()
        assert abs(deviation(count, len(part) / 256)) < 5


@pytest.mark.parametrize("other", ["game", "ply", "seed", "stream", "number", "both"])
def test_numbers_do_not_depend_on_their_neighbors(other):
    def numbers(seed=0, stream="quality", games=0, turns=0, number=0):
        game = torch.arange(games, games + NUM_GAMES).repeat_interleave(NUM_PLIES)
        turn = torch.arange(turns, turns + NUM_PLIES).repeat(NUM_GAMES)
        return Rng(seed, stream).plies(game, turn).uniform(len(game), 2)[:, number].double()

    keys = {
        "game": {"games": 1},
        "ply": {"turns": 1},
        "seed": {"seed": 1},
        "stream": {"stream": "quality2"},
        "number": {"number": 1},
        "both": {"games": 1, "turns": -1},
    }[other]
    first, second = numbers(), numbers(**keys)
    pairs = torch.bincount(((first * 16).long() * 16) + (second * 16).long(), minlength=256)
    assert abs(deviation(pairs.double(), len(first) / 256)) < 5
    correlation = torch.corrcoef(torch.stack([first, second]))[0, 1]
    assert abs(correlation) < 5 / math.sqrt(len(first))


def test_distributions_have_their_moments():
    rng, count = Rng(5, "moments"), 200_000
    error = 5 / math.sqrt(count)
    normal, gumbel = rng.normal(count).double(), rng.gumbel(count).double()
    assert abs(normal.mean()) < error
    assert abs(normal.var() - 1) < 2 * error
    assert abs((normal**4).mean() - 3) < 10 * error
    assert abs(rng.exponential(count).double().mean() - 1) < error
    assert abs(gumbel.mean() - 0.5772157) < 1.3 * error
    integers = rng.integers(6, count)
    assert abs(deviation(torch.bincount(integers, minlength=6).double(), count / 6)) < 5
    limits = torch.tensor([1, 2, 3])
    assert torch.equal(
        rng.integers(limits[:, None], 3, 50) < limits[:, None], torch.ones(3, 50) > 0
    )


@pytest.mark.parametrize("shape", [0.03, 0.3, 1.0, 2.5, 30.0])
def test_gamma_numbers_have_the_moments_of_their_shape(shape):
    count = 100_000
    numbers = Rng(6, "gamma").gamma(torch.full((count, 1), shape)).double()
    assert abs(numbers.mean() - shape) < 5 * math.sqrt(shape / count)
    spread = math.sqrt((6 * shape + 2 * shape**2) / count)  # of squared differences
    assert abs(numbers.var() - shape) < 5 * spread


def test_choices_are_in_proportion_to_their_weights():
    weights = torch.tensor([1.0, 0.0, 3.0, 4.0]).repeat(80_000, 1)
    count = torch.bincount(Rng(7).choice(weights), minlength=4).double()
    assert count[1] == 0
    assert abs(deviation(count[[0, 2, 3]], torch.tensor([1.0, 3, 4]) * 10_000)) < 5
    assert Rng(7).choice(torch.zeros(2, 3)).max() < 3


def test_permutations_hold_every_number_once():
    orders = [Rng(seed).permutation(4) for seed in range(2400)]
    assert all(order.sort().values.tolist() == [0, 1, 2, 3] for order in orders)
    found = torch.stack(orders) @ torch.tensor([64, 16, 4, 1])
    ways = [64 * a + 16 * b + 4 * c + d for a, b, c, d in itertools.permutations(range(4))]
    count = torch.tensor([float((found == way).sum()) for way in ways])
    assert abs(deviation(count, 100)) < 5


@pytest.mark.parametrize("limit", [7, torch.tensor(7), torch.tensor([7]), torch.full((3, 2), 7)])
def test_a_limit_of_integers_broadcasts(limit):
    assert torch.equal(Rng(1).integers(limit, 3, 2), Rng(1).integers(7, 3, 2))


def test_no_rows_have_no_integers():
    assert Rng(1).integers(torch.empty(0, dtype=torch.int64), 0, 2).shape == (0, 2)


@pytest.mark.parametrize("shape", [(2,), (0,), (3, 4), (6, 1)])
def test_limits_of_other_rows_are_an_error(shape):
    with pytest.raises(ValueError, match="broadcast"):
        Rng(1).integers(torch.ones(shape, dtype=torch.int64), 3, 2)


def test_numbers_of_other_rows_cannot_be_folded_in():
    rows = Rng(1).rows(3)
    with pytest.raises(ValueError, match="random numbers of 3 rows for 2"):
        rows.fold_in(torch.tensor([0, 1]))
    assert torch.equal(rows.fold_in(torch.tensor(5)).uniform(3), rows.fold_in(5).uniform(3))


@pytest.mark.parametrize("rows", [slice(0, 10, 2), slice(1, 10, 3), slice(-3, 10), slice(9, 2, -2)])
def test_a_slice_of_a_stream_is_a_slice_of_its_rows(rows):
    count = len(range(10)[rows])
    assert torch.equal(Rng(1)[rows].uniform(count), Rng(1).rows(10)[rows].uniform(count))
