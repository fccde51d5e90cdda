"""A game's rules as kernels take them; the contract of the kernels is in kernels/rules.py.

Letters in shapes: B games, W words of a position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from rlgames.core.bits import pack_bits, unpack_bits
from rlgames.games.state import State

if TYPE_CHECKING:
    from rlgames.kernels.stepping import Games

S = TypeVar("S", bound=State)


class CompiledRules(ABC, Generic[S]):
    """The rules and positions of a game, of which the state is S, for kernels on the CPU.

    min_random_games: fewer random games take less time than loading their kernel.
    has_chance: the rules implement add_chance. has_draws: a game may end without a winner.
    """

    has_chance = False
    has_draws = True
    min_random_games = 30_000

    def __init__(self, game: Any) -> None:
        self.game = game

    @property
    @abstractmethod
    def rules(self) -> Any:
        """The table of the rules, of a class that is implemented for kernels."""

    @abstractmethod
    def pack(self, state: S) -> Tensor:
        """Positions as int64 [B, W]."""

    def fits(self, state: S) -> bool:
        """Whether pack keeps all that these positions say."""
        return True

    def words_of(self, state: S) -> tuple[int, ...]:
        """The words of the first position."""
        return tuple(self.pack(state)[0].tolist())

    @abstractmethod
    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> S:
        """Positions from int64 [B, W] and the fields that every state has."""


class BoardRules(CompiledRules[Any]):
    """The rules and positions of a BoardGame, which are in the form of kernels already."""

    @property
    def rules(self) -> Any:
        return self.game.rules

    @property
    def has_chance(self) -> bool:  # type: ignore[override]
        return bool(self.game.spec.num_chance_inputs)

    @property
    def has_draws(self) -> bool:  # type: ignore[override]
        return bool(self.game.has_draws)

    @property
    def min_random_games(self) -> int:  # type: ignore[override]
        return int(self.game.min_random_games)

    def pack(self, state: Any) -> Tensor:
        return torch.from_numpy(state.words.numpy().copy())

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> Any:
        return self._state_class(**fields, words=words)

    @cached_property
    def _state_class(self) -> Any:
        return type(self.game.example_state())


def copied_fields(state: State) -> dict[str, Tensor]:
    """Copies of the fields that every state has, as unpack takes them."""
    names = ("done", "current_seat", "turn", "score")
    return {name: getattr(state, name).clone() for name in names}


def play_packed(
    compiled: CompiledRules[S], state: S, play: Callable[[Games], tuple[int, Any]]
) -> tuple[S, int]:
    """The positions after a kernel has played on from these, and the number of moves.

    play: plays the games in place; its first result is the number of moves.
    """
    from rlgames.kernels.stepping import Games

    words, fields = compiled.pack(state), copied_fields(state)
    columns = {name: column.numpy() for name, column in fields.items()}
    num_moves, _ = play(Games(**columns, words=words.numpy()))
    return compiled.unpack(words, fields), num_moves


def pack_cells(cells: Tensor) -> Tensor:
    """Sets of cells, bool [B, N], as int64 [B, ceil(N / 64)]: bit c % 64 of word c // 64."""
    return torch.from_numpy(pack_bits(cells.numpy()).view(np.int64))


def unpack_cells(words: Tensor, cells: int) -> Tensor:
    """The inverse of pack_cells: bool [B, cells]."""
    return torch.from_numpy(unpack_bits(words.numpy(), cells))
