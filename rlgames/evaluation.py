"""How well a player plays, between random play and the exact optimum."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from rlgames import checkpoint, config
from rlgames.config import ConfigError
from rlgames.games.battleship import Battleship
from rlgames.games.game import Game
from rlgames.play import play
from rlgames.players.player import Agent, Player, Random
from rlgames.sampling import Argmax
from rlgames.solvers.belief import OutOfBudget, solve_belief

ALL_LAYOUTS = 5000
"""Deterministic players are played on every layout while there are at most this many."""

CHUNK = 4096


@dataclass(frozen=True)
class Evaluation:
    """Turns a game. low and high bound the 95 % interval of the mean, which has no width where
    every layout was played by a deterministic player."""

    mean: float
    low: float
    high: float
    median: float
    minimum: int
    maximum: int
    games: int
    exact: bool


def evaluate(
    game: Game[Any],
    player: Player,
    games: str | int,
    sampled: int,
    rng: torch.Generator,
    batch: int = CHUNK,
) -> Evaluation:
    """Play and count turns.

    games: a number of games with fresh layouts; "all" plays every layout, weighted by the prior;
        "auto" plays all where that is exact and they are few, otherwise `sampled` games.
    Raises ConfigError for "all" where the layouts cannot be listed.
    """
    openings = None
    if games == "all" or (games == "auto" and player.deterministic):
        openings = game.openings(10**9 if games == "all" else ALL_LAYOUTS)
        if openings is None and games == "all":
            raise ConfigError("games=all: there are too many layouts to list", "give a number")
    turns: list[Tensor] = []
    if openings is None:
        count = sampled if isinstance(games, str) else games
        weight = torch.full((count,), 1 / count, dtype=torch.float64)
        for start in range(0, count, batch):
            state = game.initial(min(batch, count - start), rng)
            turns.append(play(game, [player], state, rng, record=False)[1].turns)
    else:
        state, weight = openings
        state = state.to(rng.device)
        count = len(state)
        for start in range(0, count, batch):
            part = state[start : start + batch]
            turns.append(play(game, [player], part, rng, record=False)[1].turns)
    value = torch.cat(turns).double().cpu()
    mean = float((weight * value).sum())
    exact = openings is not None and player.deterministic
    spread = 0.0
    if not exact and count > 1:
        variance = float((weight * (value - mean).square()).sum()) * count / (count - 1)
        spread = 1.96 * math.sqrt(variance / count)
    order = value.argsort()
    middle = int((weight[order].cumsum(0) < 0.5 - 1e-12).sum())
    return Evaluation(
        mean=mean,
        low=mean - spread,
        high=mean + spread,
        median=float(value[order[min(middle, count - 1)]]),
        minimum=int(value.min()),
        maximum=int(value.max()),
        games=count,
        exact=exact,
    )


def optimum(game: Game[Any], seconds: float, memory_gb: float = 4.0) -> float | None:
    """The least expected number of turns, or None where the budget does not reach it."""
    solution = solve(game, seconds, memory_gb)
    return solution[0] if solution else None


def solve(game: Game[Any], seconds: float, memory_gb: float) -> tuple[float, int, float] | None:
    """The optimum, the number of belief states, and the seconds it took; None beyond the budget."""
    layouts = game.layouts() if isinstance(game, Battleship) else None
    if layouts is None or not seconds:
        return None
    assert isinstance(game, Battleship)
    memory = int(memory_gb * 2**30)
    try:
        found = solve_belief(layouts.cpu().numpy(), game.shots, game.symmetries(), seconds, memory)
    except OutOfBudget:
        return None
    return found.optimal, found.states, found.seconds


def checkpoint_path(run: Path) -> Path:
    """The best checkpoint of a run directory, or the file itself."""
    if not run.is_dir():
        return run
    for name in ("best.safetensors", "latest.safetensors"):
        if (run / "checkpoints" / name).is_file():
            return run / "checkpoints" / name
    raise ConfigError(f"{run} holds no checkpoint", "name a run directory or a checkpoint file")


def load_agent(run: Path, cfg: DictConfig | None = None) -> Agent:
    """A run's policy with the sampling of cfg, or greedy.

    Raises ConfigError or BadCheckpoint for a file that no agent can be made from.
    """
    tensors, trained = checkpoint.read(checkpoint_path(run))
    own = config.from_plain(trained)
    device = config.build_device(cfg if cfg is not None else own)
    game = config.build_game(own).to(device)
    policy = config.build_policy(own, game, config.stream(0, "init")).to(device)
    checkpoint.restore(policy, tensors)
    sampling = Argmax() if cfg is None else config.build_sampling(cfg)
    return Agent(game, policy.eval(), sampling)


def eval_config(run: Path | None, overrides: list[str]) -> DictConfig:
    """The config of an evaluation; beside a run the game is the run's, and may not differ."""
    if run is None:
        cfg = config.load("eval", overrides)[0]
        if "game" not in cfg or "player" not in cfg:
            raise ConfigError(
                "eval needs a run, or a player and a game",
                "as in: rlgames eval player=random game=salvo",
            )
        return cfg
    _, trained = checkpoint.read(checkpoint_path(run))
    own = config.from_plain(trained)
    fixed = [f"game={own.game.name}"]
    fixed += [
        f"{name}={config.json_text(value)}"
        for name, value in config.plain(own)["game"].items()
        if name != "name"
    ]
    kept = [text for text in overrides if not _says_what_was_trained(text, own)]
    if any(text.startswith("player=") for text in kept):
        raise ConfigError("player= has no place beside a run", "leave one of the two out")
    cfg = config.load("eval", fixed + kept)[0]
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
    if top not in config.known_keys("train") or top in config.known_keys("eval"):
        return False
    found = OmegaConf.select(own, name)
    current = found.get("name") if isinstance(found, DictConfig) else found
    if str(current) != value:
        raise ConfigError(
            f"{text} differs from the trained {name}={current}",
            "a run is evaluated as it was trained; leave it out",
        )
    return True


