"""The contract between a game's rules and everything that plays it.

Letters in shapes: B games side by side, A actions, P seats, O the shape of an observation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, Self, TypeVar

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.board import Board, BoardFormat
from rlgames.games.subsets import MAX_SET_SIZE, Subsets, nth_member


class HiddenTruth:
    """Stands where a player may not look: any use of it as a tensor raises PermissionError."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise PermissionError(
            "this player was handed a public state: the hidden truth is not in it"
        )

    def __reduce__(self) -> str:
        return "HIDDEN"

    __getattr__ = __getitem__ = __and__ = __rand__ = __or__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __mul__ = __gt__ = __lt__ = __len__ = __iter__ = _refuse

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        return HIDDEN._refuse()


HIDDEN: Any = HiddenTruth()


def num_fillings(kinds: int, cells: int) -> float:
    """In how many ways so many cells can be filled; infinite where no float is large enough."""
    try:
        return float(kinds) ** cells
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class State:
    """B positions side by side; every field is a tensor with the batch in front.

    done: bool [B], the game is over and this row will not change again.
    mover: int64 [B], the seat to act.
    turn: int64 [B], turns finished since the start.
    score: float32 [B, P], what each seat has gained since the start.
    """

    done: Tensor
    current_seat: Tensor
    turn: Tensor
    score: Tensor

    def __len__(self) -> int:
        return self.done.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> Self:
        """The chosen rows: a slice, int64 indices or a bool mask of [B]."""
        if not isinstance(rows, Tensor):
            return self._map(lambda tensor: tensor[rows])
        chosen = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
        # Twice as fast as indexing.
        return self._map(lambda tensor: tensor.index_select(0, chosen))

    def put(self, rows: Tensor, other: Self) -> Self:
        """These positions with others in the place of rows, int64 [N], as many as there are."""
        new = vars(other)
        columns = {
            name: each if each is HIDDEN else each.index_copy(0, rows, new[name])
            for name, each in vars(self).items()
        }
        return type(self)(**columns)

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    @classmethod
    def cat(cls, states: Sequence[Self]) -> Self:
        """Join batches, first to last; hidden fields stay hidden."""
        if len(states) == 1:
            return states[0]
        columns = {}
        for field in fields(cls):
            parts = [getattr(state, field.name) for state in states]
            columns[field.name] = HIDDEN if parts[0] is HIDDEN else torch.cat(parts)
        return cls(**columns)

    def _map(self, change: Any) -> Self:
        values = vars(self).items()
        return type(self)(**{n: each if each is HIDDEN else change(each) for n, each in values})


@dataclass(frozen=True)
class Spec:
    """What a game declares about itself.

    observation: shape of one observation, (planes, rows, columns).
    has_cell_actions: action a is cell a of the board in row-major order, so that a network may
        give one score a cell.
    max_plies: no game lasts more plies than this.
    max_positions: no more positions than this can be reached, as far as that is easily told.
    goal: what a player is after: "turns", as few as can be; "score", as much as can be; or
        "outcome", more than the other seat has at the end.
    hidden: some of the truth is not shown to the mover.
    num_chance_inputs: how many uniform numbers chance uses up after each move; 0: nothing is left
        to chance.
    zero_sum: the seats' scores always add up to nothing.
    num_cell_values: how many kinds of mark a cell can have, where cells() tells the whole board;
        otherwise 0.
    has_exact_key: key() is the exact identity of a visible position.
    max_plies_per_turn: the most plies that one turn can take.
    observation_range: no number of an observation is less than the first of these or more than the
        second.
    """

    name: str
    seats: int
    actions: int
    observation: tuple[int, int, int]
    has_cell_actions: bool
    max_plies: int
    max_positions: float
    goal: str
    hidden: bool = False
    num_chance_inputs: int = 0
    zero_sum: bool = False
    num_cell_values: int = 0
    has_exact_key: bool = False
    max_plies_per_turn: int = 1
    observation_range: tuple[float, float] = (0.0, 1.0)


S = TypeVar("S", bound=State)

ExactSolver = Literal["graph", "alpha_beta", "belief"]


