"""Paired comparisons: every player meets the same boards and random numbers."""

import json

import pytest
from helpers import InOrder, game_2048, rng

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.evaluation.paired import compare_paired
from rlgames.games.battleship import Battleship
from rlgames.players.player import Random


def compared(game, players, games=100):
    return compare_paired(game, players, games, rng(), {})


@pytest.mark.parametrize("game", [game_2048(3, 3), Battleship(10, 10, [5, 4, 3, 3, 2])])
def test_equal_players_have_equal_results_on_the_same_boards_and_dice(game):
    result = compared(game, [InOrder(game), InOrder(game)])
    difference, correlation = result.pairs[0, 1]
    assert difference.spread == (0, 0, 0)
    assert correlation == pytest.approx(1)
    _, lowest, highest = result.players[0].spread
    assert lowest < highest


def test_boards_and_dice_do_not_depend_on_the_other_players():
    """Nor on how long their games last."""
    game = game_2048(3, 3)
    alone = compared(game, [InOrder(game)])
    beside = compared(game, [Random(game), InOrder(game, True), InOrder(game)])
    assert beside.players[2] == alone.players[0]
    assert beside.players[1] != alone.players[0]


def test_what_the_boards_do_to_both_players_cancels_out():
    game = Battleship(10, 10, [5, 4, 3, 3, 2])
    players = [InOrder(game), InOrder(game, True), Random(game)]
    result = compared(game, players, 400)
    assert not result.is_exact
    for difference, _ in result.pairs.values():
        assert difference.interval[0] < difference.value < difference.interval[1]
    difference, correlation = result.pairs[0, 1]
    assert correlation < -0.05  # a board that starts late ends early for the other
    first, last, _ = result.players
    assert difference.value == pytest.approx(first.value - last.value)


def test_deterministic_players_play_every_board_once():
    game = Battleship(4, 4, [4, 2])
    result = compared(game, [InOrder(game), InOrder(game, True)])
    alone = evaluate(game, InOrder(game), EvaluationSettings("all"), rng())
    assert result.is_exact
    assert result.games == alone.games
    assert result.players[0].value == pytest.approx(alone.turns.value)
    assert result.pairs[0, 1][0].interval is None


def test_an_arena_of_a_game_for_one_shows_paired_differences(typed):
    words = ["arena", "hunt_target", "random", "game=salvo", "board=6", "ships=[3]", "shots=1"]
    report = json.loads(typed(*words, "games=200", "format=json").stdout)
    (pair,) = report["pairs"]
    assert pair["players"] == ["hunt_target", "random"]
    assert pair["difference"]["ci95"][1] < 0
    assert -1 <= pair["correlation"] <= 1
    assert [player["name"] for player in report["players"]] == ["hunt_target", "random"]
    shown = typed(*words, "games=200").stdout
    assert "hunt_target - random" in shown
    assert "r = " in shown
