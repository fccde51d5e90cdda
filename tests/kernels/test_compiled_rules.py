"""Compiled rules: every game that has them plays as its batched rules, position by position."""

from typing import Any

import pytest
from markers import quick

from rlgames.games.breakthrough import Breakthrough
from rlgames.games.capabilities import find_compiled_rules
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.rollouts.compiled_checks import check_compiled_rules

GAMES = [
    KInARow(3, 3, 3, False, "tictactoe"),
    KInARow(6, 7, 4, True, "connect4"),
    KInARow(9, 9, 5, False, "gomoku"),
    Breakthrough(6, 6, 2),
    Breakthrough(8, 8, 2),
    Breakthrough(3, 2, 1),
    KInARow(5, 6, 4, False),
    KInARow(7, 7, 5, True),
    KInARow(15, 15, 5, False),
    KInARow(8, 20, 3, False),
    Breakthrough(7, 5, 3),
    Breakthrough(4, 16, 1),
    Game2048(4, 4),
    Game2048(2, 3, encoding="exponents"),
]


def name(game):
    return f"{game.spec.name} {'x'.join(map(str, game.spec.observation))} {game.spec.actions}"


@pytest.mark.parametrize("game", quick(GAMES, *GAMES[:8]), ids=name)
def test_compiled_rules_are_the_batched_rules(game):
    check_compiled_rules(game, 3_000, batch=150)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES, ids=name)
def test_compiled_rules_are_the_batched_rules_in_100_000_positions(game):
    check_compiled_rules(game, 100_000, batch=2_000)


@pytest.mark.parametrize("game", [GAMES[0], GAMES[3]], ids=name)
def test_a_game_derived_from_another_does_not_inherit_compiled_rules(game):
    changed: Any = object.__new__(type("Changed", (type(game),), {}))
    changed.__dict__ |= vars(game)
    assert find_compiled_rules(game) is not None
    assert find_compiled_rules(changed) is None


@pytest.mark.parametrize("game", [Breakthrough(16, 16, 2), Game2048(5, 5)], ids=name)
def test_boards_that_are_too_large_have_no_compiled_rules(game):
    assert find_compiled_rules(game) is None


@pytest.mark.parametrize(
    ("game", "other", "message"),
    [
        (KInARow(5, 5, 4, True), KInARow(5, 5, 3, True), "a compiled move has other points"),
        (Breakthrough(5, 4, 1), Breakthrough(4, 5, 1), "compiled rules allow other actions"),
    ],
)
def test_rules_of_another_game_are_found(game, other, message):
    changed = type("Changed", (type(game),), {"compiled_rules": lambda _: other.compiled_rules()})
    derived: Any = object.__new__(changed)
    derived.__dict__ |= vars(game)
    with pytest.raises(AssertionError, match=message):
        check_compiled_rules(derived, 1000, batch=50)
