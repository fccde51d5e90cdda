"""Steps of board games: what they write of the positions after them, and what they leave alone."""

import pickle

import pytest
import torch
from helpers import rng

from rlgames.games.game_2048 import Game2048
from rlgames.games.othello import Othello


@pytest.mark.parametrize("game", [Othello(6), Game2048(3, 3)], ids=["othello", "2048"])
def test_a_step_writes_what_was_asked_for_and_changes_nothing_else(game):
    state = game.initial(9, rng())
    for number in range(60):
        asked = number % 3
        legal = game.legal_action_mask(state)
        planes = game.observe(state) if asked else None
        before = pickle.loads(pickle.dumps(state)), legal.clone()
        action = game.sample_legal_action(state, torch.rand(9, generator=rng(number)))
        after = game.step(state, action, rng(number))
        assert after.views.legal is not None
        assert (after.views.planes is None) == (not asked and not state.views.asked_planes)
        assert all(map(torch.equal, state.columns(), before[0].columns()))
        assert torch.equal(legal, before[1])
        fresh = after[torch.arange(9)]
        assert fresh.views.legal is None
        assert torch.equal(game.legal_action_mask(after), game.legal_action_mask(fresh))
        assert torch.equal(game.observe(after), game.observe(fresh))
        for row in range(9):
            one = game.apply_action(state[row : row + 1], action[row : row + 1])
            both = game.apply_action(state, action)[row : row + 1]
            assert all(map(torch.equal, one.columns(), both.columns()))
        assert planes is None or torch.equal(planes, game.observe(before[0]))
        state = after[torch.arange(9)] if number % 5 == 4 else after
