"""Where a hidden fleet may be, given the hits and misses.

Letters in shapes: B games, N cells in row-major order, S samples, P placements of single ships,
L layouts of the whole fleet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.sunk_ships import Seen, SunkShips
from rlgames.rng import Rng

MAX_ENUMERATED_LAYOUTS = 20_000
"""Beliefs are computed from the list of all layouts while it has at most this many."""

CHUNK = 1 << 12
"""Samples processed at once, so that their arrays stay in the processor's cache."""

MAX_ATTEMPTS = 16
"""Draws of a listed layout before all of them are compared with the announced sunk ships."""

LAST_PARTS = -1, -2, -3
"""The parts of a sample's random numbers for its last ship, the order of equal ships, and the
choice among samples; ship by ship it has those from 0 on."""

HIT_WEIGHT = 6.0
"""A placement is drawn this many times as often for each open hit that it covers."""


@dataclass(frozen=True)
class _Particles:
    """S samples of the fleet but for its last ship, which is not drawn.

    game: int64 [S], the row of the batch. covered: float32 [S, N], the cells of the ships placed.
    weight: float64 [S]. last: float32 [S, P], the possible placements of the last ship. placed:
    int64 [S, ships - 1], the placements of the others. rng: of the samples.
    """

    game: Tensor
    covered: Tensor
    weight: Tensor
    last: Tensor
    placed: Tensor
    rng: Rng


@dataclass(frozen=True)
class _Slots(Rows):
    """Announced sunk ships and ships afloat that samples still have to explain.

    slot: int64 [S, P], the slot that each placement fills. to_fill: int64 [S, slots], how many
    ships are still to be placed in each.
    """

    slot: Tensor
    to_fill: Tensor

    def are_open(self) -> Tensor:
        """Bool [S, P]: the placements whose slot is not full."""
        return self.to_fill.gather(1, self.slot) > 0

    def fill(self, placement: Tensor) -> None:
        """Place one ship in each sample, int64 [S, 1]."""
        slot = self.slot.gather(1, placement)
        self.to_fill.scatter_add_(1, slot, -torch.ones_like(slot))


