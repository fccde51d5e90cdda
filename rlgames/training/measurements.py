"""Mistakes against perfect play, which a run with analyze_every= counts now and then.

They have their own random stream and change nothing that training depends on.
"""

from __future__ import annotations

from typing import Any

import torch

from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.core.untrusted import MAX_NUMBER, checked_float, checked_int
from rlgames.evaluation.analysis import played_moves, with_values
from rlgames.evaluation.evaluate import EvaluationSettings
from rlgames.solvers.position import position_solver
from rlgames.training.evaluator import Evaluator

REGRET_GAMES, REGRET_POSITIONS, REGRET_SECONDS = 100, 20_000, 60.0
"""Of an analysis in training: games, positions searched for each exact value, and the time limit,
which is there for slow machines: with values that it cuts off, runs would not repeat."""

WHY_NO_REGRET = (
    f"eval/regret is missing: the solver knows no value after {REGRET_POSITIONS:,} positions"
)


class Regret:
    """The mean value that a move of the greedy policy loses, as `rlgames analyze` counts it.

    every: games between two measurements. measured_at: games played at the last one.
    latest: its value; None if the solver knows none.
    Raises ConfigError for a game without an exact solver.
    """

    def __init__(self, evaluator: Evaluator, every: int) -> None:
        self.evaluator, self.every = evaluator, every
        self.measured_at = 0
        self.latest: float | None = None
        name = evaluator.game.spec.name
        solver = position_solver(evaluator.game, max_positions=REGRET_POSITIONS)
        if solver is None:
            raise ConfigError(
                f"no exact solver fits these rules of game={name}",
                f"remove analyze_every={every}",
            )
        self._solver = solver

    def measure(self) -> float | None:
        """The value; changes nothing."""
        subject = self.evaluator
        rng = make_generator(subject.seed, "regret", subject.game.device)
        settings = EvaluationSettings(sampled_games=REGRET_GAMES)
        with torch.inference_mode():
            moves, _ = played_moves(subject.game, subject.greedy, subject.opponent, settings, rng)
        loss = with_values(moves, subject.game, self._solver, REGRET_SECONDS).loss
        known = loss[~loss.isnan()]
        return float(known.mean()) if len(known) else None

    def state_dict(self) -> dict[str, Any]:
        return {"measured_at": self.measured_at, "latest": self.latest}

    def load_state_dict(self, state: dict[str, Any], games: int) -> None:
        """Raises LookupError, TypeError or ValueError for a state that is impossible."""
        self.measured_at = checked_int(state["measured_at"], 0, games)
        latest = state["latest"]
        self.latest = None if latest is None else checked_float(latest, -MAX_NUMBER, MAX_NUMBER)
