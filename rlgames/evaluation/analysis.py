"""Where a player's moves lose value against perfect play, and how much.

A move's loss is the exact value of the best action minus the value of the action it takes: turns of
battleship, points of 2048, and outcomes, where a draw instead of a win loses 1 and a loss instead
of a win 2. The losses of a game add up to what perfect play would gain on average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.metrics import GOAL_METRICS, are_equal, direction
from rlgames.core.rows import Rows
from rlgames.evaluation.estimates import Estimate, Floats, mean_interval
from rlgames.evaluation.evaluate import Evaluation, EvaluationSettings, evaluate
from rlgames.evaluation.positions import Positions
from rlgames.games.game import RESIGNS, Game, State
from rlgames.players.player import Player
from rlgames.rng import Rng

if TYPE_CHECKING:
    from rlgames.solvers.position import Solver

MAX_TURN_ROWS = 16

PHASES = ("beginning", "middle", "end")
"""The thirds of a game's turns."""

VALUES = 20
"""As many positions are searched in all as this many values may take, or a solver's usual_total."""


@dataclass(frozen=True)
class Moves(Rows):
    """N moves of a player in public positions.

    action, turn, game: int64 [N]; turns count from 1. group: int64 [N], the class of the position,
    an index of groups. values: float64 [N, A], the exact values of the actions for the seat to
    move, higher is better; NaN where they are illegal or unknown.
    """

    state: State
    action: Tensor
    turn: Tensor
    game: Tensor
    group: Tensor
    values: Tensor
    groups: tuple[str, ...] = PHASES

    @property
    def loss(self) -> Tensor:
        """Float64 [N]: what each move loses; NaN where that is unknown."""
        best = self.values.nan_to_num(-torch.inf).amax(1)
        value = self.values.gather(1, self.action[:, None])[:, 0]
        return torch.where(are_equal(value, best), 0.0, best - value)

    @property
    def allows_loss(self) -> Tensor:
        """Bool [N]: whether an action in this position is known to lose value."""
        best = self.values.nan_to_num(-torch.inf).amax(1, keepdim=True)
        return ((self.values < best) & ~are_equal(self.values, best)).any(1)


def moves_in(player: Player, positions: Positions, rng: Rng) -> Moves:
    """The moves of a player in the positions of a file, each one counted as a game."""
    state, groups = positions.state, tuple(dict.fromkeys(positions.group))
    action = player.choose(state, rng).cpu()
    group = torch.tensor([groups.index(name) for name in positions.group])
    values = torch.full((len(action), 1), torch.nan, dtype=torch.float64)
    if positions.outcome is not None:
        outcome = positions.outcome.double()
        values = outcome.where(outcome > -2, torch.nan)
    state = state.to("cpu")
    return Moves(state, action, state.turn + 1, torch.arange(len(action)), group, values, groups)


def played_moves(
    game: Game[Any],
    player: Player,
    opponent: Player | None,
    settings: EvaluationSettings,
    rng: Rng,
) -> tuple[Moves, Evaluation]:
    """The moves of a player in games as evaluate plays them, classed by phase, and the games."""
    evaluation = evaluate(game, player, settings, rng, opponent, records=True)
    assert evaluation.trajectories is not None
    own = evaluation.trajectories.by_player(0).to("cpu")
    made = own.action != RESIGNS
    state, number, action = own.state[made], own.game[made], own.action[made]
    phase = len(PHASES) * state.turn // evaluation.state.turn.cpu()[number].clamp(min=1)
    group = phase.clamp(max=len(PHASES) - 1)
    unknown = torch.full((len(action), 1), torch.nan, dtype=torch.float64)
    return Moves(state, action, state.turn + 1, number, group, unknown), evaluation


