"""Turned boards: the rules cannot tell them apart."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import game_2048, generator, rng

from rlgames.games.battleship import Battleship
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.games.symmetry import Symmetries
from rlgames.policies.canonical import Canonical
from rlgames.policies.conv import Conv
from rlgames.policies.embedding import Embedding, board_lines
from rlgames.policies.mlp import Mlp
from rlgames.rollouts.conformance import symmetries_leave_the_rules_unchanged

GAMES: dict[str, tuple[Any, int]] = {
    "tic-tac-toe": (KInARow(3, 3, 3, False), 8),
    "rectangle without gravity": (KInARow(3, 4, 3, False), 4),
    "Connect 4": (KInARow(6, 7, 4, True), 2),
    "2048": (game_2048(4, 4), 8),
    "2048, a rectangle": (game_2048(2, 3), 4),
    "2048, a column": (game_2048(4, 1), 2),
    "2048, a row": (game_2048(1, 4), 2),
    "battleship on a line": (Battleship(1, 10, [3]), 2),
    "salvo, sets of cells": (Battleship(4, 4, [4, 2], 2, "joint"), 8),
    "salvo, cell by cell": (Battleship(4, 4, [4, 2], 3, "sequential"), 8),
    "two-player Salvo, both boards together": (SalvoDuel(4, 4, [3, 2]), 8),
    "two-player Salvo on a rectangle": (SalvoDuel(2, 4, [2, 1]), 4),
}


@pytest.mark.parametrize("name", GAMES)
def test_boards_have_their_symmetries(name):
    game, count = GAMES[name]
    symmetries_leave_the_rules_unchanged(game)
    symmetries = Symmetries(game, "cpu")
    assert symmetries.count == count
    cells = game.spec.observation[1] * game.spec.observation[2]
    assert (symmetries.cells.sort(1).values == torch.arange(cells)).all()
    assert (symmetries.actions.sort(1).values == torch.arange(game.spec.actions)).all()


@pytest.mark.parametrize("name", ["Hex", *GAMES])
@pytest.mark.parametrize("policy", ["mlp", "conv"])
def test_a_canonical_network_scores_transformed_boards_alike(name, policy):
    game, count = {"Hex": (Hex(4, True), 2), **GAMES}[name]
    made: dict[str, Any] = {
        "activation": "relu",
        "init": "orthogonal",
        "value": True,
        "generator": generator(),
    }
    network = (
        Mlp(game, [16], bias=True, skip=False, **made)
        if policy == "mlp"
        else Conv(game, [4], skip=True, **made)
    )
    canonical = Canonical(game, network)
    symmetries = Symmetries(game, "cpu")
    state = game.initial(16, rng())
    for ply in range(3):
        state = game.apply_action(
            state, game.sample_legal_action(state, torch.rand(16, generator=generator(ply)))
        )
    planes, symmetry = game.observe(state), symmetries.sample(16, generator(5))

    class Transformed(type(game)):
        def observe(self, _):
            return symmetries.transform_planes(planes, symmetry)

    other = copy.copy(game)
    other.__class__ = Transformed
    scores, value = canonical.scores(game, state)
    other_scores, other_value = canonical.scores(other, state)
    seen = canonical.inputs(game, state)[:, :-1], canonical.inputs(other, state)[:, :-1]
    assert torch.equal(*seen)
    assert torch.allclose(value, other_value)
    # Where a board is its own mirror image, its actions may exchange their names.
    asymmetric = (
        torch.stack(
            [
                (symmetries.transform_planes(planes, torch.full((16,), g)) == planes)
                .flatten(1)
                .all(1)
                for g in range(count)
            ]
        ).sum(0)
        == 1
    )
    assert asymmetric.any()
    assert torch.allclose(
        symmetries.transform_action_values(scores, symmetry)[asymmetric], other_scores[asymmetric]
    )


def test_lines_that_are_turned_into_each_other_share_a_table():
    lines, table = board_lines(game_2048(4, 4))
    assert lines[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert table == [0, 1, 1, 0, 0, 1, 1, 0]  # four at the edge, four within
    assert sorted(map(sorted, lines[4:])) == [
        [0, 4, 8, 12],
        [1, 5, 9, 13],
        [2, 6, 10, 14],
        [3, 7, 11, 15],
    ]
    lines, table = board_lines(KInARow(2, 3, 2, True))
    # No row falls into another's place, the columns left and right are mirror images.
    assert table == [0, 1, 2, 3, 2]
    assert lines == [[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("gravity", [False, True])
def test_a_network_on_cells_sees_the_board_from_the_seat_to_move(gravity):
    """The same stones with colors and seats exchanged look the same."""
    game = KInARow(3, 3, 3, gravity)
    network = Embedding(
        game,
        4,
        4,
        True,
        None,
        [8],
        activation="relu",
        init="orthogonal",
        value=True,
        generator=generator(),
    )
    state = game.initial(16, rng())
    for ply in range(4):
        for turned in (state, game.view_from_seat(state, 0), game.view_from_seat(state, 1)):
            own = game.relative_cells(turned) == 1
            assert torch.equal(own, game.observe(turned)[:, 0] > 0)
        exchanged = replace(state, current_seat=1 - state.current_seat)
        for one, other in zip(
            network.scores(game, state), network.scores(game, exchanged), strict=True
        ):
            assert torch.equal(one, other)
        u = torch.rand(16, generator=generator(ply))
        state = game.apply_action(state, game.sample_legal_action(state, u))
