"""The contract between a game's rules and everything that plays it.

Letters in shapes: B games side by side, A actions, P seats, N cells, O the shape of an observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from rlgames.core.devices import float64_on
from rlgames.core.errors import ConfigError
from rlgames.games import board_text
from rlgames.games.board_text import Board, BoardFormat
from rlgames.games.state import HIDDEN, Spec, State, Tables, Wants
from rlgames.rng import CHANCE, Rng

__all__ = ["HIDDEN", "Game", "Spec", "State"]

S = TypeVar("S", bound=State)

NOTHING = Wants()

RESIGNS = -1
"""As an action: the seat to move gives up the game. No rules know it; see rollouts/play.py."""

PRESENTATION_KEYS = ("encoding", "target")
"""Keys of a game that do not change its rules."""


def endless(spec: Spec, num_live: int) -> ConfigError:
    """The error of games that go on after the most plies that their rules allow."""
    return ConfigError(
        f"{num_live:,} games of {spec.name} go on after spec.max_plies={spec.max_plies:,} plies",
        "end them in its rules, or declare more plies",
    )


class Game(Tables, ABC, Generic[S]):
    """One instance is one set of rules; it holds constant tables and no position.

    A game defines spec and the abstract methods. Everything else has a default, or belongs to a
    capability, see rlgames/games/capabilities.py.
    """

    spec: Spec

    def __repr__(self) -> str:
        return f"<{self.spec.name}: {self.spec.seats} seats, {self.spec.actions} actions>"

    def lacks(self, capability: type[Any]) -> str:
        """Why the game does not have a capability with these rules, though its class has; or ""."""
        return ""

    # Rules

    @abstractmethod
    def initial(self, batch: int, rng: Rng) -> S:
        """B new games, none of them over; rng, of B rows, draws the hidden truth and the initial
        chance."""

    def example_state(self) -> S:
        """One new game on the game's device, for what all its states share: fields and shapes."""
        return self.initial(1, Rng(device=self.device))

    def openings(self, limit: int) -> tuple[S, Tensor] | None:
        """All ways a game can start and their probabilities, float64 [B]; None beyond limit.

        By default there is one. A game whose start is drawn by chance overrides this.
        """
        if limit < 1 or self.spec.hidden or self.spec.num_chance_inputs:
            return None
        return self.example_state(), torch.ones(1, dtype=torch.float64)

    @abstractmethod
    def legal_action_mask(self, state: S) -> Tensor:
        """Bool [B, A]: the legal actions of the seat to move; all True in a finished row."""

    @abstractmethod
    def apply_action(self, state: S, action: Tensor) -> S:
        """The positions after action, int64 [B], before chance; a finished row does not change."""

    def step(self, state: S, action: Tensor, rng: Rng, wants: Wants = NOTHING) -> S:
        """The positions after action, int64 [B], and chance; rng: of the ply, of B rows.

        wants: what is asked of them next, which a game may keep with them.
        """
        after = self.apply_action(state, action)
        if self.spec.num_chance_inputs:
            u = rng.fold_in(CHANCE).uniform(len(after), self.spec.num_chance_inputs)
            after = cast(Any, self).apply_chance(after, u)
        return after

    def chance_outcomes(self, state: S) -> tuple[Tensor, S]:
        """As Chance.chance_outcomes; without chance, one outcome for each position."""
        device = state.done.device
        return torch.ones(len(state), 1, dtype=float64_on(device), device=device), state

    def sample_legal_action(self, state: S, u: Tensor) -> Tensor:
        """Int64 [B]: a uniformly random legal action from u, float32 [B] in [0, 1)."""
        so_far = self.legal_action_mask(state).view(torch.uint8).cumsum(1, dtype=torch.int32)
        count = so_far[:, -1]
        # A random number times the count may be rounded up to the count.
        nth = (u * count).int().minimum(count - 1)
        return torch.searchsorted(so_far, nth[:, None], right=True)[:, 0]

    # What a seat sees

    @abstractmethod
    def observe(self, state: S) -> Tensor:
        """Float32 [B, *spec.observation]: what the seat to move may know, from its own side."""

    def public(self, state: S) -> S:
        """The same positions with every hidden field replaced by HIDDEN."""
        return state

    def view_from_seat(self, state: S, seat: int) -> S:
        """The positions as if this seat were to move, for observe: finished ones, and what a seat
        sees while the other one is to move."""
        return state

    def measures(self, state: S) -> dict[str, Tensor]:
        """Further results of each position by name, float32 [B], such as the largest tile."""
        return {}

    def depth(self, state: S) -> Tensor:
        """Int64 [B]: a number that grows with every move; solvers visit positions in its order."""
        return state.turn

    def ply(self, state: S) -> Tensor:
        """Int64 [B]: how many plies were made, or another number that grows with each: the random
        numbers of a ply depend on it. A game whose turns have several plies overrides this."""
        return state.turn

    def is_valid(self, state: S) -> Tensor:
        """Bool [B]: whether the rules can play on from positions, public or not, to an end.

        The shapes and types of the fields are right; a game also checks its own fields, since
        positions may come from untrusted files.
        """
        spec = self.spec
        seat_exists = (state.current_seat >= 0) & (state.current_seat < spec.seats)
        turn_exists = (state.turn >= 0) & (state.turn <= spec.max_plies)
        return seat_exists & turn_exists & state.score.isfinite().all(1)

    # Text and pictures; rlgames/games/notation.py derives the rest

    seat_marks = ""
    """The marks of the seats' stones on the boards, one character each; empty without any."""

    board_titles: Sequence[str] = ()
    """What each board shows, where there are several."""

    @property
    def how_to_play(self) -> str:
        """The rules of a turn in a line or two, for a person; empty if they are not written."""
        return ""

    @abstractmethod
    def boards(self, state: S, row: int, reveal: bool = False) -> list[Board]:
        """One position as boards of marks; reveal shows the hidden truth too. A game without any
        says all in its caption."""

    @abstractmethod
    def parse_all(self, texts: Sequence[str]) -> S:
        """Public positions from their texts; the inverse of notation.render. The game is on the
        CPU. Raises ValueError, with the reason, for any other text."""

    def action_to_string(self, state: S, row: int, action: int) -> str:
        """An action as a person writes it; by default the name of its cell, or its number."""
        is_cell = self.spec.has_cell_actions
        return self.board_format.cell_name(action) if is_cell else str(action)

    def plain_name(self, name: str) -> str:
        """The name of an action without what a person may write in another way: its words may be
        in any case and order."""
        return " ".join(sorted(name.upper().split()))

    @cached_property
    def board_format(self) -> BoardFormat:
        """How the boards and the names of their cells are written."""
        _, rows, columns = self.spec.observation
        return board_text.lettered_format(rows, columns)

    def caption(self, state: S, row: int) -> str:
        """A line about a position that its boards do not show; "" without any."""
        return ""

    def history(self, state: S, row: int) -> str:
        """Lines about earlier turns that are public and not on the boards; "" without any."""
        return ""

    def winning_cells(self, state: S, row: int) -> list[int]:
        """The cells of the first board that won a game, such as a line; [] if none are special."""
        return []

    def action_cells(self, state: S, row: int) -> Tensor | None:
        """Bool [A, N]: the cells of the first board that each action takes or shoots at; None where
        actions are not cells."""
        if not self.spec.has_cell_actions:
            return None
        _, rows, columns = self.spec.observation
        return torch.eye(self.spec.actions, rows * columns, dtype=torch.bool)
