"""Recorded games: a text file of JSON lines, the rules first, then a line a game.

A move is kept as the position in front of the player, as the game draws it, and the action's name,
so that a person can read a record, and reading one back checks every word of it. The final
position comes with each game.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import torch

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import parse_json, sanitized
from rlgames.games.game import Game, State
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.solvers.optimum import on_cpu

FORMAT = 1

MAX_FILE_BYTES = 1 << 30
"""Larger files are not read."""

MAX_HEADER_BYTES = 1 << 16

MAX_LINE_BYTES = 1 << 25
"""Longer lines are not read: the longest game has so many bytes."""

LINES_PER_BUNDLE = 64
"""So many games are read at once; only where one of them is wrong is each looked at alone."""

PRESENTATION_KEYS = ("encoding", "target")
"""Keys of a game that change nothing of what may be played."""

PARSE_ERRORS = (ValueError, KeyError, TypeError, AttributeError)
"""What reading a line of odd text can raise."""


class BadRecord(ConfigError):
    """A file that is not a record of this game; the message names the line and what is wrong."""


def check(path: Path, game: Game[Any], rules: dict[str, Any]) -> None:
    """Raises BadRecord where games of these rules could not be added to the file."""
    try:
        file = path.exists()
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise BadRecord(f"{path} cannot be written: its folder is missing, or it is one itself")
        if not os.access(path if file else path.absolute().parent, os.W_OK):
            raise BadRecord(f"{path} cannot be written: permission denied")
        if file and path.stat().st_size:
            _check_header(path, rules)
    except OSError as error:
        raise BadRecord(f"{path} cannot be written: {error.strerror}") from None
    here = on_cpu(game)
    try:
        here.parse(here.render(here.initial(1, torch.Generator()), 0))
    except ValueError as error:
        raise BadRecord(f"games of {game.spec.name} with these rules: {error}") from None


def write(
    path: Path,
    game: Game[Any],
    rules: dict[str, Any],
    players: list[str],
    moves: Trajectories,
    results: FinalStates,
) -> None:
    """Append the games to a record, which is begun where there is none.

    rules: the game's config. players: the names by Moves.player. Raises BadRecord where that
    cannot be.
    """
    check(path, game, rules)
    lines = []
    if not path.exists() or not path.stat().st_size:
        lines.append(json.dumps({"rlgames_record": FORMAT, "game": rules}))
    else:
        _mend(path)
    game, moves, final = on_cpu(game), moves.to("cpu"), results.state.to("cpu")
    played: list[list[dict[str, Any]]] = [[] for _ in range(moves.games)]
    columns = (moves.game, moves.action, moves.seat, moves.player, moves.score_delta)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (number, action, seat, player, gain) in enumerate(rows):
        played[number].append(
            {
                "position": game.render(moves.state, row),
                "move": game.action_to_string(moves.state, row, action),
                "seat": seat,
                "player": players[player],
                "gain": gain,
            }
        )
    for number, (score, each) in enumerate(zip(final.score.tolist(), played, strict=True)):
        line = {"score": score, "final": game.render(final, number), "moves": each}
        lines.append(json.dumps(line))
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


@dataclass(frozen=True)
class Recorded:
    """Games as they were played, public positions only.

    players: the names of those who played, by Moves.player.
    """

    moves: Trajectories
    results: FinalStates
    players: list[str]


def read(path: Path, game: Game[Any], rules: dict[str, Any]) -> Recorded:
    """All games of a record, on the CPU.

    Raises BadRecord, naming the line, for what does not follow the rules or the format.
    """
    if not os.path.isfile(path):  # Path.is_file raises for names that are too long
        raise BadRecord(f"{path} is not a file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise BadRecord(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    _check_header(path, rules)
    game = on_cpu(game)
    parts: list[_Part] = []
    with open(path, "rb") as file:
        for some in _bundles(path, file):
            parts += _parts(path, game, some)
    if not parts:
        raise BadRecord(f"{path} holds no moves")
    return _joined(game, parts)


@dataclass(frozen=True)
class _Part:
    """What some lines tell of G games with M moves, line by line.

    length: moves of each game [G]. score: final scores [G, P]. final: final positions [G].
    state, action: positions and int64 [M]. player, gain: of each move [M].
    """

    length: list[int]
    score: list[list[float]]
    final: State
    state: State
    action: torch.Tensor
    player: list[str]
    score_delta: list[float]


def _bundles(path: Path, file: BinaryIO) -> Iterator[list[tuple[int, bytes]]]:
    """The lines after the first that hold something, by number: at most LINES at once, and no
    more of them when they come to MOST_OF_LINE bytes. Raises BadRecord for a longer line."""
    some: list[tuple[int, bytes]] = []
    size = number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise BadRecord(f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes")
        if some and (len(some) == LINES_PER_BUNDLE or size + len(line) > MAX_LINE_BYTES):
            yield some
            some, size = [], 0
        if number > 1 and line.strip():
            some.append((number, line))
            size += len(line)
    if some:
        yield some


def _parts(path: Path, game: Game[Any], lines: list[tuple[int, bytes]]) -> Iterator[_Part]:
    """Some lines of a record: all at once, or one by one to find the one that is wrong."""
    try:
        yield _part(game, [parse_json(line.decode("utf-8")) for _, line in lines])
    except PARSE_ERRORS as error:
        if len(lines) == 1:
            raise BadRecord(f"{path}, line {lines[0][0]}: {sanitized(error)}") from None
        for line in lines:
            yield from _parts(path, game, [line])


def _part(game: Game[Any], lines: list[Any]) -> _Part:
    """Raises one of WRONG where any of these lines is no game by the rules."""
    score = [[_number(value) for value in _list(line["score"])] for line in lines]
    for each in score:
        if len(each) != game.spec.seats:
            raise ValueError(f"{len(each)} scores for {game.spec.seats} seats")
    played = [_list(line["moves"]) for line in lines]
    moves = [move for each in played for move in each]
    if not all(played):
        raise ValueError("a game without moves")
    state = game.parse_all([_text(move["position"]) for move in moves])
    over, current_seat = state.done.tolist(), state.current_seat.tolist()
    for move, seat, done in zip(moves, current_seat, over, strict=True):
        if type(move["seat"]) is not int or move["seat"] != seat or done:
            raise ValueError(f"seat {str(move['seat'])[:40]} cannot move here")
    action = game.parse_actions(state, [_text(move["move"]) for move in moves])
    gain = [_number(move["gain"]) for move in moves]
    player = [_text(move["player"]) for move in moves]
    if not all("final" in line for line in lines):
        raise ValueError("no final position: an older version wrote this; record the game anew")
    _add_up(moves=played, score=score)
    final = game.parse_all([_text(line["final"]) for line in lines])
    if not bool(final.done.all()):
        raise ValueError("the final position is not the end of a game")
    return _Part([len(each) for each in played], score, final, state, action, player, gain)


def _add_up(moves: list[list[Any]], score: list[list[float]]) -> None:
    """Raises ValueError where a seat's gains are not its score, for seats that have moved."""
    for each, final in zip(moves, score, strict=True):
        total: dict[int, float] = {}
        for move in each:
            total[move["seat"]] = total.get(move["seat"], 0.0) + move["gain"]
        for seat, gained in total.items():
            if abs(gained - final[seat]) > 1e-4 * max(1.0, abs(final[seat])):
                raise ValueError(f"the gains of seat {seat} do not add up to its score")


