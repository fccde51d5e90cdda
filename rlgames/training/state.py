"""The state of a run between two batches: what a checkpoint stores and restores."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict

import torch

from rlgames.config.training import TrainConfig
from rlgames.core import distributed
from rlgames.core.rng import make_generator, restore_generator
from rlgames.core.untrusted import checked_int, sanitized
from rlgames.rollouts.trajectories import FinalStates
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint, Tree, restore_weights
from rlgames.training.components import Components
from rlgames.training.metrics import MetricAccumulator, game_statistics
from rlgames.training.progress import Progress

RESTORE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    UserWarning,
    ValueError,
)
"""What restoring from a damaged state may raise."""


class TrainingState:
    """Everything that the rest of a run depends on, besides its config.

    Playing changes generators, the collector and players in the middle of a batch. They are stored
    as they were after the last batch that was learned from, so that an interrupted batch is played
    again. num_log_lines, num_event_bytes: lines of the log, and bytes of TensorBoard's files, that
    belong to a restored checkpoint.
    """

    def __init__(self, cfg: TrainConfig, components: Components) -> None:
        self.cfg, self.components = cfg, components
        self.progress, self.metrics = Progress(), MetricAccumulator()
        play_stream = distributed.rank_stream_name("play")
        self.rng = make_generator(cfg.seed, play_stream, components.device)
        self.num_log_lines = self.num_event_bytes = 0
        self._started_at = time.perf_counter()
        self.take_snapshot()

    @property
    def is_over(self) -> bool:
        return self.progress.has_converged or self.progress.games_played >= self.cfg.games

    def is_due(self, last_games: int, every: int) -> bool:
        """Whether a task is due that was last run after this many games."""
        games = self.progress.games_played
        return last_games < games and (games - last_games >= every or self.is_over)

    @property
    def batch_size(self) -> int:
        """Games that this process plays in the next batch."""
        remaining = self.cfg.games - self.progress.games_played
        part, rest = divmod(min(self.cfg.batch, remaining), distributed.world_size())
        return max(1, part + (distributed.rank() < rest))

    @property
    def seconds(self) -> float:
        """Wall-clock time of all processes of the run, one after the other."""
        return self.progress.seconds + time.perf_counter() - self._started_at

    def totals(self) -> dict[str, float]:
        """What the run has taken so far, for each line of the log."""
        return {
            "time/seconds": self.seconds,
            "time/updates": self.progress.num_updates,
            "time/moves": self.progress.num_moves,
        }

    def take_snapshot(self) -> None:
        """Note what playing changes."""
        players = enumerate(self.components.players)
        self._snapshot: Tree = {
            "generators": {name: rng.get_state() for name, rng in self._generators().items()},
            "collector": self.components.collector.state_dict(),
            "players": {str(index): player.state_dict() for index, player in players},
        }

    def finish_batch(self, final_states: FinalStates, is_stopping: bool) -> bool:
        """Count a batch that was learned from, over all processes, and take a snapshot.

        Returns whether any process is stopping.
        """
        finished = final_states.state[final_states.state.done]
        if len(finished):
            statistics = game_statistics(self.components.game, finished)
            self.metrics.add(statistics, len(finished))
        counts = torch.tensor(
            [len(finished), final_states.num_moves, is_stopping], device=self.components.device
        )
        num_games, num_moves, num_stopping = distributed.all_reduce_sum(counts).tolist()
        self.metrics.count(num_games, num_moves)
        self.progress.games_played += num_games
        self.progress.num_moves += num_moves
        self.progress.num_updates += 1
        self.take_snapshot()
        return bool(num_stopping)

    def state_dict(self, num_log_lines: int, num_event_bytes: int) -> Tree:
        """The state as a tree; in the first process the state of all processes."""
        own = {"learner": self.components.learner.state_dict(), **self._snapshot}
        processes = distributed.gather(own) or []
        return {
            "progress": asdict(self.progress) | {"seconds": self.seconds},
            "num_log_lines": num_log_lines,
            "num_event_bytes": num_event_bytes,
            "metrics": self.metrics.state_dict(),
            "measurements": {
                name: each.state_dict() for name, each in self.components.measurements.items()
            },
            "processes": {str(rank): process for rank, process in enumerate(processes)},
        }

    def load(self, checkpoint: Checkpoint) -> None:
        """Restore the weights and the state. Raises BadCheckpoint where they do not fit."""
        restore_weights(self.components.agent.policy, checkpoint.policy)
        try:
            with warnings.catch_warnings():
                # PyTorch warns where a tensor is indexed by a name: a tensor instead of a tree.
                warnings.filterwarnings("error", "Using a non-tuple", UserWarning)
                self._load_state_dict(checkpoint.state)
            self.progress.check(checkpoint.games)
        except RESTORE_ERRORS as error:
            why = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
            raise BadCheckpoint(
                f"this run cannot resume from its checkpoint ({sanitized(why)})"
            ) from None
        self.take_snapshot()

    def _load_state_dict(self, state: Tree) -> None:
        components, processes = self.components, state["processes"]
        self.progress = Progress(**state["progress"])
        self.num_log_lines = checked_int(state["num_log_lines"], 0)
        self.num_event_bytes = checked_int(state["num_event_bytes"], 0)
        if self.progress.saved_at < 0:  # stopped before all references were written
            self.num_event_bytes = 0
        self.metrics.load_state_dict(state["metrics"])
        for name, each in components.measurements.items():
            if name in state["measurements"]:  # else the config asks for it since this resume
                each.load_state_dict(state["measurements"][name], self.progress.games_played)
        own = processes.get(str(distributed.rank()))  # None if there were fewer processes
        shared = own or processes["0"]
        components.learner.load_state_dict(shared["learner"])
        for index, player in enumerate(components.players):
            player.load_state_dict(shared["players"][str(index)])
        if own is not None:
            components.collector.load_state_dict(own["collector"], self.rng)
        for name, generator in self._generators().items():
            if own is None or not restore_generator(generator, own["generators"][name]):
                # A stream that nothing has used, the same one each time.
                stream = f"{name} after {self.progress.games_played}"
                unused = make_generator(
                    self.cfg.seed, distributed.rank_stream_name(stream), components.device
                )
                generator.set_state(unused.get_state())

    def _generators(self) -> dict[str, torch.Generator]:
        return {"play": self.rng, "learn": self.components.collector.rng}
