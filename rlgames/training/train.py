"""Trains and resumes runs: what surrounds the training loop, from files to signals."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config import plugins
from rlgames.config.commands import TrainConfig
from rlgames.config.typed import from_plain, sanitize_errors, to_plain, to_yaml
from rlgames.core.callbacks import Callback
from rlgames.core.devices import build_device, choose_device
from rlgames.core.errors import NonFiniteError
from rlgames.core.schedule import Schedule
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.core.untrusted import sanitized
from rlgames.evaluation.references import References
from rlgames.games.game import Game
from rlgames.rng import FINAL_STREAM, Rng, torch_seeded
from rlgames.runs.checkpoint import (
    BadCheckpoint,
    Checkpoint,
    restore_weights,
)
from rlgames.runs.directory import DirectoryLock, claim_directory, lock_directory
from rlgames.runs.files import BEST, LATEST
from rlgames.runs.log import RunLog
from rlgames.runs.reports import BEST_REPORT, FINAL_REPORT
from rlgames.training.evaluator import FINAL_EVAL_FACTOR, EvaluationResult
from rlgames.training.loop import TrainingLoop
from rlgames.training.parts import Training, build_training
from rlgames.training.progress import Progress


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

    Raises ConfigError before anything is written where the components cannot be combined;
    NonFiniteError when learning breaks down and OSError when nothing more can be written, the run
    then being closed as failed and its checkpoints kept; and Interrupted, after saving, for each of
    signals.STOP_SIGNALS.
    """
    cfg = dataclasses.replace(cfg, device=choose_device(cfg.device))
    with contextlib.ExitStack() as stack, Interrupts() as interrupts:
        device = build_device(cfg.device, cfg.threads)  # raises for one that is not there
        stack.enter_context(torch_seeded(Rng(cfg.seed, "training", device)))
        training = build_training(cfg)
        lock = claim_directory(cfg.out, Path("outputs") / cfg.game.name)
        stack.callback(lock.release)
        metrics = (training.evaluator.goal_metric, training.evaluator.best_by)
        log = RunLog(lock, to_plain(cfg), to_yaml(cfg), *metrics, interrupts)
        return Run(training, Progress(cfg), log, interrupts, callback).finish()


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
        device = build_device(cfg.device, cfg.threads)  # raises for one that is not there
        stack.enter_context(torch_seeded(Rng(cfg.seed, "training", device)))
        with sanitize_errors():
            training = build_training(cfg, checkpoint)
        progress = Progress(cfg)
        restore(training, progress, checkpoint)
        metrics = (training.evaluator.goal_metric, training.evaluator.best_by)
        point = (progress.games, progress.num_log_lines)
        log = RunLog(lock, to_plain(cfg), to_yaml(cfg), *metrics, interrupts, *point)
        if changes := schedule_changes(from_plain(checkpoint.config), cfg, checkpoint.games):
            log.warn(changes)
        if not training.source.is_exact:
            log.warn(f"engine={cfg.engine.name} plays other games than a run that never stopped")
        run = Run(training, progress, log, interrupts, callback)
        if progress.best is not None:
            try:
                run.read_best()
            except BadCheckpoint as error:
                log.warn(f"{error.error}; the best evaluation from now on replaces it")
                progress.best = None
                with interrupts.shielded():
                    run.write(BEST, {})
        return run.finish()


def restore(training: Training, progress: Progress, checkpoint: Checkpoint) -> None:
    """Restore all but the weights that the rest of a run depends on. Raises BadCheckpoint where
    they cannot be combined."""
    state = checkpoint.state
    try:
        with warnings.catch_warnings():
            # PyTorch warns where a tensor is indexed by a name: a tensor instead of a tree.
            warnings.filterwarnings("error", "Using a non-tuple", UserWarning)
            progress.load_state_dict(state["progress"], checkpoint.games)
            training.learner.load_state_dict(state["learner"])
            training.source.restore(state["source"])
    except Exception as error:  # whatever a damaged state leads to
        why = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
        raise BadCheckpoint(
            f"this run cannot resume from its checkpoint ({sanitized(why)})"
        ) from None


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


