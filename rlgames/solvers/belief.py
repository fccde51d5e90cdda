"""The least expected number of turns of battleship, by dynamic programming over beliefs.

A belief is what the cells shot at so far have shown: each cell is unknown, a miss or a hit. It is
written as a row of digits, 0, 1 or 2 for each cell, and numbered in base 3. With w(s) the weight
of the layouts that agree with belief s and V(s) the expected number of turns still needed, the
tables hold W(s) = w(s) V(s), for which no division is needed:

    W(s) = w(s) + min over sets of cells A of Σ over results on A of W(s with those results)

Beliefs are closed before they are valued, so that many of them become one:

- A cell that no layout in agreement has counts as a miss. More cells that can matter never hurt,
  so such a cell is only ever shot at for want of others.
- A cell that all of them have counts as a hit, and as a debt: a shot still to be spent on it. Only
  the number of debts matters, not their places, since none of them tells anything. With one shot
  a turn a debt costs one turn, whenever it is paid, and is charged at once. With more, a state is a
  closed belief and its number of debts k, and a turn shoots j ≥ 1 unknown cells and pays
  shots - j debts. (A turn that only pays debts can as well be put off to the end, so j = 0 is
  left out while anything is unknown.)
- Beliefs that a symmetry turns into each other have one number: the least over all symmetries.

An unknown cell of a closed belief is one that some of the layouts in agreement have and some do
not. Shooting at one makes more cells known, so beliefs are found in the order of the number of
known cells, and valued in the opposite order. Little but their numbers and values is kept:
where memory is short, the results of shooting are worked out a second time to value them.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlgames.solvers.budget import OutOfBudget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Digits = NDArray[np.uint8]
Bools = NDArray[np.bool_]

MOST_CELLS = 39
"""Beliefs are numbered in base 3, and 3^39 is the last power of 3 below 2^63."""

MOST_CELLS_IN_FLOATS = 33
"""3^33 is the last power of 3 below 2^53: up to here products of floats give exact numbers."""

RUN = 8
"""Numbers are taken apart into runs of 8 digits, by tables of 3^8 rows."""

PACKED_RUN = 5
"""Layouts that agree are looked up by runs of 5 digits: tables of 3^5 rows stay in the cache."""

WORD = 64

MOST_WEIGHTS = 4
"""Up to here layouts are kept apart by weight, so that counting them is enough to weigh them."""

STEP = 1 << 18
"""Results of shooting worked on at once. Arrays of this length stay in the processor's cache."""

MOST_RESULTS = 1 << 22
"""Results of shooting from a single state beyond which a solution is out of reach anyway."""

MERGE = 1 << 22
"""Numbers that may wait, with repetitions, before they are merged."""


TELL_EVERY = 0.1
"""Seconds between calls for progress."""


