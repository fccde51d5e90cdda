"""The rules of a game, one position at a time: the contract between games and kernels.

A position is a tuple of 64-bit words, int64, which the game lays out as it likes. Whose turn it is
and the score are not part of it unless the rules need them: seats take turns.

The constants of a game are a NamedTuple of its own class, with the fields `start`, a position
from which kernels know the number of words, and `actions`. `implement` binds that class to the
functions below: a kernel that calls them with rules of this class is compiled with the game's
functions in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numba import types
from numba.core.typing.templates import AbstractTemplate, builtin_registry
from numba.extending import lower_builtin, overload

from rlgames.kernels.words import Array, compiled, random_below

P = ParamSpec("P")
R = TypeVar("R")

Position = Any
"""A tuple of int64."""

Played = tuple[Position, bool, np.float32]
"""A position after a move, whether the game is over, and the points of the seat that moved."""

IMPLEMENTED: dict[type, dict[str, Callable[..., Any]]] = {}
"""By the class of the rules: its functions, by the names of those they implement."""

MAX_MISSES = 100
"""For each action, the random draws after which no action is taken for legal: a single legal one
would be missed with a probability of exp(-100)."""

WITHOUT_COUNTING: Any = {"_nrt": False}
"""As words.compiled: no references to arrays are counted."""


def implement(table: type, *functions: Callable[..., Any], **renamed: Callable[..., Any]) -> None:
    """Register the jitted functions of a class of tables, each by its name; renamed: functions that
    have another name than those they implement.

    Raises ValueError if another class has the same name, by which numba tells named tuples apart,
    and for rules of a game without the fields that kernels read.
    """
    missing = {"start", "actions"} - {*getattr(table, "_fields", ())}
    named = {function.__name__: function for function in functions} | renamed
    if "play" in named and missing:
        raise ValueError(f"{table.__name__} needs the field {min(missing)}")
    for other in IMPLEMENTED:
        if other.__name__ == table.__name__ and other.__module__ != table.__module__:
            raise ValueError(f"{other.__module__} has rules named {table.__name__}; rename yours")
    IMPLEMENTED[table] = named


def found_by_type(function: Callable[P, R]) -> Callable[P, R]:
    """A function that is replaced by what the class of its first argument implements.

    Without an implementation the function itself is compiled.
    """
    default = compiled(function)

    def of(table: type) -> Callable[..., Any]:
        return IMPLEMENTED[table].get(function.__name__, default)

    @wraps(function)
    def call(*arguments: P.args, **_: P.kwargs) -> R:
        return of(type(arguments[0]))(*arguments)  # type: ignore[no-any-return]

    def implementation(typing_context: Any, table: Any) -> Any:
        return typing_context.resolve_value_type(of(table.instance_class))

    class Template(AbstractTemplate):
        key = call

        def generic(self, args: Any, kws: Any) -> Any:
            return implementation(self.context, args[0]).get_call_type(self.context, args, kws)

    @lower_builtin(call, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = implementation(context.typing_context, signature.args[0])
        found.get_call_type(context.typing_context, signature.args, {})
        compiled_one = context.get_function(found, signature)
        context.add_linking_libs(getattr(compiled_one, "libs", ()))
        return compiled_one(builder, values)

    builtin_registry.register_global(call, types.Function(Template))
    return call


@found_by_type
def play(rules: Any, position: Position, action: int) -> Played:
    """The position after a legal action, as the next seat sees it. The points of a game of outcomes
    are 1, 0 or -1, at its end."""
    raise NotImplementedError


@found_by_type
def is_legal(rules: Any, position: Position, action: int) -> bool:
    """Whether the seat to move may choose an action; of a position that is not over."""
    raise NotImplementedError


@found_by_type
def mobility(rules: Any, position: Position) -> int:
    """How many actions are legal, for games where who has few is restricted: proof search looks
    there first. Other games do not need it."""
    return 1


@found_by_type
def canonical(rules: Any, position: Position) -> Position:
    """One for all of the positions that symmetries of the rules turn into each other, or into some
    of them. Only games with many such positions need it, for tables that hold more."""
    return position


@found_by_type
def placed_cell(rules: Any, before: Position, after: Position) -> int:
    """The cell of the stone that a move has added, as the seat that moved sees it. -1 for all moves
    of games whose moves may change other cells. Only games with a fast way to tell it need it."""
    return -1


@found_by_type
def add_chance(rules: Any, position: Position, rng: Array) -> tuple[Position, bool]:
    """The position after the chance that follows an action, and whether the game is over then; rng:
    the state of next_random, which a ply's key for CHANCE starts. Only games with chance need
    it."""
    return position, False


@found_by_type
def apply_chance(rules: Any, position: Position, u: Array) -> tuple[Position, bool]:
    """Like add_chance, from u, float32 [spec.num_chance_inputs] in [0, 1). Only games with chance
    need it."""
    return position, False


@found_by_type
def random_move(rules: Any, position: Position, rng: Array) -> Played:
    """Like play of a uniformly random legal action, with the chance that follows.

    Only games that have a faster way than to draw actions until one is legal need it. If no action
    is legal, against the rules of rules, the game ends there.
    """
    action = random_below(rng, rules.actions)
    misses = 0
    while not is_legal(rules, position, action):
        misses += 1
        if misses > MAX_MISSES * rules.actions:
            return position, True, np.float32(0)
        action = random_below(rng, rules.actions)
    after, is_over, points = play(rules, position, action)
    after, is_over_now = add_chance(rules, after, rng)
    return after, is_over or is_over_now, points


@found_by_type
def write_cells(rules: Any, position: Position, open_value: int, values: Array) -> None:
    """Write the values of all cells as the seat to move sees them, float32: 0 empty, 1 of the seat
    to move, 2 of the other. With an open_value that is not 0, empty cells that can be taken now
    have that value; only games with MoverCells need it.

    By default a position is two sets of cells, of the seat to move and of the other, a bit for each
    cell.
    """
    for cell in range(len(values)):
        own, other = (position[0] >> cell) & 1, (position[1] >> cell) & 1
        values[cell] = np.float32(own + 2 * other)


@found_by_type
def observe(rules: Any, position: Position, planes: Array) -> None:
    """Write the observation of the seat to move, float32, flat: by default, one plane with 1 on its
    cells, and one with 1 on the cells of the other."""
    cells = len(planes) // 2
    write_cells(rules, position, 0, planes[:cells])
    # Two loops with one result each: the compiler turns them into vector instructions.
    others = planes[cells:]
    for cell in range(cells):
        others[cell] = np.float32(planes[cell] == np.float32(2))
    for cell in range(cells):
        planes[cell] = np.float32(planes[cell] == np.float32(1))


@found_by_type
def judged(rules: Any, position: Position) -> Played:
    """A position with whether the game is over there, and the points of the other seat's last move.
    Only set_up's default needs it."""
    raise NotImplementedError


@found_by_type
def set_up(rules: Any, cells: Array) -> Played:
    """The position with these cells, int64 [N], as the seat to move sees them: the inverse of
    write_cells, with the same default. Whether the game is over, and the points, are the result of
    the other seat's last move."""
    own, other = 0, 0
    for cell in range(len(cells)):
        own |= (cells[cell] == 1) << cell
        other |= (cells[cell] == 2) << cell
    return judged(rules, (own, other))


def load(example: Position, positions: Array, row: int, first: int = 0) -> Position:
    """The position in a row of int64 [N, W]. example: any position of the same game."""
    return tuple(positions[row])


@compiled
def store(positions: Array, row: int | np.uint64, position: Position) -> None:
    """Write a position to a row of int64 [N, W]."""
    for word in range(len(position)):
        positions[row, word] = position[word]


def replaced(position: Position, number: int, word: int) -> Position:
    """The position with another word at this number."""
    return (*position[:number], word, *position[number + 1 :])


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
