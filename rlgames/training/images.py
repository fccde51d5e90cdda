"""A callback that shows evaluations as histograms and images."""

from __future__ import annotations

import torch

from rlgames.core.rng import make_generator
from rlgames.drawing import plots
from rlgames.evaluation.diagnostics import afterstate_values, certainty_by_move
from rlgames.evaluation.evaluate import Evaluation
from rlgames.games.game import State
from rlgames.players.player import Player
from rlgames.policies.policy import ValueFunction
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import Trajectories
from rlgames.runs.run_log import RunLog
from rlgames.training import game_images
from rlgames.training.callbacks import Callback
from rlgames.training.evaluator import Evaluator

NUM_SHOWN = 4
"""A game is shown after each of this many parts of the run."""

NUM_PARALLEL_GAMES = 16
"""Games whose positions are valued; the first of them is shown."""

MAX_SHOWN_PLIES = 1000
"""Longer games are shown up to here."""

MAX_VALUED_POSITIONS = 1000


class ImageCallback(Callback):
    """Writes histograms of every evaluation, and now and then images of a game.

    learns_logits: the policy's scores are logits, so that its moves have probabilities.
    num_games: in the whole run. evaluated_at: after how many games a resumed run was last
    evaluated, otherwise 0.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        learns_logits: bool,
        log: RunLog,
        num_games: int,
        evaluated_at: int,
    ) -> None:
        self.evaluator, self.log, self.num_games = evaluator, log, num_games
        self.game, self.policy = evaluator.game, evaluator.greedy.policy
        self.learns_logits = learns_logits
        self._last_shown = evaluated_at * NUM_SHOWN // num_games

    def on_evaluation_end(self, games: int, evaluation: Evaluation | None) -> None:
        if evaluation is not None:
            final = evaluation.state
            self.log.histogram(games, "games/turns", final.turn.cpu().double().numpy())
            if self.game.spec.goal == "score":
                self.log.histogram(games, "games/score", final.score[:, 0].cpu().double().numpy())
        if isinstance(self.policy, ValueFunction) and self.game.spec.goal == "outcome":
            self._write_afterstate_values(games, self.policy)
        part = games * NUM_SHOWN // self.num_games
        if games and part != self._last_shown:
            self._last_shown = part
            self._show_games(games)

    def _write_afterstate_values(self, games: int, policy: ValueFunction) -> None:
        """The values of boards after winning and other moves, as histograms and as one image."""
        rng = make_generator(self.evaluator.seed, "draw", self.game.device)
        groups = {
            name: values.cpu().double().numpy()
            for name, values in afterstate_values(
                self.game, policy, self.evaluator.graph, rng
            ).items()
        }
        for name, values in groups.items():
            self.log.histogram(games, f"values/{name}", values)
        title = f"values of boards, after {games:,} games"
        self.log.image(games, "values", plots.encode_png(plots.histogram(title, groups)))

    def _show_games(self, games: int) -> None:
        """A greedy game, the values of positions, and how certain the policy is of its moves."""
        evaluator, game = self.evaluator, self.game
        rng = make_generator(self.evaluator.seed, "show", self.game.device)
        if self.learns_logits:
            certainty = certainty_by_move(game, self.policy, rng).cpu().double().numpy()
            self.log.histogram(games, "games/distance_to_certainty", certainty)
            title = f"one game, after {games:,} games of training"
            chart = plots.plot_by_move(title, "distance to certainty", certainty, 2.0)
            self.log.save_picture("certainty", plots.encode_png(chart))
        players: list[Player] = [evaluator.greedy]
        if evaluator.opponent is not None:
            players.append(evaluator.opponent)
        pool = GamePool(game, players, NUM_PARALLEL_GAMES, rng)
        trajectories, final_states = pool.collect(MAX_SHOWN_PLIES)
        self._write_position_values(games, trajectories.by_player(0).state)
        first_game = trajectories.select_games(trajectories.game.new_zeros(1))
        self._write_game(games, first_game, final_states.state[:1])

    def _write_position_values(self, games: int, positions: State) -> None:
        chosen = game_images.evenly_spaced(len(positions), MAX_VALUED_POSITIONS)
        rows = torch.tensor(chosen, device=positions.done.device)
        values = game_images.position_values(
            self.game, self.policy, positions[rows], self.learns_logits
        )
        if values is not None and bool(values.isfinite().all()):
            self.log.histogram(games, "values/positions", values.numpy())

    def _write_game(self, games: int, trajectory: Trajectories, final: State) -> None:
        try:
            stills, animation = game_images.draw_game(
                self.game, self.policy, self.learns_logits, trajectory, final
            )
        except Exception as error:  # a plugin's game may be unable to draw itself
            self.log.logger.warning("no images of games (%s: %s)", type(error).__name__, error)
            return
        for number, still in enumerate(stills, 1):
            self.log.image(games, f"game/position_{number}", plots.encode_png(still))
        self.log.image(games, "game/animation", animation)
