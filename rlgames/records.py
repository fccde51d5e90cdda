"""Recorded games: a text file of JSON lines, the rules first, then a line a game.

A move is kept as the position in front of the player, as the game draws it, and the action's name,
so that a person can read a record, and reading one back checks every word of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlgames.config import ConfigError
from rlgames.games.game import Game, State
from rlgames.play import Moves, Results

FORMAT = 1

MOST_BYTES = 1 << 30
"""Larger files are not read."""


class BadRecord(ConfigError):
    """A file that is not a record of this game; the message names the line and what is wrong."""


@dataclass(frozen=True)
class Recorded:
    """The moves of recorded games, in order: public positions [M], and int64 or float32 [M]."""

    state: State
    action: torch.Tensor
    game: torch.Tensor
    seat: torch.Tensor
    gain: torch.Tensor
    score: torch.Tensor
    """Float32 [G, P]: how each game ended."""


def check(path: Path, rules: dict[str, Any]) -> None:
    """Raises BadRecord where games of these rules could not be added to the file."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadRecord(f"{path} cannot be written: its folder is missing, or it is one itself")
    if path.exists() and path.stat().st_size and _header(path)["game"] != rules:
        raise BadRecord(f"{path} holds games of other rules, {json.dumps(_header(path)['game'])}")


def write(
    path: Path,
    game: Game[Any],
    rules: dict[str, Any],
    players: list[str],
    moves: Moves,
    results: Results,
) -> None:
    """Append the games to a record, which is begun where there is none.

    rules: the game's config. players: the names by Moves.player. Raises BadRecord where the file
    holds games of other rules.
    """
    header = {"rlgames_record": FORMAT, "game": rules}
    lines = []
    if not path.exists() or not path.stat().st_size:
        lines.append(json.dumps(header))
    elif _header(path) != header:
        raise BadRecord(f"{path} holds games of other rules, {json.dumps(_header(path)['game'])}")
    else:
        _mend(path)
    state = moves.state.to("cpu")
    try:
        game.parse(game.render(state, 0))
    except ValueError as error:
        raise BadRecord(f"games of {game.spec.name} with these rules: {error}") from None
    by_game: list[list[int]] = [[] for _ in range(moves.games)]
    for row, number in enumerate(moves.game.tolist()):
        by_game[number].append(row)
    for number, rows in enumerate(by_game):
        played = [
            {
                "position": game.render(state, row),
                "move": game.name_action(state, row, int(moves.action[row])),
                "seat": int(moves.seat[row]),
                "player": players[int(moves.player[row])],
                "gain": float(moves.gain[row]),
            }
            for row in rows
        ]
        lines.append(json.dumps({"score": results.score[number].tolist(), "moves": played}))
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def read(path: Path, game: Game[Any], rules: dict[str, Any]) -> Recorded:
    """All games of a record.

    Raises BadRecord, naming the line, for what does not follow the rules or the format.
    """
    if not path.is_file():
        raise BadRecord(f"{path} is not a file")
    if path.stat().st_size > MOST_BYTES:
        raise BadRecord(f"{path} is larger than {MOST_BYTES} bytes")
    if _header(path)["game"] != rules:
        raise BadRecord(f"{path} holds games of other rules, {json.dumps(_header(path)['game'])}")
    states: list[State] = []
    columns: list[tuple[int, int, int, float]] = []
    scores: list[list[float]] = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 or not line.strip():
                continue
            try:
                found = json.loads(line.decode("utf-8"))
                score = [_number(value) for value in _list(found["score"])]
                if len(score) != game.spec.seats:
                    raise ValueError(f"{len(score)} scores for {game.spec.seats} seats")
                for move in _list(found["moves"]):
                    state, action, seat = _move(game, move)
                    columns.append((action, len(scores), seat, _number(move["gain"])))
                    states.append(state)
                scores.append(score)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise BadRecord(f"{path}, line {number}: {error}") from None
    if not states:
        raise BadRecord(f"{path} holds no moves")
    actions, games, seats, gain = (torch.tensor(column) for column in zip(*columns, strict=True))
    joined = type(states[0]).cat(states)
    return Recorded(joined, actions, games, seats, gain.float(), torch.tensor(scores))


def _move(game: Game[Any], move: Any) -> tuple[State, int, int]:
    """The position, the action and the seat of a recorded move; ValueError where they are none."""
    if not isinstance(move["position"], str) or not isinstance(move["move"], str):
        raise ValueError("a position and a move should be text")
    state = game.parse(move["position"])
    seat = move["seat"]
    if type(seat) is not int or seat != int(state.mover[0]) or bool(state.done[0]):
        raise ValueError(f"seat {seat!r} cannot move here")
    return state, game.parse_action(state, 0, move["move"], exact=True), seat


def _number(value: Any) -> float:
    """A number that float32 holds; ValueError for anything else."""
    if type(value) not in (int, float) or not abs(value) < 3e38:
        raise ValueError(f"{str(value)[:40]} is not a number that can be used")
    return float(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:40]!r} is not a list")
    return value


def _mend(path: Path) -> None:
    """Drop a last line that was cut off while it was written."""
    with open(path, "r+b") as file:
        text = file.read()
        if text.endswith(b"\n"):
            return
        start = text.rfind(b"\n") + 1
        try:
            json.loads(text[start:])
        except ValueError:
            file.truncate(start)
        else:
            file.write(b"\n")


def _header(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline(1 << 20).decode("utf-8"))
        if header["rlgames_record"] != FORMAT or not isinstance(header["game"], dict):
            raise ValueError("unknown format")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadRecord(f"{path} is not a record of games ({error})") from None
    return dict(header)
