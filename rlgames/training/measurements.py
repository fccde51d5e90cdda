"""What a run measures now and then besides its evaluations: mistakes against perfect play, and Elo
ratings of its checkpoints.

A measurement has its own random streams and changes nothing that training depends on.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from rlgames.config.commands import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import MAX_NUMBER, checked_float, checked_int
from rlgames.evaluation.analysis import played_moves, with_values
from rlgames.evaluation.elo import Table, outcome_counts, rate
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.policy import Policy
from rlgames.solvers.position import position_solver
from rlgames.training.evaluator import Evaluator

REGRET_GAMES, REGRET_POSITIONS, REGRET_SECONDS = 100, 20_000, 60.0
"""Of an analysis in training: games, positions searched for each exact value, and the time limit,
which is there for slow machines: with values that it cuts off, runs would not repeat."""

ELO_GAMES = 100
"""Between a checkpoint and each of its opponents."""

MAX_RATED = 20
"""Results of older checkpoints are forgotten."""

T = TypeVar("T")


class Measurement(ABC, Generic[T]):
    """Something that is measured every so many games.

    measured_at: games played at the last time. latest: what was found then. state: what later
    measurements depend on. why_empty: why nothing may have been found.
    """

    state: T
    why_empty = ""

    def __init__(self, evaluator: Evaluator, every: int) -> None:
        self.evaluator, self.every = evaluator, every
        self.measured_at, self.latest = 0, dict[str, float]()

    @abstractmethod
    def measure(self, games: int) -> tuple[dict[str, float], T]:
        """The metrics of the policy after this many games, and the next state; changes nothing."""

    def state_dict(self) -> dict[str, Any]:
        return {"measured_at": self.measured_at, "latest": self.latest}

    def load_state_dict(self, state: dict[str, Any], games: int) -> None:
        """Raises LookupError, TypeError or ValueError for a state that is impossible."""
        self.measured_at = checked_int(state["measured_at"], 0, games)
        self.latest = {
            str(name): checked_float(value, -MAX_NUMBER, MAX_NUMBER)
            for name, value in dict(state["latest"]).items()
        }


class Regret(Measurement[None]):
    """The mean value that a move of the greedy policy loses, as `rlgames analyze` counts it.

    Raises ConfigError for a game without an exact solver.
    """

    state = None
    why_empty = (
        f"eval/regret is missing: the solver knows no value after {REGRET_POSITIONS:,} positions"
    )

    def __init__(self, evaluator: Evaluator, every: int) -> None:
        super().__init__(evaluator, every)
        name = evaluator.game.spec.name
        solver = position_solver(evaluator.game, max_positions=REGRET_POSITIONS)
        if solver is None:
            raise ConfigError(
                f"no exact solver fits these rules of game={name}",
                f"remove analyze_every={every}",
            )
        self._solver = solver

    def measure(self, games: int) -> tuple[dict[str, float], None]:
        subject = self.evaluator
        rng = make_generator(subject.seed, "regret", subject.game.device)
        settings = EvaluationSettings(sampled_games=REGRET_GAMES)
        with torch.inference_mode():
            moves, _ = played_moves(subject.game, subject.greedy, subject.opponent, settings, rng)
        loss = with_values(moves, subject.game, self._solver, REGRET_SECONDS).loss
        known = loss[~loss.isnan()]
        return ({"regret": float(known.mean())} if len(known) else {}), None


@dataclass(frozen=True)
class Results:
    """The games of a ladder so far.

    count: checkpoints rated. tables: the results of pairs of players: random play, the opponent of
    evaluations, and from FIRST_RATED on the checkpoints. copies: the policies of the checkpoints
    that are still played against.
    """

    count: int = 0
    tables: tuple[Table, ...] = ()
    copies: dict[int, Policy] = field(default_factory=dict)


FIRST_RATED = 2


class Ladder(Measurement[Results]):
    """Elo of the greedy policy among the run's earlier checkpoints, random play, whose rating is 0,
    and the opponent of evaluations.

    A checkpoint plays against the fixed players and a few earlier checkpoints, the older the fewer:
    checkpoint n is kept until as many more have come as twice the largest power of 2 in n.
    Raises ConfigError for a game with one seat.
    """

    def __init__(self, evaluator: Evaluator, every: int) -> None:
        super().__init__(evaluator, every)
        if evaluator.opponent is None:
            name = evaluator.game.spec.name
            raise ConfigError(f"{name} is a one-player game", f"remove elo_every={every}")
        self.state = Results()
        self._fixed: list[Player] = [Random(evaluator.game)]
        if not isinstance(evaluator.opponent, Random):
            self._fixed.append(evaluator.opponent)

    def measure(self, games: int) -> tuple[dict[str, float], Results]:
        number, newest = self.state.count + 1, self.state.count + FIRST_RATED
        policy = self._copy()
        players = dict(enumerate(self._fixed))
        players |= {each: self._agent(kept) for each, kept in self.state.copies.items()}
        tables = [self._play(newest, self._agent(policy), *other) for other in players.items()]
        if number == 1 and len(self._fixed) > 1:
            tables.append(self._play(0, self._fixed[0], 1, self._fixed[1]))
        oldest = newest - MAX_RATED
        known = [
            table
            for table in (*self.state.tables, *tables)
            if all(player < FIRST_RATED or player > oldest for player in table[:2])
        ]
        copies = {
            each: kept
            for each, kept in (self.state.copies | {newest: policy}).items()
            for place in [each - FIRST_RATED + 1]  # place & -place: the power of 2 that divides it
            if newest - each < 2 * (place & -place) - 1 and each > oldest + 1
        }
        return _rating(known, newest), Results(number, tuple(known), copies)

    def _play(self, first: int, player: Player, second: int, other: Player) -> Table:
        subject = self.evaluator
        rng = make_generator(subject.seed, f"elo {first} {second}", subject.game.device)
        other.reset_statistics()
        settings = EvaluationSettings(ELO_GAMES)
        with torch.inference_mode():
            result = evaluate(subject.game, player, settings, rng, other)
        return first, second, outcome_counts(result), result.is_exact

    def _copy(self) -> Policy:
        return copy.deepcopy(self.evaluator.greedy.policy).eval()

    def _agent(self, policy: Policy) -> Agent:
        return Agent(self.evaluator.game, policy, self.evaluator.greedy_rule)

    def state_dict(self) -> dict[str, Any]:
        tables = [[*table[:2], table[3], *table[2].flatten()] for table in self.state.tables]
        return super().state_dict() | {
            "count": self.state.count,
            "tables": torch.tensor(tables, dtype=torch.int64).view(-1, 9),
            "copies": {str(n): policy.state_dict() for n, policy in self.state.copies.items()},
        }

    def load_state_dict(self, state: dict[str, Any], games: int) -> None:
        super().load_state_dict(state, games)
        count, copies = checked_int(state["count"], 0, games), dict[int, Policy]()
        last = count + FIRST_RATED - 1
        for number in state["copies"]:
            policy = self._copy()
            load_weights(policy, state["copies"][number])
            copies[checked_int(int(number), FIRST_RATED, last)] = policy
        self.state = Results(count, tuple(_tables(state["tables"], last)), copies)


def _tables(saved: Tensor, last: int) -> list[Table]:
    """Raises ValueError or TypeError for a tensor that holds no results of players up to last."""
    if saved.dtype != torch.int64 or saved.dim() != 2 or saved.shape[1] != 9:
        raise ValueError("the results of the ladder have another shape")
    tables: list[Table] = []
    for first, second, is_exact, *counts in saved.tolist():
        checked_int(first, 0, last)
        checked_int(second, 0, last)
        if min(counts) < 0 or sum(counts) == 0 or first == second:
            raise ValueError("the results of the ladder are impossible")
        results = np.array(counts, np.float64).reshape(2, 3)
        tables.append((first, second, results, bool(is_exact)))
    return tables


def _rating(tables: list[Table], player: int) -> dict[str, float]:
    """The rating of a player above random play, with its interval."""
    names = sorted({number for table in tables for number in table[:2]})
    rows = [(names.index(a), names.index(b), results, exact) for a, b, results, exact in tables]
    elo, intervals = rate(rows, len(names), anchor=0)
    row = names.index(player)
    metrics = {"elo": float(elo[row])}
    if intervals is not None:
        metrics |= {"elo_low": float(intervals[0][row]), "elo_high": float(intervals[1][row])}
    return metrics


def build_measurements(cfg: TrainConfig, evaluator: Evaluator) -> dict[str, Measurement[Any]]:
    """Those that a config asks for, by name. Raises ConfigError where one does not fit the game."""
    measurements: dict[str, Measurement[Any]] = {}
    if cfg.analyze_every is not None:
        measurements["regret"] = Regret(evaluator, cfg.analyze_every)
    return measurements
