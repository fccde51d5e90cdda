"""Fleets of straight ships on a rectangle: where they can lie, and where they may still be.

Letters in shapes: B games, N cells in row-major order, S samples, K placements of one ship,
L layouts of the whole fleet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

Agrees = Callable[[Tensor, Tensor], Tensor]

TABLE_CELLS = 20_000_000
"""Layouts are listed in full while the list has at most this many cells."""

MAX_ENUMERATED_LAYOUTS = 20_000
"""Beliefs are worked out from the list itself while it has at most this many layouts."""

CHUNK = 1 << 12
"""Samples worked on at once, so that their arrays stay in the processor's cache."""

MAX_ATTEMPTS = 16
"""A listed layout is drawn so often before all of them are asked whether they agree."""

MAX_OPERATIONS = 1_000_000_000
"""Cells that are filled at most in looking for one way to lay a fleet at random."""

MAX_WEIGHT_RATIO = 6.0
"""A placement is drawn so many times as often for each open hit that it covers."""


def placements(rows: int, columns: int, length: int) -> Tensor:
    """Uint8 [K, N]: the K ways to lay one ship, across or down, each once."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    lines = [grid[r, c : c + length] for r in range(rows) for c in range(columns - length + 1)]
    if length > 1:
        lines += [grid[r : r + length, c] for r in range(rows - length + 1) for c in range(columns)]
    table = torch.zeros(len(lines), rows * columns, dtype=torch.uint8)
    return table.scatter_(1, torch.tensor(np.array(lines), dtype=torch.int64), 1)


def enumerate_layouts(rows: int, columns: int, ships: list[int]) -> Tensor | None:
    """Uint8 [L, N]: every layout once, 0 for sea and 1, 2, ... for the ships as they are given.

    Ships of equal length are not told apart: the earlier one has the earlier placement. None where
    the layouts are too many to list.
    """
    cells = rows * columns
    layouts = torch.zeros(1, cells, dtype=torch.uint8)
    last: dict[int, Tensor] = {}  # the placement chosen last for each length, by layout
    order = sorted(range(len(ships)), key=lambda ship: -ships[ship])
    for ship in order:
        table = placements(rows, columns, ships[ship])
        if len(layouts) * len(table) * cells > 20 * TABLE_CELLS:
            return None
        free = ((layouts > 0).float() @ table.T.float()) == 0
        if ships[ship] in last:
            free &= torch.arange(len(table)) > last[ships[ship]][:, None]
        layout, placement = free.nonzero().T
        if len(layout) * cells > TABLE_CELLS:
            return None
        layouts = layouts[layout] + (ship + 1) * table[placement]
        last = {length: chosen[layout] for length, chosen in last.items()}
        last[ships[ship]] = placement
    return layouts


def sample_layouts(
    rows: int, columns: int, ships: list[int], batch: int, rng: torch.Generator
) -> Tensor:
    """Uint8 [B, N], numbered as in list_layouts: all layouts equally likely.

    Raises ValueError where two million random placements of the fleet all overlapped, or as many
    as WORK cells take.
    """
    of_length = {ship: placements(rows, columns, ship).to(rng.device) for ship in {*ships}}
    tables = [of_length[ship] for ship in ships]
    most = min(2_000_000, MAX_OPERATIONS // (rows * columns * len(ships)))
    accepted: list[Tensor] = []
    missing, tried = batch, 0
    while missing > 0:
        tries = max(4 * missing, 1024)
        covered = torch.zeros(tries, rows * columns, dtype=torch.uint8, device=rng.device)
        number = torch.zeros_like(covered)
        for ship, table in enumerate(tables):
            row = torch.randint(len(table), (tries,), generator=rng, device=rng.device)
            chosen = table[row]
            covered += chosen
            number += (ship + 1) * chosen
        # Redrawing a layout that overlaps keeps all layouts equally likely.
        fitting = number[covered.amax(1) == 1][:missing]
        accepted.append(fitting)
        missing -= len(fitting)
        tried += tries
        if tried > most and missing == batch:
            raise ValueError(
                f"ships={ships} could not be placed on {rows}x{columns} cells: {tried:,} random "
                "placements all overlapped; take fewer or shorter ships"
            )
    return torch.cat(accepted)


class Posterior:
    """Where the fleet may be, given the cells shot at and the ones that were hit.

    All layouts that agree with what was seen are equally likely. They are listed where they are
    few. Otherwise they are sampled one ship at a time: while a hit is open, some ship is laid over
    the first open one; then the ships left are laid where nothing was shot at. Each layout can be
    reached in one way only, so that its weight is 1 ÷ the probability of drawing it. The last
    ship is not drawn: all its places count at once.
    """

    def __init__(
        self, rows: int, columns: int, ships: list[int], listed: Tensor | None = None
    ) -> None:
        self.exact = listed is not None and len(listed) <= MAX_ENUMERATED_LAYOUTS
        self._numbered = listed if self.exact else None
        self._listed = None if self._numbered is None else (self._numbered > 0).float()
        # What speaks against each layout: a miss where it has a ship, a hit where it has none.
        cells = None if self._listed is None else self._listed.T
        self._against = None if cells is None else torch.cat([cells, 1 - cells])
        count = Counter(ships)
        self._lengths = sorted(count, reverse=True)
        tables = [placements(rows, columns, length) for length in self._lengths]
        self._table = torch.cat(tables).float()  # [P, N], the placements of every length
        sizes = torch.tensor([len(table) for table in tables])
        self._kind = torch.arange(len(tables)).repeat_interleave(sizes)  # [P]
        self._fleet = torch.tensor([float(count[length]) for length in self._lengths])
        self._kind_of_ship = torch.tensor([self._lengths.index(length) for length in ships])
        self._num_ships = len(ships)
        self._ship_cells = sum(ships)

    def occupied(
        self, shot: Tensor, hit: Tensor, samples: int = 0, rng: torch.Generator | None = None
    ) -> Tensor:
        """Float32 [B, N]: the probability that each cell has a ship, from bool [B, N] twice.

        samples: how many layouts are drawn with rng for each game where they are not listed.
        """
        if self._listed is not None:
            agree = self._agreeing(shot, hit)
            return (agree @ self._listed) / agree.sum(1, keepdim=True).clamp(min=1)
        assert rng is not None
        found = torch.zeros(shot.shape, dtype=torch.float64)
        waiting = torch.arange(len(shot))
        for _ in range(3):
            found[waiting] = self._sampled(shot[waiting], hit[waiting], samples, rng)
            waiting = waiting[found[waiting].sum(1) == 0]
            if not len(waiting):
                break
            samples *= 8
        for row in waiting.tolist():  # nothing was found: go by single ships, hits first
            found[row] = self._by_single_ships(shot[row], hit[row])
        return (found / found.sum(1, keepdim=True) * self._ship_cells).float()

    def sample(
        self,
        shot: Tensor,
        hit: Tensor,
        samples: int,
        rng: torch.Generator,
        agrees: Agrees | None = None,
    ) -> Tensor:
        """Uint8 [B, N]: a layout for each row that agrees with what was seen, numbered.

        agrees: whether layouts, uint8 [n, N], also agree with whatever else is known of the games
        in these rows, int64 [n]: bool [n]. A draw is exactly as likely as it should be where
        layouts are listed, and nearly so with many samples.
        Raises RuntimeError where hardly any layout agrees and none of them is found.
        """
        if self._listed is not None:
            return self._draw_listed(shot, hit, rng, agrees)
        result = torch.zeros(shot.shape, dtype=torch.uint8)
        waiting = torch.arange(len(shot))
        for _ in range(5):
            found = self._draw_sampled(
                shot[waiting],
                hit[waiting],
                samples,
                rng,
                None if agrees is None else _of_rows(agrees, waiting),
            )
            result[waiting] = found
            waiting = waiting[(found == 0).all(1)]
            if not len(waiting):
                return result
            samples *= 4
        raise RuntimeError(f"no layout was found that agrees with {len(waiting)} boards")

    def _draw_listed(
        self, shot: Tensor, hit: Tensor, rng: torch.Generator, agrees: Agrees | None
    ) -> Tensor:
        assert self._numbered is not None
        agree = self._agreeing(shot, hit)
        drawn = _draw(agree, rng)
        if agrees is not None:
            waiting = torch.arange(len(agree))
            for _ in range(MAX_ATTEMPTS):
                waiting = waiting[~agrees(waiting, self._numbered[drawn[waiting]])]
                if not len(waiting):
                    break
                drawn[waiting] = _draw(agree[waiting], rng)
            # What was turned down so often is rare: ask about every layout.
            row, layout = agree[waiting].nonzero().T
            agree[waiting[row], layout] = agrees(waiting[row], self._numbered[layout]).float()
            drawn[waiting] = _draw(agree[waiting], rng)
        if not bool((agree.amax(1) > 0).all()):
            raise RuntimeError("no layout agrees with what was seen")
        return self._numbered[drawn]

    def _draw_sampled(
        self,
        shot: Tensor,
        hit: Tensor,
        samples: int,
        rng: torch.Generator,
        agrees: Agrees | None,
    ) -> Tensor:
        """Uint8 [B, N]: one of the samples of each row, by weight; nothing but sea where none."""
        result = torch.zeros(shot.shape, dtype=torch.uint8)
        best = torch.full((len(shot),), -torch.inf, dtype=torch.float64)
        for games, _, weight, last, placed in self._particles(shot, hit, samples, rng):
            layout = self._number(torch.cat([placed, _draw(last, rng)[:, None]], 1), rng)
            mass = weight * last.sum(1)
            if agrees is not None:
                mass = mass * agrees(games, layout)
            noise = torch.empty(len(mass), dtype=torch.float64).exponential_(generator=rng)
            # The largest of these is a draw by weight.
            score = mass.log() - noise.clamp(min=1e-30).log()
            best = best.scatter_reduce(0, games, score, "amax")
            pick = ((score == best[games]) & (score > -torch.inf)).nonzero()[:, 0]
            result[games[pick]] = layout[pick]
        return result

    def _number(self, placed: Tensor, rng: torch.Generator) -> Tensor:
        """Uint8 [S, N] from the placements of all ships, int64 [S, ships], in any order.

        Ships of equal length are numbered at random.
        """
        kind = self._kind[placed]
        order = kind.argsort(dim=1, stable=True)
        noise = torch.rand(placed.shape, generator=rng)
        number = (noise + self._kind_of_ship).argsort(1)  # ships by kind, equal ones shuffled
        layout = torch.zeros(len(placed), self._table.shape[1])
        for place in range(placed.shape[1]):
            cells = self._table[placed.gather(1, order[:, place, None])[:, 0]]
            layout = layout + cells * (number[:, place, None] + 1)
        return layout.to(torch.uint8)

    def _agreeing(self, shot: Tensor, hit: Tensor) -> Tensor:
        """Float32 [B, L]: 1 for the listed layouts that agree."""
        assert self._against is not None
        conflicts = torch.cat([shot & ~hit, hit], 1).float() @ self._against
        return (1 - conflicts).clamp_(min=0)

    def _sampled(self, shot: Tensor, hit: Tensor, samples: int, rng: torch.Generator) -> Tensor:
        """Float64 [B, N]: how often the cells are covered, up to a factor for each row."""
        total = torch.zeros(shot.shape, dtype=torch.float64)
        for games, laid, weight, last, _ in self._particles(shot, hit, samples, rng):
            cover = last.sum(1, keepdim=True) * laid + last @ self._table
            total.index_add_(0, games, weight[:, None] * cover.double())
        return total

    def _particles(
        self, shot: Tensor, hit: Tensor, samples: int, rng: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
        """Chunks of samples: game int64 [S], cells laid float32 [S, N] by all ships but the last,
        weight float64 [S], the places of the last ship, float32 [S, P], and the placements of the
        others, int64 [S, ships - 1]."""
        step = max(1, CHUNK // samples)
        for start in range(0, len(shot), step):
            part = slice(start, start + step)
            seen, hits = shot[part].float(), hit[part].float()
            base = ((seen - hits) @ self._table.T == 0).float()
            yield self._chunk(start, base, hits, samples, rng)

    def _chunk(
        self, start: int, base: Tensor, hits: Tensor, samples: int, rng: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        games = torch.arange(len(hits)).repeat_interleave(samples)
        left = self._fleet.expand(len(games), -1).clone()  # ships not laid yet, by length
        laid = torch.zeros(len(games), hits.shape[1])
        weight = torch.ones(len(games), dtype=torch.float64)
        history = torch.zeros(len(games), 0, dtype=torch.int64)
        open_, base = hits[games], base[games]
        for number in range(self._num_ships - 1):
            likely, allowed = self._choices(base, laid, open_, left)
            placed = _draw(likely, rng)[:, None]
            chance = likely.gather(1, placed)[:, 0] / likely.sum(1)
            ways = allowed.gather(1, placed)[:, 0]
            alive = ways > 0
            weight = torch.where(alive, weight * ways / chance, 0.0)
            cells = self._table[placed[:, 0]]
            laid = laid + cells
            history = torch.cat([history, placed], 1)
            open_ = open_ * (1 - cells)
            left.scatter_add_(1, self._kind[placed], -torch.ones_like(placed, dtype=left.dtype))
            keep = alive.nonzero()[:, 0]
            if number and len(keep) < 0.7 * len(alive):
                games, laid, weight, open_, base, left, history = (
                    field[keep] for field in (games, laid, weight, open_, base, left, history)
                )
        table = self._table.T
        fits = base * (laid @ table == 0) * (left > 0)[:, self._kind]
        last = fits * (open_ @ table == open_.sum(1, keepdim=True))
        return games + start, laid, weight, last, history

    def _choices(
        self, base: Tensor, laid: Tensor, open_: Tensor, left: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Float32 [S, P] twice: how likely each placement is to be drawn next, up to a factor, and
        in how many ways it can be the next one."""
        table = self._table.T
        fits = base * (laid @ table == 0)
        any_open = open_.amax(1) > 0
        first = open_.argmax(1)
        covers = self._table.T[first]  # [S, P], the placements over the first open hit
        # Any ship left may cover it; with no hit open the longest ship left is next.
        longest = (left > 0).float().argmax(1)
        of_next = (self._kind == longest[:, None]).float()
        allowed = fits * torch.where(any_open[:, None], covers * left[:, self._kind], of_next)
        return allowed * MAX_WEIGHT_RATIO ** (open_ @ table), allowed

    def _by_single_ships(self, shot: Tensor, hit: Tensor) -> Tensor:
        """Float64 [N]: each ship by itself, the more hits it would explain the likelier."""
        fits = ((shot & ~hit).float() @ self._table.T) == 0
        weight = fits * self._fleet[self._kind] * 10 ** (hit.float() @ self._table.T)
        return (weight @ self._table).double() + 1e-9


def _draw(weight: Tensor, rng: torch.Generator) -> Tensor:
    """Int64 [S]: a column for each row of float32 [S, P], by weight; any where all are 0."""
    total = weight.cumsum(1)
    u = torch.rand(len(weight), 1, generator=rng) * total[:, -1:]
    return torch.searchsorted(total, u, right=True)[:, 0].clamp(max=weight.shape[1] - 1)


def _of_rows(agrees: Agrees, rows: Tensor) -> Agrees:
    """The same question about games that stand elsewhere in the batch."""
    return lambda here, layouts: agrees(rows[here], layouts)
