"""Turned boards: the rules cannot tell them apart."""

from dataclasses import fields, replace

import pytest
import torch

from rlgames.games.battleship import Battleship
from rlgames.games.duel import Duel
from rlgames.games.lines import Lines
from rlgames.games.slide import Slide
from rlgames.games.symmetry import Symmetries

GAMES = {
    "tic-tac-toe": (Lines(3, 3, 3, False), 8),
    "rectangle without gravity": (Lines(3, 4, 3, False), 4),
    "Connect 4": (Lines(6, 7, 4, True), 2),
    "2048": (Slide(4, 4), 8),
    "2048, a rectangle": (Slide(2, 3), 4),
    "2048, a column": (Slide(4, 1), 2),
    "2048, a row": (Slide(1, 4), 2),
    "battleship on a line": (Battleship(1, 10, [3]), 2),
    "salvo, sets of cells": (Battleship(4, 4, [4, 2], 2, "joint"), 8),
    "salvo, cell by cell": (Battleship(4, 4, [4, 2], 3, "sequential"), 8),
    "a game that declares none": (Duel(4, 4, [2]), 1),
}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", GAMES)
def test_a_turned_game_goes_on_as_the_game_does(name):
    """The same moves, turned, on the turned boards of the same truth."""
    game, count = GAMES[name]
    turned = Symmetries(game, "cpu")
    assert turned.count == count
    cells = game.spec.observation[1] * game.spec.observation[2]
    assert (turned.cells.sort(1).values == torch.arange(cells)).all()
    assert (turned.actions.sort(1).values == torch.arange(game.spec.actions)).all()
    turn = torch.arange(count).repeat(4)
    board = turned.cells[turn]

    def of_cells(state):
        if count == 1:
            return state
        values = {field.name: getattr(state, field.name) for field in fields(state)}
        return replace(
            state,
            **{n: v.gather(1, board) for n, v in values.items() if v.shape[1:] == board.shape[1:]},
        )

    state = game.initial(len(turn), rng())
    twin = of_cells(state)
    for ply in range(8):
        legal = game.legal(state)
        assert torch.equal(turned.of_actions(legal, turn), game.legal(twin))
        assert torch.equal(turned.planes(game.observe(state), turn), game.observe(twin))
        action = game.pick(state, torch.rand(len(turn), generator=rng(ply)))
        state, twin = game.act(state, action), game.act(twin, turned.action(action, turn))
        assert torch.equal(turned.planes(game.observe(state), turn), game.observe(twin))
        assert torch.equal(state.done, twin.done)
        assert torch.equal(state.score, twin.score)
        if game.spec.draws:  # the new tile falls on the turned cell
            u = torch.rand(len(turn), game.spec.draws, generator=rng(ply))
            state = game.settle(state, u)
            twin = of_cells(state)