@dataclass(frozen=True)
class BeliefSolution:
    """The optimum, and a way to play it.

    optimal: expected number of turns until all ship cells are hit.
    states: belief states valued (closed, symmetric ones counted once).
    seconds: wall-clock time that it took.
    """

    optimal: float
    states: int
    seconds: float
    _rules: _Rules = field(repr=False)
    _tables: list[_Table] = field(repr=False)
    _limits: tuple[float | None, int | None] = field(repr=False)

    def choose(self, shot: Bools, hit: Bools) -> Bools:
        """The cells of an optimal turn, bool [B, N], for cells shot at and hit, bool [B, N].

        Each row has min(shots, cells not shot at) cells, none of them shot at before. Of optimal
        sets it takes the one with the lowest cells, but never shoots only at cells whose results
        are certain while others are left. States that no play without waste leads to are solved
        when they are asked for, and remembered.

        Raises ValueError if hit is not part of shot or no layout agrees with a row, and
        OutOfBudget if states have to be solved and that takes more than solve_belief was given.
        """
        shot, hit = np.asarray(shot, bool), np.asarray(hit, bool)
        cells = self._rules.cells
        if shot.shape != hit.shape or shot.ndim != 2 or shot.shape[1] != cells:
            raise ValueError(f"shot and hit must be [B, {cells}]: {shot.shape}, {hit.shape}")
        if (hit & ~shot).any():
            raise ValueError("a cell is hit that was not shot at")
        if not len(shot):
            return np.zeros_like(shot)
        rows, where = np.unique(shot.astype(np.uint8) + hit, axis=0, return_inverse=True)
        weight, closed, debts = self._rules.close(rows)
        if (weight == 0).any():
            raise ValueError("no layout agrees with the cells shot at and hit")
        unknown = (closed == 0).sum(1)
        must = np.zeros(rows.shape, bool)
        for count in np.unique(unknown[unknown > 0]):
            same = np.flatnonzero(unknown == count)
            numbers = self._rules.canonical(closed[same])
            for due in np.unique(debts[same]):
                part = debts[same] == due
                must[same[part]] = self._best(
                    rows[same[part]], closed[same[part]], numbers[part], int(due)
                )
        # The turn is filled up with debts, then with cells that tell nothing, the lowest first.
        rank = np.where(must, 0, np.where((rows == 0) & (closed == 2), 1, 2))
        rank = np.where(rows > 0, 3, rank)
        order = np.argsort(rank, axis=1, kind="stable")[:, : self._rules.shots]
        chosen = np.zeros(rows.shape, bool)
        np.put_along_axis(chosen, order, True, axis=1)
        result: Bools = (chosen & (rows == 0))[where.reshape(-1)]
        return result

    def _best(self, rows: Digits, closed: Digits, numbers: Ints, debts: int) -> Bools:
        """The unknown cells to shoot at, [B, N], for rows with as many unknown cells and debts."""
        rules = self._rules
        size = int((closed[0] == 0).sum())
        unknown = np.nonzero(closed == 0)[1].reshape(-1, size)
        best = np.zeros(rows.shape, bool)
        if size + debts <= rules.shots:
            best |= closed == 0
            return best
        due = 0 if rules.shots == 1 else debts
        table = self._table(size, numbers, due)
        turns = rules.turns(size, due)
        step = rules.step(size, turns)
        # Cell 0 weighs most, so that of sets of one size the first in order weighs most.
        places = np.int64(1) << np.arange(rules.cells - 1, -1, -1)
        for at in range(0, len(rows), step):
            part = slice(at, at + step)
            owed = (rows[part] == 0) & (closed[part] == 2)
            totals, ranks = [], []
            for j in turns:
                results, before = rules.results(closed[part], j), due - rules.shots + j
                children = _Children.of(rules, _distinct(results.reshape(-1)), before)
                value = children.value(rules, table)[before]
                totals.append(value[children.find(results)].sum(0))  # [C, B]
                paid = owed & (np.cumsum(owed, 1) <= rules.shots - j)
                cells = unknown[part][:, rules.choices(size, j)]  # [B, C, j]
                ranks.append(places[cells].sum(2).T + paid @ places)
            total, rank = np.concatenate(totals), np.concatenate(ranks)
            # Sums are exact for whole weights; the margin is for fractions.
            tied = total <= total.min(0) * (1 + 1e-9)
            winner = np.where(tied, rank, -1).argmax(0)
            first = 0
            for j in turns:
                choices = rules.choices(size, j)
                taken = np.flatnonzero((winner >= first) & (winner < first + len(choices)))
                cells = unknown[at + taken[:, None], choices[winner[taken] - first]]
                best[at + taken[:, None], cells] = True
                first += len(choices)
        return best

    def _table(self, size: int, numbers: Ints, debts: int) -> _Table:
        """A table that has all of these states, made if there is none yet."""
        known = self._rules.cells - size
        for table in self._tables:
            if table.has(known, numbers, debts):
                return table
        budget = _Budget(*self._limits, None)
        self._tables.append(_solve(self._rules, {known: {debts: [np.unique(numbers)]}}, budget))
        return self._tables[-1]


