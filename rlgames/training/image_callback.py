"""A callback that shows evaluations as pictures. What draws them is imported for the first one."""

from __future__ import annotations

from rlgames.core.callbacks import Callback
from rlgames.policies.policy import ValueFunction
from rlgames.runs.log import RunLog
from rlgames.training.parts import Training
from rlgames.training.progress import Progress

NUM_SHOWN = 4
"""A game is shown after each of this many parts of the run."""


class ImageCallback(Callback):
    """Draws every evaluation, and now and then a game."""

    def __init__(self, training: Training, log: RunLog, progress: Progress) -> None:
        self.training, self.log, self.num_games = training, log, progress.cfg.games
        self._last_shown = progress.done_at["evaluate"] * NUM_SHOWN // self.num_games

    def on_evaluation_end(self, games: int) -> None:
        policy = self.training.greedy.policy
        if isinstance(policy, ValueFunction) and self.training.game.spec.goal == "outcome":
            from rlgames.training.pictures import write_afterstate_values

            write_afterstate_values(self.training, policy, self.log, games)
        part = games * NUM_SHOWN // self.num_games
        if games and part != self._last_shown:
            self._last_shown = part
            from rlgames.training.pictures import show_games

            show_games(self.training, self.log, games)
