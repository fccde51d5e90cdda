"""Random games with the conformance checks of every ply."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from rlgames.games.capabilities import Chance, ExactKey, chance_outcomes, find
from rlgames.games.game import HIDDEN, Game, State

MAX_CHANCE_ROWS = 3
"""At each ply this many positions are compared with all outcomes of chance."""


def rng(seed: int = 0, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def are_equal(left: State, right: State) -> bool:
    """Whether all fields of two batches of positions are equal."""
    pairs = [(getattr(left, f.name), getattr(right, f.name)) for f in fields(type(left))]
    return all(a is b if a is HIDDEN or b is HIDDEN else torch.equal(a, b) for a, b in pairs)


def visible(game: Game[Any], state: State) -> list[Tensor]:
    """Everything that the seat to move may know of each position."""
    return [game.observe(state), game.legal_action_mask(state)]


class RandomWalk:
    """Random games with all checks of a single ply; a second batch holds the same games in
    another order."""

    def __init__(self, game: Game[Any], batch: int, seed: int) -> None:
        self.game, self.batch = game, batch
        self.rng = rng(seed)
        self.state = game.initial(batch, self.rng)
        assert not self.state.done.any(), "a game is over before its first move"
        self.order = torch.randperm(batch, generator=self.rng)
        self.shuffled = self.state[self.order]
        self.plies = 0

    def step(self) -> None:
        game, state = self.game, self.state
        self._check_shapes()
        self._check_visible()
        u = torch.rand(self.batch, generator=self.rng)
        action = game.sample_legal_action(game.public(state), u)
        is_legal = game.legal_action_mask(state).gather(1, action[:, None])
        assert is_legal.all(), "sample_legal_action returned an illegal action"
        copied = state[torch.arange(self.batch)]
        afterstate = game.apply_action(state, action)
        assert are_equal(copied, state), "apply_action changed its argument"
        chance = torch.rand(self.batch, game.spec.num_chance_inputs, generator=self.rng)
        after = self._after_chance(afterstate, chance)
        self._check_progress(after)
        self._check_chance(afterstate, after)
        shuffled = game.apply_action(self.shuffled, action[self.order])
        self.shuffled = self._after_chance(shuffled, chance[self.order])
        assert are_equal(self.shuffled, after[self.order]), "rows depend on other rows"
        self.state = after
        self.plies += 1

    def _after_chance(self, state: State, u: Tensor) -> State:
        chance = find(self.game, Chance)
        return state if chance is None else chance.apply_chance(state, u)

    def _check_shapes(self) -> None:
        game, state, spec = self.game, self.state, self.game.spec
        legal, observation = game.legal_action_mask(state), game.observe(state)
        assert legal.shape == (self.batch, spec.actions), (
            f"legal_action_mask has shape {legal.shape}"
        )
        assert legal.dtype == torch.bool, f"legal_action_mask has dtype {legal.dtype}"
        assert legal.any(1).all(), "a position has no legal action"
        assert legal[state.done].all(), "not every action is legal in a finished row"
        shape = (self.batch, *spec.observation)
        assert observation.shape == shape, f"observe has shape {observation.shape}"
        assert observation.dtype == torch.float32, f"observe has dtype {observation.dtype}"
        low, high = spec.observation_range
        is_within = (observation >= low) & (observation <= high)
        assert is_within.all(), f"an observation is outside {spec.observation_range=}"
        assert state.score.shape == (self.batch, spec.seats), f"score has shape {state.score.shape}"
        is_seat = (state.current_seat >= 0) & (state.current_seat < spec.seats)
        assert is_seat.all(), "current_seat is out of range"

    def _check_visible(self) -> None:
        """What is visible depends neither on hidden information nor on other rows."""
        game, state = self.game, self.state
        own = visible(game, state)
        for full, public in zip(own, visible(game, game.public(state)), strict=True):
            assert torch.equal(full, public), "what is visible depends on hidden information"
        for full, shuffled in zip(own, visible(game, self.shuffled), strict=True):
            assert torch.equal(full[self.order], shuffled), "what is visible depends on other rows"
        first = game.observe(state[:1])
        assert torch.equal(first, game.observe(state)[:1]), "observe depends on other rows"

    def _check_progress(self, after: State) -> None:
        game, state, spec = self.game, self.state, self.game.spec
        assert are_equal(after[state.done], state[state.done]), "a finished row changed"
        live = (~state.done).nonzero()[:, 0]
        growth = (game.depth(after) - game.depth(state))[live]
        assert (growth >= 0).all(), "depth decreased"
        if spec.max_plies_per_turn == 1:
            assert (growth > 0).all(), "depth did not increase"
        assert (after.turn - state.turn <= 1).all(), "one ply ended more than one turn"
        if spec.goal == "outcome":
            assert (after.score.sum(1) == 0).all(), "scores of a zero-sum game do not sum to zero"
        if keys := find(game, ExactKey):
            is_public = torch.equal(keys.key(state), keys.key(game.public(state)))
            assert is_public, "key depends on hidden information"

    def _check_chance(self, afterstate: State, after: State) -> None:
        """The outcome is among the possible ones, and their probabilities sum to 1."""
        game = self.game
        rows = (~self.state.done).nonzero()[:MAX_CHANCE_ROWS, 0]
        if not len(rows):
            return
        probability, outcomes = chance_outcomes(game, afterstate[rows])
        ones = torch.ones(len(rows), dtype=torch.float64)
        assert torch.allclose(probability.sum(1), ones), "chance_outcomes does not sum to 1"
        assert len(outcomes) == probability.numel(), "chance_outcomes: one state per probability"
        num_outcomes = probability.shape[1]
        for index, row in enumerate(rows.tolist()):
            part = slice(index * num_outcomes, (index + 1) * num_outcomes)
            possible = outcomes[part][probability[index] > 0]
            actual = after[row : row + 1]
            assert any(are_equal(possible[i : i + 1], actual) for i in range(len(possible))), (
                "apply_chance returned a state that is not among chance_outcomes"
            )
