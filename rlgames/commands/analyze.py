"""`rlgames analyze`: where a player's moves lose value against perfect play."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlgames.build.agents import OpenRun
from rlgames.commands.evaluate import check_games
from rlgames.commands.match import Match, open_match, player_name
from rlgames.config.commands import AnalyzeConfig
from rlgames.config.typed import as_words, changed
from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.metrics import are_equal
from rlgames.core.text import counted, number_text, printable
from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel
from rlgames.evaluation.analysis import (
    Losses,
    Moves,
    distinct,
    losses_by_group,
    losses_by_turn,
    moves_in,
    played_moves,
    with_values,
)
from rlgames.evaluation.estimates import Estimate
from rlgames.evaluation.evaluate import EvaluationSettings
from rlgames.evaluation.positions import position_rows, read_positions
from rlgames.games.game import Game
from rlgames.rng import REPORT_STREAM, Rng
from rlgames.runs.reports import keep_report
from rlgames.solvers.optimum import position_solver
from rlgames.terminal.tables import Column, print_table

SAMPLED_GAMES = 200
"""Where not all can be played."""

OF_GAMES = ("games", "opponent", "opponent_search")
"""Keys that say which games are played."""

UNITS = {"turns": "turns", "score": "points", "outcome": "outcomes"}
"""The unit of a loss by Spec.goal: a loss instead of a win is two outcomes, a draw is one."""


@dataclass(frozen=True)
class Result:
    """How often and how much a player's moves lose value, where exact values are known.

    games: None for positions of a file. losses: by phase or class and for all. turns: by the first
    and the last one. per_game: what a game loses; None unless all values are known. worst:
    positions where much is lost, as in JSON.
    """

    match: Match
    games: int | None
    is_exact: bool
    losses: dict[str, Losses]
    turns: dict[tuple[int, int], Losses]
    per_game: float | None
    worst: list[dict[str, Any]]

    @property
    def unit(self) -> str:
        return UNITS[self.match.goal]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        return {
            **self.match.as_dict(),
            **({} if self.games else {"opponent": None}),
            "games": self.games,
            "exact": self.is_exact,
            "seed": self.match.cfg.seed,
            "unit": self.unit,
            "losses": {name: each.as_dict() for name, each in self.losses.items()},
            "turns": [
                {"first": first, "last": last, **losses.as_dict()}
                for (first, last), losses in self.turns.items()
            ],
            "per_game": self.per_game,
            "worst": self.worst,
        }

    @property
    def name(self) -> str:
        """The player with its search, for people."""
        cfg = self.match.cfg
        return player_name(cfg.player, self.match.run, cfg.search)


def run(config: AnalyzeConfig) -> Result:
    """Analyze the moves of a player, and keep the report of a run."""
    if config.picture is not None:
        figures.check_figure("picture", Path(config.picture))
    if config.positions is not None and (unused := changed(config, *OF_GAMES)):
        raise ConfigError("positions= plays no games", f"omit {unused[0]}=")
    match = open_match(config)
    with torch.inference_mode():
        moves, games, is_exact = _moves(match)
    loss = moves.loss
    if bool(loss.isnan().all()):
        raise ConfigError(
            f"no exact value of the {len(moves):,} positions was found within the limits",
            "raise solve_positions=, or use a smaller board",
        )
    result = Result(
        match=match,
        games=games,
        is_exact=is_exact,
        losses=losses_by_group(moves, is_exact),
        turns=losses_by_turn(moves, is_exact),
        per_game=float(loss.sum()) / games if games and not bool(loss.isnan().any()) else None,
        worst=_worst(match.game, moves, config.worst, _show_words(config, match.run)),
    )
    if config.picture is not None:
        _draw(result, Path(config.picture))
    seats = [] if games is None else match.seats
    keep_report(match.cfg, match.directory, match.digests, result.as_dict(), seats)
    return result


def _show_words(cfg: AnalyzeConfig, run: OpenRun | None) -> list[str]:
    """The command that shows a position with the same player."""
    words = as_words(cfg, "player", "game", "sampling", "search", "checkpoint", "plugins")
    return ["rlgames", "show", *([] if run is None else [run.name]), *words]


def _moves(match: Match) -> tuple[Moves, int | None, bool]:
    """The moves with exact values, how many games they are of, and whether these are all games
    that are possible. Raises ConfigError if there is nothing to compare with."""
    cfg, game, player = match.cfg, match.game, match.player
    rng = Rng(cfg.seed, REPORT_STREAM, game.device)
    positions = None if cfg.positions is None else read_positions(Path(cfg.positions), game)
    if positions is not None and positions.outcome is not None:
        return moves_in(player, positions, rng), None, False
    solver = position_solver(game, max_positions=cfg.solve_positions)
    if solver is None:
        raise ConfigError(
            f"no exact solver supports these rules of game={game.spec.name}",
            "rlgames games lists the games with one; some need smaller boards",
        )
    if positions is not None:
        with value_errors(f"{cfg.positions}: a position is impossible: "):
            moves = moves_in(player, positions, rng)
            moves = with_values(moves, game, solver)
        if positions.best is not None:
            _check_scores(cfg, positions.best, moves)
        return moves, None, False
    check_games(game, cfg.games, SAMPLED_GAMES)
    settings = EvaluationSettings(cfg.games, SAMPLED_GAMES)
    moves, evaluation = played_moves(game, player, match.opponent, settings, rng)
    moves = with_values(moves, game, solver)
    return moves, evaluation.games, evaluation.is_exact


def _check_scores(cfg: AnalyzeConfig, best: torch.Tensor, moves: Moves) -> None:
    """Raise ConfigError if a score of a file is not the exact result of its position."""
    known = ~moves.loss.isnan()
    found = moves.values.nan_to_num(-torch.inf).amax(1)
    if wrong := (known & (found != best)).nonzero()[:, 0].tolist():
        raise ConfigError(
            f"{cfg.positions}: the score of position {wrong[0] + 1} has another sign than its "
            f"exact result, {found[wrong[0]]:.0f}",
            "a score counts for the player to move: positive, 0 or negative",
        )


def _worst(
    game: Game[Any], moves: Moves, count: int, show_words: list[str]
) -> list[dict[str, Any]]:
    """The different positions with the largest losses; of equals those met most often."""
    _, position = distinct(moves.state)
    times, loss = torch.bincount(position), moves.loss.nan_to_num(0.0)
    rows: dict[int, int] = {}  # by position: the move there that loses most
    for row in np.lexsort((-times[position], -loss)).tolist():
        if len(rows) == count or loss[row] == 0:
            break
        rows.setdefault(int(position[row]), row)
    worst = []
    for number, row in rows.items():
        state, known = moves.state[row : row + 1], moves.values[row].nan_to_num(-torch.inf)
        best = are_equal(known, known.max()).nonzero()[:, 0].tolist()
        text = " / ".join(position_rows(game, state))
        worst.append(
            {
                "turn": int(moves.turn[row]),
                "position": text,
                "move": game.action_to_string(state, 0, int(moves.action[row])),
                "best": [game.action_to_string(state, 0, action) for action in best],
                "loss": float(loss[row]),
                "times": int(times[number]),
                "command": shlex.join([*show_words, f"state={text}"]),
            }
        )
    return worst


def _draw(result: Result, path: Path) -> None:
    """The rate of moves that lose value and the mean loss by turn, with 95% intervals."""
    panels = []
    for key, label in (("rate", "fraction of mistakes"), ("loss", f"mean loss ({result.unit})")):
        known = {at: getattr(each, key) for at, each in result.turns.items() if each.positions}
        x = np.array([(first + last) / 2 for first, last in known])
        y = np.array([each.value for each in known.values()], np.float64)
        ends = [each.interval or (each.value, each.value) for each in known.values()]
        low, high = np.array(ends, np.float64).T
        panels.append(Panel("", "turn", label, [Line(result.name, x, y, (low, high))]))
    figures.save_figure(figures.draw_panels([panels], figures.WIDTHS["page"]), path)


def show(result: Result) -> None:
    """Print the losses by phase and by turn, and the worst positions."""
    games = "" if result.games is None else f", {counted(result.games, 'game')}"
    cfg, opponent = result.match.cfg, ""
    if result.games and result.match.opponent is not None:
        opponent = f" against {player_name(cfg.opponent, search=cfg.opponent_search)}"
    exact = " (exact)" if result.is_exact else ""
    _show_losses(f"{result.name}{opponent}{games}{exact}", "", result.losses, result.unit)
    turns = {
        f"{first}" if first == last else f"{first}-{last}": losses
        for (first, last), losses in result.turns.items()
    }
    if len(turns) > 1:
        print()
        _show_losses("by turn", "turn", turns, result.unit)
    if result.per_game is not None:
        print(f"\nlost per game against perfect play: {result.per_game:z.4f} {result.unit}")
    for place, worst in enumerate(result.worst, 1):
        times = f", met {worst['times']:,} times" if worst["times"] > 1 else ""
        best = ", ".join(worst["best"][:4]) + ", ..." * (len(worst["best"]) > 4)
        move = f"{place}. turn {worst['turn']}{times}: {worst['move']}"
        print("\n" + printable(f"{move} loses {number_text(worst['loss'])}; best: {best}"))
        print(printable(f"   {worst['command']}"))


def _show_losses(title: str, heading: str, losses: dict[str, Losses], unit: str) -> None:
    rates = [each.rate for each in losses.values()]
    means = [each.loss for each in losses.values()]
    columns = [
        Column(heading, [*losses], is_text=not heading),
        Column("solved", [_solved(each) for each in losses.values()], 2),
        Column("could\nlose", [f"{each.allow:,}" for each in losses.values()], 3),
        Column("lose\nvalue", ["" if each is None else f"{each.value:.1%}" for each in rates]),
        Column("95%", [_interval(each, 100, ".1f") for each in rates], 1),
        Column(
            f"mean loss\n({unit})", ["" if each is None else f"{each.value:z.4f}" for each in means]
        ),
        Column("95%", [_interval(each, 1, ".4f") for each in means], 1),
    ]
    print_table(title, [each for each in columns if any(each.cells)], "table")


def _solved(each: Losses) -> str:
    """How many positions have values, of how many."""
    known, met = each.positions, each.met
    return f"{known:,}" if known == met else f"{known:,} of {met:,}"


def _interval(estimate: Estimate | None, factor: float, form: str) -> str:
    ends = None if estimate is None else estimate.interval
    return "" if ends is None else " to ".join(f"{factor * end:{form}}" for end in ends)
