"""Random streams are told apart by all bits of their seeds."""

import itertools

import pytest
import torch

from rlgames.core.rng import make_generator, restore_generator

SAME_LOW_BITS = [("shard 20747", "shard 24065"), ("shard 54897", "shard 78972")]
"""Names of streams whose seeds agree in the 32 bits that torch's manual_seed uses."""


@pytest.mark.parametrize("names", SAME_LOW_BITS)
def test_streams_differ_whose_seeds_agree_in_their_low_bits(names):
    first, second = (torch.rand(1000, generator=make_generator(0, name)) for name in names)
    assert not torch.equal(first, second)
    assert abs(torch.corrcoef(torch.stack([first, second]))[0, 1]) < 0.15


def test_seeds_differ_that_agree_in_32_bits():
    seeds = (7, 7 + 2**32, 7 + 2**61)
    streams = [torch.rand(100, generator=make_generator(seed, "play")) for seed in seeds]
    assert all(not torch.equal(*pair) for pair in itertools.combinations(streams, 2))


def test_streams_are_uniform_and_uncorrelated_from_the_start():
    numbers = torch.stack(
        [torch.rand(50, generator=make_generator(seed, "play")) for seed in range(4000)]
    )
    assert numbers.mean(0).sub(0.5).abs().max() < 5 * (1 / 12 / 4000) ** 0.5
    correlation = torch.corrcoef(numbers.T) - torch.eye(50)
    assert correlation.abs().max() < 5 / 4000**0.5


def test_equal_seeds_and_names_give_equal_numbers_also_from_a_stored_state():
    first, second = make_generator(3, "play"), make_generator(3, "play")
    restored = torch.Generator()
    assert restore_generator(restored, first.get_state())
    streams = [torch.rand(2000, generator=each) for each in (first, second, restored)]
    assert torch.equal(streams[0], streams[1])
    assert torch.equal(streams[0], streams[2])
