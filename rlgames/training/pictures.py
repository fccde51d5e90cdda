"""A callback that shows evaluations as histograms and images, and images of one game of an agent
with its policy's probabilities of the moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from rlgames.core.callbacks import Callback
from rlgames.core.rng import make_generator
from rlgames.core.text import short_number
from rlgames.drawing.figures import Line, histogram_lines, line_chart
from rlgames.drawing.pictures import (
    ActionOverlay,
    draw_scene,
    encode_gif,
    encode_png,
    format_percent,
    position_scene,
)
from rlgames.evaluation.advice import afterstate_values, certainty_by_move, expected_returns
from rlgames.games.game import Game, State
from rlgames.policies.policy import Policy, ValueFunction
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import Trajectories
from rlgames.runs.log import RunLog
from rlgames.sampling import mask_illegal
from rlgames.training.evaluator import Evaluator

NUM_SHOWN = 4
"""A game is shown after each of this many parts of the run."""

NUM_PARALLEL_GAMES = 16
"""Games whose positions are valued; the first of them is shown."""

MAX_SHOWN_PLIES = 1000
"""Longer games are shown up to here."""

MAX_VALUED_POSITIONS = 1000

NUM_STILLS = 4
"""The number of positions that get a separate image."""

MAX_FRAMES = 64
"""The animation of a longer game skips positions, evenly."""

ANIMATION_WIDTH = 200
"""In pixels."""


class ImageCallback(Callback):
    """Writes histograms of every evaluation, and now and then images of a game.

    num_games: in the whole run. evaluated_at: after how many games a resumed run was last
    evaluated, otherwise 0.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        log: RunLog,
        num_games: int,
        evaluated_at: int,
    ) -> None:
        self.evaluator, self.log, self.num_games = evaluator, log, num_games
        self.game, self.policy = evaluator.game, evaluator.greedy.policy
        self._last_shown = evaluated_at * NUM_SHOWN // num_games

    def on_evaluation_end(self, games: int, values: Mapping[str, NDArray[np.float64]]) -> None:
        for name, numbers in values.items():
            if name != "score" or self.game.spec.goal == "score":
                self.log.histogram(games, f"games/{name}", numbers)
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
        self.log.image(games, "values", encode_png(line_chart(title, histogram_lines(groups))))

    def _show_games(self, games: int) -> None:
        """A greedy game, the values of positions, and how certain the policy is of its moves."""
        evaluator, game = self.evaluator, self.game
        rng = make_generator(self.evaluator.seed, "show", self.game.device)
        if self.policy.scores_are_logits:
            certainty = certainty_by_move(game, self.policy, rng).cpu().double().numpy()
            self.log.histogram(games, "games/distance_to_certainty", certainty)
            title = f"one game, after {games:,} games of training"
            moves = np.arange(1.0, len(certainty) + 1)
            line = Line("distance to certainty by move", moves, certainty)
            chart = line_chart(title, [line], 2.0, is_counted=True)
            self.log.save_picture("certainty", encode_png(chart))
        players = [each for each in (evaluator.greedy, evaluator.opponent) if each is not None]
        pool = GamePool(game, players, NUM_PARALLEL_GAMES, rng)
        trajectories, final_states = pool.collect(MAX_SHOWN_PLIES)
        positions = trajectories.by_player(0).state
        chosen = evenly_spaced(len(positions), MAX_VALUED_POSITIONS)
        rows = torch.tensor(chosen, device=positions.done.device)
        values, _ = expected_returns(game, self.policy, positions[rows])
        if values is not None and bool(values.isfinite().all()):
            self.log.histogram(games, "values/positions", values.cpu().double().numpy())
        first_game = trajectories.select_games(trajectories.game.new_zeros(1))
        self._write_game(games, first_game, final_states.state[:1])

    def _write_game(self, games: int, trajectory: Trajectories, final: State) -> None:
        try:
            stills, animation = draw_game(self.game, self.policy, trajectory, final)
        except Exception as error:  # a plugin's game may be unable to draw itself
            self.log.note(f"no images of games ({type(error).__name__}: {error})")
            return
        for number, still in enumerate(stills, 1):
            self.log.image(games, f"game/position_{number}", encode_png(still))
        self.log.image(games, "game/animation", animation)


