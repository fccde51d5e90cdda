"""One short loop: play a batch of games, learn from it, log, evaluate, save."""

from __future__ import annotations

import contextlib
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock
import torch
from omegaconf import DictConfig

from rlgames.config import plugins
from rlgames.config.compose import sanitize_errors, to_plain, to_yaml
from rlgames.core import distributed
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator, restore_generator
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.core.untrusted import checked_float, checked_int, sanitized
from rlgames.evaluation.evaluate import Evaluation, random_play_mean
from rlgames.games.game import Game
from rlgames.learners.behavior_cloning import BehaviorCloning
from rlgames.learners.learner import NonFiniteError
from rlgames.players.past_selves import PastSelves
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint, Tree, restore_weights
from rlgames.runs.directory import make_run_directory
from rlgames.runs.files import read_metrics
from rlgames.runs.run_log import RunLog
from rlgames.solvers.optimum import Optimum, find_optimum
from rlgames.training.callbacks import Callback
from rlgames.training.components import Components, build_components
from rlgames.training.metrics import MetricAccumulator, game_statistics

LATEST, BEST = "latest.safetensors", "best.safetensors"

EARLY_SOLVE_SECONDS = 3.0
"""Seconds that the optimum is looked for before the first game; what is left is for the end."""

FINAL_EVAL_FACTOR = 4
"""The last evaluation plays so many times the games of those before."""


@dataclass(frozen=True)
class TrainingResult:
    """A finished run: its directory and the final evaluation of its best greedy policy.

    random: what random play comes to in the figure that the game is about, as far as it is known.
    """

    directory: Path
    game: Game[Any]
    evaluation: Evaluation
    held_out: Evaluation | None
    opponent: str
    random: float | None
    optimal: float | None
    exploitability: float | None
    seconds: float


@dataclass
class Progress:
    """How far a run has come: games played, updates made, after how many games it last logged,
    evaluated, saved (-1: never) and kept a checkpoint, the best figures so far, whether there is
    nothing more to learn, and seconds that it took."""

    played: int = 0
    updates: int = 0
    logged: int = 0
    evaluated: int = 0
    saved: int = -1
    kept: int = 0
    best: list[float] | None = None
    converged: bool = False
    seconds: float = 0.0

    def check(self, games: int) -> None:
        """Raises ValueError or TypeError for marks that a run cannot have after so many games."""
        checked_int(self.played, games, games)
        checked_int(self.updates, 0)
        checked_int(self.saved, -1, games)
        for mark in (self.logged, self.evaluated, self.kept):
            checked_int(mark, 0, games)
        checked_float(self.seconds)
        if self.best is not None and (
            len(self.best) != 2 or not all(type(value) in (int, float) for value in self.best)
        ):
            raise ValueError("the best figures are not two numbers")
        if type(self.converged) is not bool:
            raise ValueError("converged is neither true nor false")


def train(cfg: DictConfig, callback: Callback | None = None) -> TrainingResult | None:
    """Run a checked config to its end; the callback is told how it goes.

    Of several processes that torchrun has started the first writes, and is told what came of it.

    Raises ConfigError before anything is written when the parts do not fit together; BadNumber
    when learning breaks down and OSError when nothing more can be written, the run then being
    closed as failed and its checkpoints kept; and Interrupted, saved, for SIGINT and SIGTERM.
    """
    with Interrupts() as interrupts, distributed.process_group(cfg.device):
        parts = build_components(cfg)
        log = _open_log(cfg, interrupts) if distributed.rank() == 0 else None
        return Run(cfg, parts, log, interrupts, callback).to_end()


def resume(
    directory: Path,
    cfg: DictConfig,
    found: Checkpoint,
    lock: filelock.BaseFileLock | None = None,
    callback: Callback | None = None,
) -> TrainingResult | None:
    """Go on with a run from its checkpoint, by a checked config that says the same or allows more
    games; otherwise as train. lock: of the directory, taken before the checkpoint was read.

    On the CPU everything comes out as if the run had never stopped, but for what clocks say.
    """
    with (
        contextlib.ExitStack() as held,
        Interrupts() as interrupts,
        distributed.process_group(cfg.device),
    ):
        held.callback(lock.release if lock else lambda: None)
        with sanitize_errors():
            parts = build_components(cfg, found)
        run = Run(cfg, parts, None, interrupts, callback)
        run.load(found)
        if run.first:
            plain, yaml = to_plain(cfg), to_yaml(cfg)
            run.log = RunLog(directory, plain, yaml, interrupts, run.goes_on, lock)
            run.callback.on_resume(read_metrics(directory / "metrics.jsonl"))
        return run.to_end()


