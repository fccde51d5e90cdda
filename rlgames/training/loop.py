"""The training loop: collect games, learn from them, log, evaluate, save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlgames.core.callbacks import CallbackList
from rlgames.core.errors import NonFiniteError
from rlgames.core.rng import SELECTION_STREAM
from rlgames.core.signals import Interrupts
from rlgames.evaluation.evaluate import Evaluation
from rlgames.evaluation.references import EARLY_SOLVE_SECONDS, References
from rlgames.policies.policy import computing_in
from rlgames.runs.files import LATEST
from rlgames.training.checkpointer import Checkpointer
from rlgames.training.measurements import WHY_NO_REGRET, Regret
from rlgames.training.state import TrainingState


class TrainingLoop:
    """Trains until the budget of games is spent.

    Whatever must not be torn apart is shielded from signals.
    """

    def __init__(
        self,
        state: TrainingState,
        references: References,
        checkpointer: Checkpointer,
        callbacks: CallbackList,
        interrupts: Interrupts,
    ) -> None:
        self.state, self.cfg, self.components = state, state.cfg, state.components
        self.references, self.checkpointer = references, checkpointer
        self.callbacks, self.interrupts = callbacks, interrupts
        self.eval_every = self.cfg.eval_every or max(1, self.cfg.games // 20)
        self.log_every = self.cfg.log_every or max(1, self.cfg.games // 100)
        self.save_every = self.cfg.save_every or self.eval_every

    def run(self) -> None:
        """Collect, learn, log, evaluate and save until the budget of games is spent."""
        state, progress = self.state, self.state.progress

        def run_periodic_tasks() -> None:
            if state.is_due(progress.logged_at, self.log_every):
                self.log_metrics()
            if state.is_due(progress.evaluated_at, self.eval_every):
                self.evaluate()
            regret = self.components.regret
            if regret is not None and state.is_due(regret.measured_at, regret.every):
                self.measure(regret)
            if state.is_due(progress.saved_at, self.save_every):
                self.save()

        self.callbacks.on_run_start(progress.games_played, self.checkpointer.log.directory)
        self.compute_references()
        if progress.saved_at < 0:
            with self.interrupts.shielded():
                self.end_evaluation()
                self.save()
        self.pretrain()
        run_periodic_tasks()  # those that were due when an earlier process was interrupted
        engine = self.components.collector.engine
        if not state.is_over:
            with self.phase("playing"):
                engine.start(progress.games_played, self.interrupts)
        while not state.is_over:
            self.train_on_batch()
            run_periodic_tasks()
        engine.close()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce a phase and measure its time."""
        self.callbacks.on_phase(name)
        with self.state.metrics.timed(name):
            yield

    def compute_references(self) -> None:
        """Compute what random and optimal play reach, as far as that is quick."""
        self.references.compute_early_random()
        if self.references.is_solvable:
            with self.phase("solving"):
                self.references.solve(min(EARLY_SOLVE_SECONDS, self.cfg.solve_seconds))
        metric = self.components.evaluator.goal_metric
        with self.interrupts.shielded():
            self.callbacks.on_references(metric, self.references.random, self.references.optimal)

    def pretrain(self) -> None:
        """Fit the policy to recorded games, clone_epochs times, before any game is played."""
        while True:
            with self.phase("learning"), self.interrupts.shielded():
                metrics = self.components.collector.pretrain()
                if metrics is None:
                    return
                metrics = {f"train/pretrain_{name}": value for name, value in metrics.items()}
                self.callbacks.on_metrics(0, metrics)
                self.state.take_snapshot()

    def train_on_batch(self) -> None:
        """Play the next batch of games, or sample recorded ones, and learn from it."""
        components, state, progress = self.components, self.state, self.state.progress
        games = progress.games_played
        components.agent.progress = self.cfg.schedule_progress(games)
        for player in components.players:
            player.start_batch(games, state.rng)
        policy, dtype = components.agent.policy, components.compute_dtype
        with self.phase("playing"), computing_in(policy, dtype):
            batch = components.collector.next_batch(state.batch_size, games, state.rng)
        with self.phase("learning"), self.interrupts.shielded():
            try:
                with computing_in(policy, dtype):
                    final_states, metrics = components.collector.train(
                        components.learner, batch, components.agent.progress
                    )
            except NonFiniteError as error:
                at = f"update {progress.num_updates + 1}, after {games:,} games"
                raise NonFiniteError(f"{at}: {error}") from None
            state.metrics.add(metrics, state.batch_size)
            state.finish_batch(final_states)
        self.callbacks.on_update(progress.games_played, metrics)

    def log_metrics(self) -> None:
        """Log the means since the last line."""
        progress = self.state.progress
        with self.interrupts.shielded():
            progress.logged_at = progress.games_played
            line = self.state.metrics.close() | self.state.totals()
            self.callbacks.on_metrics(progress.games_played, line)

    def evaluate(self) -> None:
        """Evaluate the greedy policy, log the metrics, and save the weights if they are the best
        so far."""
        progress, components = self.state.progress, self.components
        learner, evaluator = components.learner, components.evaluator
        with self.phase("evaluating"):
            result = evaluator.evaluate(self.cfg.eval_games, SELECTION_STREAM)
        metrics = result.metrics
        metrics |= learner.evaluate(components.collector.held_out)
        with self.interrupts.shielded():
            progress.has_converged = learner.has_converged(metrics)
            progress.evaluated_at = progress.games_played
            line = {f"eval/{name}": value for name, value in metrics.items()}
            line |= self.state.totals()
            self.callbacks.on_metrics(progress.games_played, line)
            best = evaluator.better(metrics, progress.best)
            if best is not None:
                progress.best = best
                with self.phase("saving"):
                    self.checkpointer.write_best()
                self.callbacks.on_checkpoint(progress.games_played, is_best=True)
            self.end_evaluation(result.evaluation)  # not interrupted: it would not be repeated

    def measure(self, regret: Regret) -> None:
        """Count the mistakes of the greedy policy and log what was found."""
        games = self.state.progress.games_played
        with self.phase("evaluating"):
            value = regret.measure()
        if value is None and not regret.measured_at:
            self.checkpointer.log.warn(WHY_NO_REGRET)
        with self.interrupts.shielded():
            regret.measured_at, regret.latest = games, value
            if value is not None:
                self.callbacks.on_metrics(games, {"eval/regret": value} | self.state.totals())

    def end_evaluation(self, evaluation: Evaluation | None = None) -> None:
        """Have the callbacks show what was evaluated."""
        with self.phase("evaluating"):
            values = {} if evaluation is None else evaluation.values_of_games()
            self.callbacks.on_evaluation_end(self.state.progress.games_played, values)

    def save(self) -> None:
        """Write the latest checkpoint, and every keep_every games one that is kept."""
        progress, keep_every = self.state.progress, self.cfg.keep_every
        games = progress.games_played
        with self.interrupts.shielded():
            names = [LATEST]
            progress.saved_at = games
            if keep_every and games - progress.kept_at >= keep_every:
                progress.kept_at = games
                names.insert(0, f"games_{games}.safetensors")
            with self.phase("saving"):
                self.checkpointer.write(*names)
            self.callbacks.on_checkpoint(games, is_best=False)
