"""`rlgames analyze`: where a player's moves lose value against perfect play."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlgames.commands import board_pictures
from rlgames.commands.evaluate import check_seats
from rlgames.commands.frames import probabilities
from rlgames.commands.run_config import (
    build_opponent,
    game_and_player,
    option_name,
    player_name,
    with_run,
)
from rlgames.commands.show import position_rows
from rlgames.config.commands import AnalyzeConfig
from rlgames.config.typed import as_words, changed, to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.memory import check_memory
from rlgames.core.output_files import check_writable
from rlgames.core.rng import REPORT_STREAM, make_generator
from rlgames.core.text import number_text, printable
from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel
from rlgames.evaluation.analysis import (
    ROUNDING_ERROR,
    Moves,
    distinct,
    labeled_moves,
    losses_by_group,
    losses_by_turn,
    moves_in,
    played_moves,
    with_values,
)
from rlgames.evaluation.evaluate import EvaluationSettings
from rlgames.evaluation.positions import LabeledPositions, read_positions
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.rollouts.trajectories import bytes_per_result
from rlgames.runs.agents import OpenRun, make_advisor
from rlgames.solvers.optimum import position_solver
from rlgames.terminal.boards import BoardView

SAMPLED_GAMES = 200
"""Where not all can be played."""

OF_GAMES = ("games", "opponent", "opponent_search")
"""Keys that say which games are played."""

UNITS = {"turns": "turns", "score": "points", "outcome": "outcomes"}
"""The unit of a loss by Spec.goal: a loss instead of a win is two outcomes, a draw is one."""


@dataclass(frozen=True)
class _Subject:
    """What is analyzed; words: those that `show` needs to name the same player, run first.

    plain: the player without its search; None if it has none.
    """

    cfg: AnalyzeConfig
    run: OpenRun | None
    words: list[str]
    game: Game[Any]
    player: Player
    plain: Player | None


def analyze_command(config: AnalyzeConfig) -> dict[str, Any]:
    """How often and how much a player's moves lose value, where exact values are known.

    {game, player, checkpoint, opponent, search, games, exact, seed, unit, losses, turns, per_game,
    search_losses, worst}. losses: by phase or class and for all, turns: by turn, as
    evaluation.analysis.losses_by_turn. per_game: what a game loses; null unless all values are
    known. search_losses: what the search changes; null without one. worst: [{turn, position, move,
    best, loss, times, command}], the largest losses first.
    """
    cfg, run = with_run(config)
    _check(cfg)
    game, player = game_and_player(cfg, build_device(cfg.device, cfg.threads), run)
    assert player is not None
    plain = None
    if cfg.search is not None:
        plain = game_and_player(replace(cfg, search=None), game.device, run)[1]
    subject = _Subject(cfg, run, _words_of_player(config, run), game, player, plain)
    with torch.inference_mode():
        return _report(subject)


def _check(cfg: AnalyzeConfig) -> None:
    if cfg.picture is not None:
        figures.check_figure("picture", Path(cfg.picture))
    if cfg.boards is not None:
        check_writable(f"boards={cfg.boards}", Path(cfg.boards) / "1.svg")
    if cfg.positions is not None and (unused := changed(cfg, *OF_GAMES)):
        raise ConfigError("positions= plays no games", f"omit {unused[0]}=")


def _words_of_player(cfg: AnalyzeConfig, run: OpenRun | None) -> list[str]:
    """The words with which `show` evaluates a position by the same player."""
    words = as_words(cfg, "player", "game", "sampling", "search", "checkpoint", "plugins")
    return [*([] if run is None else [run.name]), *words]


def _report(subject: _Subject) -> dict[str, Any]:
    cfg, game = subject.cfg, subject.game
    rng = make_generator(cfg.seed, REPORT_STREAM, game.device)
    moves, games, is_exact = _moves(subject, rng)
    loss = moves.loss
    if bool(loss.isnan().all()):
        raise ConfigError(
            f"no exact value of the {len(moves):,} positions was found within the limits",
            "raise solve_positions= and solve_seconds=, or use a smaller board",
        )
    report = {
        "game": to_plain(cfg)["game"],
        "player": player_name(cfg.player, subject.run),
        **({} if subject.run is None else subject.run.fields()),
        "opponent": option_name(cfg.opponent) if games and game.spec.seats == 2 else None,
        "search": to_plain(cfg)["search"],
        "games": games,
        "exact": is_exact,
        "seed": cfg.seed,
        "unit": UNITS[game.spec.goal],
        "losses": losses_by_group(moves, is_exact),
        "turns": losses_by_turn(moves, is_exact),
        "per_game": float(loss.sum()) / games if games and not bool(loss.isnan().any()) else None,
        "search_losses": _search_losses(subject, moves, is_exact),
        "worst": _worst(subject, moves),
    }
    if cfg.picture is not None:
        _draw(report, Path(cfg.picture))
    return report


def _moves(subject: _Subject, rng: torch.Generator) -> tuple[Moves, int | None, bool]:
    """The moves with exact values, how many games they are of, and whether these are all games
    that are possible. Raises ConfigError if there is nothing to compare with."""
    cfg, game, player = subject.cfg, subject.game, subject.player
    games, is_exact = None, False
    positions = None if cfg.positions is None else read_positions(Path(cfg.positions), game)
    if isinstance(positions, LabeledPositions):
        return labeled_moves(player, positions, rng), None, False
    solver = position_solver(game, max_positions=cfg.solve_positions)
    if solver is None:
        raise ConfigError(
            f"no exact solver fits these rules of game={game.spec.name}",
            "rlgames games lists the games with one; some need smaller boards",
        )
    if positions is not None:
        moves = moves_in(player, positions, rng)
    else:
        check_seats(cfg.games, game)
        size = SAMPLED_GAMES if isinstance(cfg.games, str) else cfg.games
        check_memory("games", size, bytes_per_result(game), "for final states")
        settings = EvaluationSettings(cfg.games, SAMPLED_GAMES)
        moves, evaluation = played_moves(game, player, build_opponent(cfg, game), settings, rng)
        games, is_exact = evaluation.games, evaluation.is_exact
    with value_errors(f"{cfg.positions}: a position is impossible: "):
        return with_values(moves, game, solver, cfg.solve_seconds), games, is_exact


def _search_losses(subject: _Subject, moves: Moves, is_exact: bool) -> dict[str, Any] | None:
    """The losses without the search in the same positions, and what it changes about them."""
    if subject.plain is None:
        return None
    rng = make_generator(subject.cfg.seed, REPORT_STREAM, subject.game.device)
    action = subject.plain.choose(moves.state.to(subject.game.device), rng).cpu()
    plain = replace(moves, action=action)
    before, after = plain.loss, moves.loss
    known = ~(before.isnan() | after.isnan())
    before, after = before[known], after[known]
    return {
        "without": losses_by_group(plain, is_exact),
        "turns": losses_by_turn(plain, is_exact),
        "mistakes": int((before > 0).sum()),
        "repaired": int(((before > 0) & (after == 0)).sum()),
        "spoiled": int(((before == 0) & (after > 0)).sum()),
    }


def _worst(subject: _Subject, moves: Moves) -> list[dict[str, Any]]:
    """The different positions with the largest losses; of equals those met most often."""
    cfg, game = subject.cfg, subject.game
    _, position = distinct(moves.state)
    times, loss = torch.bincount(position), moves.loss.nan_to_num(0.0)
    rows: dict[int, int] = {}  # by position: the move there that loses most
    for row in np.lexsort((-times[position], -loss)).tolist():
        if len(rows) == cfg.worst or loss[row] == 0:
            break
        rows.setdefault(int(position[row]), row)
    name = player_name(cfg.player, subject.run, cfg.search)
    worst = []
    for place, (number, row) in enumerate(rows.items(), 1):
        state, action = moves.state[row : row + 1], int(moves.action[row])
        known = moves.values[row].nan_to_num(-torch.inf)
        best = (known >= known.max() - ROUNDING_ERROR).nonzero()[:, 0].tolist()
        text = " / ".join(position_rows(game, state))
        names = [game.action_to_string(state, 0, each) for each in (action, *best)]
        worst.append(
            {
                "turn": int(moves.turn[row]),
                "position": text,
                "move": names[0],
                "best": names[1:],
                "loss": float(loss[row]),
                "times": int(times[number]),
                "command": shlex.join(["rlgames", "show", *subject.words, f"state={text}"]),
            }
        )
        if cfg.boards is not None:
            board = BoardView(game, state, probabilities(make_advisor(subject.player), state))
            lost, others = number_text(float(loss[row])), ", ".join(names[1:4])
            title = f"{name}: {names[0]} loses {lost}; best: {others}"
            file = Path(cfg.boards) / f"{place:0{len(str(cfg.worst))}}.svg"
            board_pictures.write_position(board, printable(title), file, action)
    return worst


def _draw(report: dict[str, Any], path: Path) -> None:
    """The rate of moves that lose value and the mean loss by turn, with 95% intervals."""
    series = {report["player"]: report["turns"]}
    if report["search_losses"] is not None:
        name = f"{report['player']}+{report['search']['name']}"
        series = {name: report["turns"], report["player"]: report["search_losses"]["turns"]}
    panels = [
        Panel("", "turn", label, [_line(name, turns, key) for name, turns in series.items()])
        for key, label in (
            ("rate", "fraction of mistakes"),
            ("mean", f"mean loss ({report['unit']})"),
        )
    ]
    figures.save_figure(figures.draw_panels([panels], figures.WIDTHS["page"]), path)


def _line(label: str, turns: list[dict[str, Any]], key: str) -> Line:
    """A curve of the rate or the mean loss with its intervals, where values are known."""
    parts = [each if key == "rate" else each["loss"] for each in turns if each["positions"]]
    middles = [(each["first"] + each["last"]) / 2 for each in turns if each["positions"]]
    y = np.array([part[key] for part in parts], np.float64)
    ends = np.array([part["ci95"] or [part[key]] * 2 for part in parts], np.float64)
    return Line(label, np.array(middles), y, (ends[:, 0], ends[:, 1]))
