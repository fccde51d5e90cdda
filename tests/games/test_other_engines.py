"""The batched games against OpenSpiel, if it is installed; `make test-engines` does."""

import random

import pytest
import torch
from helpers import game_2048, rng

from rlgames.games.breakthrough import Breakthrough
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello

pytestmark = pytest.mark.others
pyspiel = pytest.importorskip("pyspiel", reason="needs the other engines: make test-engines")

FOURS = 0.1


def allowed(game, state):
    """The legal actions of every row, as lists."""
    return [
        [action for action, legal in enumerate(row) if legal]
        for row in game.legal_action_mask(state).tolist()
    ]


def numbers_for(slid, cell, four):
    """The uniform numbers that make settle put a two or a four on the cell of each board."""
    empty = slid.flatten(1) == 0
    nth = empty.cumsum(1).gather(1, cell[:, None])[:, 0] - 1
    where = (nth + 0.5) / empty.sum(1).clamp(min=1)
    return torch.stack([where, torch.where(four, 0.0, 0.99)], dim=1)


def stones(theirs, rows, columns):
    """OpenSpiel's board as numbers: 0 empty, 1 the first player's stone, 2 the second's."""
    text = str(theirs).lower().translate(str.maketrans("-bw", ".xo"))
    lines = [
        "".join(word for word in line.split() if not word.isdigit()) for line in text.split("\n")
    ]
    letters = "".join(line for line in lines if set(line) <= {*".xo"})[-rows * columns :]
    assert len(letters) == rows * columns
    values = [".xo".index(letter) for letter in letters]
    return [values[start : start + columns] for start in range(0, len(values), columns)]


@pytest.mark.parametrize(
    ("name", "rules", "games"),
    [
        ("tic_tac_toe", (3, 3, 3, False), 2000),
        ("connect_four", (6, 7, 4, True), 1000),
        ("connect_four(rows=4,columns=5,x_in_row=3)", (4, 5, 3, True), 500),
        ("connect_four(rows=5,columns=4,x_in_row=4)", (5, 4, 4, True), 500),
        ("mnk(m=5,n=3,k=3)", (3, 5, 3, False), 500),
        ("mnk(m=4,n=5,k=4)", (5, 4, 4, False), 500),
        ("mnk(m=12,n=7,k=5)", (7, 12, 5, False), 100),
        ("gomoku(size=9)", (9, 9, 5, False), 200),
        ("gomoku(size=15)", (15, 15, 5, False), 50),
    ],
)
def test_lines_agree_with_open_spiel(name, rules, games):
    rows, columns, line, gravity = rules
    game = KInARow(rows, columns, line, gravity, name="lines")
    assert play_with_open_spiel(name, game, games, rows, columns) <= rows * columns


def numbering(game, state):
    """Int64 [B, A]: the numbers of the actions in OpenSpiel, which in Hex numbers the cells in the
    same way for both seats."""
    actions = torch.arange(game.spec.actions).repeat(len(state), 1)
    if isinstance(game, Hex):
        second = state.current_seat == 1
        actions[second, : game.num_cells] = game.second_view
    return actions


def play_with_open_spiel(name, game, games, rows, columns):
    """Random games move for move in both; the number of plies of the longest."""
    draw = random.Random(name)
    engine = pyspiel.load_game(name)
    theirs = [engine.new_initial_state() for _ in range(games)]
    assert game.spec.actions == engine.num_distinct_actions()
    state = game.initial(games, rng())
    plies = 0
    while True:
        assert state.done.tolist() == [row.is_terminal() for row in theirs]
        assert game.cells(state).tolist() == [stones(row, rows, columns) for row in theirs]
        assert state.score.tolist() == [row.returns() for row in theirs]
        if state.done.all():
            return plies
        chosen = []
        order = numbering(game, state).tolist()
        for row, current_seat, legal, number in zip(
            theirs, state.current_seat.tolist(), allowed(game, state), order, strict=True
        ):
            if row.is_terminal():
                chosen.append(draw.randrange(game.spec.actions))
                continue
            assert sorted(number[action] for action in legal) == row.legal_actions()
            assert current_seat == row.current_player()
            chosen.append(draw.choice(legal))
            row.apply_action(number[chosen[-1]])
        state = game.apply_action(state, torch.tensor(chosen))
        plies += 1
        assert state.turn.tolist() == [row.move_number() for row in theirs]


def test_othello_agrees_with_open_spiel():
    assert play_with_open_spiel("othello", Othello(8), 200, 8, 8) > 60


