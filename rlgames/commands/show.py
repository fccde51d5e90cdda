"""`rlgames show`: one position, evaluated by a player and exactly."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.commands import board_pictures
from rlgames.commands.frames import probabilities
from rlgames.commands.run_config import game_and_player, player_name, with_run
from rlgames.config.commands import ShowConfig
from rlgames.config.typed import to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, NonFiniteError, value_errors
from rlgames.core.metrics import GOAL_METRICS, direction
from rlgames.core.untrusted import sanitized
from rlgames.evaluation.diagnostics import expected_returns
from rlgames.games.game import Game, State
from rlgames.games.notation import legal_names, parse, render
from rlgames.players.player import Agent, Player
from rlgames.rollouts.interactive import describe_ending
from rlgames.runs.agents import make_advisor
from rlgames.search.search import Search
from rlgames.solvers.optimum import position_solver, solver_reach
from rlgames.solvers.position import PositionValue
from rlgames.terminal.boards import BoardView

MAX_BOARD_LENGTH = 1 << 16
"""The largest number of characters in a board."""


@dataclass(frozen=True)
class ShownPosition:
    """A position as `rlgames show` prints it: the fields of its JSON, its board, the file of
    picture=, and the time that the solver had."""

    fields: dict[str, Any]
    board: BoardView
    picture: str | None = None
    solve_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return self.fields


def show_command(config: ShowConfig) -> ShownPosition:
    """Evaluate a position, by a player and exactly.

    {game, position, seat, over, player, value, exact, unit, actions: [{action, probability, score,
    exact, plies}]}, the most likely action first and null for what is unknown. value: the return
    that the player expects, in units of its reward. score: its value of an action, for a value
    function. exact, plies: see solvers.position.PositionValue. unit: turns, points or outcome.
    """
    cfg, run = with_run(config)
    if cfg.picture is not None:
        board_pictures.check_picture(Path(cfg.picture), board_pictures.STILLS)
    build_device(cfg.device, cfg.threads)  # it has to be there, though the CPU solves one position
    game, player = game_and_player(cfg, torch.device("cpu"), run)
    state = parse_position(game, None if cfg.state is None else read_position(cfg.state))
    report = {
        "game": to_plain(cfg)["game"],
        "position": render(game, state, 0),
        "seat": int(state.current_seat[0]) + 1,
        "over": None,
        "player": None if player is None else player_name(cfg.player, run, cfg.search),
        "value": None,
        "exact": None,
        "unit": unit_of(game),
        "actions": [],
    }
    if bool(state.done[0]):
        over = {"over": describe_ending(game, state, None)}
        return _shown(report | over, BoardView(game, state), cfg.picture)
    seconds = _solve_seconds(game) if cfg.solve_seconds is None else cfg.solve_seconds
    found = evaluate_position(game, state, player, str(report["player"]), seconds)
    report |= {
        "value": found.value,
        "exact": None if found.exact is None else found.exact.value,
        "actions": found.actions,
    }
    shown = _shown(report, BoardView(game, state, found.likely, listed=False), cfg.picture)
    return replace(shown, solve_seconds=seconds)


def _solve_seconds(game: Game[Any]) -> float:
    """The time for exact values where none is given: not long where they are unlikely."""
    return {"yes": 20.0, "smaller boards": 3.0, "no": 0.0}[solver_reach(game)]


@dataclass(frozen=True)
class Evaluation:
    """What a player and a solver say about a position; None for what is unknown.

    likely: float64 [A], the probabilities of the player's actions. value: the return that it
    expects. exact: the exact values. actions: as in show_command.
    """

    likely: Tensor | None
    value: float | None
    exact: PositionValue | None
    actions: list[dict[str, Any]]


def evaluate_position(
    game: Game[Any], state: State, player: Player | None, name: str, solve_seconds: float
) -> Evaluation:
    """Evaluate a live public position by a player, if any, and exactly within the time.

    name: of the player. Raises ConfigError for a position that one of them cannot evaluate.
    """
    likely = value = scores = None
    if player is not None:
        try:
            likely = probabilities(
                make_advisor(player) if isinstance(player, Search) else player, state
            )
            if isinstance(player, Agent):
                returns = expected_returns(player.game, player.policy, state)
                value, scores = (None if part is None else part[0] for part in returns)
        except (NonFiniteError, ValueError) as error:
            raise ConfigError(f"{name} cannot evaluate it: {sanitized(error)}") from None
    with value_errors("state= is impossible: "):
        solver = position_solver(game) if solve_seconds else None
        exact = None if solver is None else solver.solve(state, solve_seconds)[0]
    actions = _actions(game, state, likely, scores, exact)
    return Evaluation(likely, None if value is None else float(value), exact, actions)


def exact_text(value: float, unit: str) -> str:
    """An exact value in words; unit: turns, points or outcome."""
    if unit == "outcome":
        return {1.0: "won", 0.0: "drawn", -1.0: "lost"}.get(value, f"{value:+.4f}")
    return f"{value:.4f} {unit}"


def _shown(fields: dict[str, Any], board: BoardView, picture: str | None) -> ShownPosition:
    """A position, after its picture is written."""
    if picture is not None:
        title = fields["over"] or (f"seat {fields['seat']}" if board.game.spec.seats > 1 else "")
        board_pictures.write_position(board, title, Path(picture))
    return ShownPosition(fields, board, picture)


def _actions(
    game: Game[Any],
    state: State,
    likely: Tensor | None,
    scores: Tensor | None,
    exact: PositionValue | None,
) -> list[dict[str, Any]]:
    actions = [
        {
            "action": name,
            "probability": None if likely is None else float(likely[action]),
            "score": None if scores is None else float(scores[action]),
            "exact": None if exact is None else exact.actions[action],
            "plies": None if exact is None or exact.plies is None else exact.plies[action],
        }
        for action, name in legal_names(game, state, 0).items()
    ]
    sign = direction(game.spec.goal, GOAL_METRICS[game.spec.goal])

    def order(action: dict[str, Any]) -> tuple[float, float, float]:
        """The likeliest first, of equals the best; early wins and late losses."""
        value = action["exact"] or 0.0
        return -(action["probability"] or 0.0), -sign * value, value * (action["plies"] or 0)

    return sorted(actions, key=order)


def unit_of(game: Game[Any]) -> str:
    """The unit of exact values: turns, points or outcome."""
    return {"score": "points"}.get(game.spec.goal, game.spec.goal)


def parse_position(game: Game[State], text: str | None) -> State:
    """A public position from text, in lines or with / between them; None: the start of the game.

    Raises ConfigError for text that is not a position.
    """
    start = game.public(game.initial(1, torch.Generator().manual_seed(0)))
    if text is None:
        return start
    if len(text) > MAX_BOARD_LENGTH:
        raise ConfigError("state= is too long for a board")
    text = text if "\n" in text.strip() else re.sub(r"\s*/\s*", "\n", text)
    try:
        return parse(game, text)
    except ValueError as error:
        why = sanitized(error)
    example = " / ".join(position_rows(game, start))
    raise ConfigError(f"state= is not a position: {why}", f"as in: state='{example}'")


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
