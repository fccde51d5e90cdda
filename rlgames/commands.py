"""What `rlgames eval` and `rlgames solve` do, as functions that return what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from rlgames import build, config
from rlgames.agents import build_player, load_agent, trained_config
from rlgames.config import ConfigError
from rlgames.evaluation import Evaluation, evaluate, trace
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.schemas import known_keys
from rlgames.solvers.graph import exploitability
from rlgames.solvers.optimum import find_graph, find_optimum


def eval_config(run: Path | None, overrides: list[str]) -> DictConfig:
    """The config of an evaluation; beside a run the game is the run's, and may not differ."""
    if run is None:
        cfg = config.load("eval", overrides)
        if "game" not in cfg or "player" not in cfg:
            raise ConfigError(
                "eval needs a run, or a player and a game",
                "as in: rlgames eval player=random game=salvo",
            )
        return cfg
    own = trained_config(run)
    fixed = [f"game={own.game.name}"]
    fixed += [
        f"{name}={config.json_text(value)}" for name, value in build.arguments(own.game).items()
    ]
    kept = [text for text in overrides if not _says_what_was_trained(text, own)]
    if any(text.startswith("player=") for text in kept):
        raise ConfigError("player= has no place beside a run", "leave one of the two out")
    cfg = config.load("eval", fixed + kept)
    if cfg.game != own.game:
        for name, value in own.game.items():
            if cfg.game.get(name) != value:
                raise ConfigError(
                    f"{name}={cfg.game.get(name)} differs from the trained {name}={value}",
                    "a run is evaluated on the game it was trained on",
                )
    return cfg


def _says_what_was_trained(text: str, own: DictConfig) -> bool:
    """Whether an override repeats a key that only training has; ConfigError if it differs."""
    name, _, value = text.partition("=")
    top = name.split(".")[0]
    if top not in known_keys("train") or top in known_keys("eval"):
        return False
    found = OmegaConf.select(own, name)
    current = found.get("name") if isinstance(found, DictConfig) else found
    if str(current) != value:
        raise ConfigError(
            f"{text} differs from the trained {name}={current}",
            "a run is evaluated as it was trained; leave it out",
        )
    return True


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
    """What `rlgames eval` does; the numbers of its JSON. Beside a run, eval.json is written too."""
    cfg = eval_config(run, overrides)
    games = number_of_games(cfg.games)
    device = build.build_device(cfg)
    player: Player
    if run is None:
        game = build.build_game(cfg).to(device)
        player = build_player(cfg.player, cfg, game)
    else:
        player = load_agent(run, cfg)
        game = player.game
    opponent = None
    if game.spec.seats == 2:
        node = cfg.get("opponent") or OmegaConf.create({"name": "random"})
        same = run is None and node.name == cfg.player.name == "random"
        opponent = player if same else build_player(node, cfg, game)
    elif cfg.get("opponent") is not None:
        raise ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
    rng = build.stream(cfg.seed, "eval", device)
    if cfg.trace and cfg.format == "table":
        for turn in range(cfg.trace):
            seats = [player] if opponent is None else [player, opponent]
            print(trace(game, seats[::-1] if turn % 2 else seats, rng))
    found = evaluate(game, player, games, 2000, rng, opponent, cfg.batch)
    report = {
        "game": config.plain(cfg)["game"],
        "player": _name(cfg.player) if run is None else str(run),
        "opponent": None if opponent is None else _name(cfg.get("opponent")),
        "sampling": None if run is None else cfg.sampling.name,
        "search": None,
        "games": found.games,
        "exact": found.exact,
        "seed": cfg.seed,
        "moves": found.turns.as_dict(),
        **results(game, found),
        **reference(game, player, found, cfg.solve_seconds),
        "seconds": found.seconds,
        "moves_per_s": found.moves / max(found.seconds, 1e-9),
    }
    if run is not None and run.is_dir():
        (run / "eval.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def _name(node: DictConfig | None) -> str:
    if node is None:
        return "random"
    return str(node.path if node.name == "run" else node.name)


def results(game: Game[Any], found: Evaluation) -> dict[str, Any]:
    """The parts of a report that only some games have."""
    parts: dict[str, Any] = {}
    if found.results:
        for name in ("win", "draw", "loss"):
            parts[name] = found.share(name).as_dict()
        parts["seats"] = [
            {name: share.as_dict() for name, share in seat.items()} for seat in found.results
        ]
    if game.spec.goal == "score":
        parts["score"] = found.score.as_dict()
        parts |= {name: figure.as_dict() for name, figure in found.measures.items()}
    if found.reach:
        parts["reach"] = {tile: share.as_dict() for tile, share in found.reach.items()}
    return parts


def reference(game: Game[Any], player: Player, found: Evaluation, seconds: float) -> dict[str, Any]:
    """Random play, the optimum and how far from it; for two seats the exploitability."""
    if game.spec.goal == "outcome":
        graph = find_graph(game, seconds)
        if graph is None:
            return {"exploitability": None}
        try:
            value, by_seat = exploitability(graph, player.probabilities)
        except NotImplementedError:
            return {"exploitability": None}
        return {"exploitability": value, "exploitability_seats": by_seat}
    optimum = find_optimum(game, seconds)
    optimal = None if optimum is None else optimum.value
    mean = found.turns.mean if game.spec.goal == "turns" else found.score.mean
    gap = None if optimal is None else abs(mean - optimal) / optimal * _side(game, mean, optimal)
    return {
        "reference": {
            "random": random_play(game),
            "optimal": optimal,
            "gap_to_optimal": gap,
        }
    }


def _side(game: Game[Any], mean: float, optimal: float) -> int:
    worse = mean > optimal if game.spec.goal == "turns" else mean < optimal
    return 1 if worse else -1


def random_play(game: Game[Any]) -> float | None:
    """What random play comes to: turns where theory gives them, else the score of 1 000 games."""
    if game.spec.goal == "turns":
        return game.random_turns()
    from rlgames.players.player import Random

    rng = torch.Generator().manual_seed(0)
    return evaluate(game.to("cpu"), Random(game), 1000, 1000, rng).score.mean


def solve_command(cfg: DictConfig) -> tuple[dict[str, Any], str]:
    """What `rlgames solve` does: {optimal, states, seconds}, null where not computed.

    With it comes what the game is about, Spec.goal.
    """
    if "game" not in cfg:
        raise ConfigError("solve needs a game", "as in: rlgames solve game=salvo board=4 shots=2")
    game = build.build_game(cfg)
    found = find_optimum(game, cfg.seconds, cfg.memory_gb)
    figures = (None, None, None) if found is None else (found.value, found.states, found.seconds)
    return dict(zip(("optimal", "states", "seconds"), figures, strict=True)), game.spec.goal
