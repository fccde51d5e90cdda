"""Recorded games: a text file of JSON lines, the rules first, then one line per game.

A move is stored as the position that the player saw, as the game draws it, and the name of the
action. A person can read a record, and reading it back checks every word. Each game ends with its
final position.
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
from rlgames.core.locks import locked
from rlgames.core.output_files import check_writable as check_output
from rlgames.core.untrusted import checked_float, parse_json, sanitized
from rlgames.games.game import PRESENTATION_KEYS, Game, State
from rlgames.games.notation import parse, parse_actions, render
from rlgames.players.player import Player
from rlgames.rollouts.trajectories import FinalStates, Trajectories

FORMAT = 1

MAX_FILE_BYTES = 1 << 30

MAX_HEADER_BYTES = 1 << 16

MAX_LINE_BYTES = 1 << 25
"""As long as the line of the longest possible game."""

FLOAT32 = (-3e38, 3e38)
"""Scores and gains are in this range."""

PARSE_ERRORS = (ValueError, KeyError, TypeError, AttributeError)
"""What parsing invalid text can raise."""


class BadRecord(ConfigError):
    """The file is not a valid record of this game; the message names the line and the problem."""


def check_writable(path: Path, game: Game[Any], rules: dict[str, Any]) -> None:
    """Raises BadRecord if games with these rules cannot be appended to the file."""
    try:
        check_output(str(path), path)
        if path.exists() and path.stat().st_size:
            _check_header(path, rules)
    except OSError as error:
        raise BadRecord(f"{path} cannot be written: {error.strerror}") from None
    cpu_game = game.on_cpu()
    try:
        parse(cpu_game, render(cpu_game, cpu_game.example_state(), 0))
    except ValueError as error:
        raise BadRecord(f"games of {game.spec.name} with these rules: {error}") from None


def check_players(*players: Player | None) -> None:
    """Raises ConfigError for a player that may give up: a recorded game is played to its end."""
    if any(player is not None and player.can_resign for player in players):
        raise ConfigError("record= cannot hold games that a program forfeits", "use on_error=raise")


def append(
    path: Path,
    game: Game[Any],
    rules: dict[str, Any],
    players: list[str],
    trajectories: Trajectories,
    final: FinalStates,
) -> None:
    """Append games to a record; creates the file if necessary.

    rules: the game's config. players: the names for Trajectories.player. Raises BadRecord if the
    file cannot be written.
    """
    check_writable(path, game, rules)
    cpu_game, state = game.on_cpu(), final.state.to("cpu")
    moves = _moves_by_game(cpu_game, players, trajectories.to("cpu"))
    lines = [
        json.dumps({"score": score, "final": render(cpu_game, state, row), "moves": moves[row]})
        for row, score in enumerate(state.score.tolist())
    ]
    # Other processes may append to it.
    with locked(path.with_name(f"{path.name}.lock")), open(path, "a", encoding="utf-8") as file:
        if path.stat().st_size:
            _check_header(path, rules)
            _repair_last_line(path)
        else:
            lines.insert(0, json.dumps({"rlgames_record": FORMAT, "game": rules}))
        file.write("\n".join(lines) + "\n")


def _moves_by_game(
    game: Game[Any], players: list[str], trajectories: Trajectories
) -> list[list[dict[str, Any]]]:
    """The moves of each game in the form of a record."""
    moves: list[list[dict[str, Any]]] = [[] for _ in range(trajectories.num_games)]
    columns = (
        trajectories.game,
        trajectories.action,
        trajectories.seat,
        trajectories.player,
        trajectories.score_delta,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (index, action, seat, player, score_delta) in enumerate(rows):
        moves[index].append(
            {
                "position": render(game, trajectories.state, row),
                "move": game.action_to_string(trajectories.state, row, action),
                "seat": seat,
                "player": players[player],
                "gain": score_delta,
            }
        )
    return moves


@dataclass(frozen=True)
class RecordedGames:
    """Games read from a record, public positions only.

    players: the names for Trajectories.player.
    """

    trajectories: Trajectories
    final_states: FinalStates
    players: list[str]


def read(path: Path, game: Game[Any], rules: dict[str, Any]) -> RecordedGames:
    """All games of a record, on the CPU.

    Raises BadRecord, with the line number, for content that violates the rules or the format.
    """
    if not os.path.isfile(path):  # Path.is_file raises for names that are too long
        raise BadRecord(f"{path} is not a file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise BadRecord(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    _check_header(path, rules)
    game = game.on_cpu()
    with open(path, "rb") as file:
        games = list(_read_games(path, game, file))
    if not games:
        raise BadRecord(f"{path} holds no moves")
    return _combine(game, games)


@dataclass(frozen=True)
class _RecordedGame:
    """The content of a line. score: at the end, one number per seat. final: the final position.
    state, action: positions and int64 [M]. player, score_delta: of each move."""

    score: list[float]
    final: State
    state: State
    action: torch.Tensor
    player: list[str]
    score_delta: list[float]


def _read_games(path: Path, game: Game[Any], file: BinaryIO) -> Iterator[_RecordedGame]:
    """The games in the lines after the first. Raises BadRecord, with the number of the line."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise BadRecord(f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes")
        if number > 1 and line.strip():
            try:
                yield _parse_game(game, parse_json(line.decode("utf-8")))
            except PARSE_ERRORS as error:
                why = f"{error} is missing" if isinstance(error, KeyError) else error
                raise BadRecord(f"{path}, line {number}: {sanitized(why)}") from None


