"""Compiled rules: what a game gives so that kernels can play it.

A position is a tuple of 64-bit words, int64, which the game lays out as it likes. Whose turn it is
and the score are not part of it unless the rules need them: seats take turns.

The constants of a game are a NamedTuple of a class of its own, with the fields `start`, a position
from which kernels know the number of words, and `actions`. `implement` binds that class to the
functions below: a kernel that calls them with rules of this class is compiled with the game's
functions in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from rlgames.kernels.jit import RULES_OF_TYPE
from rlgames.kernels.words import Array, compiled, random_below

Position = Any
"""A tuple of int64."""

Played = tuple[Position, bool, np.float32]
"""A position after a move, whether the game is over, and the points of the seat that moved."""

IMPLEMENTED: dict[type, dict[str, Callable[..., Any]]] = {}
"""By the class of the rules: its functions, by the names of those below."""


def implement(rules: type, **functions: Callable[..., Any]) -> None:
    """Register the jitted functions of a class of rules, by the names of those below.

    Raises ValueError if another class has the same name: numba tells named tuples apart by it.
    """
    for other in IMPLEMENTED:
        if other.__name__ == rules.__name__ and other.__module__ != rules.__module__:
            raise ValueError(f"{other.__module__} has rules named {rules.__name__}; rename yours")
    IMPLEMENTED[rules] = functions
    RULES_OF_TYPE[rules] = rules.__module__


def play(rules: Any, position: Position, action: int) -> Played:
    """The position after a legal action, as the next seat sees it. The points of a game of outcomes
    are 1, 0 or -1, at its end."""
    return _function(type(rules), play)(rules, position, action)  # type: ignore[no-any-return]


def is_legal(rules: Any, position: Position, action: int) -> bool:
    """Whether the seat to move may choose an action; of a position that is not over."""
    return bool(_function(type(rules), is_legal)(rules, position, action))


def add_chance(rules: Any, position: Position, rng: Array) -> tuple[Position, bool]:
    """The position after the chance that follows an action, and whether the game is over then; rng:
    the state of next_random. Only games with chance need it."""
    return _function(type(rules), add_chance)(rules, position, rng)  # type: ignore[no-any-return]


def random_move(rules: Any, position: Position, rng: Array) -> Played:
    """Like play of a uniformly random legal action, with the chance that follows.

    Only games that have a faster way need it.
    """
    return _function(type(rules), random_move)(rules, position, rng)  # type: ignore[no-any-return]


def observe(rules: Any, position: Position, planes: Array) -> None:
    """Write the observation of the seat to move, float32, flat."""
    _function(type(rules), observe)(rules, position, planes)


def write_cells(rules: Any, position: Position, open_value: int, values: Array) -> None:
    """Write the values of all cells as the seat to move sees them, float32, with open_value, if it
    is not 0, for empty cells that can be taken now. Only games that are a CellBoard need it.
    """
    _function(type(rules), write_cells)(rules, position, open_value, values)


def load(example: Position, positions: Array, row: int, first: int = 0) -> Position:
    """The position in a row of int64 [N, W]. example: any position of the same game."""
    return tuple(positions[row])


def replaced(position: Position, number: int, word: int) -> Position:
    """The position with another word at this number."""
    return (*position[:number], word, *position[number + 1 :])


def _function(rules: type, stub: Callable[..., Any]) -> Callable[..., Any]:
    return IMPLEMENTED[rules].get(stub.__name__, DEFAULTS[stub])


WITHOUT_COUNTING: Any = {"_nrt": False}
"""As words.compiled: no references to arrays are counted."""


def _find_by_type(stub: Callable[..., Any]) -> None:
    """Let kernels that call the stub call the function of the type of their rules."""

    @overload(stub, strict=False, jit_options=WITHOUT_COUNTING)
    def find(rules: Any, *others: Any) -> Callable[..., Any]:
        function = _function(rules.instance_class, stub)
        return lambda rules, *others: function(rules, *others)


@compiled
def _never(rules: Any, *others: Any) -> None:
    """In place of a function that the game does not have."""


@compiled
def _no_chance(rules: Any, position: Position, rng: Array) -> tuple[Position, bool]:
    return position, False


@compiled
def _random_move(rules: Any, position: Position, rng: Array) -> Played:
    num_legal = 0
    for action in range(rules.actions):
        num_legal += is_legal(rules, position, action)
    skipped, action = random_below(rng, num_legal), 0
    while skipped > 0 or not is_legal(rules, position, action):
        skipped -= is_legal(rules, position, action)
        action += 1
    after, is_over, points = play(rules, position, action)
    after, is_over_now = add_chance(rules, after, rng)
    return after, is_over or is_over_now, points


DEFAULTS: dict[Callable[..., Any], Callable[..., Any]] = {
    play: _never,
    is_legal: _never,
    observe: _never,
    write_cells: _never,
    add_chance: _no_chance,
    random_move: _random_move,
}

for _stub in DEFAULTS:
    _find_by_type(_stub)


@overload(load, strict=False, jit_options=WITHOUT_COUNTING)
def _load(example: Any, positions: Any, row: Any, first: Any = 0) -> Callable[..., Any]:
    if len(example) == 1:
        return lambda example, positions, row, first=0: (positions[row, first],)
    return lambda example, positions, row, first=0: (
        (positions[row, first],) + load(example[1:], positions, row, first + 1)  # noqa: RUF005
    )


@overload(replaced, strict=False, jit_options=WITHOUT_COUNTING)
def _replaced(position: Any, number: Any, word: Any) -> Callable[..., Any]:
    if len(position) == 1:
        return lambda position, number, word: (word if number == 0 else position[0],)
    return lambda position, number, word: (
        (word if number == 0 else position[0],) + replaced(position[1:], number - 1, word)  # noqa: RUF005
    )