class Posterior:
    """The distribution of the fleet given the cells shot at, those that were hit, and sunk ships
    that were announced, if any.

    All layouts that agree with the observations are equally likely. If there are few layouts, they
    are listed. Otherwise they are sampled one ship at a time: while a hit is open (covered by no
    ship yet), some ship covers the first open hit; then the remaining ships take cells that were
    not shot at. Each layout can be reached in only one way, so its importance weight is 1 ÷ the
    probability of drawing it. The last ship is not drawn: all its placements count at once.
    """

    def __init__(self, fleet: Fleet) -> None:
        layouts, ships = fleet.layouts, fleet.ships
        self.exact = layouts is not None and len(layouts) <= MAX_ENUMERATED_LAYOUTS
        self._numbered = layouts.cpu() if layouts is not None and self.exact else None
        self._listed = None if self._numbered is None else (self._numbered > 0).float()
        # What contradicts each layout: a miss where it has a ship, a hit where it has none.
        cells = None if self._listed is None else self._listed.T
        self._contradictions = None if cells is None else torch.cat([cells, 1 - cells])
        count = Counter(ships)
        self._lengths = sorted(count, reverse=True)
        tables = [fleet.placements[length] for length in self._lengths]
        self._table = torch.cat(tables).float()  # [P, N], the placements of all lengths
        sizes = torch.tensor([len(table) for table in tables])
        self._length_index = torch.arange(len(tables)).repeat_interleave(sizes)  # [P]
        self._placement_lengths = self._table.sum(1).long()
        # [P, longest ship]: the cells of each placement, the last one repeated.
        place = torch.arange(max(ships))
        self._cells = torch.cat(
            [
                table.nonzero()[:, 1].view(-1, length)[:, place.clamp(max=length - 1)]
                for table, length in zip(tables, self._lengths, strict=True)
            ]
        )
        self._fleet = torch.tensor([float(count[length]) for length in self._lengths])
        self._ship_length_index = torch.tensor([self._lengths.index(length) for length in ships])
        self._num_ships, self._ship_cells = len(ships), fleet.ship_cells

    def occupancy(self, seen: Seen, samples: int = 0, rng: Rng | None = None) -> Tensor:
        """Float32 [B, N]: the probability that each cell has a ship.

        samples: layouts drawn with rng for each game if they are not listed.
        """
        if self._listed is not None:
            agree = self.agreeing(seen)
            return (agree @ self._listed) / agree.sum(1, keepdim=True).clamp(min=1)
        assert rng is not None
        rng = rng.rows(len(seen.shot))
        counts = torch.zeros(seen.shot.shape, dtype=torch.float64)
        missing = torch.arange(len(seen.shot))
        for attempt in range(3):
            of_attempt = rng[missing].fold_in(attempt)
            counts[missing] = self._sampled_counts(seen[missing], samples, of_attempt)
            missing = missing[counts[missing].sum(1) == 0]
            if not len(missing):
                break
            samples *= 8
        for row in missing.tolist():  # no layout was found: fall back to single ships
            counts[row] = self._counts_by_ship(seen.shot[row], seen.hit[row])
        return (counts / counts.sum(1, keepdim=True) * self._ship_cells).float()

    def sample(self, seen: Seen, samples: int, rng: Rng) -> Tensor:
        """Uint8 [B, N]: for each row a numbered layout that agrees with the observations.

        The distribution is exact if the layouts are listed, and nearly so with many samples.
        Raises RuntimeError if no layout that agrees is found.
        """
        rng = rng.rows(len(seen.shot))
        if self._listed is not None:
            return self._sample_listed(seen, rng)
        result = torch.zeros(seen.shot.shape, dtype=torch.uint8)
        missing = torch.arange(len(result))
        for attempt in range(5):
            of_attempt = rng[missing].fold_in(attempt)
            layouts = self._sample_particles(seen[missing], samples, of_attempt)
            result[missing] = layouts
            missing = missing[(layouts == 0).all(1)]
            if not len(missing):
                return result
            samples *= 4
        raise RuntimeError(f"no layout was found that agrees with {len(missing)} boards")

    def agreeing(self, seen: Seen) -> Tensor:
        """Float32 [B, L]: 1 for the listed layouts that agree."""
        assert self._contradictions is not None
        assert self._numbered is not None
        misses = seen.shot & ~seen.hit
        conflicts = torch.cat([misses, seen.hit], 1).float() @ self._contradictions
        weight = (1 - conflicts).clamp_(min=0)
        sunk_ships = seen.sunk_ships
        if sunk_ships is not None:
            for row, layout in zip(
                *(each.split(CHUNK) for each in weight.nonzero().T), strict=True
            ):
                weight[row, layout] = sunk_ships[row].agree(self._numbered[layout]).float()
        return weight

    def _sample_listed(self, seen: Seen, rng: Rng) -> Tensor:
        assert self._numbered is not None
        sunk_ships = seen.sunk_ships
        weight = self.agreeing(Seen(seen.shot, seen.hit))
        index = rng.choice(weight)
        if sunk_ships is not None:
            rejected = torch.arange(len(weight))
            for attempt in range(MAX_ATTEMPTS):
                agrees = sunk_ships[rejected].agree(self._numbered[index[rejected]])
                rejected = rejected[~agrees]
                if not len(rejected):
                    break
                index[rejected] = rng[rejected].fold_in(attempt).choice(weight[rejected])
            # Few layouts agree with the rows that are left: compare all layouts.
            weight[rejected] = self.agreeing(seen[rejected])
            index[rejected] = rng[rejected].fold_in(MAX_ATTEMPTS).choice(weight[rejected])
        if not bool((weight.amax(1) > 0).all()):
            raise RuntimeError("no layout agrees with the observations")
        return self._numbered[index]

    def _sample_particles(self, seen: Seen, samples: int, rng: Rng) -> Tensor:
        """Uint8 [B, N]: one of each row's samples, by weight; all zeros where there is none."""
        result = torch.zeros(seen.shot.shape, dtype=torch.uint8)
        best = torch.full((len(result),), -torch.inf, dtype=torch.float64)
        for particles in self._particles(seen, samples, rng):
            last_ship, order, choice = (particles.rng.fold_in(part) for part in LAST_PARTS)
            last = last_ship.choice(particles.last)
            layout = self._number_ships(torch.cat([particles.placed, last[:, None]], 1), order)
            weight = particles.weight * particles.last.sum(1)
            # The largest of these scores is a draw by weight.
            score = weight.log() + choice.gumbel(len(weight)).double()
            best = best.scatter_reduce(0, particles.game, score, "amax")
            is_best = (score == best[particles.game]) & (score > -torch.inf)
            rows = is_best.nonzero()[:, 0]
            result[particles.game[rows]] = layout[rows]
        return result

    def _number_ships(self, placed: Tensor, rng: Rng) -> Tensor:
        """Uint8 [S, N] from the placements of all ships, int64 [S, ships], in any order.

        Ships of equal length are numbered at random.
        """
        length_index = self._length_index[placed]
        order = length_index.argsort(dim=1, stable=True)
        noise = rng.uniform(*placed.shape)
        # Ships sorted by length, ships of equal length shuffled.
        number = (noise + self._ship_length_index).argsort(1)
        layout = torch.zeros(len(placed), self._table.shape[1])
        for place in range(placed.shape[1]):
            cells = self._table[placed.gather(1, order[:, place, None])[:, 0]]
            layout = layout + cells * (number[:, place, None] + 1)
        return layout.to(torch.uint8)

    def _sampled_counts(self, seen: Seen, samples: int, rng: Rng) -> Tensor:
        """Float64 [B, N]: how often the cells are covered, up to a factor for each row."""
        total = torch.zeros(seen.shot.shape, dtype=torch.float64)
        for particles in self._particles(seen, samples, rng):
            last = particles.last
            covered = last.sum(1, keepdim=True) * particles.covered + last @ self._table
            total.index_add_(0, particles.game, particles.weight[:, None] * covered.double())
        return total

    def _particles(self, seen: Seen, samples: int, rng: Rng) -> Iterator[_Particles]:
        """Samples for each row, in chunks."""
        step = max(1, CHUNK // samples)
        for start in range(0, len(seen.shot), step):
            rows = slice(start, min(start + step, len(seen.shot)))
            yield self._sample_chunk(start, seen[rows], samples, rng[rows])

    def _sample_chunk(self, start: int, seen: Seen, samples: int, rng: Rng) -> _Particles:
        """start: the row of the first game."""
        hits = seen.hit.float()
        avoids_misses = (seen.shot.float() - hits) @ self._table.T == 0
        slots = None if seen.sunk_ships is None else self._slots(seen.sunk_ships, samples)
        game = torch.arange(len(hits)).repeat_interleave(samples)
        rng = rng[game].fold_in(torch.arange(samples).repeat(len(hits)))
        remaining = self._fleet.expand(len(game), -1).clone()  # ships to place, by length
        covered = torch.zeros(len(game), hits.shape[1])
        weight = torch.ones(len(game), dtype=torch.float64)
        placed = torch.zeros(len(game), 0, dtype=torch.int64)
        open_hits, possible = hits[game], avoids_misses.float()[game]
        for number in range(self._num_ships - 1):
            if slots is not None:
                possible = possible * slots.are_open()
            likelihood, ways = self._next_placements(possible, covered, open_hits, remaining)
            chosen = rng.fold_in(number).choice(likelihood)[:, None]
            probability = likelihood.gather(1, chosen)[:, 0] / likelihood.sum(1)
            chosen_ways = ways.gather(1, chosen)[:, 0]
            alive = chosen_ways > 0
            weight = torch.where(alive, weight * chosen_ways / probability, 0.0)
            cells = self._table[chosen[:, 0]]
            covered = covered + cells
            placed = torch.cat([placed, chosen], 1)
            open_hits = open_hits * (1 - cells)
            ones = torch.ones_like(chosen, dtype=remaining.dtype)
            remaining.scatter_add_(1, self._length_index[chosen], -ones)
            if slots is not None:
                slots.fill(chosen)
            rows = alive.nonzero()[:, 0]
            if number and len(rows) < 0.7 * len(alive):
                game, covered, weight, open_hits, possible, remaining, placed = (
                    column[rows]
                    for column in (game, covered, weight, open_hits, possible, remaining, placed)
                )
                slots, rng = None if slots is None else slots[rows], rng[rows]
        if slots is not None:
            possible = possible * slots.are_open()
        table = self._table.T
        fits = possible * (covered @ table == 0) * (remaining > 0)[:, self._length_index]
        last = fits * (open_hits @ table == open_hits.sum(1, keepdim=True))
        return _Particles(game + start, covered, weight, last, placed, rng)

    def _slots(self, sunk_ships: SunkShips, samples: int) -> _Slots:
        slot, to_fill = sunk_ships.slot_of_placement(self._cells, self._placement_lengths)
        # One more slot, which no ship fills, for placements that contradict the announcements.
        to_fill = torch.cat([to_fill, torch.zeros_like(to_fill[:, :1])], 1)
        return _Slots(*(each.repeat_interleave(samples, 0) for each in (slot, to_fill)))

    def _next_placements(
        self, possible: Tensor, covered: Tensor, open_hits: Tensor, remaining: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Float32 [S, P] twice: how likely each placement is to be drawn next, up to a factor, and
        in how many ways it can be the next one."""
        table = self._table.T
        fits = possible * (covered @ table == 0)
        has_open_hit = open_hits.amax(1) > 0
        first = open_hits.argmax(1)
        covers = self._table.T[first]  # [S, P], the placements over the first open hit
        # Any remaining ship may cover it; without an open hit the longest ship is next.
        longest = (remaining > 0).float().argmax(1)
        is_longest = (self._length_index == longest[:, None]).float()
        by_length = remaining[:, self._length_index]
        ways = fits * torch.where(has_open_hit[:, None], covers * by_length, is_longest)
        return ways * HIT_WEIGHT ** (open_hits @ table), ways

    def _counts_by_ship(self, shot: Tensor, hit: Tensor) -> Tensor:
        """Float64 [N]: each ship by itself, favoring placements that explain many hits."""
        fits = ((shot & ~hit).float() @ self._table.T) == 0
        weight = fits * self._fleet[self._length_index] * 10 ** (hit.float() @ self._table.T)
        return (weight @ self._table).double() + 1e-9
