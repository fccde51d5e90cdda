"""Where fleets can lie, and where they may still be, against layouts found one by one."""

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from helpers import generator, rng
from markers import one_in, slow

from rlgames.games.fleets.counts import LayoutCounter
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.posterior import Posterior
from rlgames.games.fleets.sunk_ships import Seen, ShipSlots, SunkShips

FLEETS = [(1, 5, [2]), (2, 3, [2, 1]), (3, 3, [2, 2]), (3, 4, [2, 3, 2]), (4, 2, [1, 1, 1])]
SMALL = (4, 4, [3, 2, 2])


def lines(rows, columns, length):
    """Every straight run of so many cells, as a set of cell numbers."""
    found = set()
    for r, c, (down, across) in itertools.product(range(rows), range(columns), ((0, 1), (1, 0))):
        if r + down * (length - 1) < rows and c + across * (length - 1) < columns:
            cells = [(r + i * down) * columns + c + i * across for i in range(length)]
            found.add(frozenset(cells))
    return found


def fleets(rows, columns, ships):
    """Every layout as a multiset of ships, found by trying all of them."""
    found = set()
    for chosen in itertools.product(*(lines(rows, columns, ship) for ship in ships)):
        if len(frozenset().union(*chosen)) == sum(ships):
            found.add(frozenset(chosen))
    return found


def unlisted(rows, columns, ships):
    """A fleet that is sampled, as one whose layouts are too many to list."""
    fleet = Fleet(rows, columns, ships)
    fleet.layouts = None
    return fleet


def by_number(layout, ships):
    """The cells of each ship of one numbered layout; checks that no other number is used."""
    assert set(layout.tolist()) <= set(range(len(ships) + 1))
    parts = [(layout == ship + 1).nonzero()[:, 0].tolist() for ship in range(len(ships))]
    return [frozenset(part) for part in parts]


def seen_of(layouts, share, seed):
    """Bool [B, N] twice: a random share of the cells of each layout shot at, and the hits."""
    shot = torch.rand(layouts.shape, generator=generator(seed)) < share
    return shot, shot & (layouts > 0)


def agreeing(layouts, shot, hit):
    """Bool [B, L]: which layouts agree with what was seen, cell by cell."""
    return (((layouts > 0) & shot[:, None]) == hit[:, None]).all(2)


def posteriors(rows, columns, ships):
    """The same beliefs by the list of all layouts and by samples."""
    fleet = Fleet(rows, columns, ships)
    return fleet.layouts, Posterior(fleet), Posterior(unlisted(rows, columns, ships))


@pytest.mark.parametrize(("rows", "columns", "ships"), FLEETS)
def test_every_layout_is_listed_once(rows, columns, ships):
    listed = Fleet(rows, columns, ships).layouts
    parts = [by_number(layout, ships) for layout in listed]
    for layout in parts:
        assert [len(part) for part in layout] == ships
    found = [frozenset(layout) for layout in parts]
    assert len(found) == len(set(found))
    assert set(found) == fleets(rows, columns, ships)


def test_too_many_layouts_are_not_listed():
    assert Fleet(10, 10, [5, 4, 3, 3, 2]).layouts is None


@pytest.mark.parametrize(("rows", "columns", "ships"), one_in(2, FLEETS))
def test_all_layouts_are_drawn_equally_often(rows, columns, ships):
    drawn = unlisted(rows, columns, ships).sample(20_000, rng(1))
    assert drawn.shape == (20_000, rows * columns)
    unique, count = drawn.unique(dim=0, return_counts=True)
    found: Counter[Any] = Counter()
    for layout, times in zip(unique, count.tolist(), strict=True):
        parts = by_number(layout, ships)
        assert [len(part) for part in parts] == ships
        found[frozenset(parts)] += times
    possible = fleets(rows, columns, ships)
    assert set(found) == possible
    assert_as_often(
        [found[layout] for layout in possible], [20_000 / len(possible)] * len(possible)
    )


