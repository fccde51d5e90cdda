"""One short loop: play a batch of games, learn from it, log, evaluate, save."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from rlgames import build, checkpoint, config, pictures
from rlgames.agents import build_player, start_from
from rlgames.evaluation import Evaluation, certainty, evaluate, values_of_boards
from rlgames.games.game import Game, State
from rlgames.holdout import Split, split
from rlgames.learners.clone import Clone
from rlgames.learners.learner import Learner
from rlgames.lessons import Lessons
from rlgames.players.past import Past
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import ValueFunction
from rlgames.run_log import RunLog, fresh_directory
from rlgames.sampling import Argmax
from rlgames.solvers.graph import Graph, exploitability
from rlgames.solvers.optimum import find_graph, find_optimum

Progress = Callable[[int, dict[str, float]], None]

FINAL = 4
"""The last evaluation plays so many times the games of those before."""

LISTED = 50_000
"""Exploitability is worked out while training where there are at most so many positions."""


@dataclass(frozen=True)
class Trained:
    """A finished run: its directory and the final evaluation of its best greedy policy."""

    directory: Path
    game: Game[Any]
    evaluation: Evaluation
    held_out: Evaluation | None
    opponent: str
    optimal: float | None
    exploitability: float | None
    seconds: float


@dataclass(frozen=True)
class Parts:
    """What a run is made of. players: the agent, and its opponent if it has one."""

    device: torch.device
    game: Game[Any]
    agent: Agent
    learner: Learner
    players: list[Player]
    lessons: Lessons
    examiner: Examiner


class Examiner:
    """Evaluates the greedy policy, in training and at its end.

    best_by: the figure that the best checkpoint is chosen by: exploitability where all positions
    can be listed, otherwise what the game is about. Layouts that are held out have no say in it.
    """

    LOWER_IS_BETTER = ("turns", "exploitability")

    def __init__(self, cfg: DictConfig, game: Game[Any], agent: Agent, split: Split | None) -> None:
        self.cfg, self.game, self.split = cfg, game, split
        self.greedy = Agent(game, agent.policy, Argmax())
        self.opponent: Player | None = None
        self.graph: Graph | None = None
        if game.spec.seats == 2:
            self.opponent = build_player(cfg.eval_opponent, cfg, game)
            if game.spec.keyed and not game.spec.hidden and cfg.device == "cpu":
                self.graph = find_graph(game, 60, most_positions=LISTED)
        usual = {"turns": "turns", "score": "score", "outcome": "points"}[game.spec.goal]
        self.best_by = cfg.best_by or ("exploitability" if self.graph else usual)
        if self.best_by == "exploitability" and self.opponent and self.graph is None:
            raise config.ConfigError(
                f"{game.spec.name} is too large for best_by=exploitability", f"best_by={usual} fits"
            )
        fitting = ("turns", "points", "exploitability") if self.opponent else ("turns", "score")
        if self.best_by not in fitting:
            raise config.ConfigError(
                f"best_by={self.best_by} says nothing about {game.spec.name}",
                f"best_by={usual} fits",
            )

    def examine(
        self, games: int, stream: str
    ) -> tuple[Evaluation, Evaluation | None, dict[str, float]]:
        """Play games drawn from the named stream, on the layouts trained on and on those held out
        if there are any, and name the figures."""
        cfg, split = self.cfg, self.split
        rng = build.stream(cfg.seed, stream, cfg.device)
        own = None if split is None else split.trained_on
        found = evaluate(self.game, self.greedy, "auto", games, rng, self.opponent, layouts=own)
        figures, held_out = found.headline(), None
        if split is not None:
            others = split.held_out
            held_out = evaluate(self.game, self.greedy, "auto", games, rng, layouts=others)
            figures["held_out_turns"] = held_out.turns.mean
        if self.graph is not None:
            figures["exploitability"] = exploitability(self.graph, self.greedy.probabilities)[0]
        return found, held_out, figures

    def draw(self, log: RunLog, played: int, doubts: bool) -> None:
        """Pictures of what is learnt. doubts: draw how sure the policy is of each move of a game,
        too, as its scores are logits."""
        game, policy = self.game, self.greedy.policy
        rng = build.stream(self.cfg.seed, "draw", self.cfg.device)
        if isinstance(policy, ValueFunction) and game.spec.goal == "outcome":
            groups = values_of_boards(game, policy, self.graph, rng)
            spread = {name: values.double().cpu().numpy() for name, values in groups.items()}
            for name, values in spread.items():
                log.spread(played, f"values/{name}", values)
            title = f"values of the boards a move leads to, after {played:,} games"
            log.picture(played, "values", pictures.density(title, spread))
        if doubts:
            doubt = certainty(game, policy, rng).double().cpu().numpy()
            title = f"distance to certainty at each move of a game, after {played:,} games"
            log.picture(played, "certainty", pictures.over(title, doubt, 2.0))

    def better(
        self, figures: dict[str, float], best: tuple[float, float] | None
    ) -> tuple[float, float] | None:
        """The new best, by best_by and then by points; None where these figures do not beat it."""
        value = figures[self.best_by]
        if self.best_by in self.LOWER_IS_BETTER:
            value = -value
        found = (value, figures.get("points", 0.0))
        return found if best is None or found > best else None


def opponents(cfg: DictConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """Who plays in training: the agent alone, against itself too, or the agent and its opponent."""
    name = cfg.opponent.name
    if game.spec.seats == 1:
        if name != "self":
            raise config.ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
        return [agent]
    if name == "self":
        return [agent]
    if name == "past":
        return [agent, Past(agent, cfg.opponent.every, cfg.opponent.keep)]
    return [agent, build_player(cfg.opponent, cfg, game)]


def train(cfg: DictConfig, progress: Progress | None = None) -> Trained:
    """Run a checked config to its end; progress is told games and the latest metrics.

    Raises ConfigError before anything is written when the parts do not fit together, and
    BadNumber when learning breaks down; the run is then closed as failed, its checkpoints kept.
    """
    start = time.perf_counter()
    parts = assemble(cfg)
    device, game, agent, learner = parts.device, parts.game, parts.agent, parts.learner
    policy, players, lessons, examiner = agent.policy, parts.players, parts.lessons, parts.examiner
    rng = build.stream(cfg.seed, "play", device)
    log = _open_log(cfg)
    values = config.plain(cfg)
    directory = log.directory
    best: tuple[float, float] | None = None
    eval_every = cfg.eval_every or max(1, cfg.games // 20)
    save_every = cfg.save_every or eval_every

    def save(name: str) -> None:
        checkpoint.write(directory / "checkpoints" / name, policy.state_dict(), values, played)

    played, due_log, due_eval, due_save = 0, 0, 0, 0
    tally = Tally()
    begin = time.perf_counter()
    converged = False
    try:
        examiner.draw(log, 0, learner.learns_logits)
        for found in lessons.clone():
            log.add(0, {f"clone/{name}": value for name, value in found.items()})
        while played < cfg.games and not converged:
            batch = min(cfg.batch, cfg.games - played)
            agent.progress = played / cfg.games
            for player in players:
                if isinstance(player, Past):
                    player.look_back(played, rng)
            moves, results = lessons.play(batch, played, rng)
            tally.add(learner.update(*lessons.joined(moves.of(0), results), agent.progress), batch)
            over = results.state[results.state.done]
            tally.count(len(over), results.moves)
            if len(over):
                tally.add(_lengths(game, over), len(over))
            played += len(over)
            last = played >= cfg.games
            if played - due_log >= cfg.log_every or last:
                due_log = played
                shown = tally.close()
                log.add(played, shown)
                if progress:
                    progress(played, shown)
            if played - due_eval >= eval_every or last:
                due_eval = played
                *_, figures = examiner.examine(cfg.eval_games, "eval")
                if isinstance(learner, Clone):
                    figures |= learner.examine(lessons.held_out())
                    converged = learner.converged(figures["loss"])
                    last = last or converged
                shown = {f"eval/{name}": value for name, value in figures.items()}
                log.add(played, shown | {"time/seconds": time.perf_counter() - begin})
                told = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
                log.log.info("games %d, greedy: %s", played, told)
                if progress:
                    progress(played, shown)
                examiner.draw(log, played, learner.learns_logits)
                ahead = examiner.better(figures, best)
                if ahead is not None:
                    best = ahead
                    save("best.safetensors")
            if played - due_save >= save_every or last:
                due_save = played
                save("latest.safetensors")
        tensors, _ = checkpoint.read(directory / "checkpoints" / "best.safetensors")
        checkpoint.restore(policy, tensors)
        # Other games than those that the best checkpoint was chosen by.
        final, held_out, figures = examiner.examine(FINAL * cfg.eval_games, "final")
        optimum = None if game.spec.seats == 2 else find_optimum(game, cfg.solve_seconds)
    except BaseException as error:
        log.log.error("%s: %s", type(error).__name__, error)
        log.finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", {})
        raise
    optimal = None if optimum is None else optimum.value
    log.finish("done", figures | ({"optimal": optimal} if optimal is not None else {}))
    return Trained(
        directory,
        game,
        final,
        held_out,
        str(cfg.eval_opponent.name),
        optimal,
        figures.get("exploitability"),
        time.perf_counter() - start,
    )


def check_parts(cfg: DictConfig) -> None:
    """Build everything once; raises ConfigError where the parts do not fit together."""
    assemble(cfg)


def assemble(cfg: DictConfig) -> Parts:
    """Raises ConfigError where the parts do not fit together."""
    device = build.build_device(cfg)
    game = build.build_game(cfg).to(device)
    policy = build.build_policy(cfg, game, build.stream(cfg.seed, "init")).to(device)
    if cfg.start:
        start_from(Path(cfg.start), cfg, policy)
    sampling, rng = build.build_sampling(cfg), build.stream(cfg.seed, "learn", device)
    learner = build.build_learner(cfg, game, policy, sampling, rng)
    agent = Agent(game, policy, sampling)
    players = opponents(cfg, game, agent)
    if cfg.get("search"):
        players[0] = build.build_explorer(cfg, game, agent)
    held = split(game, cfg.holdout, cfg.seed)
    lessons = Lessons(cfg, game, agent, players, learner, held, rng)
    examiner = Examiner(cfg, game, agent, held)
    if device.type == "cpu":
        build.check_memory(min(cfg.batch, cfg.games), cfg.window, game)
    return Parts(device, game, agent, learner, players, lessons, examiner)


def _open_log(cfg: DictConfig) -> RunLog:
    try:
        directory = Path(cfg.out) if cfg.out else fresh_directory(Path("outputs") / cfg.game.name)
        if cfg.out and (directory / "run.json").exists():
            raise config.ConfigError(f"{directory} already holds a run", "name another out=")
        return RunLog(directory, config.plain(cfg), config.to_yaml(cfg))
    except OSError as error:
        raise config.ConfigError(f"out={cfg.out}: {error.strerror}", "name another out=") from None


def _lengths(game: Game[Any], final: State) -> dict[str, float]:
    """How games went, for the log, from their final positions."""
    found, score = {"turns": float(final.turn.float().mean())}, final.score
    if game.spec.goal == "score":
        found["score"] = float(score[:, 0].mean())
    if game.spec.goal == "outcome":
        found["first_seat_wins"] = float((score[:, 0] > score[:, 1]).float().mean())
        found["draws"] = float((score[:, 0] == score[:, 1]).float().mean())
    return found


class Tally:
    """Weighted means of the metrics since the last line of the log, and how much was played."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._start = time.perf_counter()
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._games = self._moves = 0

    def count(self, games: int, moves: int) -> None:
        self._games += games
        self._moves += moves

    def add(self, metrics: dict[str, float], weight: float) -> None:
        """weight: how many games these are of."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * value
            self._weights[name] = self._weights.get(name, 0.0) + weight

    def close(self) -> dict[str, float]:
        """The means, named train/…, and the speed, named time/…; then start anew."""
        seconds = time.perf_counter() - self._start
        shown: dict[str, Any] = {
            f"train/{name}": value / self._weights[name] for name, value in self._sums.items()
        }
        shown["time/games_per_s"] = self._games / seconds
        shown["time/moves_per_s"] = self._moves / seconds
        self._reset()
        return shown
