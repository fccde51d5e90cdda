"""Who wins a position, by proof-number search, for two-player board games."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import Game
from rlgames.kernels import proof_search as kernel

MAX_SLOTS = 1 << 22
"""Positions that the table can hold where nothing else is asked for."""

SLOT_BYTES = 13
"""Of one position in the table, in addition to its words."""

MAX_PLIES = 10_000
"""Of games that are searched: the line to the current position has room for as many."""

SLICE, TIMED_SLICE = 1 << 15, 1 << 18
"""Positions between two checks for signals; with a limit of time, actions of positions. Results
depend on the slices, which therefore do not depend on the time that they take."""


def can_prove(game: Game[Any]) -> bool:
    """Whether a game has the rules that ProofSearch needs."""
    spec = game.spec
    if spec.max_plies > MAX_PLIES:
        return False
    has_outcomes = spec.seats == 2 and spec.goal == "outcome"
    is_open = not spec.hidden and not spec.num_chance_inputs
    return has_outcomes and is_open and isinstance(game, BoardGame)


PROOF, DISPROOF = range(2)


class ProofSearch:
    """Searches positions and stores the results in a table, for later searches.

    With a limit on positions and an empty table, the result depends only on the position.
    slots: the least number of positions that the table can hold. positions: how many all searches
    have visited.
    """

    def __init__(self, game: BoardGame, slots: float = MAX_SLOTS) -> None:
        self._game, self._rules = game, game.rules
        words = len(self._rules.start)
        size = 1 << int(max(slots, 64) - 1).bit_length()  # a power of two
        self._table = kernel.make_table(size, words)
        self._line = kernel.make_line(game.spec.max_plies + 1, words, self._rules.actions)
        self.positions = 0

    def clear(self) -> None:
        """Forget all positions."""
        self._table.numbers.fill(0)
        self._table.work.fill(0)

    def search(
        self, state: BoardState, seconds: float = math.inf, max_positions: float = math.inf
    ) -> tuple[int | None, list[int]]:
        """What one live position is worth to the seat to move, 1, 0 or -1, and the actions that
        are proven to reach it; of a lost position all legal ones. If a limit is reached first, None
        and the actions that are not proven to lose.

        max_positions: visited by this search.
        """
        legal = self._game.legal_action_mask(state)[0].nonzero()[:, 0].tolist()
        self._line.positions[0] = state.words[0].numpy()
        start, first = time.perf_counter(), self.positions
        share = 0.5 if self._game.has_draws else 1.0
        is_won = self._ask(1, share * seconds, share * max_positions)
        if is_won:
            return 1, [action for action in legal if self._children[action, DISPROOF] == 0]
        is_held: bool | None = is_won
        if self._game.has_draws:
            left = seconds - (time.perf_counter() - start), max_positions - (self.positions - first)
            is_held = self._ask(0, *left)
        if is_held is False:
            return -1, legal
        if is_held and is_won is False:
            return 0, [action for action in legal if self._children[action, DISPROOF] == 0]
        return None, [action for action in legal if self._children[action, PROOF] != 0]

    @property
    def _children(self) -> NDArray[np.int32]:
        """The proof and disproof numbers of the positions after each action, int32 [A, 2]."""
        return self._line.children[0]

    def _ask(self, goal: int, seconds: float, max_positions: float) -> bool | None:
        """Whether the position in the first row is worth at least goal; None beyond a limit."""
        end, last = time.perf_counter() + seconds, self.positions + max_positions
        self._children[:] = -1  # nothing is known of them yet
        size = SLICE if seconds == math.inf else TIMED_SLICE // self._rules.actions
        while time.perf_counter() < end and self.positions < last:
            limit = int(min(size, max(last - self.positions, 1)))
            visited, *numbers = kernel.prove(self._rules, self._table, self._line, goal, limit)
            self.positions += visited
            if 0 in numbers:
                return numbers[PROOF] == 0
        return None