def solve_belief(
    layouts: Bools,
    weights: ArrayLike,
    shots: int,
    symmetries: ArrayLike,
    seconds: float | None = 60,
    memory_bytes: int | None = 4 << 30,
    progress: Callable[[int], None] | None = None,
) -> BeliefSolution:
    """Find the least expected number of turns in which all ship cells are hit.

    Each turn shoots at `shots` cells not shot at before (all that are left if they are fewer);
    hits and misses are seen at the end of the turn, and nothing else is.

    layouts: bool [L, N], the cells with ships; all rows have as many. Rows may repeat.
    weights: [L], the probabilities of the layouts up to a factor, none of them negative.
    shots: cells shot at in a turn, at least 1.
    symmetries: int [G, N], permutations of the cells (cell c goes to symmetries[g, c]) that map
        the layouts with their weights onto themselves.
    seconds, memory_bytes: limits on wall-clock time and on the memory of the arrays in use, looked
        at between steps that take a fraction of a second; None for no limit.
    progress: called up to ten times a second with the number of belief states found so far, which
        stays the same while they are valued.

    Raises OutOfBudget at a limit, ValueError for more than 39 cells and for what breaks the above.
    """
    budget = _Budget(seconds, memory_bytes, progress)
    rules = _Rules(layouts, weights, shots, symmetries)
    budget.hold(rules.size)
    budget.check()
    weight, closed, debts = rules.close(np.zeros((1, rules.cells), np.uint8))
    due = int(debts[0])
    known = int((closed[0] > 0).sum())
    extra, kept = (due, 0) if shots == 1 else (0, due)
    if known == rules.cells:
        table = _Table({})
        optimal = float(math.ceil(due / shots))
    else:
        number = rules.canonical(closed)
        table = _solve(rules, {known: {kept: [number]}}, budget)
        optimal = extra + float(table.value(known, number, np.array([kept]))[0] / weight[0])
    return BeliefSolution(
        optimal, table.states, budget.elapsed(), rules, [table], (seconds, memory_bytes)
    )