def evaluate_command(run: Path | None, overrides: list[str]) -> dict[str, Any]:
    """What `rlgames eval` does; the numbers of its JSON. Beside a run, eval.json is written too."""
    cfg = eval_config(run, overrides)
    player: Player
    if run is None:
        device = config.build_device(cfg)
        game = config.build_game(cfg).to(device)
        player = Random()
    else:
        player = load_agent(run, cfg)
        game, device = player.game, config.build_device(cfg)
    games: str | int = cfg.games
    if isinstance(games, str) and games not in ("auto", "all"):
        if not games.isdigit() or int(games) < 1:
            raise ConfigError(
                f"games={games} is not a number of games", "as in games=2000 or games=all"
            )
        games = int(games)
    if isinstance(games, int) and games < 1:
        raise ConfigError(f"games={games} is out of range", "it should be at least 1")
    rng = config.stream(cfg.seed, "eval", device)
    if cfg.trace and cfg.format == "table":
        for _ in range(cfg.trace):
            print(trace(game, player, rng))
    found = evaluate(game, player, games, 2000, rng, cfg.batch)
    random_turns = game.random_turns()
    optimal = optimum(game, cfg.solve_seconds)
    report = {
        "game": config.plain(cfg)["game"],
        "player": "random" if run is None else str(run),
        "opponent": None,
        "sampling": None if run is None else cfg.sampling.name,
        "search": None,
        "games": found.games,
        "exact": found.exact,
        "seed": cfg.seed,
        "moves": {
            "mean": found.mean,
            "ci95": [found.low, found.high],
            "median": found.median,
            "min": found.minimum,
            "max": found.maximum,
        },
        "reference": {
            "random": random_turns,
            "optimal": optimal,
            "gap_to_optimal": None if optimal is None else (found.mean - optimal) / optimal,
        },
    }
    if run is not None and run.is_dir():
        (run / "eval.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def trace(game: Game[Any], player: Player, rng: torch.Generator) -> str:
    """One game as text: the board before each turn, the shots, the hits."""
    state = game.initial(1, rng)
    lines = [game.render(state, 0, reveal=True), ""]
    shots: list[str] = []
    gained = 0.0
    while not bool(state.done[0]):
        legal = game.legal(state)
        action = player.choose(game.public(state), legal, rng)
        shots.append(game.name_action(state, 0, int(action[0])))
        after = game.act(state, action)
        if int(after.turn[0]) > int(state.turn[0]):
            gain = float(after.score[0, 0]) - gained
            gained += gain
            lines += [f"turn {int(after.turn[0])}: {' '.join(shots)}, hits {gain:g}"]
            lines += [game.render(after, 0), ""]
            shots = []
        state = after
    return "\n".join(lines)