def _parse_game(game: Game[Any], line: Any) -> _RecordedGame:
    """Raises one of PARSE_ERRORS if a line is not a valid game."""
    score = [checked_float(value, *FLOAT32) for value in _checked(line["score"], list)]
    if len(score) != game.spec.seats:
        raise ValueError(f"{len(score)} scores for {game.spec.seats} seats")
    moves = _checked(line["moves"], list)
    if not moves:
        raise ValueError("a game without moves")
    state = game.parse_all([_checked(move["position"], str) for move in moves])
    is_done, current_seat = state.done.tolist(), state.current_seat.tolist()
    for move, seat, done in zip(moves, current_seat, is_done, strict=True):
        if type(move["seat"]) is not int or move["seat"] != seat or done:
            raise ValueError(f"seat {str(move['seat'])[:40]} cannot move here")
    action = parse_actions(game, state, [_checked(move["move"], str) for move in moves])
    score_delta = [checked_float(move["gain"], *FLOAT32) for move in moves]
    player = [_checked(move["player"], str) for move in moves]
    total = [0.0] * len(score)
    for move in moves:
        total[move["seat"]] += move["gain"]
    for seat in {*current_seat}:
        if abs(total[seat] - score[seat]) > 1e-4 * max(1.0, abs(score[seat])):
            raise ValueError(f"the gains of seat {seat} do not add up to its score")
    final = game.parse_all([_checked(line["final"], str)])
    if not bool(final.done):
        raise ValueError("the final position is not the end of a game")
    return _RecordedGame(score, final, state, action, player, score_delta)


def _combine(game: Game[Any], games: list[_RecordedGame]) -> RecordedGames:
    """Join the games, sorted by ply; restores what a drawn position does not contain."""
    length = torch.tensor([len(each.action) for each in games])
    index = torch.arange(len(length)).repeat_interleave(length)
    ply = torch.arange(len(index)) - (length.cumsum(0) - length)[index]
    names = [name for each in games for name in each.player]
    players = {name: player for player, name in enumerate(dict.fromkeys(names))}
    score_delta = torch.tensor(
        [delta for each in games for delta in each.score_delta], dtype=torch.float64
    )
    state = type(games[0].state).cat([each.state for each in games])
    final = type(games[0].final).cat([each.final for each in games])
    final = replace(final, score=torch.tensor([each.score for each in games]))
    if game.spec.seats == 1:
        # The score before each move, from sums of float64.
        total = torch.zeros(len(length), dtype=torch.float64).index_add_(0, index, score_delta)
        before = score_delta.cumsum(0) - score_delta - (total.cumsum(0) - total)[index]
        state = replace(state, score=before[:, None].float())
    if game.spec.max_plies_per_turn == 1:
        state, final = replace(state, turn=ply), replace(final, turn=length)
    # The turn after a move is the turn of the next position of its game.
    turn_after = state.turn.roll(-1)
    turn_after[length.cumsum(0) - 1] = final.turn
    trajectories = Trajectories(
        state=state,
        action=torch.cat([each.action for each in games]),
        game=index,
        seat=state.current_seat,
        player=torch.tensor([players[name] for name in names]),
        score_delta=score_delta.float(),
        ends_turn=turn_after > state.turn,
        ply_sizes=[len(index)],
        num_games=len(length),
    )
    return RecordedGames(trajectories.ordered(ply), FinalStates(final, len(index)), [*players])


def _checked(value: Any, kind: type) -> Any:
    """Raises ValueError for a value of another kind, str or list."""
    if not isinstance(value, kind):
        name = "string" if kind is str else "list"
        raise ValueError(f"{str(value)[:40]!r} is not a {name}")
    return value


def _repair_last_line(path: Path) -> None:
    """Remove an incomplete last line; end a complete one."""
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
    """Raises BadRecord unless the file holds games with these rules."""
    try:
        with open(path, "rb") as file:
            header = parse_json(file.readline(MAX_HEADER_BYTES).decode("utf-8"))
        recorded = header["game"]
        if header["rlgames_record"] != FORMAT or not isinstance(recorded, dict):
            raise ValueError("unknown format")
    except (ValueError, KeyError, TypeError) as error:
        raise BadRecord(f"{path} is not a record of games ({sanitized(error)})") from None
    held, wanted = (
        {key: value for key, value in each.items() if key not in PRESENTATION_KEYS}
        for each in (recorded, rules)
    )
    if held != wanted:
        raise BadRecord(f"{path} holds games with other rules, {sanitized(json.dumps(recorded))}")