def assert_as_often(seen, mean):
    """Pearson's test, at about five standard deviations."""
    freedom = len(mean) - 1
    distance = sum((s - m) ** 2 / m for s, m in zip(seen, mean, strict=True))
    assert distance - freedom <= 5 * (2 * max(freedom, 1)) ** 0.5


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_draws_and_probabilities_agree_with_what_was_seen_on_a_board_too_big_to_list(share):
    ships = [5, 4, 3, 3, 2]
    posterior = Posterior(Fleet(10, 10, ships))
    shot, hit = seen_of(Fleet(10, 10, ships).sample(30, rng(12)), share, 13)
    drawn = posterior.sample(Seen(shot, hit), 64, rng(14))
    assert torch.equal((drawn > 0) & shot, hit)
    for layout in drawn:
        parts = by_number(layout, ships)
        assert all(part in lines(10, 10, ship) for part, ship in zip(parts, ships, strict=True))
    found = posterior.occupancy(Seen(shot, hit), 32, rng(20))
    torch.testing.assert_close(found.sum(1), torch.full((30,), 17.0))
    torch.testing.assert_close(found[hit], torch.ones(int(hit.sum())))
    assert not found[shot & ~hit].any()
    assert float(found.max()) < 1.0001


def announced(layouts, hit, ships, names_length, seed):
    """Hits in random turns, and the announced sunk ships for them."""
    turn = torch.randint(1, 5, hit.shape, generator=generator(seed), dtype=torch.int16)
    hit_turn = torch.where(hit, turn, 0)
    slots = ShipSlots(ships, names_length)
    ship_turns = slots.sinking_turns(layouts, hit_turn)
    turns = torch.zeros_like(ship_turns)
    for now in range(1, 5):
        sunk = (ship_turns > 0) & (ship_turns <= now)
        turns = slots.record(turns, sunk, torch.full((len(hit),), now))
    return SunkShips(slots, hit_turn, turns)


def sunk_ships_of(fleet, hit_turn, names_length):
    """By the book: a multiset of what sank in which turn. fleet: a set of cells for each ship."""
    return Counter(
        (len(ship) if names_length else 0, max(hit_turn[cell] for cell in ship))
        for ship in fleet
        if all(hit_turn[cell] for cell in ship)
    )


@pytest.mark.parametrize("names_length", [True, False])
@pytest.mark.parametrize(
    ("rows", "columns", "ships"),
    [SMALL, (1, 9, [2, 2, 1]), (4, 4, [2, 2, 2]), slow((4, 5, [4, 3, 2, 2])), slow((3, 5, [3]))],
)
def test_draws_counts_and_probabilities_agree_with_the_announced_sunk_ships(
    rows, columns, ships, names_length
):
    """Each row has its own history; all layouts that explain it are equally likely."""
    listed, exact, sampled = posteriors(rows, columns, ships)
    layouts = unlisted(rows, columns, ships).sample(40, rng(15))
    shot, hit = seen_of(layouts, 0.7, 16)
    sunk_ships = announced(layouts, hit, ships, names_length, 18)
    seen = Seen(shot, hit, sunk_ships)
    drawn = [posterior.sample(seen, 16, rng(17)) for posterior in (exact, sampled)]
    num_samples = 4_000 if len(ships) < 4 else 40_000
    found = [posterior.occupancy(seen, num_samples, rng(19)) for posterior in (exact, sampled)]
    counter = LayoutCounter(Fleet(rows, columns, ships), sunk_ships.slots)
    counted, total = counter.occupancy(seen, 10**9)
    assert all(torch.equal((each > 0) & shot, hit) for each in drawn)
    fleets_listed = [by_number(layout, ships) for layout in listed]
    agree = agreeing(listed, shot, hit)
    has_excluded = False
    for row, layout in enumerate(layouts):
        hit_turn = sunk_ships.hit_turn[row].tolist()
        truth = sunk_ships_of(by_number(layout, ships), hit_turn, names_length)
        for each in drawn:
            assert sunk_ships_of(by_number(each[row], ships), hit_turn, names_length) == truth
        candidates = agree[row].nonzero()[:, 0].tolist()
        possible = [
            number
            for number in candidates
            if sunk_ships_of(fleets_listed[number], hit_turn, names_length) == truth
        ]
        has_excluded |= len(possible) < len(candidates)
        expected = (listed[possible] > 0).double().mean(0)
        assert total[row] == len(possible)
        assert counted[row] == pytest.approx(expected.numpy(), abs=1e-12)
        for each, tolerance in zip(found, (1e-5, 0.06), strict=True):
            assert float((each[row] - expected).abs().max()) < tolerance
    assert has_excluded == (len(ships) > 1)


@pytest.mark.parametrize("listing", [True, False])
def test_a_board_that_no_layout_agrees_with_is_refused(listing):
    rows, columns, ships = SMALL
    _, exact, sampled = posteriors(rows, columns, ships)
    shot = torch.ones(1, 16, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="no layout"):
        (exact if listing else sampled).sample(Seen(shot, ~shot), 8, rng())