class Game(ABC, Generic[S]):
    """One instance is one set of rules; it holds constant tables and no position."""

    spec: Spec
    _subsets: Subsets | None = None
    _actions: dict[str, int] | None = None

    @abstractmethod
    def initial(self, batch: int, rng: torch.Generator) -> S:
        """B new games, none of them over, what is left to chance or hidden drawn from the prior
        with rng."""

    @abstractmethod
    def openings(self, limit: int) -> tuple[S, Tensor] | None:
        """Every way a game can start and its probability, float64 [B]; None beyond limit ways."""

    @abstractmethod
    def legal_action_mask(self, state: S) -> Tensor:
        """Bool [B, A]: what the mover may do; all True in a finished row."""

    @abstractmethod
    def apply_action(self, state: S, action: Tensor) -> S:
        """The positions after action, int64 [B], before chance; a finished row does not change."""

    def apply_chance(self, state: S, u: Tensor) -> S:
        """What chance adds to positions that apply_action has made.

        u: float32 [B, spec.num_chance_inputs] in [0, 1).
        """
        return state

    def chance_outcomes(self, state: S) -> tuple[Tensor, S]:
        """All that settle could make, in full: probability float64 [B, K] and B * K positions.

        Outcome k of row b stands at b * K + k; where its probability is 0 it means nothing.
        """
        return torch.ones(len(state), 1, dtype=torch.float64, device=state.done.device), state

    def step(self, state: S, action: Tensor, rng: torch.Generator) -> S:
        """The positions after action, int64 [B], and chance, drawn with rng."""
        after = self.apply_action(state, action)
        if self.spec.num_chance_inputs:
            u = torch.rand(
                len(after), self.spec.num_chance_inputs, generator=rng, device=rng.device
            )
            after = self.apply_chance(after, u)
        return after

    @abstractmethod
    def observe(self, state: S) -> Tensor:
        """Float32 [B, *spec.observation]: what the mover may know, from the mover's side."""

    def outcome(self, before: S, action: Tensor, after: S) -> Tensor:
        """Int64 [B]: what became visible by a move, after chance; an edge of a search tree."""
        return torch.zeros_like(action)

    def key(self, state: S) -> Tensor:
        """Int64 [B]: the identity of a visible position, exact where spec.keyed says so."""
        raise NotImplementedError(f"positions of {self.spec.name} have no key")

    def cells(self, state: S) -> Tensor:
        """Int64 [B, rows, columns]: the marks of all cells, 0 to spec.num_cell_values - 1, from the
        top."""
        raise NotImplementedError(f"a board of {self.spec.name} is more than its cells")

    def depth(self, state: S) -> Tensor:
        """Int64 [B]: a number that grows with every move; solvers go through positions by it."""
        return state.turn

    def state_from_key(self, key: Tensor) -> S:
        """Live positions from their keys, int64 [B], with a score of 0; the inverse of key."""
        raise NotImplementedError(f"positions of {self.spec.name} have no key")

    @property
    def exact_solver(self) -> ExactSolver | None:
        """The exact solver that fits these rules, on boards that are small enough; None: none does.

        "graph" lists all positions; "alpha_beta" searches k in a row with gravity, whose positions
        can be listed too; "belief" solves battleship with hits and misses only.
        """
        can_list = self.spec.has_exact_key and not self.spec.hidden
        return "graph" if can_list else None

    def sample_legal_action(self, state: S, u: Tensor) -> Tensor:
        """Int64 [B]: a uniformly random legal action from u, float32 [B] in [0, 1)."""
        legal = self.legal_action_mask(state)
        if legal.shape[1] <= MAX_SET_SIZE:
            subsets = self.subsets(legal.shape[1], legal.device)
            return subsets.pick(subsets.code(legal), u)
        return nth_member(legal, u)

    def subsets(self, things: int, device: torch.device) -> Subsets:
        """The table that pick goes by, made when it is first asked for."""
        if self._subsets is None or self._subsets.device != device:
            self._subsets = Subsets(things, device)
        return self._subsets

    def symmetries(self) -> Tensor:
        """Int64 [G, N]: permutations of the cells that leave the rules as they are.

        Cell c of a board turned by the g-th shows what cell symmetries()[g, c] showed before.
        """
        _, rows, columns = self.spec.observation
        return torch.arange(rows * columns)[None]

    def action_symmetries(self) -> Tensor:
        """Int64 [G, A]: action a of a turned board does what action_symmetries()[g, a] did."""
        if self.spec.has_cell_actions:
            return self.symmetries()
        return torch.arange(self.spec.actions)[None]

    @abstractmethod
    def public(self, state: S) -> S:
        """The same positions with every hidden field replaced by HIDDEN."""

    def is_valid(self, state: S) -> Tensor:
        """Bool [B]: whether positions, public or not, hold what the rules rely on, so that playing
        on from them comes to an end; the shapes and types of their fields are right.

        A game checks its own fields too: positions may come from a file that somebody made.
        """
        spec = self.spec
        seated = (state.current_seat >= 0) & (state.current_seat < spec.seats)
        timely = (state.turn >= 0) & (state.turn <= spec.max_plies)
        return seated & timely & state.score.isfinite().all(1)

    def view_from_seat(self, state: S, seat: int) -> S:
        """Positions that are over, as one seat sees them; for drawing."""
        return state

    def resample(self, state: S, rng: torch.Generator) -> S:
        """Public positions with a hidden truth drawn from all that agree with what was seen."""
        return state

    def hidden_hits(self, state: S) -> Tensor:
        """Bool [B, P, A]: whether each action of each seat hits what is hidden; of full states."""
        raise NotImplementedError(f"in {self.spec.name} actions do not hit or miss what is hidden")

    def boards(self, state: S, row: int, reveal: bool = False) -> list[Board]:
        """One position as boards of marks, at least one; reveal shows the hidden truth too.

        None in a game that has no boards, and writes its positions by render.
        """
        return []

    @property
    def board_format(self) -> BoardFormat:
        """How the boards are written."""
        _, rows, columns = self.spec.observation
        return board.lettered_format(rows, columns)

    def caption(self, state: S, row: int) -> str:
        """What is known of a position beside its boards, in one line."""
        return ""

    def action_cells(self, state: S, row: int) -> Tensor | None:
        """Bool [A, N]: the cells of the first board that each action takes or shoots at; None where
        actions are no cells."""
        return (
            torch.eye(self.spec.actions, dtype=torch.bool) if self.spec.has_cell_actions else None
        )

    def render(self, state: S, row: int, reveal: bool = False) -> str:
        """One position as text: its caption, if any, and its boards."""
        boards = self.boards(state, row, reveal)
        if not boards:
            raise NotImplementedError(f"{self.spec.name} says neither boards nor render")
        caption = self.caption(state, row)
        return (caption + "\n" if caption else "") + board.draw(boards, self.board_format)

    def parse(self, text: str) -> S:
        """One public position from the text that render makes of it.

        Raises ValueError, saying what is wrong, for any other text.
        """
        return self.parse_all([text])

    @abstractmethod
    def parse_all(self, texts: Sequence[str]) -> S:
        """Many public positions at once, each as parse reads it."""

    @abstractmethod
    def action_to_string(self, state: S, row: int, action: int) -> str:
        """An action as a person writes it."""

    def parse_action(self, state: S, row: int, text: str, exact: bool = False) -> int:
        """The legal action that a person wrote: its name, in any order of its words.

        Unless exact, names that are words may be cut short, and where no name is a number a
        number counts the actions from 1. Raises ValueError for anything else.
        """
        words = sorted(text.upper().split())
        legal = self.legal_action_mask(state[row : row + 1])[0].nonzero()[:, 0].tolist()
        names = {action: self.action_to_string(state, row, action).upper() for action in legal}
        for action, name in names.items():
            if sorted(name.split()) == words:
                return int(action)
        if len(words) == 1 and not exact:
            begun = [a for a, name in names.items() if name.isalpha() and name.startswith(words[0])]
            if len(begun) == 1:
                return int(begun[0])
            numbered = any(name.isdecimal() for name in names.values())
            if words[0].isdecimal() and not numbered and int(words[0]) - 1 in names:
                return int(words[0]) - 1
        examples = ", ".join(self.action_to_string(state, row, action) for action in legal[:8])
        more = ", ..." if len(legal) > 8 else ""
        raise ValueError(f"{text!r} is not a move here; there is: {examples}{more}")

    def parse_actions(self, state: S, texts: Sequence[str]) -> Tensor:
        """Int64 [B]: the legal action of each row that has exactly this name.

        Raises ValueError as parse_action does.
        """
        if self._actions is None:
            start = self.initial(1, torch.Generator())
            self._actions = {
                self.action_to_string(start, 0, a): a for a in range(self.spec.actions)
            }
        guess = [self._actions.get(text, -1) for text in texts]
        action = torch.tensor(guess)
        sure = self.legal_action_mask(state).gather(1, action.clamp(min=0)[:, None])[:, 0].tolist()
        for row, text in enumerate(texts):
            # A name may depend on the position, and its words may stand in any order.
            if not (sure[row] and guess[row] >= 0) or (
                self.action_to_string(state, row, guess[row]) != text
            ):
                action[row] = self.parse_action(state, row, text, exact=True)
        return action

    def measures(self, state: S) -> dict[str, Tensor]:
        """Further figures of each position by name, float32 [B], for rewards and tables."""
        return {}

    def expected_random_score_delta(self, state: S, plies: bool) -> Tensor:
        """Float32 [B]: what a uniformly random turn from here is expected to gain.

        plies: count a single shot, cell or stone of the turn rather than all of them.
        """
        raise NotImplementedError(f"{self.spec.name} does not say what a random move gains")

    def expected_random_turns(self) -> float | None:
        """The mean number of turns of uniformly random play where theory gives it."""
        return None

    def to(self, device: torch.device | str) -> Self:
        """Move the constant tables to a device, in place."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
        return self
