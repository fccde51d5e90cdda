"""Positions as text: one that is typed, and files of them, with exact results or without."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.untrusted import sanitized
from rlgames.games.game import Game, State
from rlgames.games.notation import parse, render
from rlgames.rng import Rng

MAX_BOARD_LENGTH = 1 << 16
"""The largest number of characters in a board."""

COUNTS = re.compile(r"\s*score (\d{1,9}), turn (\d{1,9})\s*[/\n]")
"""What position_line puts in front of a board."""

RESULTS = {"+": 1, "=": 0, "-": -1, ".": -2}
"""What an action leads to for the player to move, by its mark; the last one is illegal."""


def parse_position(game: Game[State], text: str | None) -> State:
    """A public position from text, in lines or with / between them; None: the start of the game.

    Raises ConfigError for text that is not a position.
    """
    start = game.public(game.initial(1, Rng()))
    if text is None:
        return start
    if len(text) > MAX_BOARD_LENGTH:
        raise ConfigError("state= is too long for a board")
    counts = COUNTS.match(text) if _has_counts(game) else None
    text = text[counts.end() :] if counts else text
    try:
        state = parse(game, text if "\n" in text.strip() else _in_lines(text))
        if counts is None:
            return state
        score, turn = (torch.tensor([int(count)]) for count in counts.groups())
        return replace(state, score=score[None].to(state.score), turn=turn.to(state.turn))
    except ValueError as error:
        why = sanitized(error)
    example = " / ".join(position_rows(game, start))
    raise ConfigError(f"state= is not a position: {why}", f"as in: state='{example}'")


def position_line(game: Game[State], state: State) -> str:
    """A position [1] in one line, as parse_position reads it; the score of a one-player game, which
    its board does not show, comes first."""
    lines = [line.strip() for line in render(game, state, 0).splitlines()]
    if _has_counts(game):
        lines.insert(0, f"score {float(state.score[0, 0]):.0f}, turn {int(state.turn[0])}")
    return " / ".join(lines)


def _has_counts(game: Game[State]) -> bool:
    return game.spec.goal == "score" and game.spec.seats == 1


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
class Positions:
    """Positions of a file. state: [B], on the game's device. group: B names of classes.

    What a file says about their exact results, for the player to move: outcome: int64 [B, A] by
    action, on the CPU; best: int64 [B], 1, 0 or -1; None if it does not say.
    """

    state: Any
    group: list[str]
    outcome: Tensor | None = None
    best: Tensor | None = None


def read_positions(path: Path, game: Game[Any]) -> Positions:
    """The positions of a file, without its blank lines and comments. Every line has one of these:

    - a position as `show` takes it; finished games are left out;
    - the actions played from the start as digits from 1 (- for none), and a score for the player
      to move, as in the files of Pascal Pons; only its sign counts;
    - names of classes, the actions played, the mark of each action, and who says so.

    Raises ConfigError for a file of another game.
    """
    lines, name = _lines(path), game.spec.name
    if not lines:
        raise ConfigError(f"{path} holds no positions of {name}")
    words = lines[0].split()
    marks = words[-2] if len(words) > 2 else ""
    is_labeled = len(marks) == game.spec.actions and {*marks} <= {*RESULTS}
    if is_labeled or re.fullmatch(r"(\d+|-) -?\d+", " ".join(words)):
        return _played_positions(path, lines, game, is_labeled)
    cpu_game, states = game.on_cpu(), list[State]()
    for line in lines:
        with value_errors(f"{path}: {sanitized(line, 80)!r} is not a position of {name}: "):
            states.append(parse(cpu_game, _in_lines(line)))
    state = type(states[0]).cat(states)
    live = state[~state.done]
    if not len(live):
        raise ConfigError(f"{path} holds only positions of finished games")
    return Positions(live.to(game.device), ["positions"] * len(live))


def _played_positions(path: Path, lines: list[str], game: Game[Any], is_labeled: bool) -> Positions:
    """The positions after moves, with the result of each action, or of the best one."""
    kind = (
        f"a labeled position of {game.spec.name}" if is_labeled else "a list of moves and a score"
    )
    moves, group, results = list[list[int]](), list[str](), list[list[int]]()
    for line in lines:
        try:
            *names, played, result = line.split()[: -1 if is_labeled else None]
            moves.append([int(each) - 1 for each in played.strip("-")])
            known = [RESULTS[mark] for mark in result] if is_labeled else [int(result)]
        except (LookupError, ValueError):
            known = []
        if len(known) != (game.spec.actions if is_labeled else 1) or (names and not is_labeled):
            raise ConfigError(f"{path}: {sanitized(line, 80)!r} is not {kind}")
        group.append("_".join(names) if is_labeled else "positions")
        results.append(known)
    state, found = _played(moves, path, game), torch.tensor(results)
    if is_labeled:
        return Positions(state, group, outcome=found)
    if bool(state.done.any()):
        raise ConfigError(f"{path} holds positions of finished games")
    return Positions(state, group, best=found[:, 0].sign())


def _lines(path: Path) -> list[str]:
    """The lines of a file without blank ones and comments, which start with #."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{path} holds no positions: {reason}") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _played(moves: list[list[int]], path: Path, game: Game[Any]) -> Any:
    """The positions after these actions, on the game's device."""
    if game.spec.num_chance_inputs:
        raise ConfigError(f"moves give no position of {game.spec.name}, which has chance")
    device, game, rng = game.device, game.on_cpu(), Rng()
    state = game.initial(len(moves), rng)
    for ply in range(max(map(len, moves))):
        rows = torch.tensor([row for row, played in enumerate(moves) if len(played) > ply])
        action = torch.tensor([moves[row][ply] for row in rows.tolist()])
        legal = game.legal_action_mask(state[rows])
        if not bool(((action >= 0) & legal.gather(1, action[:, None].clamp(0))[:, 0]).all()):
            raise ConfigError(f"{path} holds an illegal move of {game.spec.name}")
        state = state.put(rows, game.step(state[rows], action, rng))
    return state.to(device)