class Run:
    """A run under way: its parts, its files, how far it has come, and all that comes of it next.

    Where it stands is told between two batches only; a batch that is interrupted counts for
    nothing, and is played again. Of several processes each has one of its own, all in step; the
    first one evaluates and writes.
    """

    log: RunLog

    def __init__(
        self,
        cfg: DictConfig,
        parts: Components,
        log: RunLog | None,
        interrupts: Interrupts,
        callback: Callback | None,
    ) -> None:
        self.cfg, self.parts, self.interrupts = cfg, parts, interrupts
        self.callback = callback or Callback()
        if log is not None:
            self.log = log
        self.first = distributed.rank() == 0
        self.marks, self.tally = Progress(), MetricAccumulator()
        self.rng = make_generator(cfg.seed, distributed.rank_stream_name("play"), parts.device)
        self.eval_every = cfg.eval_every or max(1, cfg.games // 20)
        self.save_every = cfg.save_every or self.eval_every
        self.begun = time.perf_counter()
        self.goes_on: tuple[int, int] | None = None
        self.closing = self.done = False
        self.random: float | None = None
        self.optimum: Optimum | None = None
        self._between = self._snapshot()

    def to_end(self) -> TrainingResult | None:
        """Raises what train raises."""
        # Several processes can only stop together, between two batches.
        kept = (
            self.interrupts.shielded() if distributed.world_size() > 1 else contextlib.nullcontext()
        )
        with kept:
            return self._to_end()

    def _to_end(self) -> TrainingResult | None:
        try:
            distributed.barrier()
            self._judge()
            if self.marks.evaluated == self.marks.played:  # not drawn yet, or forgotten
                self._draw()
            if self.marks.saved < 0:
                with self.interrupts.shielded():
                    self.marks.saved = 0
                    self._save()
            self._warm_up()
            self._due()
            while not self.over:
                self._batch()
                self._due()
            return self._close() if self.first else None
        except Interrupted as stop:
            raise Interrupted(stop.number, self._break_off()) from None
        except BaseException as error:
            if not self.first:
                raise
            self.log.log.error("%s: %s", type(error).__name__, error)
            if (self.checkpoints / LATEST).exists():
                error.add_note(f"go on from the last checkpoint: {self.how_to_go_on}")
            self._finish("failed", {})
            raise

    def state_dict(self) -> Tree:
        """All that the rest of the run depends on, beside its config and the policy."""
        marks = asdict(self.marks) | {"seconds": self.seconds}
        own = {"learner": self.parts.learner.state_dict(), **self._between}
        processes = distributed.gather(own) or []
        return {
            "marks": marks,
            "lines": self.log.lines if self.first else 0,
            "tally": self.tally.state_dict(),
            "processes": {str(checked_float): each for checked_float, each in enumerate(processes)},
        }

    def load(self, found: Checkpoint) -> None:
        """Stand where the checkpoint was written. Raises BadCheckpoint where that cannot be."""
        parts, state = self.parts, found.state
        restore_weights(parts.agent.policy, found.policy)
        try:
            with warnings.catch_warnings():
                # PyTorch warns of a name where a place should be: of a tensor in a tree's place.
                warnings.filterwarnings("error", "Using a non-tuple", UserWarning)
                self._load(state)
            self.marks.check(found.games)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            UserWarning,
            ValueError,
        ) as error:
            why = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
            raise BadCheckpoint(
                f"this run cannot go on from its checkpoint ({sanitized(why)})"
            ) from None
        self._between = self._snapshot()

    def _load(self, state: Tree) -> None:
        parts, processes = self.parts, state["processes"]
        self.marks = Progress(**state["marks"])
        self.goes_on = self.marks.played, checked_int(state["lines"], 0)
        self.tally.load_state_dict(state["tally"])
        own = processes.get(str(distributed.rank()))  # none where there were fewer processes
        others = own or processes["0"]
        parts.learner.load_state_dict(others["learner"])
        for place, player in enumerate(parts.players):
            player.load_state_dict(others["players"][str(place)])
        if own is not None:
            parts.lessons.load_state_dict(own["lessons"], self.rng)
        for name, generator in self._generators().items():
            if own is None or not restore_generator(generator, own["generators"][name]):
                # Numbers that nobody has drawn, each time the same ones.
                at = distributed.rank_stream_name(f"{name} after {self.marks.played}")
                other = make_generator(self.cfg.seed, at, self.parts.device)
                generator.set_state(other.get_state())

    def _generators(self) -> dict[str, torch.Generator]:
        return {"play": self.rng, "learn": self.parts.lessons.rng}

    def _snapshot(self) -> Tree:
        """What playing changes, as it stands between two batches."""
        players = enumerate(self.parts.players)
        return {
            "generators": {name: rng.get_state() for name, rng in self._generators().items()},
            "lessons": self.parts.lessons.state_dict(),
            "players": {
                str(checked_float): player.state_dict() for checked_float, player in players
            },
        }

    @property
    def seconds(self) -> float:
        return self.marks.seconds + time.perf_counter() - self.begun

    @property
    def checkpoints(self) -> Path:
        return self.log.directory / "checkpoints"

    @property
    def how_to_go_on(self) -> str:
        return plugins.command_for_run("resume", self.log.directory, list(self.cfg.plugins))

    @property
    def over(self) -> bool:
        return self.marks.converged or self.marks.played >= self.cfg.games

    def _judge(self) -> None:
        """Say what the run's figures are held against."""
        if not self.first:
            return
        examiner = self.parts.examiner
        self.random = examiner.random_play()
        if self.random is None:
            self.log.log.info("random play takes too long to be measured before the end")
        if self.parts.game.spec.seats == 1:
            with self._doing("solving"):
                self.optimum = find_optimum(
                    self.parts.game, min(EARLY_SOLVE_SECONDS, self.cfg.solve_seconds)
                )
        with self.interrupts.shielded():
            self.log.judge(self.marks.played, examiner.figure, examiner.best_by, self.random)
        optimal = None if self.optimum is None else self.optimum.value
        self.callback.on_references(examiner.figure, self.random, optimal)

    @contextlib.contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """A block that the callback is told of, and whose time is counted."""
        self.callback.on_phase(what)
        with self.tally.spent(what):
            yield

    def _warm_up(self) -> None:
        """Learn from recorded games, before any is played."""
        while True:
            with self._doing("learning"), self.interrupts.shielded():
                found = self.parts.lessons.clone()
                if found is None:
                    return
                self.log.add(0, {f"clone/{name}": value for name, value in found.items()})
                self._between = self._snapshot()

    def _batch(self) -> None:
        """Play and learn once."""
        parts, marks, games = self.parts, self.marks, self.cfg.games
        batch = distributed.local_batch_size(min(self.cfg.batch, games - marks.played))
        parts.agent.progress = marks.played / games
        for player in parts.players:
            if isinstance(player, PastSelves):
                player.start_batch(marks.played, self.rng)
        with self._doing("playing"):
            moves, results = parts.lessons.play(batch, marks.played, self.rng)
        with self._doing("learning"), self.interrupts.shielded():
            self._learn(moves, results, batch)
        self.callback.on_metrics(marks.played, {})

    def _learn(self, moves: Trajectories, results: FinalStates, batch: int) -> None:
        parts, marks = self.parts, self.marks
        given = parts.lessons.with_demonstrations(moves.by_player(0), results)
        try:
            figures = parts.learner.update(*given, parts.agent.progress)
        except NonFiniteError as error:
            raise NonFiniteError(
                f"update {marks.updates + 1}, after {marks.played:,} games: {error}"
            ) from None
        self.tally.add(figures, batch)
        over = results.state[results.state.done]
        if len(over):
            self.tally.add(game_statistics(parts.game, over), len(over))
        stopping = self.interrupts.pending is not None
        counts = torch.tensor([len(over), results.moves, stopping], device=parts.device)
        ended, made, stops = distributed.all_reduce_sum(counts).tolist()
        self.tally.count(ended, made)
        marks.played += ended
        marks.updates += 1
        self._between = self._snapshot()
        if stops and distributed.world_size() > 1:
            raise Interrupted(self.interrupts.pending or signal.SIGTERM)

    def _due(self) -> None:
        """Log, evaluate and save, whichever is due."""
        marks, cfg = self.marks, self.cfg
        if marks.logged < marks.played and (
            marks.played - marks.logged >= cfg.log_every or self.over
        ):
            with self.interrupts.shielded():
                marks.logged = marks.played
                self._tell(self.tally.close())
        if marks.evaluated < marks.played and (
            marks.played - marks.evaluated >= self.eval_every or self.over
        ):
            self._evaluate()
        if marks.saved < marks.played and (
            marks.played - marks.saved >= self.save_every or self.over
        ):
            with self.interrupts.shielded():
                marks.saved = marks.played
                if cfg.keep_every and marks.played - marks.kept >= cfg.keep_every:
                    marks.kept = marks.played
                    self._save(f"games_{marks.played}.safetensors")
                self._save()

    def _evaluate(self) -> None:
        marks, learner, examiner = self.marks, self.parts.learner, self.parts.examiner
        if not self.first:
            marks.evaluated = marks.played
            return
        with self._doing("evaluating"):
            *_, figures = examiner.evaluate(self.cfg.eval_games, "eval")
        if isinstance(learner, BehaviorCloning):
            figures |= learner.evaluate(self.parts.lessons.held_out())
        with self.interrupts.shielded():
            if isinstance(learner, BehaviorCloning):
                marks.converged = learner.converged(figures["loss"])
            marks.evaluated = marks.played
            self._tell({f"eval/{name}": value for name, value in figures.items()})
            told = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
            self.log.log.info("games %d, greedy: %s", marks.played, told)
            ahead = examiner.better(figures, marks.best)
            if ahead is not None:
                marks.best = ahead
                with self._doing("saving"):
                    self._checkpoint({}).write(self.checkpoints / BEST)
                self.callback.on_checkpoint(marks.played, best=True)
        self._draw()

    def _tell(self, metrics: dict[str, float]) -> None:
        """Log metrics of the games played so far, and show them."""
        if not self.first:
            return
        if any(name.startswith("eval/") for name in metrics):
            metrics = metrics | {"time/seconds": self.seconds}
        self.log.add(self.marks.played, metrics)
        self.callback.on_metrics(self.marks.played, metrics)

    def _draw(self) -> None:
        if self.first:
            learns_logits = self.parts.learner.learns_logits
            with self._doing("evaluating"):
                self.parts.examiner.draw(self.log, self.marks.played, learns_logits)

    def _checkpoint(self, state: Tree) -> Checkpoint:
        policy = self.parts.agent.policy.state_dict()
        return Checkpoint(to_plain(self.cfg), self.marks.played, policy, state)

    def _save(self, name: str = LATEST) -> None:
        with self._doing("saving"):
            state = self.state_dict()
            if not self.first:
                return
            self.log.flush()
            self._checkpoint(state).write(self.checkpoints / name)
        self.callback.on_checkpoint(self.marks.played, best=False)

    def _close(self) -> TrainingResult:
        """Evaluate the best policy, beside the optimum where that is found in time."""
        cfg, parts = self.cfg, self.parts
        self.closing = True
        restore_weights(parts.agent.policy, Checkpoint.read(self.checkpoints / BEST).policy)
        # Other games than those that the best checkpoint was chosen by.
        self.callback.on_phase("evaluating")
        found, held_out, figures = parts.examiner.evaluate(
            FINAL_EVAL_FACTOR * cfg.eval_games, "final"
        )
        if self.optimum is None and parts.game.spec.seats == 1:
            self.callback.on_phase("solving")
            self.optimum = find_optimum(parts.game, cfg.solve_seconds)
        optimal = None if self.optimum is None else self.optimum.value
        random = random_play_mean(parts.game) if self.random is None else self.random
        references = {"random": random, "optimal": optimal}
        figures |= {name: value for name, value in references.items() if value is not None}
        self._finish("done", figures)
        self.done = True
        self.callback.on_run_end(self.log.directory)
        return TrainingResult(
            self.log.directory,
            parts.game,
            found,
            held_out,
            str(cfg.eval_opponent.name),
            random,
            optimal,
            figures.get("exploitability"),
            self.seconds,
        )

    def _break_off(self) -> str:
        """Save, if there is anything to save and nothing was torn; what to tell the person."""
        if self.done:
            return f"after the run was finished, in {self.log.directory}"
        if not self.first:
            if not self.interrupts.twice:
                self._save()
            return "with the first process"
        try:
            if not (self.closing or self.interrupts.twice):
                self._save()
            told = f"saved after {self.marks.played:,} games; go on with: {self.how_to_go_on}"
        except (Interrupted, OSError) as error:
            told = f"not saved ({error}); go on from the last checkpoint: {self.how_to_go_on}"
        if self.interrupts.twice:
            told = f"out at once; go on from the last checkpoint: {self.how_to_go_on}"
        self._finish("interrupted", {})
        return told

    def _finish(self, status: str, results: dict[str, float]) -> None:
        """Close the files; where they cannot be written any more, that is known by now."""
        with contextlib.suppress(*(() if status == "done" else (OSError,))):
            self.log.finish(status, self.marks.played, results, self.seconds)


def _open_log(cfg: DictConfig, interrupts: Interrupts) -> RunLog:
    try:
        directory = (
            Path(cfg.out) if cfg.out else make_run_directory(Path("outputs") / cfg.game.name)
        )
        return RunLog(directory, to_plain(cfg), to_yaml(cfg), interrupts)
    except OSError as error:
        raise ConfigError(f"out={cfg.out}: {error.strerror}", "name another out=") from None
