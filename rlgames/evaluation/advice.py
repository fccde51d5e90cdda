"""Opinions on positions: what a player does, what it expects, and what perfect play reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError, NonFiniteError, value_errors
from rlgames.core.metrics import GOAL_METRICS, direction
from rlgames.core.untrusted import sanitized
from rlgames.games.game import Game, State
from rlgames.games.notation import legal_names
from rlgames.players.player import Agent, HasProbabilities, Player
from rlgames.policies.policy import Policy
from rlgames.sampling import mask_illegal
from rlgames.solvers.optimum import position_solver
from rlgames.solvers.position import PositionValue


@dataclass(frozen=True)
class Move:
    """An action in words, with None for what is unknown.

    probability: that the player takes it. score: its value for the player, if it is a value
    function. exact, plies: see PositionValue.
    """

    action: str
    probability: float | None
    score: float | None
    exact: float | None
    plies: int | None


@dataclass(frozen=True)
class Advice:
    """What a player and a solver say about a position; None for what is unknown.

    likely: float64 [A], the probabilities of the player's actions, unless values decide. value: the
    return that it expects, in units of its reward. exact: the exact values. limit: on what was
    searched for them, in words; empty if nothing was. moves: the likeliest or highest scores
    first.
    """

    likely: Tensor | None
    value: float | None
    exact: PositionValue | None
    limit: str
    moves: list[Move]


def advise(
    game: Game[Any], state: State, player: Player | None, name: str, solve_seconds: float | None
) -> Advice:
    """Evaluate a live public position by a player, if any, and exactly within the time.

    player: with informative probabilities, see make_advisor. name: of the player. solve_seconds:
    None: within the solver's usual number of positions. Raises ConfigError for a position that one
    of them cannot evaluate.
    """
    likely = value = scores = None
    if player is not None:
        try:
            likely = probabilities(player, state)
            if isinstance(player, Agent):
                returns = expected_returns(player.game, player.policy, state)
                value, scores = (None if part is None else part[0] for part in returns)
        except (NonFiniteError, ValueError) as error:
            raise ConfigError(f"{name} cannot evaluate it: {sanitized(error)}") from None
    with value_errors("state= is impossible: "):
        exact, limit = None, ""
        solver = None if solve_seconds == 0 else position_solver(game)
        if solver is not None:
            if solve_seconds is None:
                solver.max_positions, solve_seconds = solver.usual_positions, solver.usual_seconds
            exact = solver.solve(state, solve_seconds)[0]
            has_clock = solve_seconds < math.inf
            limit = f"{solve_seconds:g} s" if has_clock else f"{solver.max_positions:,} positions"
    # These probabilities are of a softmax over values, which nobody learned.
    is_by_value = scores is not None and isinstance(player, Agent) and player.sampling.is_softmax
    likely = None if is_by_value else likely
    moves = [
        Move(
            action=words,
            probability=None if likely is None else float(likely[action]),
            score=None if scores is None else float(scores[action]),
            exact=None if exact is None else exact.actions[action],
            plies=None if exact is None or exact.plies is None else exact.plies[action],
        )
        for action, words in legal_names(game, state, 0).items()
    ]
    sign = direction(game.spec.goal, GOAL_METRICS[game.spec.goal])

    def order(move: Move) -> tuple[float, float, float, float]:
        """The likeliest first, of equals the best; early wins and late losses."""
        value, score = move.exact or 0.0, move.score or 0.0
        return -(move.probability or 0.0), -score, -sign * value, value * (move.plies or 0)

    expected = None if value is None else float(value)
    return Advice(likely, expected, exact, limit, sorted(moves, key=order))


def probabilities(player: Player, state: State) -> Tensor | None:
    """Float64 [A]: what the player is likely to do at a live public position, if it tells."""
    return player.probabilities(state)[0].cpu() if isinstance(player, HasProbabilities) else None


class Opinion(NamedTuple):
    """What a player thinks of the actions in a position: float64 [A], None if it does not tell.

    are_values: it learned values, and they decide: -inf for illegal actions; else probabilities.
    """

    numbers: Tensor | None
    are_values: bool


@torch.no_grad()
def opinion(player: Player | None, state: State) -> Opinion:
    """A player's opinion of a live public position: if an agent learned values, its values,
    because its probabilities only reflect its sampling."""
    if isinstance(player, Agent) and not player.policy.scores_are_logits:
        _, values = expected_returns(player.game, player.policy, state)
        assert values is not None
        legal = player.game.legal_action_mask(state)
        return Opinion(mask_illegal(values, legal)[0].cpu().double(), are_values=True)
    return Opinion(None if player is None else probabilities(player, state), are_values=False)


def unit_of(game: Game[Any]) -> str:
    """The unit of exact values: turns, points or outcome."""
    return {"score": "points"}.get(game.spec.goal, game.spec.goal)


def exact_text(value: float, unit: str) -> str:
    """An exact value in words; unit: turns, points or outcome."""
    if unit == "outcome":
        return {1.0: "won", 0.0: "drawn", -1.0: "lost"}.get(value, f"{value:+z.4f}")
    return f"{value:z.4f} {unit}"


@torch.no_grad()
def expected_returns(
    game: Game[Any], policy: Policy, state: State
) -> tuple[Tensor | None, Tensor | None]:
    """The returns that a policy expects at live public positions, float32 [B], and after each
    action, float32 [B, A]; None for what it does not tell."""
    scores, value = policy.scores(game, state)
    if policy.scores_are_logits:
        return value, None
    return mask_illegal(scores, game.legal_action_mask(state)).amax(1), scores
