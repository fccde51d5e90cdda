"""`rlgames show`: one position, evaluated by a player and exactly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlgames.build.players import make_advisor
from rlgames.commands import board_pictures
from rlgames.commands.match import game_and_player, player_name, with_run
from rlgames.config.commands import ShowConfig
from rlgames.config.typed import to_plain
from rlgames.core.devices import build_device
from rlgames.core.metrics import are_equal
from rlgames.core.text import counted, number_text, printable
from rlgames.evaluation.advice import Advice, Move, Opinion, advise, exact_text, opinion, unit_of
from rlgames.evaluation.positions import parse_position, read_position
from rlgames.games.notation import render
from rlgames.rollouts.interactive import describe_ending
from rlgames.search.search import Search
from rlgames.terminal.boards import BoardView, format_parts
from rlgames.terminal.tables import Column, print_table

MAX_LISTED_MOVES = 10
"""Moves of a position that are listed, the most likely first."""

SEARCH_LONGER = "; solve_seconds= sets a time instead"

COLUMNS = {"probability": "probability", "score": "value", "exact": "exact", "plies": "plies"}
"""The fields of a move, with the headings of their columns."""

FORMATS = {"probability": ".1%", "score": "z.4f", "plies": ".0f"}
"""How they are shown, apart from exact values."""


@dataclass(frozen=True)
class Result:
    """A position as `rlgames show` prints it.

    unit: of exact values: turns, points or outcome. over: how the game has ended; None if it has
    not, and nothing is known of it if it has.
    """

    cfg: ShowConfig
    board: BoardView
    player: str | None
    unit: str
    over: str | None
    advice: Advice

    @property
    def exact(self) -> float | None:
        """The exact value of the position, None if it is not known."""
        return None if self.advice.exact is None else self.advice.exact.value

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        state = self.board.state
        return {
            "game": to_plain(self.cfg)["game"],
            "position": render(self.board.game, state, 0),
            "seat": int(state.current_seat[0]) + 1,
            "over": self.over,
            "player": self.player,
            "value": self.advice.value,
            "exact": self.exact,
            "unit": self.unit,
            "actions": [{**vars(each)} for each in self.advice.moves],
        }


def run(config: ShowConfig) -> Result:
    """Evaluate a position, by a player and exactly, and write its picture."""
    cfg, opened = with_run(config)
    if cfg.picture is not None:
        board_pictures.check_picture(Path(cfg.picture), board_pictures.STILLS)
    build_device(cfg.device, cfg.threads)  # it has to be there, though the CPU solves one position
    game, player = game_and_player(cfg, torch.device("cpu"), opened)
    state = parse_position(game, None if cfg.state is None else read_position(cfg.state))
    name = None if player is None else player_name(cfg.player, opened, cfg.search)
    over = describe_ending(game, state, None) if bool(state.done[0]) else None
    advice, thinks = Advice(None, None, None, "", []), Opinion(None, False)
    if over is None:
        asked = make_advisor(player) if isinstance(player, Search) else player
        advice = advise(game, state, asked, str(name), cfg.solve_seconds)
        likely = Opinion(advice.likely, are_values=False)
        thinks = opinion(asked, state) if advice.likely is None else likely
    board = BoardView(game, state, *thinks, listed=False)
    if cfg.picture is not None:
        seat = f"seat {int(state.current_seat[0]) + 1}" if game.spec.seats > 1 else ""
        board_pictures.write_position(board, over or seat, Path(cfg.picture))
    return Result(cfg, board, name, unit_of(game), over, advice)


def show(result: Result) -> None:
    """Print the board, its value and its moves."""
    if result.cfg.picture is not None:
        print(f"picture: {printable(result.cfg.picture)}")
    print(format_parts(result.board))
    if result.over is not None:
        print(result.over)
        return
    advice, moves = result.advice, result.advice.moves
    if advice.value is not None:
        value = number_text(round(advice.value, 6) + 0.0)
        print(printable(f"{result.player} expects a return of {value}"))
    if result.exact is not None:
        best = [each.action for each in moves if _is_best(each, result)]
        more = f" and {len(best) - MAX_LISTED_MOVES} more" if len(best) > MAX_LISTED_MOVES else ""
        value = exact_text(result.exact, result.unit)
        print(f"exact: {value}, by {', '.join(best[:MAX_LISTED_MOVES])}{more}")
    elif advice.limit:
        print(f"exact: not found within {advice.limit}{SEARCH_LONGER}")
    known = [name for name in COLUMNS if any(getattr(move, name) is not None for move in moves)]
    if not known:
        return
    listed = moves[:MAX_LISTED_MOVES]
    table = [Column("move", [move.action for move in listed], is_text=True)]
    for name in known:
        table.append(Column(COLUMNS[name], [_cell(name, move, result) for move in listed]))
    print()
    print_table("moves", table, "table")
    open_moves = sum(move.exact is None for move in moves)
    if result.exact is not None and open_moves:
        without = counted(open_moves, "move")
        print(f"{without} without a value within {advice.limit}{SEARCH_LONGER}")
    if len(moves) > len(listed):
        print(f"and {len(moves) - len(listed)} more; format=json lists all")


def _cell(name: str, move: Move, result: Result) -> str:
    value: float | None = getattr(move, name)
    if value is None:
        return "-"
    if name in FORMATS:
        return f"{value:{FORMATS[name]}}"
    return exact_text(value, result.unit) + (" *" if _is_best(move, result) else "  ")


def _is_best(move: Move, result: Result) -> bool:
    """Whether the exact value of a move is the one of the position, except for rounding."""
    known = move.exact is not None and result.exact is not None
    return known and bool(are_equal(move.exact, result.exact))
