"""The contract between a game's rules and everything that plays it.

Letters in shapes: B games side by side, A actions, P seats, N cells, O the shape of an observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from rlgames.core.devices import float64_on
from rlgames.games import board
from rlgames.games.board import Board, BoardFormat
from rlgames.games.state import HIDDEN, Spec, State, Tables
from rlgames.games.subsets import MAX_SET_SIZE, Subsets, nth_member

if TYPE_CHECKING:
    from rlgames.games.compiled import CompiledRules

__all__ = ["HIDDEN", "ExactSolver", "Game", "Spec", "State"]

S = TypeVar("S", bound=State)

ExactSolver = Literal["graph", "alpha_beta", "belief", "announced"]


class Game(Tables, ABC, Generic[S]):
    """One instance is one set of rules; it holds constant tables and no position."""

    spec: Spec
    _subsets: Subsets | None = None
    _action_of_name: dict[str, int] | None = None

    def __repr__(self) -> str:
        return f"<{self.spec.name}: {self.spec.seats} seats, {self.spec.actions} actions>"

    # Rules

    @abstractmethod
    def initial(self, batch: int, rng: torch.Generator) -> S:
        """B new games, none of them over; rng draws the hidden truth and the initial chance."""

    def example_state(self) -> S:
        """One new game on the game's device, for what all its states share: fields and shapes."""
        return self.initial(1, torch.Generator(self.device))

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

    def apply_chance(self, state: S, u: Tensor) -> S:
        """The positions after chance, from those that apply_action returns.

        u: float32 [B, spec.num_chance_inputs] in [0, 1).
        """
        return state

    def chance_outcomes(self, state: S) -> tuple[Tensor, S]:
        """All results of apply_chance: probability float64 [B, K] and B * K positions.

        Outcome k of row b is at b * K + k; where its probability is 0 it is meaningless.
        """
        device = state.done.device
        return torch.ones(len(state), 1, dtype=float64_on(device), device=device), state

    def step(self, state: S, action: Tensor, rng: torch.Generator) -> S:
        """The positions after action, int64 [B], and chance, drawn with rng."""
        after = self.apply_action(state, action)
        if self.spec.num_chance_inputs:
            u = torch.rand(
                len(after), self.spec.num_chance_inputs, generator=rng, device=rng.device
            )
            after = self.apply_chance(after, u)
        return after

    def sample_legal_action(self, state: S, u: Tensor) -> Tensor:
        """Int64 [B]: a uniformly random legal action from u, float32 [B] in [0, 1)."""
        legal = self.legal_action_mask(state)
        if legal.shape[1] <= MAX_SET_SIZE:
            subsets = self.subsets(legal.shape[1], legal.device)
            return subsets.pick(subsets.code(legal), u)
        return nth_member(legal, u)

    def subsets(self, size: int, device: torch.device) -> Subsets:
        """The table that sample_legal_action uses, made on first use."""
        if self._subsets is None or self._subsets.device != device:
            self._subsets = Subsets(size, device)
        return self._subsets

    def compiled_rules(self) -> CompiledRules[S] | None:
        """The same rules for kernels on the CPU; None without them. See find_compiled_rules."""
        return None

    # What a seat sees

    @abstractmethod
    def observe(self, state: S) -> Tensor:
        """Float32 [B, *spec.observation]: what the seat to move may know, from its own side."""

    def public(self, state: S) -> S:
        """The same positions with every hidden field replaced by HIDDEN."""
        if self.spec.hidden:
            raise NotImplementedError(f"{self.spec.name} does not say what is hidden")
        return state

    def view_from_seat(self, state: S, seat: int) -> S:
        """The positions as if this seat were to move, for observe: finished ones, and what a seat
        sees while the other one is to move."""
        return state

    def resample(self, state: S, rng: torch.Generator) -> S:
        """Public positions with a hidden truth drawn from all that agree with what was seen."""
        return state

    def worlds(self, state: S) -> tuple[Tensor, S] | None:
        """Public positions [B] with every hidden truth that agrees with what was seen: for each of
        W results, all equally likely, the row it is of, int64 [W], and its position; None where
        they are not listed."""
        return None

    def rewind(self, state: S) -> S:
        """The initial positions of games with the hidden truth of full positions."""
        raise NotImplementedError(f"{self.spec.name} cannot be rewound")

    def outcome(self, before: S, action: Tensor, after: S) -> Tensor:
        """Int64 [B]: everything that a move made visible, chance included; an edge of a search
        tree."""
        return torch.zeros_like(action)

    def hidden_hits(self, state: S) -> Tensor:
        """Bool [B, P, A]: whether each action of each seat hits what is hidden; of full states."""
        raise NotImplementedError(f"in {self.spec.name} actions do not hit or miss what is hidden")

    # Identity and structure

    def key(self, state: S) -> Tensor:
        """Int64 [B]: the identity of a visible position, exact if spec.has_exact_key."""
        raise NotImplementedError(f"positions of {self.spec.name} have no key")

    def state_from_key(self, key: Tensor) -> S:
        """Live positions from their keys, int64 [B], with a score of 0; the inverse of key."""
        raise NotImplementedError(f"positions of {self.spec.name} have no key")

    def depth(self, state: S) -> Tensor:
        """Int64 [B]: a number that grows with every move; solvers visit positions in its order."""
        return state.turn

    def cells(self, state: S) -> Tensor:
        """Int64 [B, rows, columns]: the values of all cells from the top, 0 to
        spec.num_cell_values - 1."""
        raise NotImplementedError(f"a board of {self.spec.name} is more than its cells")

    def relative_cells(self, state: S) -> Tensor:
        """cells(), with 1 for what is the mover's and 2 for what is the other seat's."""
        return self.cells(state)

    def open_cells(self, state: S) -> Tensor:
        """Bool [B, rows, columns]: the cells that the seat to move can take now."""
        if not self.spec.has_cell_actions:
            raise NotImplementedError(f"a move of {self.spec.name} does not take one empty cell")
        _, rows, columns = self.spec.observation
        legal = self.legal_action_mask(state)[:, : rows * columns] & ~state.done[:, None]
        return legal.view(-1, rows, columns)

    def symmetries(self) -> Tensor:
        """Int64 [G, N]: permutations of the cells that leave the rules unchanged.

        Cell c of a board transformed by symmetry g shows what cell symmetries()[g, c] showed.
        """
        _, rows, columns = self.spec.observation
        return torch.arange(rows * columns)[None]

    def action_symmetries(self) -> Tensor:
        """Int64 [G, A]: on the transformed board action a does what action_symmetries()[g, a]
        did."""
        actions = torch.arange(self.spec.actions)
        if not self.spec.has_cell_actions:
            return actions[None]
        cells = self.symmetries()
        return torch.cat([cells, actions[cells.shape[1] :].expand(len(cells), -1)], 1)

    def is_valid(self, state: S) -> Tensor:
        """Bool [B]: whether the rules can play on from positions, public or not, to an end.

        The shapes and types of the fields are right; a game adds checks of its own fields, since
        positions may come from untrusted files.
        """
        spec = self.spec
        seat_exists = (state.current_seat >= 0) & (state.current_seat < spec.seats)
        turn_exists = (state.turn >= 0) & (state.turn <= spec.max_plies)
        return seat_exists & turn_exists & state.score.isfinite().all(1)

    @property
    def exact_solver(self) -> ExactSolver | None:
        """The exact solver that fits these rules, on boards that are small enough; None: none does.

        "graph" lists all positions; "alpha_beta" searches k in a row with gravity, whose positions
        can be listed too; "belief" solves battleship with hits and misses only, "announced" that
        with announced sinkings.
        """
        can_list = self.spec.has_exact_key and not self.spec.hidden
        return "graph" if can_list else None

    # Figures for rewards, tables and reports

    def measures(self, state: S) -> dict[str, Tensor]:
        """Further measures of each position by name, float32 [B]."""
        return {}

    def expected_random_score_delta(self, state: S, plies: bool) -> Tensor:
        """Float32 [B]: the score that a uniformly random turn from here is expected to gain.

        plies: count one shot, cell or stone of the turn instead of all of them.
        """
        raise NotImplementedError(f"{self.spec.name} does not say what a random move gains")

    def expected_random_turns(self) -> float | None:
        """The mean number of turns of uniformly random play, where theory gives it."""
        return None

    def random_turns_std(self) -> float | None:
        """The standard deviation of these turns, where theory gives it."""
        return None

    # Text

    seat_marks = ""
    """The marks of the seats' stones on the boards, one character each; empty without any."""

    shows_mover = False
    """Whether the caption says who is to move, because the stones do not tell."""

    board_titles: Sequence[str] = ()
    """What each board shows, where there are several."""

    @property
    def how_to_play(self) -> str:
        """The rules of a turn in a line or two, for a person; empty if they are not written."""
        return ""

    def boards(self, state: S, row: int, reveal: bool = False) -> list[Board]:
        """One position as boards of marks; reveal shows the hidden truth too.

        By default the seat_marks on the cells. Empty for a game without boards, which overrides
        render instead.
        """
        if not self.seat_marks:
            return []
        cells = self.cells(state[row : row + 1])[0].tolist()
        return [[[f".{self.seat_marks}"[cell] for cell in line] for line in cells]]

    @cached_property
    def board_format(self) -> BoardFormat:
        """How the boards and the names of their cells are written; an engine changes it."""
        _, rows, columns = self.spec.observation
        return board.lettered_format(rows, columns)

    def caption(self, state: S, row: int) -> str:
        """One line about a position that its boards do not show."""
        if not self.shows_mover:
            return ""
        if bool(state.done[row]):
            return board.GAME_OVER
        return board.seat_caption(self.seat_marks, int(state.current_seat[row]))

    def history(self, state: S, row: int) -> str:
        """Lines about earlier turns that are public and not on the boards; "" without any."""
        return ""

    def action_cells(self, state: S, row: int) -> Tensor | None:
        """Bool [A, N]: the cells of the first board that each action takes or shoots at; None where
        actions are not cells."""
        if not self.spec.has_cell_actions:
            return None
        _, rows, columns = self.spec.observation
        return torch.eye(self.spec.actions, rows * columns, dtype=torch.bool)

    def render(self, state: S, row: int, reveal: bool = False) -> str:
        """One position as text: its caption and history, if any, and its boards."""
        boards = self.boards(state, row, reveal)
        if not boards:
            raise NotImplementedError(f"{self.spec.name} defines neither boards nor render")
        lines = [self.caption(state, row), self.history(state, row)]
        return "\n".join([*filter(None, lines), board.draw(boards, self.board_format)])

    def parse(self, text: str) -> S:
        """One public position from its text; the inverse of render. The game is on the CPU.

        Raises ValueError, with the reason, for any other text.
        """
        return self.parse_all([text])

    @abstractmethod
    def parse_all(self, texts: Sequence[str]) -> S:
        """Many public positions at once, each as in parse."""

    @abstractmethod
    def action_to_string(self, state: S, row: int, action: int) -> str:
        """An action as a person writes it."""

    def legal_names(self, state: S, row: int) -> dict[int, str]:
        """By legal action: its name."""
        legal = self.legal_action_mask(state[row : row + 1])[0].nonzero()[:, 0].tolist()
        return {action: self.action_to_string(state, row, action) for action in legal}

    def parse_action(self, state: S, row: int, text: str, exact: bool = False) -> int:
        """The legal action that a person wrote: its name, with its words in any order.

        Unless exact, names that are words may be abbreviated, and where no name is a number, a
        number counts the actions from 1. Raises ValueError for anything else.
        """
        words = sorted(text.upper().split())
        as_written = self.legal_names(state, row)
        names = {action: name.upper() for action, name in as_written.items()}
        for action, name in names.items():
            if sorted(name.split()) == words:
                return int(action)
        if len(words) == 1 and not exact:
            prefix = words[0]
            matches = [a for a, name in names.items() if name.isalpha() and name.startswith(prefix)]
            if len(matches) == 1:
                return int(matches[0])
            has_numbers = any(name.isdecimal() for name in names.values())
            if prefix.isdecimal() and not has_numbers and int(prefix) - 1 in names:
                return int(prefix) - 1
        examples = ", ".join([*as_written.values()][:8])
        more = ", ..." if len(names) > 8 else ""
        raise ValueError(f"{text!r} is not a legal move; legal moves: {examples}{more}")

    def parse_actions(self, state: S, texts: Sequence[str]) -> Tensor:
        """Int64 [B]: the legal action of each row that has exactly this name.

        Raises ValueError as parse_action does.
        """
        if self._action_of_name is None:
            start = self.example_state()
            self._action_of_name = {
                self.action_to_string(start, 0, a): a for a in range(self.spec.actions)
            }
        guesses = [self._action_of_name.get(text, -1) for text in texts]
        action = torch.tensor(guesses, device=self.device)
        legal = self.legal_action_mask(state).gather(1, action.clamp(min=0)[:, None])[:, 0].tolist()
        for row, (text, guess) in enumerate(zip(texts, guesses, strict=True)):
            # A name may depend on the position, and its words may come in any order.
            is_exact = legal[row] and guess >= 0
            if not is_exact or self.action_to_string(state, row, guess) != text:
                action[row] = self.parse_action(state, row, text, exact=True)
        return action


def find_compiled_rules(game: Game[Any]) -> CompiledRules[Any] | None:
    """The compiled rules of a game, if it has any. A class derived from the game may have other
    rules, so it does not inherit them."""
    return game.compiled_rules() if "compiled_rules" in vars(type(game)) else None
