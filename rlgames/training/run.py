"""Trains and resumes runs: what surrounds the training loop, from files to signals."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config import plugins
from rlgames.config.commands import TrainConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.typed import from_plain, sanitize_errors, to_plain, to_yaml
from rlgames.core.callbacks import Callback, CallbackList
from rlgames.core.devices import choose_device
from rlgames.core.processes import last_words
from rlgames.core.rng import FINAL_STREAM
from rlgames.core.schedule import Schedule
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.evaluation.references import References
from rlgames.games.game import Game
from rlgames.runs.checkpoint import (
    BadCheckpoint,
    Checkpoint,
    drop_state,
    restore_weights,
    resume_state_bytes,
)
from rlgames.runs.directory import DirectoryLock, check_new_run, claim_directory, lock_directory
from rlgames.runs.files import LATEST
from rlgames.runs.loggers.logger import ResumePoint, RunResults
from rlgames.runs.run_log import RunLog
from rlgames.training.checkpointer import Checkpointer
from rlgames.training.components import build_components
from rlgames.training.evaluator import FINAL_EVAL_FACTOR, EvaluationResult
from rlgames.training.images import ImageCallback
from rlgames.training.loop import TrainingLoop
from rlgames.training.state import TrainingState

MAX_RESUME_STATE_BYTES = 1 << 26
"""A finished run keeps no more to be extended, unless asked."""


@dataclass(frozen=True)
class TrainingResult:
    """A finished run: its directory, and evaluations of two greedy policies.

    best: the checkpoint that evaluations during training selected. final: the network at the end
    of training; the same evaluation where it is the best one. references: what random and optimal
    play reach in the metric of the game.
    """

    directory: Path
    game: Game[Any]
    best: EvaluationResult
    final: EvaluationResult
    opponent: str
    references: References
    seconds: float


def train(
    cfg: TrainConfig,
    callback: Callback | None = None,
) -> TrainingResult:
    """Train by a config, from the first game to the last.

    Raises ConfigError before anything is written where the components do not fit together;
    NonFiniteError when learning breaks down and OSError when nothing more can be written, the run
    then being closed as failed and its checkpoints kept; and Interrupted, after saving, for each of
    signals.STOP_SIGNALS.
    """
    cfg = dataclasses.replace(cfg, device=choose_device(cfg.device))
    with Interrupts() as interrupts:
        state = TrainingState(cfg, build_components(cfg))
        log = _open_log(cfg, interrupts)
        state.cfg = _located(cfg, log.directory)  # the config of checkpoints
        return Run(state, log, interrupts, callback).run()


def resume(
    directory: Path,
    cfg: TrainConfig,
    checkpoint: Checkpoint,
    lock: DirectoryLock | None = None,
    callback: Callback | None = None,
) -> TrainingResult:
    """Resume a run from its checkpoint, by a checked config that is the run's own or has more
    games; otherwise as train. lock: of the directory, taken before the checkpoint was read.

    On the CPU the results are bit-equal to a run that never stopped.
    """
    cfg = dataclasses.replace(cfg, device=choose_device(cfg.device))
    lock = lock or lock_directory(directory)
    with contextlib.ExitStack() as stack, Interrupts() as interrupts:
        stack.callback(lock.release)
        with sanitize_errors():
            components = build_components(cfg, checkpoint)
        state = TrainingState(cfg, components)
        state.load(checkpoint)
        resumed_at = ResumePoint(
            games=state.progress.games_played,
            num_lines=state.num_log_lines,
            num_event_bytes=state.num_event_bytes,
            is_changed=to_plain(cfg) != checkpoint.config,
        )
        log = RunLog(lock, to_plain(cfg), to_yaml(cfg), interrupts, resumed_at)
        trained = from_plain(checkpoint.config)
        if changes := schedule_changes(trained, cfg, checkpoint.games):
            log.warn(changes)
        run = Run(state, log, interrupts, callback)
        if state.progress.best is not None:
            try:
                run.checkpointer.read_best()
            except BadCheckpoint as error:
                log.warn(f"{error.error}; the best evaluation from now on replaces it")
                state.progress.best = None
                with interrupts.shielded():
                    run.checkpointer.write_best()
        return run.run()


def schedule_changes(trained: TrainConfig, cfg: TrainConfig, games: int) -> str:
    """Which scheduled values jump if a run resumes by another config after this many games, and
    how to prevent it; empty if none does."""
    before, after = (each.schedule_progress(games) for each in (trained, cfg))
    jumps = []
    keys = [(options, key) for options in (cfg.learner, cfg.sampling) for key in vars(options)]
    for options, key in keys:
        name, end = key.removesuffix("_end"), getattr(options, key)
        if name != key and end is not None:
            schedule = Schedule(getattr(options, name, cfg.lr), end)
            values = [f"{schedule.at(progress):.4g}" for progress in (before, after)]
            if values[0] != values[1]:
                jumps.append(f"{name} jumps from {values[0]} to {values[1]}")
    if not jumps:
        return ""
    first = trained.schedule_games or trained.games
    return f"{', '.join(jumps)}; schedule_games={first} keeps the first schedule"


class Run:
    """A training loop with its files: how it ends when done, interrupted or failed."""

    def __init__(
        self,
        state: TrainingState,
        log: RunLog,
        interrupts: Interrupts,
        callback: Callback | None,
    ) -> None:
        self.state, self.log, self.interrupts = state, log, interrupts
        self.cfg, components = state.cfg, state.components
        evaluator = components.evaluator
        images = ImageCallback(evaluator, log, self.cfg.games, state.progress.evaluated_at)
        log_callback = LogCallback(log, evaluator.best_by)
        self.callbacks = CallbackList([log_callback, images, *filter(None, [callback])])
        self.references = References(
            components.game,
            evaluator.opponent,
            REGISTRY["player"][self.cfg.eval_opponent.name].is_quick,
            evaluator.split,
            self.cfg.seed,
        )
        self.checkpointer = Checkpointer(state, log)
        self.loop = TrainingLoop(
            state, self.references, self.checkpointer, self.callbacks, interrupts
        )
        self.has_best_weights = self.is_done = False

    def run(self) -> TrainingResult:
        """Train and evaluate the result. Raises what train raises."""
        with self.last_words():
            try:
                self.loop.run()
                return self.evaluate_result()
            except Interrupted as signal:
                raise Interrupted(signal.number, self.save_on_interrupt()) from None
            except BaseException as error:
                self.log.note(f"{type(error).__name__}: {error}")
                if self.checkpointer.has_latest:
                    error.add_note(f"resume from the last checkpoint: {self.resume_command}")
                self.close_log("failed")
                raise
            finally:
                self.state.components.collector.engine.close()

    def last_words(self) -> contextlib.AbstractContextManager[None]:
        """A block that says how to resume if a library ends this process."""
        words = self.state.components.collector.engine.last_words
        if not words:
            return contextlib.nullcontext()
        return last_words(f"{words}; resume from the last checkpoint: {self.resume_command}")

    def evaluate_result(self) -> TrainingResult:
        """Evaluate the final and the best weights and compare them with the references."""
        cfg, components, log = self.cfg, self.state.components, self.log
        self.callbacks.on_phase("evaluating")
        best, final, best_games = self.evaluate_checkpoints()
        if components.regret is not None and components.regret.latest is not None:
            final.metrics["regret"] = components.regret.latest  # of the final weights
        if self.references.is_solvable:
            self.callbacks.on_phase("solving")
            self.references.solve(cfg.solve_seconds)
            self.references.solve_held_out(cfg.solve_seconds)
        self.references.compute_random()
        results = RunResults(
            best=best.metrics,
            final=final.metrics,
            best_games=best_games,
            is_exact=best.evaluation.is_exact,
            references=self.references.as_dict(),
            opponent_statistics=best.opponent_statistics,
        )
        with self.interrupts.shielded():  # a checkpoint must not count events of the results
            log.finish("done", self.state.progress.games_played, self.state.seconds, results)
            self.is_done = True
            self.drop_resume_state()
            log.close()
        self.callbacks.on_run_end(log.directory)
        return TrainingResult(
            directory=log.directory,
            game=components.game,
            best=best,
            final=final,
            opponent=str(cfg.eval_opponent.name),
            references=self.references,
            seconds=self.state.seconds,
        )

    def drop_resume_state(self) -> None:
        """Keep no resume state of a run that is done, unless it is small or asked for."""
        log = self.log
        latest = log.directory / "checkpoints" / LATEST
        size = resume_state_bytes(latest)
        keeps = self.cfg.keep_resume_state
        if keeps is False or (keeps is None and size > MAX_RESUME_STATE_BYTES):
            try:
                drop_state(latest)
                if keeps is None:
                    self.log.warn(
                        f"the run cannot be extended, because its resume state of {size >> 20:,} "
                        "MiB is not kept; keep_resume_state=true keeps it"
                    )
            except (OSError, BadCheckpoint) as error:
                self.log.warn(f"the resume state is still there: {error}")

    def evaluate_checkpoints(self) -> tuple[EvaluationResult, EvaluationResult, int]:
        """Evaluate the best and the final weights on the same games, which selected neither, and
        once if they are the same; the third value: games played before the best were saved."""
        evaluator = self.state.components.evaluator
        games = FINAL_EVAL_FACTOR * self.cfg.eval_games
        with self.interrupts.shielded():
            best = self.checkpointer.read_best()
        final_result = evaluator.evaluate(games, FINAL_STREAM)
        if best.games == self.state.progress.games_played:
            return final_result, final_result, best.games
        self.has_best_weights = True
        restore_weights(evaluator.greedy.policy, best.policy)
        return evaluator.evaluate(games, FINAL_STREAM), final_result, best.games

    def save_on_interrupt(self) -> str:
        """Save, if there is anything to save and nothing was torn apart; a message about it."""
        if self.is_done:
            return f"after the run was finished, in {self.log.directory}"
        games = self.state.progress.games_played
        try:
            if not (self.has_best_weights or self.interrupts.is_forced):
                self.callbacks.on_phase("saving")
                self.checkpointer.write(LATEST)
                self.callbacks.on_checkpoint(games, is_best=False)
            message = f"saved after {games:,} games; resume with: {self.resume_command}"
        except (Interrupted, OSError) as error:
            reason = f"not saved ({error})"
            message = f"{reason}; resume from the last checkpoint: {self.resume_command}"
        if self.interrupts.is_forced:
            message = f"stopped at once; resume from the last checkpoint: {self.resume_command}"
        self.close_log("interrupted")
        return message

    def close_log(self, status: str) -> None:
        """Close the files of a run that is not done; the error that ended it is reported anyway."""
        with contextlib.suppress(OSError):
            self.log.finish(status, self.state.progress.games_played, self.state.seconds)
        self.log.close()

    @property
    def resume_command(self) -> str:
        return plugins.command_for_run("resume", self.log.directory, list(self.cfg.plugins))


def _open_log(cfg: TrainConfig, interrupts: Interrupts) -> RunLog:
    with claim_directory(cfg.out, Path("outputs") / cfg.game.name, check_new_run) as lock:
        cfg = _located(cfg, lock.directory)
        return RunLog(lock, to_plain(cfg), to_yaml(cfg), interrupts)


def _located(cfg: TrainConfig, directory: Path) -> TrainConfig:
    """The config with the directory that out= got, which may have a number."""
    return dataclasses.replace(cfg, out=str(directory)) if cfg.out else cfg


class LogCallback(Callback):
    """Writes metrics and references to a run's files. best_by: selects the best checkpoint."""

    def __init__(self, log: RunLog, best_by: str) -> None:
        self.log, self.best_by = log, best_by
        self._first_games = 0

    def on_run_start(self, games: int, directory: Path) -> None:
        self._first_games = games

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        if random is None:
            self.log.note("random play takes too long to be measured before the end")
        self.log.set_references(self._first_games, metric, self.best_by, random)

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.log.add(games, metrics)
        evaluated = [
            f"{name.removeprefix('eval/')} {value:.4f}"
            for name, value in metrics.items()
            if name.startswith("eval/")
        ]
        if evaluated:
            self.log.note(f"games {games}, greedy: {', '.join(evaluated)}")
