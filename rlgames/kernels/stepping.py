"""The rules of a game in many positions side by side: loops over the functions of rules.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.choice import random_action
from rlgames.kernels.jit import jit
from rlgames.kernels.rules import (
    add_chance,
    apply_chance,
    is_legal,
    load,
    observe,
    play,
    set_up,
    store,
    write_cells,
)
from rlgames.kernels.words import Array


class Games(NamedTuple):
    """The fields of BoardState, with the number of games in front; kernels change them in place."""

    done: Array
    current_seat: Array
    turn: Array
    score: Array
    words: Array


@jit(forceinline=True, _nrt=False)
def add_points(games: Games, row: int, points: np.float32, seat: int) -> None:
    """Add the points of a move by this seat; of two seats, the other loses them."""
    if points != 0:
        games.score[row, seat] += points
        if games.score.shape[1] == 2:
            games.score[row, 1 - seat] -= points


@jit(forceinline=True, _nrt=False)
def play_row(rules: Any, games: Games, row: int, action: int) -> None:
    """Play an action in a game; if it is over, or the action is illegal, nothing changes."""
    if games.done[row]:
        return
    position, seat = load(rules.start, games.words, row), games.current_seat[row]
    if not is_legal(rules, position, action):
        return
    position, is_over, points = play(rules, position, action)
    store(games.words, row, position)
    add_points(games, row, points, seat)
    games.done[row] = is_over
    games.turn[row] += 1
    games.current_seat[row] = seat + 1 if seat + 1 < games.score.shape[1] else 0


@jit(forceinline=True, _nrt=False)
def write_legal(rules: Any, games: Games, row: int, legal: Array) -> None:
    """Write which actions are legal, bool [A]; all are once the game is over."""
    position, is_done = load(rules.start, games.words, row), games.done[row]
    for action in range(len(legal)):
        legal[action] = is_done or is_legal(rules, position, action)


@jit(forceinline=True, _nrt=False)
def write_view(rules: Any, games: Games, row: int, legal: Array, planes: Array) -> None:
    """Write what the seat to move sees of a game, as in write_views."""
    if len(legal):
        write_legal(rules, games, row, legal[row])
    if len(planes):
        observe(rules, load(rules.start, games.words, row), planes[row])


@jit()
def step_rows(
    rules: Any, games: Games, actions: Array, keys: Array, legal: Array, planes: Array
) -> None:
    """Play an action, int64 [B], in every game, and write what the seat to move sees then.

    keys: uint64 [B], of the chance that follows; [0] to add none. legal, planes: see write_views.
    Raises IndexError for an action that does not exist.
    """
    rng = np.empty(1, np.uint64)
    for row in range(len(actions)):
        if not 0 <= actions[row] < rules.actions:
            raise IndexError("an action is out of range")
        play_row(rules, games, row, actions[row])
        if len(keys) and not games.done[row]:
            rng[0] = keys[row]
            position = load(rules.start, games.words, row)
            position, games.done[row] = add_chance(rules, position, rng)
            store(games.words, row, position)
        write_view(rules, games, row, legal, planes)


@jit()
def write_views(rules: Any, games: Games, legal: Array, planes: Array) -> None:
    """Write the legal actions of every game, bool [B, A], and the observations, float32 [B, O];
    either without rows if it is not wanted."""
    for row in range(len(games.done)):
        write_view(rules, games, row, legal, planes)


@jit()
def add_chance_to_rows(rules: Any, games: Games, u: Array) -> None:
    """Add the chance that follows an action, from float32 [B, U], to every game."""
    for row in range(len(u)):
        if not games.done[row]:
            position = load(rules.start, games.words, row)
            position, games.done[row] = apply_chance(rules, position, u[row])
            store(games.words, row, position)


@jit()
def sample_rows(rules: Any, games: Games, u: Array, actions: Array) -> None:
    """Write a uniformly random legal action of every game, int64 [B], from u, float32 [B]."""
    legal = np.empty(rules.actions, np.bool_)
    for row in range(len(actions)):
        write_legal(rules, games, row, legal)
        actions[row] = random_action(legal, u[row])


@jit()
def write_cell_rows(rules: Any, words: Array, open_value: int, values: Array) -> None:
    """Write the cells of all positions, float32 [B, N]."""
    for row in range(len(values)):
        write_cells(rules, load(rules.start, words, row), open_value, values[row])


@jit()
def set_up_rows(rules: Any, games: Games, cells: Array) -> None:
    """Set up positions from cells, int64 [B, N], as the seats to move see them."""
    for row in range(len(cells)):
        position, games.done[row], points = set_up(rules, cells[row])
        store(games.words, row, position)
        add_points(games, row, points, games.score.shape[1] - 1 - games.current_seat[row])
