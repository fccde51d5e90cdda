"""Games of hidden fleets against the rule books: two-player Salvo, and what Battleship shows."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
import torch
from helpers import rng
from markers import one_in
from reference_rules import DuelBook, SalvoBook
from test_fleets import assert_as_often, fleets, unlisted

from rlgames.games.battleship import Battleship
from rlgames.games.capabilities import ExactKey, find
from rlgames.games.fleets import game as fleets_module
from rlgames.games.fleets.posterior import Posterior
from rlgames.games.notation import render
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.rollouts.conformance import count_contradictions

DUELS = [
    (2, 2, [1]),
    (2, 3, [2, 1]),
    (1, 5, [1, 1, 1]),
    (3, 3, [2, 2, 1]),
    (4, 4, [3, 2, 2]),
    (3, 2, [1, 1, 1, 1]),
]
SEAS = [
    (1, 6, [3], 1, "joint"),
    (1, 7, [2, 2], 3, "joint"),
    (3, 3, [2, 1], 2, "joint"),
    (3, 3, [2, 1], 2, "sequential"),
    (3, 4, [3, 2, 2], 5, "sequential"),
    (2, 4, [1, 2, 1], 1, "auto"),
]
SHOW = ["sunk", "first_hit", "sizes"]


def cells_of(marks):
    """The set of cells that are marked in bool [N]."""
    return set(marks.nonzero()[:, 0].tolist())


def ships_of(layout, count):
    """The cells of each ship of one numbered layout, uint8 [N]."""
    return [cells_of(layout == number + 1) for number in range(count)]


def plane(cells, area):
    return [float(cell in cells) for cell in range(area)]


def sampling_posterior(game):
    """As if there were too many layouts to list."""
    return Posterior(unlisted(game.rows, game.columns, game.fleet.ships))


def play(game, state, books, compare, plies):
    """Play batched and by the book; plies: for every ply a number a row to choose by."""
    compare(game, state, books)
    for numbers in plies:
        options = [book.legal_action_mask() or range(game.spec.actions) for book in books]
        chosen = [
            actions[number % len(actions)] for actions, number in zip(options, numbers, strict=True)
        ]
        state = game.apply_action(state, torch.tensor(chosen))
        for book, action in zip(books, chosen, strict=True):
            if not book.done:
                book.play(action)
        compare(game, state, books)
    assert all(book.done for book in books)


def random_numbers(rows, columns, batch, plies):
    draw = random.Random(rows * 10 + columns)
    return [[draw.randrange(1 << 20) for _ in range(batch)] for _ in range(plies)]


# ---------------------------------------------------------------- Two-player Salvo: by the book


def start(rows, columns, fleets):
    """One game with the given ships of both seats, each ship a set of cells."""
    game = SalvoDuel(rows, columns, [len(ship) for ship in fleets[0]])
    state = game.initial(1, rng())
    ships = torch.zeros_like(state.ships)
    for seat, fleet in enumerate(fleets):
        for number, ship in enumerate(fleet, 1):
            ships[0, seat, sorted(ship)] = number
    return game, replace(state, ships=ships, own=ships[:, 0])


def books_of(game, state):
    """A rule book for each row, with the fleets of that row."""
    count = len(game.fleet)
    return [
        DuelBook(game.rows, game.columns, [ships_of(layout, count) for layout in row], game.shots)
        for row in state.ships
    ]


def hits_of(book, seat):
    return book.shot[seat] & set().union(*book.fleets[1 - seat])


def duel_planes(book, ships):
    """What the mover may see, plane by plane, as the rule book has it."""
    current_seat, other, area = book.current_seat, 1 - book.current_seat, book.area
    shot, hit = book.shot[current_seat], hits_of(book, current_seat)
    against, struck = book.shot[other], hits_of(book, other)
    mine, theirs = len(book.afloat(current_seat)), len(book.afloat(other))
    planes = [
        plane(set(range(area)) - shot, area),
        plane(shot - hit, area),
        plane(hit, area),
        plane(set().union(*book.fleets[current_seat]), area),
        plane(against - struck, area),
        plane(struck, area),
        plane(book.action_cells, area),
    ]
    planes += [
        [share] * area
        for share in (
            len(book.action_cells) / (book.every_turn or max(mine, 1)),
            mine / ships,
            theirs / ships,
        )
    ]
    for seat in (current_seat, other):
        turn, sunk = book.hit_turn[seat], book.sunk_turns[seat]
        planes.append([turn.get(cell, 0) / (2 * area) for cell in range(area)])
        planes.append([sunk.count(turn.get(cell, -1)) / ships for cell in range(area)])
    return planes


def compare_duel(game, state, books):
    """Everything that a rule book knows, of every row."""
    assert state.done.tolist() == [book.done for book in books]
    assert state.current_seat.tolist() == [book.current_seat for book in books]
    assert state.turn.tolist() == [book.turn for book in books]
    assert state.score.tolist() == [book.score for book in books]
    legal, observation = game.legal_action_mask(state), game.observe(state).flatten(2)
    count = len(game.fleet)
    expected = [duel_planes(book, count) for book in books]
    torch.testing.assert_close(observation, torch.tensor(expected))
    for row, book in enumerate(books):
        assert sorted(cells_of(legal[row])) == (
            list(range(book.area)) if book.done else book.legal_action_mask()
        )
        for seat in range(2):
            assert cells_of(state.shot[row, seat]) == book.shot[seat]
            assert cells_of(state.hit[row, seat]) == hits_of(book, seat)
            assert int(state.afloat[row, seat]) == len(book.afloat(seat))
            turns = state.sunk_turn[row, seat].tolist()
            assert turns == book.sunk_turns[seat] + [0] * (count - len(book.sunk_turns[seat]))
        assert cells_of(state.aimed[row]) == set(book.action_cells)
        assert ships_of(state.own[row], count) == book.fleets[book.current_seat]


@pytest.mark.parametrize("shots", [None, 1, 2])
@pytest.mark.parametrize(("rows", "columns", "ships"), DUELS)
def test_many_random_duels_play_by_the_book_to_their_end(rows, columns, ships, shots):
    game = SalvoDuel(rows, columns, ships, shots)
    state = game.initial(60, rng(1))
    books = books_of(game, state)
    play(game, state, books, compare_duel, random_numbers(rows, columns, 60, game.spec.max_plies))
    assert sorted(books[0].score) == [-1, 1]


# ---------------------------------------------------------------- Two-player Salvo: by hand


def fire(game, state, *cells):
    for cell in cells:
        assert game.legal_action_mask(state)[0, cell]
        state = game.apply_action(state, torch.tensor([cell]))
    return state


def test_results_of_a_salvo_appear_only_at_its_end():
    game, state = start(2, 3, [[{0, 1}, {5}], [{0, 3}, {1}]])
    at_a_hit, at_a_miss = fire(game, state, 1), fire(game, state, 2)
    for state in (at_a_hit, at_a_miss):
        assert (int(state.current_seat), int(state.turn)) == (0, 0)
        assert not state.shot.any()
        assert not state.hit.any()
        assert state.afloat.tolist() == [[2, 2]]
        assert game.observe(state)[0, 7].unique().tolist() == [0.5]
    assert game.boards(at_a_hit, 0)[0][0] == [".", "+", "."]
    assert "your hits: none\nyour sunk: none\n" in render(game, at_a_hit, 0)
    ended = fire(game, at_a_hit, 2)
    assert cells_of(ended.shot[0, 0]) == {1, 2}
    assert cells_of(ended.hit[0, 0]) == {1}
    assert ended.afloat.tolist() == [[2, 1]]
    assert not ended.aimed.any()
    assert torch.equal(fire(game, at_a_miss, 1).hit, ended.hit)


def test_a_salvo_ends_early_when_no_cells_are_left():
    game, state = start(1, 3, [[{0}, {1}], [{1}, {2}]])
    state = fire(game, state, 0, 1)
    state = fire(game, state, 2)  # the other's only ship left misses
    assert state.afloat.tolist() == [[2, 1]]
    assert cells_of(game.legal_action_mask(state)[0]) == {2}
    state = fire(game, state, 2)  # two ships afloat, but one cell: it fires, and wins
    assert bool(state.done)
    assert state.score.tolist() == [[1, -1]]
    assert int(state.turn) == 3


@pytest.mark.parametrize(("winner", "shots"), [(0, [0, 2, 1, 1, 2]), (1, [0, 0, 1, 1])])
def test_whoever_hits_the_last_ship_cell_wins(winner, shots):
    game, state = start(1, 3, [[{0, 1}], [{1, 2}]])
    state = fire(game, state, *shots[:-1])
    assert not state.done
    state = fire(game, state, shots[-1])
    assert bool(state.done)
    assert state.score.tolist() == [[-1, 1] if winner else [1, -1]]
    assert int(state.afloat[0, 1 - winner]) == 0
    assert game.legal_action_mask(state).all()
    after = game.apply_action(state, torch.tensor([2]))
    assert torch.equal(after.score, state.score)
    assert torch.equal(after.shot, state.shot)
    assert torch.equal(after.turn, state.turn)


# ---------------------------------------------------------------- Two-player Salvo: drawing fleets


def fleet_that_agrees(game, book, seat):
    """The fleets of the other seat that agree with all that this one has seen."""
    shot, hit, turn = book.shot[seat], hits_of(book, seat), book.hit_turn[seat]
    return {
        fleet
        for fleet in fleets(game.rows, game.columns, game.fleet.ships)
        if shot & frozenset().union(*fleet) == hit
        and sorted(max(turn[cell] for cell in ship) for ship in fleet if ship <= hit)
        == book.sunk_turns[seat]
    }


@pytest.mark.parametrize("listing", [True, False], ids=["listed", "sampled"])
@pytest.mark.parametrize(
    ("rows", "columns", "fleets", "shots"),
    one_in(
        3,
        [
            (2, 3, [[{0, 1}, {5}], [{0, 3}, {1}]], [1, 5]),
            (3, 3, [[{0, 1}, {5}, {6}], [{0, 3}, {1}, {8}]], [0, 1, 2]),
            (3, 3, [[{0, 1}, {5, 8}], [{0, 3}, {1, 4}]], [0, 1, 2, 3, 8]),
            (3, 3, [[{0, 1}, {5, 8}], [{0, 3}, {1, 2}]], [3, 4, 0, 1, 0, 8, 6]),
        ],
    ),
)
def test_fleets_are_drawn_as_often_as_they_agree(
    rows, columns, fleets, shots, listing, monkeypatch
):
    monkeypatch.setattr(fleets_module, "SAMPLES", 256)
    game, state = start(rows, columns, fleets)
    if not listing:
        vars(game)["posterior"] = sampling_posterior(game)
    (book,) = books_of(game, state)
    for cell in shots:
        book.play(cell)
    state = fire(game, state, *shots)
    possible = fleet_that_agrees(game, book, book.current_seat)
    assert len(possible) > 1
    count = 3000
    many = game.public(state)[torch.zeros(count, dtype=torch.int64)]
    drawn = game.resample(many, rng(3)).ships
    current_seat = book.current_seat
    assert torch.equal(drawn[:, current_seat], state.own.expand(count, -1))
    found = Counter(
        frozenset(map(frozenset, ships_of(layout, len(game.fleet))))
        for layout in drawn[:, 1 - current_seat]
    )
    assert set(found) <= possible
    assert_as_often([found[fleet] for fleet in possible], [count / len(possible)] * len(possible))


# ---------------------------------------------------------------- Battleship with all it can show


class Sea:
    """A rule book of one game of Battleship and what is shown beside the shots."""

    def __init__(self, game, ships):
        self.game, self.ships = game, ships
        self.book = SalvoBook(game.rows, game.columns, set().union(*ships), game.shots)
        self.area = game.rows * game.columns
        self.action_cells, self.first = set(), set()

    @property
    def done(self):
        return self.book.done

    @property
    def shot(self):
        return set(range(self.area)) - self.book.unshot

    @property
    def hit(self):
        return self.shot & self.book.ships_cells

    def legal_action_mask(self):
        """The legal actions, by number."""
        if self.done:
            return []
        if self.game.sequential or self.game.shots == 1:
            return [cell for cell in sorted(self.book.unshot) if cell not in self.action_cells]
        wanted = min(self.game.shots, len(self.book.unshot))
        sets = itertools.combinations(range(self.area), self.game.shots)
        return [
            number
            for number, cells in enumerate(sets)
            if len(set(cells) & self.book.unshot) == wanted
        ]

    def play(self, action):
        if self.game.sequential:
            self.action_cells.add(action)
            if len(self.action_cells) < min(self.game.shots, len(self.book.unshot)):
                return
            cells, self.action_cells = self.action_cells, set()
        else:
            sets = itertools.combinations(range(self.area), self.game.shots)
            cells = set(next(itertools.islice(sets, action, None))) & self.book.unshot
        before = self.hit
        self.book.play_set(cells)
        if not before:
            self.first = self.hit

    def planes(self):
        area, longest = self.area, max(self.game.rows, self.game.columns)
        shot, hit = self.shot, self.hit
        planes = [
            plane(set(range(area)) - shot, area),
            plane(shot - hit, area),
            plane(hit, area),
        ]
        if self.game.sequential:
            planes += [
                plane(self.action_cells, area),
                [len(self.action_cells) / self.game.shots] * area,
            ]
        planes += [[len(ship) / longest] * area for ship in self.ships]
        planes += [[float(turn > 0)] * area for turn in self.sunk_turns]
        turn = self.book.hit_turn
        planes.append([turn.get(cell, 0) / self.game.max_turns for cell in range(area)])
        lengths = [len(ship) for ship in self.ships]
        for length in sorted(set(lengths)):
            sunk = [t for each, t in zip(lengths, self.sunk_turns, strict=True) if each == length]
            planes.append([sunk.count(turn.get(cell, -1)) / len(sunk) for cell in range(area)])
        return [*planes, plane(self.first, area)]

    @property
    def sunk_turns(self):
        """For each ship, in which turn one of its length sank; equal ships in the order of time."""
        turn = self.book.hit_turn
        sunk: dict[int, list[int]] = {}
        for ship in self.ships:
            if ship <= self.hit:
                sunk.setdefault(len(ship), []).append(max(turn[cell] for cell in ship))
        left = {length: sorted(turns) for length, turns in sunk.items()}
        return [left[len(s)].pop(0) if left.get(len(s)) else 0 for s in self.ships]


def compare_sea(game, state, seas):
    assert state.done.tolist() == [sea.done for sea in seas]
    assert state.turn.tolist() == [sea.book.turn for sea in seas]
    assert state.score.tolist() == [sea.book.score for sea in seas]
    torch.testing.assert_close(
        game.observe(state).flatten(2), torch.tensor([sea.planes() for sea in seas])
    )
    legal = game.legal_action_mask(state)
    for row, sea in enumerate(seas):
        assert sorted(cells_of(legal[row])) == (
            sea.legal_action_mask() or list(range(game.spec.actions))
        )
        assert state.sunk_turn[row].tolist() == sea.sunk_turns
        assert {c: t for c, t in enumerate(state.hit_turn[row].tolist()) if t} == sea.book.hit_turn


@pytest.mark.parametrize(("rows", "columns", "ships", "shots", "aim"), SEAS)
def test_many_random_seas_are_cleared_by_the_book(rows, columns, ships, shots, aim):
    game = Battleship(rows, columns, ships, shots, aim, show=SHOW)
    state = game.initial(40, rng(5))
    seas = [Sea(game, ships_of(layout, len(game.fleet))) for layout in state.ships]
    play(game, state, seas, compare_sea, random_numbers(rows, columns, 40, game.spec.max_plies))


# ---------------------------------------------------------------- what the history tells


def same_paths(game, actions):
    """Play the same actions in every layout: for each, what was seen, and the search edges."""
    state, _ = game.openings(10_000)
    seen = [[observation.tolist()] for observation in game.observe(state)]
    edges: list[list[int]] = [[] for _ in seen]
    for action in actions:
        after = game.apply_action(state, torch.full((len(state),), action))
        outcome = game.outcome(state, torch.full((len(state),), action), after)
        for row in range(len(state)):
            edges[row].append(int(outcome[row]))
            seen[row].append(game.observe(after[row : row + 1]).tolist())
        state = after
    return seen, edges, state


def test_an_announced_sinking_does_not_tell_equal_ships_apart():
    """The ship in the middle sank; nothing may tell on which side the other one lies."""
    game = Battleship(1, 8, [2, 2], show=["sunk"])
    seen, _, state = same_paths(game, [3, 4])
    in_the_middle = [row for row in range(len(state)) if {3, 4} in ships_of(state.ships[row], 2)]
    assert len(in_the_middle) == 4  # the other ship at 0, 1, 5 or 6
    assert all(seen[row] == seen[in_the_middle[0]] for row in in_the_middle)


@pytest.mark.parametrize(
    ("ships", "shots", "aim", "order"),
    [
        ([2, 1], 1, "auto", [1, 2, 3, 0, 5]),
        ([2, 2], 1, "auto", [1, 2, 4, 3, 0]),
        ([1, 2, 1], 2, "sequential", [1, 2, 3, 0, 5, 4]),
        ([3, 1], 2, "joint", [0, 7, 11]),
    ],
)
def test_outcomes_and_keys_differ_exactly_where_what_is_seen_differs(ships, shots, aim, order):
    """On a line of six, with announced sunk ships: a search must not merge what a player can tell
    apart, and must merge the rest."""
    game = Battleship(1, 6, ships, shots, aim, show=["sunk"])
    assert find(game, ExactKey)
    seen, edges, state = same_paths(game, order)
    for one, other in itertools.combinations(range(len(seen)), 2):
        assert (edges[one] == edges[other]) == (seen[one] == seen[other])
        if not bool(state.done[one] | state.done[other]):
            same_key = bool(game.key(state)[one] == game.key(state)[other])
            assert same_key == (seen[one][-1] == seen[other][-1])
    assert len({str(each) for each in seen}) > len({str(each) for each in edges}) / 2


@pytest.mark.slow
@pytest.mark.parametrize("listing", [True, False], ids=["listed", "sampled"])
@pytest.mark.parametrize(
    "game",
    [
        *(
            Battleship(rows, columns, ships, shots, show=show)
            for rows, columns, ships, shots in ((1, 9, [2, 2, 3], 1), (4, 4, [3, 2, 2], 2))
            for count in range(4)
            for show in itertools.combinations(SHOW, count)
        ),
        Battleship(4, 4, [3, 2, 2], 3, "sequential", show=SHOW),
        SalvoDuel(3, 3, [2, 2, 1]),
        SalvoDuel(4, 4, [3, 2, 2]),
        SalvoDuel(4, 4, [3, 2, 2], shots=1),
    ],
    ids=lambda game: (
        f"{game.spec.name}-{game.rows}x{game.columns}-{'-'.join(getattr(game, 'show', []))}"
    ),
)
def test_no_resampled_position_contradicts_what_was_seen(game, listing, monkeypatch):
    if not listing:
        monkeypatch.setitem(vars(game), "posterior", sampling_posterior(game))
    num_contradictions, num_positions = count_contradictions(game, 10_000, 20)
    assert num_positions >= 10_000
    assert num_contradictions == 0