# Board, fleet, cells shot at, cells hit: nothing seen, misses alone, and hits open to more ships.
SEEN = [
    (4, 4, [3, 2], [], []),
    (4, 4, [3, 2], [0, 5, 10], []),
    (4, 4, [3, 2], [5, 6, 9, 3], [5, 6]),
    (4, 4, [3, 2], [0, 1, 2, 4, 15], [0, 1, 4]),
    (3, 3, [2, 2], [4], [4]),
    (3, 3, [2, 2], [0, 1, 8], [0, 1]),
    (4, 4, [2, 2], [1, 2, 5, 12], [1, 2, 5]),
    (5, 5, [3, 2, 2], [0, 6, 12, 13, 17, 24], [6, 12, 13]),
    (5, 5, [3, 2, 2], [5, 6, 7, 11, 8, 1, 2, 21, 23], [5, 6, 7, 11, 21]),
]


def board_of(cells, shot, hit):
    """Bool [1, N] twice."""
    marks = torch.zeros(2, 1, cells, dtype=torch.bool)
    marks[0, 0, shot], marks[1, 0, hit] = True, True
    return marks[0], marks[1]


def fleets_that_agree(rows, columns, ships, shot, hit):
    return [
        fleet
        for fleet in fleets(rows, columns, ships)
        if len(fleet) == len(ships) and frozenset().union(*fleet) & set(shot) == set(hit)
    ]


@pytest.mark.parametrize(("rows", "columns", "ships", "shot", "hit"), SEEN)
def test_sampled_probabilities_are_those_of_fleets_found_by_trying(rows, columns, ships, shot, hit):
    possible = fleets_that_agree(rows, columns, ships, shot, hit)
    count = Counter(cell for fleet in possible for ship in fleet for cell in ship)
    expected = torch.tensor([count[cell] / len(possible) for cell in range(rows * columns)])
    sampled = Posterior(unlisted(rows, columns, ships))
    assert not sampled.exact
    shots, hits = board_of(rows * columns, shot, hit)
    found = sampled.occupancy(Seen(shots, hits), 20_000, rng(25))[0]
    assert float((found - expected).abs().max()) < 0.03
    assert float(found.sum()) == pytest.approx(sum(ships), rel=1e-5)
    assert found[hit].tolist() == pytest.approx([1] * len(hit))
    assert found[[cell for cell in shot if cell not in hit]].tolist() == pytest.approx(
        [0] * (len(shot) - len(hit))
    )


def test_ships_of_equal_length_have_either_number_as_often():
    nothing = torch.zeros(4000, 6, dtype=torch.bool)
    drawn = Posterior(unlisted(2, 3, [2, 2])).sample(Seen(nothing, nothing), 8, rng(27))
    parts = [by_number(layout, [2, 2]) for layout in drawn]
    earlier = sum(min(first) < min(second) for first, second in parts)
    assert_as_often([earlier, 4000 - earlier], [2000, 2000])


@pytest.mark.parametrize("listing", [True, False])
def test_rows_are_drawn_independently(listing):
    """Every pair of fleets is as likely in rows that stand side by side."""
    rows, columns, ships = 2, 3, [2, 2]
    _, exact, sampled = posteriors(rows, columns, ships)
    nothing = torch.zeros(8000, 6, dtype=torch.bool)
    drawn = (exact if listing else sampled).sample(Seen(nothing, nothing), 64, rng(28))
    names = [frozenset(by_number(layout, ships)) for layout in drawn]
    found = Counter(zip(names[::2], names[1::2], strict=True))
    possible = list(itertools.product(fleets(rows, columns, ships), repeat=2))
    assert_as_often([found[pair] for pair in possible], [4000 / len(possible)] * len(possible))


@pytest.mark.parametrize("listing", [True, False])
def test_one_row_that_cannot_be_leaves_the_others_alone(listing):
    rows, columns, ships = SMALL
    _, exact, sampled = posteriors(rows, columns, ships)
    shot, hit = seen_of(unlisted(rows, columns, ships).sample(9, rng(29)), 0.4, 30)
    expected = exact.occupancy(Seen(shot, hit), 1, rng())
    shot[4], hit[4] = True, False
    found = (exact if listing else sampled).occupancy(Seen(shot, hit), 1000, rng(31))
    others = torch.arange(9) != 4
    assert float((found - expected)[others].abs().max()) < 0.1
    assert found.isfinite().all()
