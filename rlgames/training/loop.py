"""The training loop: play games, learn from them, log, evaluate, save."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlgames.config.registry import REGISTRY
from rlgames.config.typed import to_plain
from rlgames.core.callbacks import ADDED, Callback, CallbackList
from rlgames.core.errors import NonFiniteError
from rlgames.core.signals import Interrupts
from rlgames.evaluation.references import EARLY_SOLVE_SECONDS
from rlgames.learners.learner import unlearned_entries
from rlgames.rng import SELECTION_STREAM, Rng, torch_seeded
from rlgames.runs.checkpoint import Checkpoint, Tree, disk_costs
from rlgames.runs.files import BEST, LATEST
from rlgames.runs.log import RunLog
from rlgames.training.evaluator import WHY_NO_REGRET
from rlgames.training.image_callback import ImageCallback
from rlgames.training.parts import Training
from rlgames.training.progress import Progress
from rlgames.training.read_back import check_readable
from rlgames.training.sources import NextGames


class TrainingLoop:
    """Trains until the budget of games is spent.

    Whatever must not be torn apart is shielded from signals. A batch that was interrupted before it
    was learned from is played again: checkpoints hold the source as of `mark`.
    """

    def __init__(
        self,
        training: Training,
        progress: Progress,
        log: RunLog,
        interrupts: Interrupts,
        callback: Callback | None = None,
    ) -> None:
        self.training, self.progress, self.log = training, progress, log
        self.interrupts = interrupts
        images = ImageCallback(training, log, progress)
        self.callbacks = CallbackList([log, images, *ADDED, *filter(None, [callback])])
        self.mark = training.source.mark()

    def run(self) -> None:
        """Play, learn, log, evaluate and save until the budget of games is spent."""
        progress, source = self.progress, self.training.source
        self.callbacks.on_run_start(progress.games, self.log.directory)
        self.compute_references()
        if progress.done_at["save"] < 0:
            first = self.checkpoint(self.state_dict())
            check_readable(self.training, first)
            if costs := disk_costs(first, self.log.directory):
                self.log.warn(costs)
            with self.interrupts.shielded():
                self.end_evaluation()
        self.run_due_tasks()  # those that were due when an earlier process was interrupted
        if not progress.is_over:
            with self.phase("playing"):
                source.start(progress.games, self.interrupts)
        while not progress.is_over:
            self.train_on_batch()
            self.run_due_tasks()
        source.close()

    def compute_references(self) -> None:
        """Compute what random and optimal play reach, as far as that is quick."""
        references, cfg = self.training.references, self.training.cfg
        is_quick = REGISTRY["player"][cfg.eval_opponent.name].is_quick
        opponent = self.training.evaluator.opponent if is_quick else None
        references.compute_early_random(opponent, cfg.seed)
        if self.training.game.spec.seats == 1:
            with self.phase("solving"):
                references.solve(min(EARLY_SOLVE_SECONDS, cfg.solve_seconds))
        metric = self.training.evaluator.goal_metric
        with self.interrupts.shielded():
            self.callbacks.on_references(metric, references.random, references.optimal)

    def train_on_batch(self) -> None:
        """Play the next batch of games, or sample recorded ones, and learn from it."""
        training, progress = self.training, self.progress
        size, games, playing = progress.batch_size, progress.games, self.phase("playing")
        with contextlib.ExitStack() as update:

            def begin_learning() -> None:
                update.enter_context(self.phase("learning"))
                update.enter_context(self.interrupts.shielded())  # a signal waits from now on

            batch = NextGames(
                training.source, size, games, progress.fraction, playing, begin_learning
            )
            try:
                final_states, metrics = training.learn(batch, progress.fraction)
            except NonFiniteError as error:
                at = f"update {progress.updates + 1}, after {games:,} games"
                raise NonFiniteError(f"{at}: {error}") from None
            progress.count(training.game, final_states, metrics)
            self.mark = training.source.mark()
            more = self.callbacks.on_update(progress.games, metrics, batch.moves, final_states)
            progress.line.add(more, size)

    def run_due_tasks(self) -> None:
        """Log, evaluate, measure and save, as far as that is due."""
        tasks = {
            "log": self.log_metrics,
            "evaluate": self.evaluate,
            "measure": self.measure,
            "save": self.save,
        }
        for name, do in tasks.items():
            if self.progress.is_due(name):
                do()

    def log_metrics(self) -> None:
        """Log the means since the last line, and what is measured now."""
        with self.interrupts.shielded():
            self.progress.mark_done("log")
            entries = unlearned_entries(self.training.agent.policy)
            line = {f"train/{name}": value for name, value in entries.items()}
            self.tell(self.progress.line.close() | line)

    def evaluate(self) -> None:
        """Evaluate the greedy policy, log the metrics, and save the weights if they are the best
        so far."""
        progress, training = self.progress, self.training
        learner, evaluator = training.learner, training.evaluator
        with self.phase("evaluating"):  # a signal raises here, and this is repeated
            num_games = training.cfg.eval_games
            result = evaluator.evaluate(training.greedy, num_games, SELECTION_STREAM)
        metrics = result.metrics
        metrics |= learner.evaluate(training.source.held_out)
        with self.interrupts.shielded():
            progress.has_converged = learner.has_converged(metrics)
            progress.mark_done("evaluate")
            logged = metrics | result.evaluation.details(evaluator.goal_metric)
            self.tell({f"eval/{name}": value for name, value in logged.items()})
            best = evaluator.better(logged, progress.best)
            if best is not None:
                progress.best = best
                with self.phase("saving"):  # before the latest checkpoint, which counts on it
                    self.write(BEST, {})
                self.callbacks.on_checkpoint(progress.games, is_best=True)
            self.end_evaluation()

    def measure(self) -> None:
        """Measure the mistakes of the greedy policy and log what was found."""
        progress = self.progress
        with self.phase("evaluating"):
            value = self.training.evaluator.regret(self.training.greedy)
        if value is None and not progress.done_at["measure"]:
            self.log.warn(WHY_NO_REGRET)
        with self.interrupts.shielded():
            progress.mark_done("measure")
            progress.regret = value
            if value is not None:
                self.tell({"eval/regret": value})

    def end_evaluation(self) -> None:
        """Have the callbacks show what was evaluated."""
        with self.phase("evaluating"):
            self.callbacks.on_evaluation_end(self.progress.games)

    def save(self) -> None:
        """Write the latest checkpoint, and every keep_every games one that is kept."""
        progress, names = self.progress, [LATEST]
        games, keep_every = progress.games, self.training.cfg.keep_every
        with self.interrupts.shielded():
            progress.mark_done("save")
            if keep_every and games - progress.done_at["keep"] >= keep_every:
                progress.mark_done("keep")
                names.insert(0, f"games_{games}.safetensors")
            with self.phase("saving"):
                self.save_state(*names)
            self.callbacks.on_checkpoint(games, is_best=False)

    def save_state(self, *names: str) -> None:
        """Write weights, and all that the rest of the run depends on, under each of these names.
        Raises OSError."""
        progress, log = self.progress, self.log
        progress.num_log_lines = log.num_lines
        log.flush()  # a checkpoint never counts lines that are not on the disk
        state = self.state_dict()
        for name in names:
            self.write(name, state)

    def state_dict(self) -> Tree:
        """What the rest of the run depends on besides the weights."""
        return {
            "progress": self.progress.state_dict(),
            "learner": self.training.learner.state_dict(),
            "source": self.mark,
        }

    def write(self, name: str, state: Tree) -> None:
        """Write the weights and a state, empty for the best ones. Raises OSError."""
        self.checkpoint(state).write(self.checkpoint_path(name))

    def checkpoint(self, state: Tree) -> Checkpoint:
        training = self.training
        return Checkpoint(to_plain(training.cfg), self.progress.games, training.weights(), state)

    def checkpoint_path(self, name: str) -> Path:
        return self.log.directory / "checkpoints" / name

    def tell(self, metrics: dict[str, float]) -> None:
        """A line of the log."""
        self.callbacks.on_metrics(self.progress.games, metrics | self.progress.totals())

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce a phase and measure its time. Evaluations don't touch torch's own generators,
        so a run learns the same however often it is evaluated."""
        self.callbacks.on_phase(name)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.progress.line.timed(name))
            if name == "evaluating":
                cfg = self.training.cfg
                stack.enter_context(torch_seeded(Rng(cfg.seed, "evaluation", cfg.device)))
            yield