class _Budget:
    """The limits on time and memory, and what has been used of them."""

    def __init__(
        self,
        seconds: float | None,
        memory_bytes: int | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.seconds, self.memory_bytes, self.progress = seconds, memory_bytes, progress
        self.start = time.perf_counter()
        self.held, self.found, self.valued = 0, 0, 0
        self.told = -math.inf

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def hold(self, size: int) -> None:
        """Count bytes as in use; a negative size gives them back."""
        self.held += size

    def spare(self, size: int) -> bool:
        """Whether there is memory to keep what can be worked out again."""
        return self.memory_bytes is None or self.held + size < self.memory_bytes / 4

    def check(self, passing: int = 0) -> None:
        """Raise OutOfBudget at a limit. passing: bytes needed in the step to come."""
        far = f"{self.found:,} states found, {self.valued:,} valued"
        if self.seconds is not None and self.elapsed() >= self.seconds:
            raise OutOfBudget(f"not done after {self.seconds:g} s: {far}")
        if self.memory_bytes is not None and self.held + passing > self.memory_bytes:
            size = self.memory_bytes / 2**30
            raise OutOfBudget(f"more than {size:g} GiB of memory would be needed: {far}")
        if self.progress is not None and self.elapsed() > self.told + TELL_EVERY:
            self.told = self.elapsed()
            self.progress(self.found)


class _Rules:
    """The layouts, and what shooting does to beliefs about them."""

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
        if self.cells > MOST_CELLS:
            raise ValueError(f"boards of more than {MOST_CELLS} cells are not solved: {self.cells}")
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
        self.digits = np.array(list(itertools.product(range(3), repeat=RUN)), np.uint8)[:, ::-1]
        self.digits = np.ascontiguousarray(self.digits)
        self.combinations: dict[tuple[int, int], Ints] = {}
        self._pack(layouts)
        self.size = sum(table.nbytes for table in self.agree) + 2 * self.has.nbytes

    def _pack(self, layouts: Bools) -> None:
        """Sets of layouts as bits in words of 64: W words, those of one weight side by side."""
        values = np.unique(self.weights)
        self.few = len(values) <= MOST_WEIGHTS
        groups = (
            [np.flatnonzero(self.weights == value) for value in values]
            if self.few
            else [np.arange(len(layouts))]
        )
        words = [-(-len(group) // WORD) for group in groups]
        ends = np.cumsum(words)
        self.words = int(ends[-1])
        # Words of each weight, and the weight of each bit where there are too many.
        self.weight_words = [
            (float(value), slice(end - count, end))
            for value, count, end in zip(values, words, ends, strict=False)
        ]
        self.bit_weights = np.zeros(self.words * WORD)
        cells = np.zeros((self.cells, self.words * WORD), bool)
        exists = np.zeros((1, self.words * WORD), bool)
        for group, count, end in zip(groups, words, ends, strict=True):
            at = (end - count) * WORD + np.arange(len(group))
            self.bit_weights[at] = self.weights[group]
            cells[:, at] = layouts[group].T
            exists[0, at] = True
        # Layouts with each cell, and without it, [N, W].
        self.has, self.lacks = _packed(cells), _packed(exists & ~cells)
        # Layouts that agree with each pattern of digits in a run of cells, [3^cells in run, W].
        self.agree = []
        self.pattern = np.zeros((self.cells, -(-self.cells // PACKED_RUN)), np.float32)
        for run, first in enumerate(range(0, self.cells, PACKED_RUN)):
            table = _packed(exists)
            for cell in range(first, min(first + PACKED_RUN, self.cells)):
                self.pattern[cell, run] = 3 ** (cell - first)
                # Higher cells are higher digits: the patterns so far, for each of three digits.
                keep = [table, table & self.lacks[cell], table & self.has[cell]]
                table = np.concatenate(keep)
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
        runs = -(-self.cells // RUN)
        digits = np.empty((len(numbers), runs, RUN), np.uint8)
        for run in range(runs):
            numbers, rest = np.divmod(numbers, 3**RUN)
            digits[:, run] = self.digits[rest]
        return digits.reshape(len(numbers), runs * RUN)[:, : self.cells]

    def _numbers(self, digits: Digits) -> Ints:
        """The numbers of beliefs under each symmetry, [B, G]."""
        if self.cells <= MOST_CELLS_IN_FLOATS:
            product: Ints = (digits.astype(np.float64) @ self.float_powers).astype(np.int64)
        else:
            product = digits.astype(np.int64) @ self.powers
        return product

    def canonical(self, digits: Digits) -> Ints:
        """The least number of each belief over all symmetries, [B]."""
        least: Ints = self._numbers(digits).min(1)
        return least

    def close_step(self) -> int:
        """Beliefs to close at once: as many as keep their sets of layouts in the cache."""
        return int(np.clip((1 << 15) // self.words, 16, 1 << 13))

    def close(self, digits: Digits) -> tuple[Floats, Digits, Ints]:
        """Weights [B], closed beliefs [B, N] and numbers of new debts [B]."""
        weight = np.empty(len(digits))
        debts = np.empty(len(digits), np.int64)
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
            if self.few:
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
            debts[part] = always.sum(0)
        return weight, closed, debts

    def turns(self, unknown: int, debts: int) -> range:
        """How many unknown cells a turn may shoot at, the turn being full with debts paid."""
        return range(max(1, self.shots - debts), min(unknown, self.shots) + 1)

    def step(self, unknown: int, turns: range) -> int:
        """States to work on at once."""
        results = max(self.count(unknown, j) for j in turns)
        return int(np.clip(STEP // results, 1, 1 << 14))

    def count(self, unknown: int, j: int) -> int:
        """Results of shooting at j of the unknown cells, over all choices."""
        return math.comb(unknown, j) << j

    def choices(self, unknown: int, j: int) -> Ints:
        """The choices of j of the unknown cells, [C, j]."""
        if (unknown, j) not in self.combinations:
            rows = list(itertools.combinations(range(unknown), j))
            self.combinations[unknown, j] = np.array(rows, np.int64)
        return self.combinations[unknown, j]

    def results(self, digits: Digits, j: int) -> Ints:
        """Least numbers of beliefs after shooting at j unknown cells, [2^j results, C, B].

        digits: [B, N], rows with as many unknown cells. The result with bit i set has a hit on
        cell i of each choice.
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


class _Table:
    """W of states, by the number of known cells."""

    def __init__(self, levels: dict[int, _Level]) -> None:
        self.levels = levels
        self.states = sum(len(level.values) for level in levels.values())

    def has(self, known: int, numbers: Ints, debts: int) -> bool:
        """Whether it has all of these beliefs with so many debts."""
        level = self.levels.get(known)
        if level is None:
            return False
        at = np.minimum(np.searchsorted(level.numbers, numbers), len(level.numbers) - 1)
        return bool(((level.numbers[at] == numbers) & (level.debts[at] >= debts)).all())

    def value(self, known: int, numbers: Ints, debts: Ints) -> Floats:
        """W of states, [B]. All of them must be there."""
        level = self.levels[known]
        at = _places(level.numbers, numbers)
        if level.starts is not None:
            at = level.starts[at] + debts
        return level.values[at]


@dataclass
class _Level:
    """Closed beliefs with the same number of known cells.

    numbers: int64 [B], rising. debts: int8 [B], the most debts that may be due; a belief has a
    state for each number of debts from 0 on. values: float64, W of the states, belief by belief;
    starts: int64 [B], where the states of each belief are, None if each belief has one.
    """

    numbers: Ints
    debts: NDArray[np.int8]
    values: Floats
    starts: Ints | None

    @classmethod
    def of(cls, numbers: Ints, debts: NDArray[np.int8]) -> _Level:
        if not debts.any():
            return cls(numbers, debts, np.full(len(numbers), np.nan), None)
        ends = np.cumsum(debts.astype(np.int64) + 1)
        return cls(numbers, debts, np.full(ends[-1], np.nan), ends - debts - 1)

    @property
    def size(self) -> int:
        starts = 0 if self.starts is None else self.starts.nbytes
        return self.numbers.nbytes + self.debts.nbytes + self.values.nbytes + starts


@dataclass
class _Children:
    """Distinct results of shooting, before they are closed.

    numbers: int64 [R], rising. weight: [R]. closed: int64 [R], the numbers of the closed beliefs.
    known: int8 [R], their numbers of known cells. new: int8 [R], the debts that closing makes.
    kept: int8 [R], the most debts that may be due before.
    """

    numbers: Ints
    weight: Floats
    closed: Ints
    known: NDArray[np.int8]
    new: NDArray[np.int8]
    kept: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        rules: _Rules,
        numbers: Ints,
        kept: int | NDArray[np.int8],
        check: Callable[[], None] = lambda: None,
    ) -> _Children:
        """Close the beliefs with these numbers, leaving out what cannot be."""
        weight = np.empty(len(numbers))
        closed = np.empty(len(numbers), np.int64)
        known, new = np.empty(len(numbers), np.int8), np.empty(len(numbers), np.int8)
        step = rules.close_step()
        for at in range(0, len(numbers), step):
            part = slice(at, at + step)
            weight[part], digits, new[part] = rules.close(rules.decode(numbers[part]))
            closed[part] = rules.canonical(digits)
            known[part] = np.count_nonzero(digits, axis=1)
            check()
        all_kept = np.broadcast_to(np.asarray(kept, np.int8), len(numbers))
        columns = (numbers, weight, closed, known, new, all_kept)
        possible = weight > 0
        if not possible.all():
            columns = tuple(column[possible] for column in columns)  # type: ignore[assignment]
        return cls(*columns)

    @property
    def size(self) -> int:
        return 27 * len(self.numbers)

    def value(self, rules: _Rules, table: _Table) -> Floats:
        """W by debts due before, [D, R + 1]; the last is 0, for what cannot be."""
        most = int(self.kept.max(initial=0))
        value = np.zeros((most + 1, len(self.numbers) + 1))
        for known in np.unique(self.known):
            rows = np.flatnonzero(self.known == known)
            for before in range(most + 1):
                rows = rows[self.kept[rows] >= before]
                debts = before + self.new[rows].astype(np.int64)
                if known == rules.cells:
                    value[before, rows] = self.weight[rows] * -(-debts // rules.shots)
                elif rules.shots == 1:
                    later = table.value(int(known), self.closed[rows], debts)
                    value[before, rows] = later + self.weight[rows] * debts
                else:
                    value[before, rows] = table.value(int(known), self.closed[rows], debts)
        return value

    def find(self, numbers: Ints) -> Ints:
        """Where the numbers are, or R for those left out."""
        at = _places(self.numbers, numbers)
        if len(self.numbers):
            missing = self.numbers[np.minimum(at, len(self.numbers) - 1)] != numbers
            at[missing] = len(self.numbers)
        return at


class _Waiting:
    """Numbers that wait to be merged, by debts due."""

    def __init__(self, budget: _Budget) -> None:
        self.budget = budget
        self.parts: dict[int, list[Ints]] = {}
        self.loose: dict[int, int] = {}

    def add(self, debts: int, numbers: Ints) -> None:
        self.parts.setdefault(debts, []).append(numbers)
        self.budget.hold(numbers.nbytes)
        self.loose[debts] = self.loose.get(debts, 0) + len(numbers)
        # The first part is what was merged last; merging once the rest has grown as large keeps
        # the work in proportion to what is added.
        if self.loose[debts] > max(MERGE, len(self.parts[debts][0])):
            self._merge(debts)

    def _merge(self, debts: int) -> Ints:
        parts = self.parts[debts]
        size = sum(part.nbytes for part in parts)
        if len(parts) > 1:
            self.budget.check(2 * size)
            parts[:] = [_distinct(np.concatenate(parts), "stable")]
            self.budget.hold(parts[0].nbytes - size)
        self.loose[debts] = 0
        return parts[0]

    def take(self) -> tuple[Ints, NDArray[np.int8]]:
        """All numbers, rising, each once, and the most debts due with each; none is left."""
        merged: list[tuple[Ints, NDArray[np.int8]]] = []
        for debts in sorted(self.parts, reverse=True):
            numbers = self._merge(debts)
            for others, _ in merged:
                at = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
                numbers = numbers[others[at] != numbers]
            if len(numbers):
                merged.append((numbers, np.full(len(numbers), debts, np.int8)))
        self.budget.hold(-sum(part.nbytes for parts in self.parts.values() for part in parts))
        self.parts.clear()
        if len(merged) == 1:
            return merged[0]
        numbers = np.concatenate([part[0] for part in merged])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.concatenate([part[1] for part in merged])[order]


def _distinct(numbers: Ints, kind: Literal["quicksort", "stable"] = "quicksort") -> Ints:
    """Each number once, rising. kind: stable is many times faster on runs that rise already."""
    numbers = np.sort(numbers, kind=kind)
    keep = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=keep[1:])
    return numbers[keep]


def _places(rising: Ints, numbers: Ints) -> Ints:
    """np.searchsorted, in rising order of the numbers: many times faster on large arrays."""
    flat = numbers.reshape(-1)
    order = np.argsort(flat)
    at = np.empty(len(flat), np.int64)
    at[order] = np.searchsorted(rising, flat[order])
    return at.reshape(numbers.shape)


def _solve(rules: _Rules, roots: dict[int, dict[int, list[Ints]]], budget: _Budget) -> _Table:
    """Value all states that can follow from the roots: numbers by known cells, then by debts."""
    waiting = {known: _Waiting(budget) for known in range(rules.cells)}
    for known, by_debts in roots.items():
        for debts, parts in by_debts.items():
            for part in parts:
                waiting[known].add(debts, part)
    levels: dict[int, _Level] = {}
    children: dict[int, _Children] = {}
    for known in range(rules.cells):
        if not waiting[known].parts:
            continue
        level = levels[known] = _Level.of(*waiting[known].take())
        budget.hold(level.size)
        budget.found += len(level.values)
        budget.check()
        found = _expand(rules, level, rules.cells - known, budget)
        _spread(rules, found, waiting)
        if budget.spare(found.size):
            children[known] = found
            budget.hold(found.size)
    table = _Table(levels)
    for known in reversed(levels):
        level = levels[known]
        kept = children.pop(known, None)
        found = kept or _expand(rules, level, rules.cells - known, budget)
        _value(rules, level, found, rules.cells - known, table, budget)
        budget.hold(-kept.size if kept else 0)
    return table


def _steps(
    rules: _Rules, level: _Level, unknown: int, budget: _Budget
) -> Iterator[tuple[int, Ints, range]]:
    """Rows of a level to work on at once: their most debts, the rows, and their turns.

    Rows with an empty range of turns are those that one turn ends, however many debts are due.
    """
    for debts in np.unique(level.debts):
        rows = np.flatnonzero(level.debts == debts)
        turns = rules.turns(unknown, int(debts))
        if unknown + debts <= rules.shots:
            yield int(debts), rows, range(0)
            continue
        results = max(rules.count(unknown, j) for j in turns)
        step = rules.step(unknown, turns)
        budget.check(8 * 6 * results * step)
        if results > MOST_RESULTS:
            raise OutOfBudget(f"{results:,} results of a turn are too many for the memory")
        for at in range(0, len(rows), step):
            yield int(debts), rows[at : at + step], turns
            budget.check()


def _expand(rules: _Rules, level: _Level, unknown: int, budget: _Budget) -> _Children:
    """All results of shooting from the states of a level."""
    raw = _Waiting(budget)
    for debts, rows, turns in _steps(rules, level, unknown, budget):
        digits = rules.decode(level.numbers[rows])
        for j in turns:
            raw.add(debts - rules.shots + j, _distinct(rules.results(digits, j).reshape(-1)))
    if not raw.parts:
        return _Children.of(rules, np.zeros(0, np.int64), 0)
    numbers, kept = raw.take()
    budget.check(27 * len(numbers))
    budget.hold(numbers.nbytes)
    children = _Children.of(rules, numbers, kept, budget.check)
    budget.hold(-numbers.nbytes)
    return children


def _spread(rules: _Rules, children: _Children, waiting: dict[int, _Waiting]) -> None:
    """Queue the closed beliefs that still need a choice."""
    for known in np.unique(children.known):
        if known == rules.cells:
            continue
        rows = np.flatnonzero(children.known == known)
        # With one shot a turn new debts are charged at once and never due.
        due = children.kept[rows] + (0 if rules.shots == 1 else children.new[rows])
        for debts in np.unique(due):
            waiting[int(known)].add(int(debts), _distinct(children.closed[rows[due == debts]]))


def _value(
    rules: _Rules,
    level: _Level,
    children: _Children,
    unknown: int,
    table: _Table,
    budget: _Budget,
) -> None:
    """Fill in the values of a level from those of the levels with more known cells."""
    budget.check(8 * (len(children.numbers) + 1) * (int(children.kept.max(initial=0)) + 1))
    after = children.value(rules, table)
    weights = np.append(children.weight, 0)
    for debts, rows, turns in _steps(rules, level, unknown, budget):
        starts = rows if level.starts is None else level.starts[rows]
        digits = rules.decode(level.numbers[rows])
        if not turns:
            weight = rules.close(digits)[0]
            for due in range(debts + 1):
                level.values[starts + due] = weight
            budget.valued += len(rows) * (debts + 1)
            continue
        best = np.full((debts + 1, len(rows)), np.inf)
        for j in turns:
            found = children.find(rules.results(digits, j))
            if j == turns[0]:
                weight = weights[found[:, 0]].sum(0)
            for due in range(rules.shots - j, debts + 1):
                total = after[due - rules.shots + j][found].sum(0).min(0)
                np.minimum(best[due], total, out=best[due])
        for due in range(debts + 1):
            # One turn is enough if it has a shot for each unknown cell and each debt.
            enough = unknown + due <= rules.shots
            level.values[starts + due] = weight if enough else weight + best[due]
        budget.valued += len(rows) * (debts + 1)
