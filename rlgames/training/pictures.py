"""Evaluations as pictures: boards by their value, and one game of an agent with its policy's
probabilities of the moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from rlgames.drawing.figures import Line, histogram_lines, line_chart
from rlgames.drawing.images import draw_scene, encode_gif, encode_png
from rlgames.drawing.pictures import WIDTH, ActionOverlay, position_scene
from rlgames.evaluation.analysis import distinct
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Random
from rlgames.policies.policy import Policy, ValueFunction
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, collect_games
from rlgames.rollouts.trajectories import Trajectories
from rlgames.runs.log import RunLog
from rlgames.sampling import Stochastic, distance_to_certainty, mask_illegal
from rlgames.training.parts import Training

MAX_SHOWN_PLIES = 1000
"""Longer games are shown up to here."""

NUM_STILLS = 4
"""The number of positions that get a separate image."""

MAX_FRAMES = 64
"""The animation of a longer game skips positions, evenly."""

ANIMATION_WIDTH = 200
"""In pixels."""

NUM_RANDOM_GAMES = 1000
"""The boards of this many random games are valued."""


def write_afterstate_values(
    training: Training, policy: ValueFunction, log: RunLog, games: int
) -> None:
    """The values of boards after winning and other moves."""
    rng = Rng(training.cfg.seed, "draw", training.game.device)
    by_kind = afterstate_values(training.game, policy, rng)
    groups = {kind: values.cpu().double().numpy() for kind, values in by_kind.items()}
    title = f"values of boards, after {games:,} games"
    log.picture(games, "values", encode_png(line_chart(title, histogram_lines(groups))))


def show_games(training: Training, log: RunLog, games: int) -> None:
    """A greedy game, and how certain the policy is of its moves."""
    game, greedy, opponent = training.game, training.greedy, training.evaluator.opponent
    policy, rng = greedy.policy, Rng(training.cfg.seed, "show", game.device)
    if policy.scores_are_logits:
        certainty = certainty_by_move(game, policy, rng).cpu().double().numpy()
        title = f"one game, after {games:,} games of training"
        moves = np.arange(1.0, len(certainty) + 1)
        line = Line("distance to certainty by move", moves, certainty)
        chart = line_chart(title, [line], 2.0, is_counted=True)
        log.picture(games, "certainty", encode_png(chart))
    players = [greedy] if opponent is None else [greedy, opponent]
    trajectory, final_states = GamePool(game, players, 1, rng).collect(MAX_SHOWN_PLIES)
    try:
        stills, film = draw_game(game, policy, trajectory, final_states.state)
    except Exception as error:  # a plugin's game may be unable to draw itself
        log.note(f"no images of games ({type(error).__name__}: {error})")
        return
    for number, still in enumerate(stills, 1):
        log.picture(games, f"game/position_{number}", encode_png(still))
    log.picture(games, "game/animation", film)


def afterstate_values(game: Game[Any], policy: ValueFunction, rng: Rng) -> dict[str, Tensor]:
    """The policy's values of the different afterstates in random games, for the seat that moved:
    float32 [N] by kind, "won" where the move wins the game, and "other"; empty kinds are left out.
    """
    moves, _ = collect_games(game, [Random(game)], NUM_RANDOM_GAMES, rng)
    after = game.apply_action(moves.state, moves.action)
    rows, _ = distinct(after)
    after, seat = after[rows], moves.seat[rows]
    is_won = after.done & (after.score.gather(1, seat[:, None])[:, 0] > 0)
    value = policy.value(game, after)
    by_kind = {"won": value[is_won], "other": value[~is_won]}
    return {kind: values for kind, values in by_kind.items() if len(values)}


def certainty_by_move(game: Game[Any], policy: Policy, rng: Rng) -> Tensor:
    """Float32 [T]: the distance to certainty at each move of one game sampled from the policy."""
    agent = Agent(game, policy, Stochastic(1.0))
    trajectories, _ = collect_games(game, [agent], 1, rng)
    return distance_to_certainty(agent.probabilities(trajectories.state).float())


@torch.no_grad()
def action_overlays(game: Game[Any], policy: Policy, state: State) -> list[ActionOverlay]:
    """What a policy thinks of the actions in public positions [B]: logits as probabilities."""
    legal = game.legal_action_mask(state)
    scores = mask_illegal(policy.scores(game, state)[0].nan_to_num(), legal).cpu().double()
    shown = scores.softmax(1) if policy.scores_are_logits else scores
    return [ActionOverlay.of(row, not policy.scores_are_logits) for row in shown.numpy()]


def evenly_spaced(count: int, limit: int) -> list[int]:
    """At most limit numbers below count: the first, the last, and others evenly between."""
    return [round(number) for number in np.linspace(0, count - 1, min(count, limit)).tolist()]


def draw_game(
    game: Game[Any], policy: Policy, trajectory: Trajectories, final: State
) -> tuple[list[Image.Image], bytes]:
    """Single positions, and the whole game as a GIF.

    trajectory: public, of one game where the policy is player 0. final: how it ended [1].
    """
    is_own = trajectory.player == 0
    own = is_own.nonzero()[:, 0].tolist()
    # The opponent's positions would show what is hidden from the policy.
    visible = own if game.spec.hidden else range(len(trajectory))
    shown = {
        "still": [own[index] for index in evenly_spaced(len(own), NUM_STILLS)],
        "frame": [visible[index] for index in evenly_spaced(len(visible), MAX_FRAMES - 1)],
    }
    pictures: dict[str, list[Image.Image]] = {}
    for kind, plies in shown.items():
        rows = torch.tensor(plies, dtype=torch.long, device=is_own.device)
        overlays = action_overlays(game, policy, trajectory.state[rows])
        pictures[kind] = [
            _picture(game, trajectory, ply, overlay if is_own[ply] else None, kind == "still")
            for ply, overlay in zip(plies, overlays, strict=True)
        ]
    end = game.view_from_seat(final, 0)
    title = _end_title(game, end, len(trajectory))
    scene = position_scene(game, end, 0, title, reveal=True, width=ANIMATION_WIDTH)
    return pictures["still"], encode_gif([*pictures["frame"], draw_scene(scene)])


def _picture(
    game: Game[Any],
    trajectory: Trajectories,
    ply: int,
    overlay: ActionOverlay | None,
    is_still: bool,
) -> Image.Image:
    """A position and the move made there, with what a policy thinks of its moves."""
    action = int(trajectory.action[ply])
    player = ", opponent" if overlay is None else ""
    title = f"move {ply + 1:,}{player}: {game.action_to_string(trajectory.state, ply, action)}"
    if is_still and overlay is not None:
        sure = f"{overlay.weights[action]:.0%} sure"
        title += f" ({sure if overlay.is_distribution else f'worth {overlay.labels[action]}'})"
    width = WIDTH if is_still else ANIMATION_WIDTH
    return draw_scene(
        position_scene(game, trajectory.state, ply, title, overlay, action, width=width)
    )


def _end_title(game: Game[Any], end: State, plies: int) -> str:
    if not bool(end.done[0]):
        return f"after {plies:,} moves"
    score = end.score[0].tolist()
    if game.spec.goal == "outcome":
        return "won" if score[0] > score[-1] else "lost" if score[0] < score[-1] else "drawn"
    if game.spec.goal == "score":
        return f"the end: score {score[0]:,.0f}"
    return f"the end: {int(end.turn[0]):,} turns"