class Run(TrainingLoop):
    """A training loop with its files: how it ends when done, interrupted or failed."""

    has_best_weights = is_done = False

    def finish(self) -> TrainingResult:
        """Train and evaluate the result. Raises what train raises."""
        try:
            self.run()
            return self.evaluate_result()
        except Interrupted as signal:
            raise Interrupted(signal.number, self.save_on_interrupt()) from None
        except BaseException as error:
            self.log.note(f"{type(error).__name__}: {error}")
            if self.checkpoint_path(LATEST).exists():
                error.add_note(f"resume from the last checkpoint: {self.resume_command}")
            if isinstance(error, NonFiniteError):
                error.add_note(f"{self._command('doctor')} try=true finds what helps")
            self.close_log("failed")
            raise
        finally:
            self.training.source.close()

    def evaluate_result(self) -> TrainingResult:
        """Evaluate the final and the best weights and compare them with the references."""
        training, log = self.training, self.log
        cfg, progress, references = training.cfg, self.progress, training.references
        self.callbacks.on_phase("evaluating")
        best, final, best_games = self.evaluate_checkpoints()
        if progress.regret is not None:
            final.metrics["regret"] = progress.regret  # of the final weights
        if training.game.spec.seats == 1:
            self.callbacks.on_phase("solving")
            references.solve(cfg.solve_seconds)
            references.solve_held_out(cfg.solve_seconds)
        references.compute_random()
        reports = {
            BEST_REPORT: (BEST, best.as_dict(best_games) | references.as_dict()),
            FINAL_REPORT: (LATEST, final.as_dict(progress.games)),
        }
        with self.interrupts.shielded():
            log.finish("done", progress.games, progress.seconds, reports, self.final_evaluation)
            self.is_done = True
            log.close()
        self.callbacks.on_run_end(log.directory)
        return TrainingResult(
            directory=log.directory,
            game=training.game,
            best=best,
            final=final,
            opponent=str(cfg.eval_opponent.name),
            references=references,
            seconds=progress.seconds,
        )

    @property
    def final_evaluation(self) -> dict[str, Any]:
        """The config of the evaluation that ends the training."""
        plain = to_plain(self.training.cfg)
        games = FINAL_EVAL_FACTOR * self.training.cfg.eval_games
        return {"games": games, "opponent": plain["eval_opponent"], "seed": plain["seed"]}

    def evaluate_checkpoints(self) -> tuple[EvaluationResult, EvaluationResult, int]:
        """Evaluate the best and the final weights on the same games, which selected neither, and
        once if they are the same; the third value: games played before the best were saved."""
        evaluator, greedy = self.training.evaluator, self.training.greedy
        games = self.final_evaluation["games"]
        with self.interrupts.shielded():
            best = self.read_best()
        final_result = evaluator.evaluate(greedy, games, FINAL_STREAM)
        if best.games == self.progress.games:
            return final_result, final_result, best.games
        self.has_best_weights = True
        restore_weights(greedy.policy, best.policy)
        return evaluator.evaluate(greedy, games, FINAL_STREAM), final_result, best.games

    def read_best(self) -> Checkpoint:
        """The checkpoint of the best evaluation."""
        return Checkpoint.read(self.checkpoint_path(BEST))

    def save_on_interrupt(self) -> str:
        """Save, if there is anything to save and nothing was torn apart; a message about it."""
        if self.is_done:
            return f"after the run was finished, in {self.log.directory}"
        games = self.progress.games
        try:
            if not (self.has_best_weights or self.interrupts.is_forced):
                self.callbacks.on_phase("saving")
                self.save_state(LATEST)
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
            self.log.finish(status, self.progress.games, self.progress.seconds)
        self.log.close()

    @property
    def resume_command(self) -> str:
        return self._command("resume")

    def _command(self, name: str) -> str:
        """The command line of a command for this run."""
        return plugins.command_for_run(name, self.log.directory, list(self.training.cfg.plugins))
