"""Positions as text: one that is typed, and files of them, with exact results or without."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.untrusted import sanitized
from rlgames.games.game import Game, State
from rlgames.games.notation import parse, render
from rlgames.solvers.optimum import on_cpu

MAX_BOARD_LENGTH = 1 << 16
"""The largest number of characters in a board."""

RESULTS = {"+": 1, "=": 0, "-": -1, ".": -2}
"""What an action leads to for the player to move, by its mark; the last one is illegal."""


def parse_position(game: Game[State], text: str | None) -> State:
    """A public position from text, in lines or with / between them; None: the start of the game.

    Raises ConfigError for text that is not a position.
    """
    start = game.public(game.initial(1, torch.Generator().manual_seed(0)))
    if text is None:
        return start
    if len(text) > MAX_BOARD_LENGTH:
        raise ConfigError("state= is too long for a board")
    try:
        return parse(game, text if "\n" in text.strip() else _in_lines(text))
    except ValueError as error:
        why = sanitized(error)
    example = " / ".join(position_rows(game, start))
    raise ConfigError(f"state= is not a position: {why}", f"as in: state='{example}'")


def _in_lines(text: str) -> str:
    return re.sub(r"\s*/\s*", "\n", text)


def position_rows(game: Game[State], state: State) -> list[str]:
    """The lines of a position [1] as a person types it."""
    boards = game.boards(state, 0)
    rows = render(game, state, 0).splitlines()
    if len(boards) == 1 and not game.caption(state, 0) and not game.history(state, 0):
        rows = [" ".join(row) for row in boards[0]]  # labels may be omitted
    return [" ".join(row.split()) for row in rows]


def read_position(typed: str) -> str:
    """The text of a position as it was typed, or from a file (@FILE) or standard input (-).

    Raises ConfigError for a file that cannot be read.
    """
    try:
        if typed == "-":
            typed = sys.stdin.read(MAX_BOARD_LENGTH + 1)
        elif typed.startswith("@"):
            with open(typed[1:], encoding="utf-8") as file:
                typed = file.read(MAX_BOARD_LENGTH + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"state={typed}: {reason}", "name a file that holds a board") from None
    return typed


@dataclass(frozen=True)
class LabeledPositions:
    """state: [B], on the game's device. outcome: int64 [B, A] on the CPU, exact results by action.
    group: B names of classes."""

    state: Any
    outcome: Tensor
    group: list[str]

    @classmethod
    def read(cls, path: Path, game: Game[Any]) -> LabeledPositions:
        """Read a file whose lines have a class, the actions played from the start as digits from 1
        (- for none), the mark of each action, and who says so.

        Raises ConfigError for a file that does not match the game.
        """
        lines, moves, outcome = [line.split() for line in _lines(path)], [], []
        for line in lines:
            try:
                moves.append([int(each) - 1 for each in line[-3].strip("-")])
                outcome.append([RESULTS[mark] for mark in line[-2]])
            except (LookupError, ValueError):
                text = sanitized(" ".join(line), 80)
                raise ConfigError(f"{path}: {text!r} is not a labeled position") from None
        if not lines or {*map(len, outcome)} != {game.spec.actions} or game.spec.num_chance_inputs:
            raise ConfigError(f"{path} holds no positions of {game.spec.name}")
        group = ["_".join(line[:-3]) for line in lines]
        state = _played(moves, on_cpu(game), path).to(game.device)
        return cls(state, torch.tensor(outcome), group)


def _lines(path: Path) -> list[str]:
    """The lines of a file without blank ones and comments, which start with #."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{path} holds no positions: {reason}") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _played(moves: list[list[int]], game: Game[Any], path: Path) -> Any:
    """The positions after these actions; game: on the CPU."""
    rng = torch.Generator().manual_seed(0)
    state = game.initial(len(moves), rng)
    for ply in range(max(map(len, moves))):
        rows = torch.tensor([row for row, played in enumerate(moves) if len(played) > ply])
        action = torch.tensor([moves[row][ply] for row in rows.tolist()])
        legal = game.legal_action_mask(state[rows])
        if not bool(((action >= 0) & legal.gather(1, action[:, None].clamp(0))[:, 0]).all()):
            raise ConfigError(f"{path} holds an illegal move of {game.spec.name}")
        state = state.put(rows, game.step(state[rows], action, rng))
    return state


def read_positions(path: Path, game: Game[Any]) -> LabeledPositions | State:
    """The positions of a file: labeled ones, or in each line one as `show` takes it, of which the
    live ones are returned, on the game's device.

    Raises ConfigError for a file that does not match the game.
    """
    lines = _lines(path)
    marks = lines[0].split()[-2:-1] if lines else []
    if not lines or (len("".join(marks)) == game.spec.actions and {*marks[0]} <= {*RESULTS}):
        return LabeledPositions.read(path, game)
    cpu_game, states = on_cpu(game), list[State]()
    for line in lines:
        with value_errors(
            f"{path}: {sanitized(line, 80)!r} is not a position of {game.spec.name}: "
        ):
            states.append(parse(cpu_game, _in_lines(line)))
    state = type(states[0]).cat(states)
    live = state[~state.done]
    if not len(live):
        raise ConfigError(f"{path} holds only positions of finished games")
    return live.to(game.device)
