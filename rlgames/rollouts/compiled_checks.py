"""Whether the compiled rules of a game are its rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.capabilities import Chance, find, find_compiled_rules
from rlgames.games.compiled import CompiledRules, copied_fields
from rlgames.games.game import Game, State
from rlgames.rollouts.random_walk import rng


def check_compiled_rules(game: Game[Any], positions: int = 1000, batch: int = 50) -> None:
    """Compiled rules, if any, allow, observe and play the same: in positions of random games,
    `batch` of them side by side, and their moves.

    positions: at least how many.

    Raises AssertionError for a difference. A game without compiled rules passes.
    """
    compiled = find_compiled_rules(game)
    if compiled is None:
        return
    chance = find(game, Chance)
    state, seen = game.initial(batch, rng(0)), 0
    while seen < positions:
        _check_positions(game, compiled, state)
        action = game.sample_legal_action(state, torch.rand(len(state), generator=rng(seen)))
        after = _check_moves(game, compiled, state, action)
        seen += len(state)
        if chance is not None:
            u = torch.rand(len(after), game.spec.num_chance_inputs, generator=rng(seen))
            after = chance.apply_chance(after, u)
        state = after[~after.done]
        if 2 * len(state) < batch:
            state = type(state).cat([state, game.initial(batch - len(state), rng(seen))])


def _check_positions(game: Game[Any], compiled: CompiledRules[Any], state: State) -> None:
    from rlgames.kernels.rule_checks import describe_positions

    words = compiled.pack(state)
    assert compiled.rules.actions == game.spec.actions, "compiled rules have other actions"
    legal = np.zeros((len(state), game.spec.actions), np.bool_)
    # Kernels do not check bounds: room for more numbers than there are shows if these are written.
    size = math.prod(game.spec.observation)
    observations = np.full((len(state), 2 * size), np.nan, np.float32)
    describe_positions(compiled.rules, words.numpy(), legal, observations, size)
    expected = game.legal_action_mask(state)
    assert torch.from_numpy(legal).equal(expected), "compiled rules allow other actions"
    expected, observed = game.observe(state).flatten(1), torch.from_numpy(observations)
    assert bool(observed[:, size:].isnan().all()), "observe writes more than an observation"
    assert observed[:, :size].equal(expected), "compiled rules observe something else"
    for name, column in vars(compiled.unpack(words, copied_fields(state))).items():
        assert column.equal(getattr(state, name)), f"unpack changes {name} of a packed position"


def _check_moves(
    game: Game[Any], compiled: CompiledRules[Any], state: State, action: Tensor
) -> State:
    """The positions after moves in live ones, before chance."""
    from rlgames.kernels.rule_checks import play_moves

    words = compiled.pack(state)
    after: State = game.apply_action(state, action)
    is_over, points = np.zeros(len(state), np.bool_), np.zeros(len(state), np.float32)
    play_moves(compiled.rules, words.numpy(), action.numpy(), is_over, points)
    gained = (after.score - state.score).gather(1, state.current_seat[:, None])[:, 0]
    assert torch.from_numpy(points).equal(gained), "a compiled move has other points"
    assert torch.from_numpy(is_over).equal(after.done), "a compiled move ends other games"
    live = ~after.done
    same = words[live].equal(compiled.pack(after[live]))
    assert same, "a compiled move leads to another position"
    return after
