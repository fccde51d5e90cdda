"""`rlgames eval`: how well a player plays, as the numbers that it prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from rlgames.commands.run_config import config_for_run, game_and_player, player_name
from rlgames.commands.watch import frames
from rlgames.config.compose import to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.core.text import printable
from rlgames.drawing.terminal import printed
from rlgames.evaluation.compile import with_compiled_observe
from rlgames.evaluation.evaluate import (
    Evaluation,
    EvaluationSettings,
    evaluate,
    random_play_mean,
)
from rlgames.factory.agents import build_player, trained_config
from rlgames.factory.components import build_device
from rlgames.factory.memory import check_batch_memory
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.rollouts import records
from rlgames.rollouts.holdout import split_layouts
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.runs.directory import write_atomically
from rlgames.solvers.graph import exact_results, exploitability
from rlgames.solvers.optimum import find_graph, find_optimum

DEFAULT_GAMES = 2000
"""So many games are played where not all can be."""


def number_of_games(games: str | int) -> str | int:
    """A checked `games`: a number, "auto" or "all"."""
    if isinstance(games, str) and games not in ("auto", "all"):
        if not games.isdigit() or int(games) < 1:
            raise ConfigError(
                f"games={games} is not a number of games", "as in games=2000 or games=all"
            )
        return int(games)
    if isinstance(games, int) and games < 1:
        raise ConfigError(f"games={games} is out of range", "it should be at least 1")
    return games


def evaluate_command(run: Path | None, overrides: list[str]) -> dict[str, Any]:
    """What `rlgames eval` does; the numbers of its JSON.

    Beside a run, eval.json is written too, unless it holds an evaluation already and this one is
    a quick look, of fewer games than usual.
    """
    cfg = config_for_run("eval", run, overrides)
    if run is None and "player" not in cfg:
        raise ConfigError(
            "eval needs a run, or a player and a game",
            "as in: rlgames eval player=random game=salvo",
        )
    games = number_of_games(cfg.games)
    device = build_device(cfg)
    search, opponent_search = cfg.get("search"), cfg.get("opponent_search")

    def prepare(game: Game[Any]) -> Game[Any]:
        """Check that a batch fits in memory, then compile, as that takes long."""
        if device.type == "cpu":
            count = DEFAULT_GAMES if isinstance(games, str) else games
            check_batch_memory(min(cfg.batch, count), 1, game, count)
        if not cfg.compile:
            return game
        return with_compiled_observe(game, make_generator(cfg.seed, "compile", device))

    game, player = game_and_player(cfg, run, prepare)
    assert player is not None
    opponent = None
    if game.spec.seats == 2:
        node = cfg.get("opponent") or OmegaConf.create({"name": "random"})
        same = run is None and node.name == cfg.player.name == "random"
        same = same and search is None and opponent_search is None
        opponent = player if same else build_player(node, cfg, game, opponent_search)
    elif cfg.get("opponent") is not None or opponent_search is not None:
        raise ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
    if cfg.trace and cfg.format == "table":
        _trace(cfg, run, game, [player] if opponent is None else [player, opponent])
    keep = _recorder(cfg, game, run, opponent) if cfg.record else None
    # Without what gradients would need each call takes less time: 7 to 20 % of random play.
    with torch.inference_mode():
        rng = make_generator(cfg.seed, "final", device)
        settings = EvaluationSettings(games, DEFAULT_GAMES, cfg.batch)
        found = evaluate(game, player, settings, rng, opponent, on_games=keep)
        report = {
            "game": to_plain(cfg)["game"],
            "player": _name(cfg.player) if run is None else str(run),
            "opponent": None if opponent is None else _name(cfg.get("opponent")),
            "sampling": None if run is None else cfg.sampling.name,
            "search": to_plain(cfg).get("search"),
            "opponent_search": to_plain(cfg).get("opponent_search"),
            "games": found.games,
            "exact": found.is_exact,
            "seed": cfg.seed,
            "moves": found.turns.as_dict(),
            **_by_layouts(run, game, player, games, rng, cfg.batch),
            **result_fields(game, found),
            **(
                exact_results_against(game, player, opponent, cfg.solve_seconds)
                if game.spec.goal == "outcome"
                else references(game, found, cfg.solve_seconds)
            ),
            **player.statistics(),
            "seconds": found.seconds,
            "moves_per_s": found.num_moves / max(found.seconds, 1e-9),
        }
    if run is not None and run.is_dir():
        quick = found.games < DEFAULT_GAMES and not found.is_exact
        if not (quick and (run / "eval.json").exists()):
            _keep(run / "eval.json", report)
    return report


def _trace(cfg: DictConfig, run: Path | None, game: Game[Any], players: list[Player]) -> None:
    """Print games turn by turn; the seats change from game to game."""
    names = [player_name(cfg.get("player"), run, cfg.get("search"))]
    if len(players) > 1:
        names.append(player_name(cfg.get("opponent"), None, cfg.get("opponent_search")))
    for number in range(cfg.trace):
        order = -1 if number % 2 else 1
        rng = make_generator(cfg.seed, f"trace {number}", torch.device(cfg.device))
        for frame in frames(game, players[::order], names[::order], rng):
            print(printed(*frame), end="\n\n")


def _keep(path: Path, report: dict[str, Any]) -> None:
    """Write a report beside a run, whole or not at all; a run that is only read goes without."""
    try:
        write_atomically(path, json.dumps(report, indent=2) + "\n")
    except OSError as error:
        told = f"rlgames: {path} was not written: {error.strerror}"
        print(printable(told), file=sys.stderr)


def _recorder(
    cfg: DictConfig, game: Game[Any], run: Path | None, opponent: Player | None
) -> Callable[[Trajectories, FinalStates], None]:
    """Adds games to record=; raises BadRecord at once where that is not possible."""
    path, rules = Path(cfg.record), to_plain(cfg)["game"]
    records.check_writable(path, game, rules)
    names = [_name(cfg.player) if run is None else str(run)]
    names += [] if opponent is None else [_name(cfg.get("opponent"))]
    return lambda moves, found: records.append(path, game, rules, names, moves, found)


def _by_layouts(
    run: Path | None,
    game: Game[Any],
    player: Player,
    games: str | int,
    rng: torch.Generator,
    batch: int,
) -> dict[str, Any]:
    """The turns on the layouts that a run was trained on, and on those that it held out."""
    own = None if run is None else trained_config(run)
    parts = None if own is None else split_layouts(game, own.get("holdout", 0.0), own.seed)
    if parts is None:
        return {}
    each = {"trained_on": parts.trained_on, "held_out": parts.held_out}
    found = {
        name: evaluate(game, player, EvaluationSettings(games, DEFAULT_GAMES, batch, layouts), rng)
        for name, layouts in each.items()
    }
    return {
        name: {"games": part.games, "exact": part.is_exact, **part.turns.as_dict()}
        for name, part in found.items()
    }


def _name(node: DictConfig | None) -> str:
    if node is None:
        return "random"
    return str(node.path if node.name == "run" else node.name)


def result_fields(game: Game[Any], found: Evaluation) -> dict[str, Any]:
    """The parts of a report that only some games have."""
    parts: dict[str, Any] = {}
    if found.outcomes_by_seat:
        for name in ("win", "draw", "loss"):
            parts[name] = found.outcome_rate(name).as_dict()
        parts["seats"] = [
            {name: share.as_dict() for name, share in seat.items()}
            for seat in found.outcomes_by_seat
        ]
    if game.spec.goal == "score":
        parts["score"] = found.score.as_dict()
        parts |= {name: figure.as_dict() for name, figure in found.measures.items()}
    if found.tile_rates:
        parts["reach"] = {tile: share.as_dict() for tile, share in found.tile_rates.items()}
    return parts


def exact_results_against(
    game: Game[Any], player: Player, opponent: Player | None, seconds: float
) -> dict[str, Any]:
    """What can be worked out over all positions of a game of two, None for what cannot.

    The exploitability, and the exact results against the opponent, in each seat.
    """
    parts: dict[str, Any] = {"exploitability": None, "exact_seats": None}
    graph = find_graph(game, seconds)
    if graph is None:
        return parts
    try:
        parts["exploitability"], by_seat = exploitability(graph, player.probabilities)
        parts["exploitability_seats"] = by_seat
        if opponent is not None:
            parts["exact_seats"] = exact_results(
                graph, player.probabilities, opponent.probabilities
            )
    except NotImplementedError:  # somebody does not tell how likely their moves are
        pass
    return parts


def references(game: Game[Any], found: Evaluation, seconds: float) -> dict[str, Any]:
    """Random play, the optimum and how far from it."""
    optimum = find_optimum(game, seconds)
    optimal = None if optimum is None else optimum.value
    mean = found.turns.mean if game.spec.goal == "turns" else found.score.mean
    gap = None if optimal is None else abs(mean - optimal) / optimal * _side(game, mean, optimal)
    if gap is not None and abs(gap) < 1e-12:
        gap = 0.0  # rounding of sums
    return {
        "reference": {
            "random": random_play_mean(game),
            "optimal": optimal,
            "gap_to_optimal": gap,
        }
    }


def _side(game: Game[Any], mean: float, optimal: float) -> int:
    worse = mean > optimal if game.spec.goal == "turns" else mean < optimal
    return 1 if worse else -1