@torch.no_grad()
def action_overlays(game: Game[Any], policy: Policy, state: State) -> list[ActionOverlay]:
    """What a policy thinks of the actions in public positions [B].

    Logits are shown as probabilities in percent, and values as they are, the best action of a
    position in the darkest color.
    """
    legal = game.legal_action_mask(state)
    scores = mask_illegal(policy.scores(game, state)[0].nan_to_num(), legal).cpu().double()
    if policy.scores_are_logits:
        probabilities = scores.softmax(1).numpy()
        return [
            ActionOverlay(row, [*map(format_percent, row)], is_distribution=True)
            for row in probabilities
        ]
    low, high = scores.where(legal.cpu(), torch.inf).amin(1, True), scores.amax(1, True)
    weights = ((scores - low) / (high - low).clamp(min=1e-9)).clamp(min=0).numpy()
    return [
        ActionOverlay(row, [*map(short_number, row_scores)], is_distribution=False)
        for row, row_scores in zip(weights, scores.tolist(), strict=True)
    ]


def evenly_spaced(count: int, limit: int) -> list[int]:
    """At most limit numbers below count: the first, the last, and others evenly between."""
    return [round(number) for number in np.linspace(0, count - 1, min(count, limit)).tolist()]


def draw_game(
    game: Game[Any], policy: Policy, trajectory: Trajectories, final: State
) -> tuple[list[Image.Image], bytes]:
    """Single positions, and the whole game as a GIF.

    trajectory: public, of one game in which the policy is player 0. final: how it ended [1].
    """
    own = (trajectory.player == 0).nonzero()[:, 0]
    stills = [
        _still(game, policy, trajectory, int(own[index]))
        for index in evenly_spaced(len(own), NUM_STILLS)
    ]
    # The opponent's positions would show what is hidden from the policy.
    visible = own.tolist() if game.spec.hidden else range(len(trajectory))
    plies = [visible[index] for index in evenly_spaced(len(visible), MAX_FRAMES - 1)]
    positions = trajectory.state[torch.tensor(plies, device=own.device)]
    overlays = action_overlays(game, policy, positions)
    frames = [
        _frame(game, trajectory, ply, overlay) for ply, overlay in zip(plies, overlays, strict=True)
    ]
    end = game.view_from_seat(final, 0)
    title = _end_title(game, end, len(trajectory))
    scene = position_scene(game, end, 0, title, reveal=True, width=ANIMATION_WIDTH)
    frames.append(draw_scene(scene))
    return stills, encode_gif(frames)


def _still(game: Game[Any], policy: Policy, trajectory: Trajectories, ply: int) -> Image.Image:
    (overlay,) = action_overlays(game, policy, trajectory.state[ply : ply + 1])
    action = int(trajectory.action[ply])
    label = f"worth {overlay.labels[action]}"
    if policy.scores_are_logits:
        label = f"{overlay.weights[action]:.0%} sure"
    title = f"{_title(game, trajectory, ply)} ({label})"
    return draw_scene(position_scene(game, trajectory.state, ply, title, overlay, action))


def _frame(
    game: Game[Any], trajectory: Trajectories, ply: int, overlay: ActionOverlay
) -> Image.Image:
    is_own = int(trajectory.player[ply]) == 0
    title, action = _title(game, trajectory, ply), int(trajectory.action[ply])
    shown = overlay if is_own else None
    scene = position_scene(game, trajectory.state, ply, title, shown, action, width=ANIMATION_WIDTH)
    return draw_scene(scene)


def _title(game: Game[Any], trajectory: Trajectories, ply: int) -> str:
    player = "" if int(trajectory.player[ply]) == 0 else ", opponent"
    action = game.action_to_string(trajectory.state, ply, int(trajectory.action[ply]))
    return f"move {ply + 1:,}{player}: {action}"


def _end_title(game: Game[Any], end: State, plies: int) -> str:
    if not bool(end.done[0]):
        return f"after {plies:,} moves"
    score = end.score[0].tolist()
    if game.spec.goal == "outcome":
        return "won" if score[0] > score[-1] else "lost" if score[0] < score[-1] else "drawn"
    if game.spec.goal == "score":
        return f"the end: score {score[0]:,.0f}"
    return f"the end: {int(end.turn[0]):,} turns"
