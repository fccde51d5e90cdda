"""What a game may have besides its rules: abstract base classes, each for certain uses.

A game derives from the capabilities that it has, after Game or BoardGame. What needs one asks once,
when it is made: `find` or `require`. Game.lacks says which of them a game does not have with its
present rules, and why. The first line of each docstring names its use.

Letters in shapes: B games, A actions, P seats, N cells, G symmetries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from rlgames.games.state import Spec
from rlgames.rng import Rng

C = TypeVar("C", bound="Capability")


class Capability(ABC):
    """Methods that some uses of a game need."""

    spec: Spec


class Chance(Capability):
    """dice and draws after a move

    A game with spec.num_chance_inputs must have it.
    """

    @abstractmethod
    def apply_chance(self, state: Any, u: Tensor) -> Any:
        """The positions after chance, from those that apply_action returns.

        u: float32 [B, spec.num_chance_inputs] in [0, 1).
        """

    @abstractmethod
    def chance_outcomes(self, state: Any) -> tuple[Tensor, Any]:
        """All results of apply_chance: probability float64 [B, K] and B * K positions.

        Outcome k of row b is at b * K + k; where its probability is 0 it is meaningless.
        """

    @abstractmethod
    def outcome(self, before: Any, action: Tensor, after: Any) -> Tensor:
        """Int64 [B]: everything that a move made visible, chance included; an edge of a search
        tree."""


class HiddenInformation(Capability):
    """hidden cells and cards, which searches sample

    A game with spec.hidden must have it.
    """

    @abstractmethod
    def public(self, state: Any) -> Any:
        """The same positions with every hidden field replaced by HIDDEN."""

    @abstractmethod
    def resample(self, state: Any, rng: Rng) -> Any:
        """Public positions with a hidden truth drawn from all that agree with the observations."""

    @abstractmethod
    def rewind(self, state: Any) -> Any:
        """The initial positions of games with the hidden truth of full positions."""

    @abstractmethod
    def outcome(self, before: Any, action: Tensor, after: Any) -> Tensor:
        """Int64 [B]: everything that a move made visible; an edge of a search tree."""


class ListedWorlds(Capability):
    """exact means over all possible hidden states in search=rollout"""

    @abstractmethod
    def worlds(self, state: Any) -> tuple[Tensor, Any]:
        """Public positions [B] with every hidden truth that agrees with the observations: for
        each of W results, all equally likely, its row, int64 [W], and its position."""


class HiddenHits(Capability):
    """learner=occupancy"""

    @abstractmethod
    def hidden_hits(self, state: Any) -> Tensor:
        """Bool [B, P, A]: whether each action of each seat hits what is hidden; of full states."""


class ExactKey(Capability):
    """search=rollout values each position once"""

    @abstractmethod
    def key(self, state: Any) -> Tensor:
        """Int64 [B]: a number that no other visible position has."""


class InvertibleKey(ExactKey):
    """rlgames solve, player=exact and exploitability, on small boards"""

    @abstractmethod
    def state_from_key(self, key: Tensor) -> Any:
        """Live positions from their keys, int64 [B], with a score of 0; the inverse of key."""


class CellBoard(Capability):
    """policy=table and policy=embedding

    The values of the cells tell all about a position.
    """

    num_cell_values: int

    @abstractmethod
    def cells(self, state: Any) -> Tensor:
        """Int64 [B, rows, columns]: the values of all cells from the top, from 0 to
        num_cell_values - 1."""


class MoverCells(Capability):
    """policy=embedding from the side of the seat to move; policy.open_cells"""

    @abstractmethod
    def relative_cells(self, state: Any) -> Tensor:
        """CellBoard.cells, with 1 for what is the mover's and 2 for what is the other seat's."""

    @abstractmethod
    def open_cells(self, state: Any) -> Tensor:
        """Bool [B, rows, columns]: the cells that the seat to move can take now."""


class Symmetric(Capability):
    """learner.symmetries, policy.canonical and faster exact solvers"""

    @abstractmethod
    def symmetries(self) -> Tensor:
        """Int64 [G, N]: permutations of the cells that leave the rules unchanged.

        Cell c of a board transformed by symmetry g shows what cell symmetries()[g, c] showed.
        """

    def action_symmetries(self) -> Tensor:
        """Int64 [G, A]: on the transformed board action a does what action_symmetries()[g, a] did.

        By default the actions are the cells, and others, which stay. A game whose actions are not
        cells overrides this.
        """
        cells = self.symmetries()
        others = torch.arange(cells.shape[1], self.spec.actions)
        return torch.cat([cells, others.expand(len(cells), -1)], 1)

    def plane_symmetries(self) -> Tensor:
        """Int64 [G, C]: on the transformed board plane p shows the cells of what was plane
        plane_symmetries()[g, p]; by default, of plane p."""
        return torch.arange(self.spec.observation[0]).repeat(len(self.symmetries()), 1)


class KnownRandomPlay(Capability):
    """the exact mean of random play; reward.minus=random_shot, random_turn"""

    @abstractmethod
    def expected_random_score_delta(self, state: Any, plies: bool) -> Tensor:
        """Float32 [B]: the score that a uniformly random turn from here is expected to gain.

        plies: count one shot, cell or stone of the turn instead of all of them.
        """

    @abstractmethod
    def expected_random_turns(self) -> float:
        """The mean number of turns of uniformly random play."""

    @abstractmethod
    def random_turns_std(self) -> float:
        """The standard deviation of these turns."""


class MissingCapability(ValueError):
    """A game lacks a capability that a part needs; the message names it, and why."""


def find(game: Any, capability: type[C]) -> C | None:
    """The game as one that has the capability; None if it does not."""
    return None if reason_missing(game, capability) else cast(C, game)


def require(game: Any, capability: type[C], who: str) -> C:
    """The same; raises MissingCapability with the name of who needs it, such as policy=table."""
    if reason := reason_missing(game, capability):
        raise MissingCapability(
            f"{who} needs {capability.__name__}, which game={game.spec.name} does not have: "
            f"{reason}"
        )
    return cast(C, game)


def reason_missing(game: Any, capability: type[Capability]) -> str:
    """Why a game does not have a capability; empty if it does."""
    if isinstance(game, capability):
        return str(cast(Any, game).lacks(capability))
    if capability is Chance:
        return "nothing is drawn after a move"
    if capability is HiddenInformation:
        return "nothing is hidden"
    missing = [each for each in sorted(capability.__abstractmethods__) if not hasattr(game, each)]
    return f"it does not define {', '.join(missing) or 'all of it'}"


def check_declared(game: Any) -> None:
    """Raises MissingCapability where a game with chance, hidden information or symmetries does not
    have all that belongs to it."""
    spec = game.spec
    if spec.num_chance_inputs:
        require(game, Chance, f"spec.num_chance_inputs={spec.num_chance_inputs}")
    if spec.hidden:
        require(game, HiddenInformation, "spec.hidden=True")
    symmetric, default = find(game, Symmetric), Symmetric.action_symmetries
    if symmetric and not spec.has_cell_actions and type(symmetric).action_symmetries is default:
        raise MissingCapability(
            f"game={spec.name} needs action_symmetries: it has symmetries, and its actions are "
            "not cells"
        )


def expected_random_turns(game: Any) -> float | None:
    """As in KnownRandomPlay; None without the capability."""
    known = find(game, KnownRandomPlay)
    return None if known is None else known.expected_random_turns()
