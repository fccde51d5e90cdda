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
    by_game: list[list[int]] = [[] for _ in range(moves.games)]
    for row, number in enumerate(moves.game.tolist()):
        by_game[number].append(row)
    state = moves.state.to("cpu")
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
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if number == 1 or not line.strip():
                continue
            try:
                found = json.loads(line)
                score = [float(value) for value in found["score"]]
                if len(score) != game.spec.seats:
                    raise ValueError(f"{len(score)} scores for {game.spec.seats} seats")
                for move in found["moves"]:
                    state = game.parse(move["position"])
                    action = game.parse_action(state, 0, move["move"])
                    seat = int(move["seat"])
                    if seat != int(state.mover[0]) or bool(state.done[0]):
                        raise ValueError(f"seat {seat} cannot move here")
                    columns.append((action, len(scores), seat, float(move["gain"])))
                    states.append(state)
                scores.append(score)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise BadRecord(f"{path}, line {number}: {error}") from None
    if not states:
        raise BadRecord(f"{path} holds no moves")
    actions, games, seats, gain = (torch.tensor(column) for column in zip(*columns, strict=True))
    joined = type(states[0]).cat(states)
    return Recorded(joined, actions, games, seats, gain.float(), torch.tensor(scores))


def _header(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            header = json.loads(file.readline(1 << 20))
        if header["rlgames_record"] != FORMAT or not isinstance(header["game"], dict):
            raise ValueError("unknown format")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadRecord(f"{path} is not a record of games ({error})") from None
    return dict(header)
