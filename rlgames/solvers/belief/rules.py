"""The layouts of a fleet, and how shots change beliefs about them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Digits = NDArray[np.uint8]
Bools = NDArray[np.bool_]

MAX_CELLS = 39
"""Beliefs are numbered in base 3, and 3^39 is the last power of 3 below 2^63."""

MAX_FLOAT_CELLS = 33
"""3^33 is the last power of 3 below 2^53: up to this, products of floats are exact."""

DIGITS_PER_LOOKUP = 8
"""Numbers are decoded 8 digits at a time, by a table of 3^8 rows."""

CELLS_PER_LOOKUP = 5
"""Agreeing layouts are looked up 5 cells at a time: tables of 3^5 rows stay in the cache."""

WORD_BITS = 64

MAX_DISTINCT_WEIGHTS = 4
"""Up to this many weights, layouts are grouped by weight, so that counting them suffices."""

CHUNK = 1 << 18
"""Results of shots processed at once. Arrays of this length stay in the processor's cache."""


class Rules:
    """The layouts, and how shots change beliefs about them."""

    def __init__(
        self, layouts: Bools, weights: ArrayLike, shots: int, symmetries: ArrayLike
    ) -> None:
        layouts = np.asarray(layouts, bool)
        weight = np.asarray(weights, np.float64)
        permutations = np.asarray(symmetries, np.int64)
        if layouts.ndim != 2 or weight.shape != layouts.shape[:1]:
            shapes = f"{layouts.shape}, {weight.shape}"
            raise ValueError(f"layouts must be [L, N], weights [L]: {shapes}")
        self.cells, self.shots = layouts.shape[1], shots
        if not self.cells:
            raise ValueError("a board needs cells")
        if self.cells > MAX_CELLS:
            raise ValueError(f"boards of more than {MAX_CELLS} cells are not solved: {self.cells}")
        if shots < 1:
            raise ValueError(f"a turn needs at least one shot: {shots}")
        if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            raise ValueError("weights must be finite, none negative, and some positive")
        layouts, weight = layouts[weight > 0], weight[weight > 0]
        if (layouts.sum(1) != layouts[0].sum()).any():
            raise ValueError("all layouts must have the same number of ship cells")
        bits = np.int64(1) << np.arange(self.cells, dtype=np.int64)
        masks, first, same = np.unique(layouts @ bits, return_index=True, return_inverse=True)
        self.weights = np.bincount(same.reshape(-1), weight)
        layouts = layouts[first]
        self._check_symmetries(layouts, masks, permutations, bits)

        # 3 to the place of each cell under each symmetry, [N, G].
        self.powers = np.int64(3) ** permutations.T.copy()
        self.float_powers = self.powers.astype(np.float64)
        # Digits of all runs, and the masks of the cells shot at (digit > 0) and hit (digit 2).
        self.digits = np.array(
            list(itertools.product(range(3), repeat=DIGITS_PER_LOOKUP)), np.uint8
        )[:, ::-1]
        self.digits = np.ascontiguousarray(self.digits)
        self.combinations: dict[tuple[int, int], Ints] = {}
        self._pack(layouts)
        self.size = sum(table.nbytes for table in self.agree) + 2 * self.has.nbytes

    def _pack(self, layouts: Bools) -> None:
        """Sets of layouts as bits in words of 64: W words, those of one weight side by side."""
        values = np.unique(self.weights)
        self.has_few_weights = len(values) <= MAX_DISTINCT_WEIGHTS
        groups = (
            [np.flatnonzero(self.weights == value) for value in values]
            if self.has_few_weights
            else [np.arange(len(layouts))]
        )
        words = [-(-len(group) // WORD_BITS) for group in groups]
        ends = np.cumsum(words)
        self.words = int(ends[-1])
        # Words of each weight, and the weight of each bit where there are too many.
        self.weight_words = [
            (float(value), slice(end - count, end))
            for value, count, end in zip(values, words, ends, strict=False)
        ]
        self.bit_weights = np.zeros(self.words * WORD_BITS)
        cells = np.zeros((self.cells, self.words * WORD_BITS), bool)
        exists = np.zeros((1, self.words * WORD_BITS), bool)
        for group, count, end in zip(groups, words, ends, strict=True):
            at = (end - count) * WORD_BITS + np.arange(len(group))
            self.bit_weights[at] = self.weights[group]
            cells[:, at] = layouts[group].T
            exists[0, at] = True
        # Layouts with each cell, and without it, [N, W].
        self.has, self.lacks = _packed(cells), _packed(exists & ~cells)
        # Layouts that agree with each pattern of digits in a run of cells, [3^cells in run, W].
        self.agree = []
        self.pattern = np.zeros((self.cells, -(-self.cells // CELLS_PER_LOOKUP)), np.float32)
        for run, first in enumerate(range(0, self.cells, CELLS_PER_LOOKUP)):
            table = _packed(exists)
            for cell in range(first, min(first + CELLS_PER_LOOKUP, self.cells)):
                self.pattern[cell, run] = 3 ** (cell - first)
                # Later cells are higher digits: the patterns so far, for each of three digits.
                table = np.concatenate([table, table & self.lacks[cell], table & self.has[cell]])
            self.agree.append(table)

    def _check_symmetries(
        self, layouts: Bools, masks: Ints, permutations: Ints, bits: Ints
    ) -> None:
        if permutations.ndim != 2 or permutations.shape[1] != self.cells or not len(permutations):
            raise ValueError(f"symmetries must be [G, {self.cells}]: {permutations.shape}")
        if (np.sort(permutations, 1) != np.arange(self.cells)).any():
            raise ValueError("symmetries must be permutations of the cells")
        for permutation in permutations:
            moved = layouts @ bits[permutation]
            order = np.argsort(moved)
            if not np.array_equal(moved[order], masks) or not np.allclose(
                self.weights[order], self.weights, rtol=1e-9, atol=0
            ):
                raise ValueError("a symmetry does not map the layouts onto themselves")

    def decode(self, numbers: Ints) -> Digits:
        """The digits of beliefs, [B, N]."""
        runs = -(-self.cells // DIGITS_PER_LOOKUP)
        digits = np.empty((len(numbers), runs, DIGITS_PER_LOOKUP), np.uint8)
        for run in range(runs):
            numbers, rest = np.divmod(numbers, 3**DIGITS_PER_LOOKUP)
            digits[:, run] = self.digits[rest]
        return digits.reshape(len(numbers), runs * DIGITS_PER_LOOKUP)[:, : self.cells]

    def _numbers(self, digits: Digits) -> Ints:
        """The numbers of beliefs under each symmetry, [B, G]."""
        if self.cells <= MAX_FLOAT_CELLS:
            product: Ints = (digits.astype(np.float64) @ self.float_powers).astype(np.int64)
        else:
            product = digits.astype(np.int64) @ self.powers
        return product

    def canonical(self, digits: Digits) -> Ints:
        """The smallest number of each belief over all symmetries, [B]."""
        least: Ints = self._numbers(digits).min(1)
        return least

    def close_step(self) -> int:
        """Beliefs to close at once, so that their sets of layouts stay in the cache."""
        return int(np.clip((1 << 15) // self.words, 16, 1 << 13))

    def close(self, digits: Digits) -> tuple[Floats, Digits, Ints]:
        """Weights [B], closed beliefs [B, N] and numbers of new certain hits [B]."""
        weight = np.empty(len(digits))
        certain_hits = np.empty(len(digits), np.int64)
        closed = np.empty_like(digits)
        step = self.close_step()
        for at in range(0, len(digits), step):
            part = slice(at, at + step)
            rows = digits[part]
            patterns = (rows.astype(np.float32) @ self.pattern).astype(np.int64)
            agree = self.agree[0][patterns[:, 0]]
            for table, pattern in zip(self.agree[1:], patterns.T[1:], strict=True):
                agree &= table[pattern]
            sets = agree.T.copy()  # [W, B]
            if self.has_few_weights:
                counts = np.bitwise_count(sets)
                weight[part] = sum(
                    value * counts[words].sum(0, dtype=np.int64)
                    for value, words in self.weight_words
                )
            else:
                bits = np.unpackbits(agree.view(np.uint8), axis=1, bitorder="little")
                weight[part] = bits @ self.bit_weights
            unknown = (rows == 0).T.copy()  # [N, B]
            never, always = np.zeros_like(unknown), np.zeros_like(unknown)
            work = np.empty_like(sets)
            for cell in np.flatnonzero(unknown.any(1)):
                np.bitwise_and(sets, self.has[cell][:, None], out=work)
                never[cell] = np.bitwise_or.reduce(work, axis=0) == 0
                np.bitwise_and(sets, self.lacks[cell][:, None], out=work)
                always[cell] = np.bitwise_or.reduce(work, axis=0) == 0
            never &= unknown
            always &= unknown & ~never
            closed[part] = rows + never.T + np.uint8(2) * always.T
            certain_hits[part] = always.sum(0)
        return weight, closed, certain_hits

    def turns(self, unknown: int, certain_hits: int) -> range:
        """How many unknown cells a turn may shoot at; its other shots go to certain hits."""
        return range(max(1, self.shots - certain_hits), min(unknown, self.shots) + 1)

    def step(self, unknown: int, turns: range) -> int:
        """States to process at once."""
        results = max(self.count(unknown, j) for j in turns)
        return int(np.clip(CHUNK // results, 1, 1 << 14))

    def count(self, unknown: int, j: int) -> int:
        """The number of results of shots at j of the unknown cells, over all choices."""
        return math.comb(unknown, j) << j

    def choices(self, unknown: int, j: int) -> Ints:
        """The choices of j of the unknown cells, [C, j]."""
        if (unknown, j) not in self.combinations:
            rows = list(itertools.combinations(range(unknown), j))
            self.combinations[unknown, j] = np.array(rows, np.int64)
        return self.combinations[unknown, j]

    def results(self, digits: Digits, j: int) -> Ints:
        """Canonical numbers of beliefs after shots at j unknown cells, [2^j results, C, B].

        digits: [B, N], all rows with the same number of unknown cells. The result with bit i set
        has a hit on cell i of each choice.
        """
        size = len(digits)
        unknown = np.nonzero(digits == 0)[1].reshape(size, -1)
        count = unknown.shape[1]
        choices = self.choices(count, j)
        outcome = np.arange(2**j)[:, None]
        # A hit counts twice as much as a miss: rows of added are all misses, then all hits.
        picks = [(choices[:, i] + count * (outcome >> i & 1)).reshape(-1) for i in range(j)]
        before = self._numbers(digits)
        places = unknown.T.copy()
        least = np.empty((len(picks[0]), size), np.int64)
        work = np.empty_like(least)
        other = np.empty_like(least) if j > 1 else work
        for g in range(self.powers.shape[1]):
            powers = self.powers[:, g].copy()[places]
            first = np.concatenate([powers, 2 * powers])
            target = least if g == 0 else work
            if j == 1:
                np.add(first, before[:, g], out=target)  # picks would take all rows in order
            else:
                np.take(first + before[:, g], picks[0], axis=0, out=target, mode="clip")
                for pick in picks[1:]:
                    np.take(first, pick, axis=0, out=other, mode="clip")
                    target += other
            if g:
                np.minimum(least, work, out=least)
        return least.reshape(2**j, len(choices), size)


def _packed(bits: Bools) -> NDArray[np.uint64]:
    """Rows of bits as words, [R, W]."""
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
