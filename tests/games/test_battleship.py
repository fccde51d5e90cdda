"""Rules: layouts, shots, salvos, what is shown and what is not."""

import math

import pytest
import torch
from helpers import game_2048, rng

from rlgames.games.battleship import Battleship
from rlgames.games.game import HIDDEN
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse, parse_action, render
from rlgames.players.player import Player, Random
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, collect_games


def test_public_states_hide_the_ships():
    game = Battleship(4, 4, [4])
    seen = game.public(game.initial(3, rng()))
    assert seen.ships is HIDDEN
    with pytest.raises(PermissionError):
        seen.ships & seen.shot
    with pytest.raises(PermissionError):
        torch.where(seen.shot, seen.ships, False)

    class Cheat(Player):
        def choose(self, state, rng):
            return state.ships.float().argmax(1)

    with pytest.raises(PermissionError):
        collect_games(game, [Cheat()], 3, rng())


def test_results_of_a_salvo_are_shown_at_its_end():
    game = Battleship(1, 5, [2], 2, "sequential")
    state = game.openings(10)[0][:1]  # the ship lies on cells 0 and 1
    state = game.apply_action(state, torch.tensor([0]))
    assert render(game, state, 0) == "+ . . . ."
    assert int(state.turn[0]) == 0
    assert float(state.score[0, 0]) == 0
    assert not game.legal_action_mask(state)[0, 0]
    state = game.apply_action(state, torch.tensor([3]))
    assert render(game, state, 0, reveal=True) == "x # . o ."
    assert int(state.turn[0]) == 1


def test_observation_is_equation_one():
    game = Battleship(1, 5, [3], encoding="signed")
    state = game.openings(10)[0][2:]  # cells 2, 3, 4
    for cell in (3, 0):
        state = game.apply_action(state, torch.tensor([cell]))
    assert game.observe(state).flatten().tolist() == [0, -1, -1, 1, -1]


def test_posterior_shows_how_likely_each_cell_has_a_ship():
    game = Battleship(1, 5, [3], encoding="posterior")
    state = game.openings(10)[0][2:]  # cells 2, 3, 4
    assert game.observe(state)[0, 3, 0].tolist() == pytest.approx([1 / 3, 2 / 3, 1, 2 / 3, 1 / 3])
    state = game.apply_action(game.apply_action(state, torch.tensor([3])), torch.tensor([0]))
    planes = game.observe(state)[0, :, 0].tolist()
    assert planes == [[0, 1, 1, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0.5, 1, 1, 0.5]]
    with pytest.raises(ValueError, match="too many"):
        Battleship(10, 10, [5, 4, 3, 3, 2], encoding="posterior")


def test_expected_hits_of_a_random_shot():
    game = Battleship(4, 4, [4], 2, "joint")
    state = game.initial(1, rng())
    assert game.expected_random_score_delta(state, plies=True).tolist() == [4 / 16]
    assert game.expected_random_score_delta(state, plies=False).tolist() == [8 / 16]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [((4, 4, [4]), 13.6), ((5, 5, [4, 2]), 22.2857), ((1, 10, [3]), 8.25)],
)
def test_random_play_takes_as_long_as_theory_says(rules, expected):
    game = Battleship(*rules)
    assert game.expected_random_turns() == pytest.approx(expected, abs=1e-4)
    turns = GamePool(game, [Random(game)], 20_000, rng(6)).run().turns
    error = float(turns.double().std()) / math.sqrt(len(turns))
    assert abs(float(turns.double().mean()) - expected) < 3.5 * error


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ((4, 4, [5]), "longest that does is 4"),
        ((4, 4, []), "is empty"),
        ((2, 2, [2, 2, 2]), "fill 6 cells"),
        ((3, 3, [3, 3, 2, 1]), None),
        ((1, 5, [2, 2, 2]), "fill 6 cells"),
        ((2, 5, [3, 3, 3]), "cannot be placed"),
        ((1, 7, [3, 3], 8), "more than the board's 7 cells"),
        ((10, 10, [2], 5, "joint"), "aim=sequential"),
    ],
)
def test_impossible_rules_are_refused(rules, message):
    if message is None:
        assert len(Battleship(*rules).layouts()) > 0
    else:
        with pytest.raises(ValueError, match=message):
            Battleship(*rules)


def test_cells_are_read_as_they_are_named_and_nothing_else():
    game = Battleship(1, 11, [2])
    state = game.initial(1, rng())
    assert parse_action(game, state, 0, "3") == 3
    state = game.apply_action(state, torch.tensor([3]))
    state = game.apply_action(state, torch.tensor([1]))
    for spent in ("3", "1", "11"):
        with pytest.raises(ValueError, match="not a legal move"):
            parse_action(game, state, 0, spent)


def test_moves_are_read_as_people_write_them():
    board = KInARow(3, 3, 3, False)
    state = board.initial(1, rng())
    assert [parse_action(board, state, 0, text) for text in ("b2", "B2", "5")] == [4, 4, 4]
    tiles = parse(game_2048(4, 4), ". . . .\n. 2 . .\n. . 2 .\n. . . .")
    names = ("u", "ri", "down", "LEFT", "2")
    assert [parse_action(game_2048(4, 4), tiles, 0, text) for text in names] == [0, 1, 2, 3, 1]
    with pytest.raises(ValueError, match="not a legal move"):
        parse_action(game_2048(4, 4), tiles, 0, "u", exact=True)
    sets = Battleship(4, 4, [2], 2)
    start = sets.initial(1, rng())
    assert parse_action(sets, start, 0, "B1 A1") == parse_action(sets, start, 0, "a1 b1")


def test_positions_are_put_in_the_place_of_others():
    game, rng = Battleship(3, 3, [2]), Rng(0)
    first, new = game.initial(5, rng), game.initial(2, rng)
    both, rows = first.put(torch.tensor([3, 1]), new), torch.tensor([0, 2, 4])
    assert torch.equal(both.ships[[3, 1]], new.ships)
    assert torch.equal(both.ships[rows], first.ships[rows])
    assert game.public(first).put(rows[:2], game.public(new)).ships is HIDDEN
