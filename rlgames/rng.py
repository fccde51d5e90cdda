"""Random numbers as a function of where they are used: of a seed, a stream, a game and a ply.

Nothing advances. Whoever knows the place knows the numbers, in any process, batch and order of
rows, so that neither the batch nor the number of threads or actors changes a result, and a resumed
run needs no saved state. JAX calls the number of such a place its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.kernels.keys import (
    CHANCE,
    fold_plies,
    fold_rows,
    gamma_rows,
    integer_rows,
    normal_rows,
    uniform_rows,
)
from rlgames.kernels.words import Words

__all__ = ["CHANCE", "Rng"]

SELECTION_STREAM = "eval"
"""Evaluations during training, which select the best checkpoint of a run."""

FINAL_STREAM = "final"
"""The evaluation at the end of a run, which may select the best run of a search."""

REPORT_STREAM = "report"
"""The games of `rlgames eval`. An arena has a stream for each pair of players."""

MIN_UNIFORM = 2.0**-25
"""Half of the smallest positive number of Rng.uniform; stands for 0 in logarithms."""

Place = int | Tensor


class Rng:
    """A place: a stream of random numbers, or B rows that have a stream each.

    Equal calls return equal numbers, because nothing advances. For other numbers draw more at once,
    or draw from another part: `rng.fold_in(1).uniform(B)`. A stream can take the place of rows: its
    parts 0 to B - 1 are the rows. Call `rows` before you fold numbers into rows.

    keys: uint64, [] of a stream or [B]. device: where the numbers go; they are the same on all.
    """

    __slots__ = ("device", "keys")

    def __init__(self, seed: int = 0, stream: str = "", device: torch.device | str = "cpu") -> None:
        """The stream with this name, which depends on all bits of both."""
        digest = hashlib.blake2b(f"{seed} {stream}".encode(), digest_size=8).digest()
        self.keys: Words = np.array(int.from_bytes(digest, "little"), np.uint64)
        self.device = torch.device(device)

    def with_keys(self, keys: Words) -> Rng:
        """Other places on the same device."""
        rng = Rng.__new__(Rng)
        rng.keys, rng.device = keys, self.device
        return rng

    def __repr__(self) -> str:
        return f"<Rng of {len(self.keys)} rows>" if self.keys.ndim else "<Rng of a stream>"

    def to(self, device: torch.device | str) -> Rng:
        """The same places with another device."""
        rng = self.with_keys(self.keys)
        rng.device = torch.device(device)
        return rng

    def fold_in(self, number: Place) -> Rng:
        """The part with this number; of a tensor, int64 [B], one for each row.

        Raises ValueError where there is another number of rows.
        """
        numbers = _as_array(number)
        keys = self.rows(len(numbers)).keys if numbers.ndim and self.keys.ndim else self.keys
        folded = np.empty(numbers.shape or keys.shape, np.uint64)
        fold_rows(keys.reshape(-1), numbers.reshape(-1), folded.reshape(-1))
        return self.with_keys(folded)

    def plies(self, game: Tensor, ply: Tensor, first: int = 0) -> Rng:
        """Of a stream, the places of plies: of games, int64 [B], counted from `first` on, and
        their numbers, int64 [B], see Game.ply."""
        folded = np.empty(len(game), np.uint64)
        fold_plies(self.keys[()], first, _as_array(game), _as_array(ply), folded)
        return self.with_keys(folded)

    def __getitem__(self, rows: Tensor | slice) -> Rng:
        """These rows: int64 [N], or a slice with an end."""
        if self.keys.ndim:
            return self.with_keys(self.keys[rows if isinstance(rows, slice) else _as_array(rows)])
        if isinstance(rows, slice):
            chosen = range(max(rows.stop, (rows.start or 0) + 1))[rows]
            rows = torch.arange(chosen.start, chosen.stop, chosen.step)
        return self.fold_in(rows)

    def rows(self, count: int) -> Rng:
        """As many rows. Raises ValueError where there is another number of them."""
        if not self.keys.ndim:
            return self[:count]
        if len(self.keys) != count:
            raise ValueError(f"random numbers of {len(self.keys)} rows for {count}")
        return self

    def uniform(self, batch: int, *shape: int) -> Tensor:
        """Float32 [B, *shape] in [0, 1)."""
        return self._drawn(uniform_rows, batch, shape)

    def normal(self, batch: int, *shape: int) -> Tensor:
        """Float32 [B, *shape] of mean 0 and standard deviation 1."""
        return self._drawn(normal_rows, batch, shape)

    def exponential(self, batch: int, *shape: int) -> Tensor:
        """Float32 [B, *shape] of mean 1."""
        return self.uniform(batch, *shape).clamp_(min=MIN_UNIFORM).log_().neg_()

    def gumbel(self, batch: int, *shape: int) -> Tensor:
        """Float32 [B, *shape]: the argmax of logits plus these is a sample of their softmax."""
        return self.exponential(batch, *shape).log_().neg_()

    def integers(self, limit: Place, batch: int, *shape: int) -> Tensor:
        """Int64 [B, *shape] from 0 to limit - 1, which is below 2^32 and broadcasts. Raises
        ValueError for limits of other rows."""
        values = _as_array(limit)
        limits = values.reshape(*(values.shape[:1] or (1,)), prod(values.shape[1:]))
        numbers = np.empty((batch, prod(shape)), np.int64)
        np.broadcast_to(limits, numbers.shape)
        integer_rows(self.rows(batch).keys, limits, numbers)
        return torch.from_numpy(numbers).view(batch, *shape).to(self.device)

    def gamma(self, shape: Tensor) -> Tensor:
        """Float32 like shape, [B, N], whose numbers are above 0; of scale 1."""
        numbers = np.empty(shape.shape, np.float32)
        gamma_rows(self.rows(len(shape)).keys, _as_array(shape), numbers)
        return torch.from_numpy(numbers).to(self.device)

    def choice(self, weights: Tensor) -> Tensor:
        """Int64 [B]: a column of each row of [B, N] in proportion to the weights; any where all
        are 0."""
        total = weights.cumsum(1)
        u = self.uniform(len(weights), 1).to(total.device) * total[:, -1:]
        return torch.searchsorted(total, u, right=True)[:, 0].clamp(max=weights.shape[1] - 1)

    def permutation(self, count: int) -> Tensor:
        """Int64 [N]: of a stream, 0 to N - 1 in random order."""
        order = np.random.default_rng(self.seed).permutation(count)
        return torch.from_numpy(order).to(self.device)

    @property
    def seed(self) -> int:
        """Of a stream: a number below 2^63, for what wants a seed."""
        return int(self.keys) >> 1

    def generator(self) -> torch.Generator:
        """Of a stream, a generator of torch on the device, for what draws from one: the initial
        weights of networks, and minibatches. On the CPU it depends on 32 bits of the seed."""
        return torch.Generator(self.device).manual_seed(self.seed)

    def _drawn(self, draw: Any, batch: int, shape: tuple[int, ...]) -> Tensor:
        """Float32 [B, *shape] as a kernel writes them, [B, N]."""
        numbers = torch.empty(batch, *shape)
        draw(self.rows(batch).keys, numbers.view(batch, prod(shape)).numpy())
        return numbers.to(self.device)


def _as_array(numbers: Place) -> Any:
    return np.array(numbers) if isinstance(numbers, int) else numbers.detach().cpu().numpy()


def torch_generators(device: torch.device) -> list[torch.Generator]:
    """Torch's own generators, which a part of the user may draw from: on the CPU and on a GPU."""
    generators = [torch.default_generator]
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        generators.append(torch.cuda.default_generators[index])
    return generators


@contextmanager
def torch_seeded(rng: Rng) -> Iterator[None]:
    """A block in which torch's own generators give the numbers of a stream; after it they go on as
    if there had been none."""
    generators = torch_generators(rng.device)
    before = [generator.get_state() for generator in generators]
    for generator in generators:
        generator.manual_seed(rng.seed)
    try:
        yield
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)
