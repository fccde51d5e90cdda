"""One short loop: play a batch of games, learn from it, log, evaluate, save."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rlgames import checkpoint, config
from rlgames.evaluation import Evaluation, evaluate, optimum
from rlgames.play import play
from rlgames.players.player import Agent
from rlgames.run_log import RunLog, fresh_directory
from rlgames.sampling import Argmax

Progress = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True)
class Trained:
    """A finished run: its directory and the final evaluation of its best greedy policy."""

    directory: Path
    evaluation: Evaluation
    optimal: float | None
    seconds: float


def train(cfg: DictConfig, progress: Progress | None = None) -> Trained:
    """Run a checked config to its end; progress is told games and the latest metrics.

    Raises ConfigError before anything is written when the parts do not fit together, and
    BadNumber when learning breaks down; the run is then closed as failed, its checkpoints kept.
    """
    start = time.perf_counter()
    device = config.build_device(cfg)
    game = config.build_game(cfg).to(device)
    policy = config.build_policy(cfg, game, config.stream(cfg.seed, "init")).to(device)
    sampling = config.build_sampling(cfg)
    learner = config.build_learner(
        cfg, game, policy, sampling, config.stream(cfg.seed, "learn", device)
    )
    agent = Agent(game, policy, sampling)
    greedy = Agent(game, policy, Argmax())
    rng = config.stream(cfg.seed, "play", device)
    values = config.plain(cfg)
    if device.type == "cpu":
        config.check_memory(min(cfg.batch, cfg.games), game)
    try:
        directory = Path(cfg.out) if cfg.out else fresh_directory(Path("outputs") / cfg.game.name)
        if cfg.out and (directory / "run.json").exists():
            raise config.ConfigError(f"{directory} already holds a run", "name another out=")
        log = RunLog(directory, values, config.to_yaml(cfg))
    except OSError as error:
        raise config.ConfigError(f"out={cfg.out}: {error.strerror}", "name another out=") from None
    best = float("inf")
    eval_every = cfg.eval_every or max(1, cfg.games // 20)
    save_every = cfg.save_every or eval_every

    def save(name: str) -> None:
        checkpoint.write(directory / "checkpoints" / name, policy.state_dict(), values, played)

    played, due_log, due_eval, due_save = 0, 0, 0, 0
    window = Window()
    begin = time.perf_counter()
    try:
        while played < cfg.games:
            batch = min(cfg.batch, cfg.games - played)
            agent.progress = played / cfg.games
            moves, results = play(game, [agent], game.initial(batch, rng), rng)
            assert moves is not None
            metrics = learner.update(moves, agent.progress)
            played += batch
            window.add(batch, len(moves), metrics | {"turns": float(results.turns.float().mean())})
            last = played >= cfg.games
            if played - due_log >= cfg.log_every or last:
                due_log = played
                shown = window.close()
                log.add(played, shown)
                if progress:
                    progress(played, shown)
            if played - due_eval >= eval_every or last:
                due_eval = played
                outcome = evaluate(
                    game, greedy, "auto", cfg.eval_games, config.stream(cfg.seed, "eval", device)
                )
                seconds = time.perf_counter() - begin
                log.add(played, {"eval/turns": outcome.mean, "time/seconds": seconds})
                log.log.info("games %d, greedy turns %.4f", played, outcome.mean)
                if progress:
                    progress(played, {"eval/turns": outcome.mean})
                if outcome.mean < best:
                    best = outcome.mean
                    save("best.safetensors")
            if played - due_save >= save_every or last:
                due_save = played
                save("latest.safetensors")
        tensors, _ = checkpoint.read(directory / "checkpoints" / "best.safetensors")
        checkpoint.restore(policy, tensors)
        final = evaluate(game, greedy, "auto", 2000, config.stream(cfg.seed, "eval", device))
        optimal = optimum(game, cfg.solve_seconds)
    except BaseException as error:
        log.log.error("%s: %s", type(error).__name__, error)
        log.finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", {})
        raise
    figures = {"turns": final.mean} | ({"optimal": optimal} if optimal is not None else {})
    log.finish("done", figures)
    return Trained(directory, final, optimal, time.perf_counter() - start)


class Window:
    """Means of the metrics of the updates since the last line of the log, weighted by games."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._start = time.perf_counter()
        self._sums: dict[str, float] = {}
        self._games = self._moves = 0

    def add(self, games: int, moves: int, metrics: dict[str, float]) -> None:
        self._games += games
        self._moves += moves
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + games * value

    def close(self) -> dict[str, float]:
        """The means, named train/…, and the speed, named time/…; then start anew."""
        seconds = time.perf_counter() - self._start
        shown: dict[str, Any] = {
            f"train/{name}": value / self._games for name, value in self._sums.items()
        }
        shown["time/games_per_s"] = self._games / seconds
        shown["time/moves_per_s"] = self._moves / seconds
        self._reset()
        return shown