def _joined(game: Game[Any], parts: list[_Part]) -> Recorded:
    """The moves of all parts, first moves first, with what a position by itself does not tell."""
    length = torch.tensor([length for part in parts for length in part.length])
    number = torch.arange(len(length)).repeat_interleave(length)
    ply = torch.arange(len(number)) - (length.cumsum(0) - length)[number]
    names = list(dict.fromkeys(name for part in parts for name in part.player))
    place = {name: index for index, name in enumerate(names)}
    gain = torch.tensor([gain for part in parts for gain in part.score_delta], dtype=torch.float64)
    state = type(parts[0].state).cat([part.state for part in parts])
    final = type(parts[0].final).cat([part.final for part in parts])
    final = replace(final, score=torch.tensor([score for part in parts for score in part.score]))
    if game.spec.seats == 1:
        total = torch.zeros(len(length), dtype=torch.float64).index_add_(0, number, gain)
        before = gain.cumsum(0) - gain - (total.cumsum(0) - total)[number]
        state = replace(state, score=before[:, None].float())
    if game.spec.max_plies_per_turn == 1:
        state, final = replace(state, turn=ply), replace(final, turn=length)
    # The turn after each move is that of the game's next position.
    after = state.turn.roll(-1)
    after[length.cumsum(0) - 1] = final.turn
    moves = Trajectories(
        state=state,
        action=torch.cat([part.action for part in parts]),
        game=number,
        seat=state.current_seat,
        player=torch.tensor([place[name] for part in parts for name in part.player]),
        score_delta=gain.float(),
        ends_turn=after > state.turn,
        ply_sizes=[len(number)],
        games=len(length),
    )
    return Recorded(moves.ordered(ply), FinalStates(final, len(number)), names)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]} should be text")
    return value


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


def _check_header(path: Path, rules: dict[str, Any]) -> None:
    """Raises BadRecord unless the file holds games of these rules."""
    found = _header(path)["game"]
    kinds = [{k: v for k, v in of.items() if k not in PRESENTATION_KEYS} for of in (found, rules)]
    if kinds[0] != kinds[1]:
        raise BadRecord(f"{path} holds games of other rules, {sanitized(json.dumps(found))}")


def _header(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            header = parse_json(file.readline(MAX_HEADER_BYTES).decode("utf-8"))
        if header["rlgames_record"] != FORMAT or not isinstance(header["game"], dict):
            raise ValueError("unknown format")
    except (ValueError, KeyError, TypeError) as error:
        raise BadRecord(f"{path} is not a record of games ({sanitized(error)})") from None
    return dict(header)