@pytest.mark.parametrize(("size", "games"), [(3, 300), (6, 200), (11, 50)])
def test_hex_agrees_with_open_spiel(size, games):
    name = f"hex(board_size={size})"
    assert play_with_open_spiel(name, Hex(size, False), games, size, size) <= size**2


@pytest.mark.parametrize(("rules", "games"), [((3, 3, 1), 200), ((5, 4, 1), 200), ((8, 8, 2), 100)])
def test_breakthrough_agrees_with_open_spiel(rules, games):
    """Its first seat is black and moves down, so its board is ours upside down. It numbers moves
    otherwise, but the cells have the same names once the rows are counted from the other side."""
    rows, columns, _ = rules
    draw = random.Random(repr(rules))
    engine = pyspiel.load_game(f"breakthrough(rows={rows},columns={columns})")
    theirs = [engine.new_initial_state() for _ in range(games)]
    game = Breakthrough(*rules)
    state = game.initial(games, rng())
    while True:
        assert state.done.tolist() == [row.is_terminal() for row in theirs]
        boards = [[line[1:] for line in str(row).splitlines()[:rows]] for row in theirs]
        expected = [[[".bw".index(m) for m in line] for line in each[::-1]] for each in boards]
        assert game.cells(state).tolist() == expected
        assert state.score.tolist() == [row.returns() for row in theirs]
        if state.done.all():
            break
        chosen = []
        for number, (row, legal) in enumerate(zip(theirs, allowed(game, state), strict=True)):
            if row.is_terminal():
                chosen.append(0)
                continue
            names = {upside_down(game.action_to_string(state, number, a), rows): a for a in legal}
            by_name = {row.action_to_string(a): a for a in row.legal_actions()}
            assert names.keys() == by_name.keys()
            name = draw.choice(sorted(names))
            chosen.append(names[name])
            row.apply_action(by_name[name])
        state = game.apply_action(state, torch.tensor(chosen))
        assert state.turn.tolist() == [row.move_number() for row in theirs]


def upside_down(name, rows):
    """A move as OpenSpiel writes it, with rows counted from the other side: a2xb3 as a7b6*."""
    plain = name.replace("x", "")
    flipped = "".join(str(rows + 1 - int(char)) if char.isdigit() else char for char in plain)
    return flipped + "*" * ("x" in name)


def test_slide_agrees_with_open_spiel():
    games = 300
    draw = random.Random(0)
    engine = pyspiel.load_game("2048")  # its actions: 0 up, 1 right, 2 down, 3 left, as ours
    theirs = [engine.new_initial_state() for _ in range(games)]

    def board(row):
        values = [int(word) for word in str(row).split()]
        exponents = [value.bit_length() - 1 if value else 0 for value in values]
        return [exponents[start : start + 4] for start in range(0, 16, 4)]

    def chance(row):
        """Let chance act: the cell of the new tile and whether it is a four."""
        actions, weights = zip(*row.chance_outcomes(), strict=True)
        action = draw.choices(actions, weights)[0]
        row.apply_action(action)
        return action // 2, action % 2 == 1

    for row in theirs:
        chance(row)
        chance(row)
    game = game_2048(4, 4, fours=FOURS)
    state = game.from_exponents(torch.tensor([board(row) for row in theirs]))
    while True:
        assert state.done.tolist() == [row.is_terminal() for row in theirs]
        assert game.cells(state).tolist() == [board(row) for row in theirs]
        assert state.score.tolist() == [row.returns() for row in theirs]
        if state.done.all():
            break
        chosen, slid, tiles = [], [], []
        for row, legal in zip(theirs, allowed(game, state), strict=True):
            if row.is_terminal():
                chosen.append(draw.randrange(4))
                slid.append(board(row))
                tiles.append((0, False))
                continue
            if row.rewards() == [0]:
                assert legal == row.legal_actions()
            else:  # OpenSpiel 2.0.2 overlooks merging with a tile that the last move has merged
                assert set(legal) >= set(row.legal_actions())
            chosen.append(draw.choice(legal))
            row.apply_action(chosen[-1])
            slid.append(board(row))
            tiles.append(chance(row))
        after = game.apply_action(state, torch.tensor(chosen))
        assert game.cells(after).tolist() == slid
        cell, four = (torch.tensor(column) for column in zip(*tiles, strict=True))
        state = game.apply_chance(after, numbers_for(game.cells(after), cell, four))