def with_values(moves: Moves, game: Game[Any], solver: Solver[Any, Any]) -> Moves:
    """The moves with the exact values that a solver finds, each position once. The positions
    searched in all are limited, not the time, so that the values do not depend on the machine, but
    for Solver.usual_seconds."""
    max_total = max(solver.usual_total, VALUES * solver.max_positions)
    first, where = distinct(moves.state)
    sign = direction(game.spec.goal, GOAL_METRICS[game.spec.goal])
    values = torch.full((len(first), game.spec.actions), torch.nan, dtype=torch.float64)
    num_legal = solver.game.legal_action_mask(moves.state[first]).sum(1).tolist()
    found = solver.solve(moves.state[first], solver.usual_seconds, max_total)
    for row, value in enumerate(found):
        if value is None or value.value is None:
            continue
        # Where only some outcomes are known, a win is more often among them than a mistake.
        num_known = len(value.actions) - value.actions.count(None)
        if game.spec.goal != "outcome" or num_legal[row] == num_known:
            numbers = [torch.nan if each is None else sign * each for each in value.actions]
            values[row] = torch.tensor(numbers, dtype=torch.float64)
    return replace(moves, values=values[where])


def distinct(state: State) -> tuple[Tensor, Tensor]:
    """Int64 [D] and [N]: the first row of each different position, and which one each row has."""
    content = state.content().numpy()
    rows = content.view(np.dtype((np.void, content.shape[1])))[:, 0]
    _, first, where = np.unique(rows, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(where.reshape(-1))


@dataclass(frozen=True)
class Losses:
    """How often moves lose value, and how much.

    count: how many lose, of the positions whose values are known, of all that were met. allow: the
    positions where a move could lose value. rate, loss: the rate of moves that lose, and the mean
    loss of a move; None without any.
    """

    count: int
    rate: Estimate | None
    positions: int
    allow: int
    met: int
    loss: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "count": self.count,
            **_fields(self.rate, "rate"),
            "positions": self.positions,
            "allow": self.allow,
            "met": self.met,
            "loss": _fields(self.loss, "mean"),
        }


def _fields(estimate: Estimate | None, name: str) -> dict[str, Any]:
    return {name: None, "ci95": None} if estimate is None else estimate.as_dict(name)


def losses_by_group(moves: Moves, is_exact: bool = False) -> dict[str, Losses]:
    """By class and for all: as losses."""
    result = {
        name: losses(moves[moves.group == number], is_exact)
        for number, name in enumerate(moves.groups)
    }
    return result | {"all": losses(moves, is_exact)}


def losses_by_turn(moves: Moves, is_exact: bool) -> dict[tuple[int, int], Losses]:
    """By the first and the last of the turns: each turn when the player moved, or as many
    together as make at most MAX_TURN_ROWS parts."""
    size = -(-int(moves.turn.max()) // MAX_TURN_ROWS)
    part = (moves.turn - 1) // size
    return {
        (size * number + 1, size * (number + 1)): losses(moves[part == number], is_exact)
        for number in part.unique().tolist()
    }


def losses(moves: Moves, is_exact: bool) -> Losses:
    """The losses of moves of independent games; is_exact: of all games that are possible."""
    loss = moves.loss
    known = ~loss.isnan()
    value, game = loss[known].numpy(), moves.game[known].unique(return_inverse=True)[1].numpy()
    total: Floats = np.bincount(game).astype(np.float64)
    count: Floats = np.bincount(game, value > 0).astype(np.float64)
    lost: Floats = np.bincount(game, value).astype(np.float64)
    has_any = len(value) > 0
    return Losses(
        count=int(count.sum()),
        rate=Estimate.of_moves(count, total, is_exact) if has_any else None,
        positions=len(value),
        allow=int((moves.allows_loss & known).sum()),
        met=len(loss),
        loss=_mean_per_move(lost, total, is_exact) if has_any else None,
    )


def _mean_per_move(total: Floats, moves: Floats, is_exact: bool) -> Estimate:
    """The mean over moves, from the totals, not negative, and the moves of each game, with an
    interval by what each game adds to the ratio of the totals."""
    mean, interval = float(total.sum() / moves.sum()), None
    if not is_exact:
        interval = mean_interval(mean + (total - mean * moves) / moves.mean())
    if interval is not None:
        interval = max(0.0, interval[0]), interval[1]
    return Estimate(mean, interval, int(moves.sum()), is_exact)
