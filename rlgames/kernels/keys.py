"""Random numbers by place, see rlgames/rng.py: of the keys of rows, or of one game's plies.

The part n of a key has the n-th number of SplitMix64 from the key on (Steele, Lea and Flood 2014)
as its own key, and the 24 highest bits of it as the key's n-th number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import GOLDEN_RATIO, Floats, Integers, Words, compiled, mix

F = np.float32

CHANCE = -1
"""The part of a ply's random numbers that the rules draw from. Players draw from 0 on."""


@compiled
def fold(key: Any, number: Any) -> Any:
    """The key of a part."""
    return mix(key + GOLDEN_RATIO * (np.uint64(number) + np.uint64(1)))


@compiled
def uniform(key: Any, number: Any) -> Any:
    """Float32 in [0, 1): the number of a key at this place."""
    return F(fold(key, number) >> np.uint64(40)) * F(2.0**-24)


@compiled
def below(key: Any, number: Any, limit: Any) -> Any:
    """The integer from 0 to limit - 1 at this place; limit: at most 2^32."""
    return np.int64(((fold(key, number) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@jit()
def fold_rows(keys: Words, numbers: Integers, folded: Words) -> None:
    """Fold numbers into keys, [R] both; one of either is for all rows."""
    for row in range(len(folded)):
        key, number = keys[row % len(keys)], numbers[row % len(numbers)]
        folded[row] = fold(key, number)


@jit()
def fold_plies(stream: Any, first: int, game: Integers, ply: Integers, folded: Words) -> None:
    """The keys of plies, [R], of games that are numbered from `first` on."""
    for row in range(len(folded)):
        folded[row] = fold(fold(stream, first + game[row]), ply[row])


@jit()
def uniform_rows(keys: Words, numbers: Floats) -> None:
    """Write the first numbers of each key, float32 [B, N]."""
    for row in range(len(keys)):
        for number in range(numbers.shape[1]):
            numbers[row, number] = uniform(keys[row], number)


@jit()
def integer_rows(keys: Words, limit: Integers, numbers: Integers) -> None:
    """The same, integers below a limit, int64 [B, N] or [1, 1] for all."""
    for row in range(len(keys)):
        for number in range(numbers.shape[1]):
            at = limit[row % limit.shape[0], number % limit.shape[1]]
            numbers[row, number] = below(keys[row], number, at)


@compiled
def normal(key: Any, number: Any) -> Any:
    """A number of the standard normal distribution (Box and Muller 1958)."""
    u = (np.float64(fold(key, 2 * number) >> np.uint64(11)) + 0.5) * 2.0**-53
    v = np.float64(fold(key, 2 * number + 1) >> np.uint64(11)) * 2.0**-53
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


@compiled
def gamma(key: Any, shape: Any) -> Any:
    """A number of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang 2000)."""
    u = (np.float64(fold(key, -1) >> np.uint64(11)) + 0.5) * 2.0**-53
    # A shape below 1 uses a number of the shape plus 1.
    factor = u ** (1 / shape) if shape < 1 else 1.0
    d = (shape + 1 if shape < 1 else shape) - 1 / 3
    attempt = 0
    while True:
        at = fold(key, attempt)
        x, attempt = normal(at, 0), attempt + 1
        v = (1 + x / np.sqrt(9 * d)) ** 3
        u = (np.float64(fold(at, 2) >> np.uint64(11)) + 0.5) * 2.0**-53
        if v > 0 and np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
            return d * v * factor


@jit()
def normal_rows(keys: Words, numbers: Floats) -> None:
    """As uniform_rows, of the standard normal distribution."""
    for row in range(len(keys)):
        for number in range(numbers.shape[1]):
            numbers[row, number] = normal(keys[row], number)


@jit()
def gamma_rows(keys: Words, shape: Floats, numbers: Floats) -> None:
    """The same of gamma distributions, shape float32 [B, N]."""
    for row in range(len(keys)):
        for number in range(numbers.shape[1]):
            key = fold(keys[row], number)
            numbers[row, number] = gamma(key, np.float64(shape[row, number]))
