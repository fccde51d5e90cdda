"""Positions and moves as text, derived from the boards and names of a game."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from rlgames.core.text import some
from rlgames.games import board_text
from rlgames.games.game import RESIGNS, Game, State

S = TypeVar("S", bound=State)


def render(game: Game[S], state: S, row: int, reveal: bool = False) -> str:
    """One position as text: its caption and history, if any, and its boards."""
    boards = board_text.draw(game.boards(state, row, reveal), game.board_format)
    return "\n".join(filter(None, [game.caption(state, row), game.history(state, row), boards]))


def parse(game: Game[S], text: str) -> S:
    """One public position from its text; the inverse of render. Raises ValueError, with the reason,
    for any other text."""
    return game.parse_all([text])


def legal_names(game: Game[S], state: S, row: int) -> dict[int, str]:
    """By legal action: its name."""
    legal = game.legal_action_mask(state[row : row + 1])[0].nonzero()[:, 0].tolist()
    return {action: game.action_to_string(state, row, action) for action in legal}


def move_name(game: Game[S], state: S, row: int, action: int) -> str:
    """The name of an action, or that the seat to move resigns."""
    return "resigns" if action == RESIGNS else game.action_to_string(state, row, action)


def takes_columns(game: Game[S], state: S) -> bool:
    """Whether each action drops something into a column of the board."""
    form = game.board_format
    has_cells = game.action_cells(state, 0) is not None
    return has_cells and game.spec.actions == form.columns and form.rows > 1


def cells_to_choose(game: Game[S], state: S, row: int) -> dict[int, list[int]]:
    """By legal action: the cells of the first board that a person clicks to choose it; none for an
    action that has no cells.

    They are the cells that the action takes, or those that its name consists of, as in a2b3.
    """
    form, taken = game.board_format, game.action_cells(state, row)
    by_name = {form.cell_name(cell).upper(): cell for cell in range(form.rows * form.columns)}
    has_boards = bool(game.boards(state, row))
    chosen: dict[int, list[int]] = {}
    for action, name in legal_names(game, state, row).items():
        if not has_boards:
            chosen[action] = []
        elif taken is None:
            plain = game.plain_name(name).upper()
            words = re.findall(r"[A-Z]+[0-9]+", plain)
            is_cells = form.left and "".join(words) == re.sub(r"[\s-]", "", plain)
            chosen[action] = [by_name[word] for word in words if word in by_name] * bool(is_cells)
        else:
            chosen[action] = taken[action].nonzero()[:, 0].tolist()
    return chosen


def parse_action(game: Game[S], state: S, row: int, text: str, exact: bool = False) -> int:
    """The legal action that a person wrote: its name, or another way to write it.

    Unless exact, names that are words may be abbreviated, and where no name is a number, a number
    counts the actions from 1. Raises ValueError for anything else.
    """
    names = legal_names(game, state, row)
    plain = game.plain_name(text)
    for action, name in names.items():
        if game.plain_name(name) == plain:
            return action
    words = text.upper().split()
    if len(words) == 1 and not exact:
        prefix = words[0]
        matches = [a for a, n in names.items() if n.isalpha() and n.upper().startswith(prefix)]
        if len(matches) == 1:
            return matches[0]
        has_numbers = any(name.isdecimal() for name in names.values())
        if prefix.isdecimal() and not has_numbers and int(prefix) - 1 in names:
            return int(prefix) - 1
    raise ValueError(f"{text!r} is not a legal move; legal moves: {some([*names.values()])}")


def parse_actions(game: Game[S], state: S, texts: Sequence[str]) -> Tensor:
    """Int64 [B]: the legal action of each row that has exactly this name.

    Raises ValueError as parse_action does.
    """
    names = _start_names(game)
    guesses = [names.get(text, -1) for text in texts]
    action = torch.tensor(guesses, device=game.device)
    legal = game.legal_action_mask(state).gather(1, action.clamp(min=0)[:, None])[:, 0].tolist()
    for row, (text, guess) in enumerate(zip(texts, guesses, strict=True)):
        # A name may depend on the position, and its words may come in any order.
        is_exact = legal[row] and guess >= 0
        if not is_exact or game.action_to_string(state, row, guess) != text:
            action[row] = parse_action(game, state, row, text, exact=True)
    return action


@lru_cache(maxsize=8)
def _start_names(game: Game[Any]) -> dict[str, int]:
    """The actions at the start of a game, by name."""
    start, actions = game.example_state(), range(game.spec.actions)
    return {game.action_to_string(start, 0, action): action for action in actions}
