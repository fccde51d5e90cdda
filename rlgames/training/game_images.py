"""One game of an agent as pictures, with what its policy thinks of the moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from rlgames.drawing import pictures
from rlgames.drawing.pictures import Thought
from rlgames.games.game import Game, State
from rlgames.policies.policy import Policy
from rlgames.rollouts.trajectories import Trajectories
from rlgames.sampling import mask_illegal

NUM_STILLS = 4
"""So many positions are drawn alone."""

MAX_FRAMES = 64
"""An animation of a longer game leaves positions out, evenly."""

ANIMATION_WIDTH = 200
"""Pixels: the width of an animation."""


@torch.no_grad()
def action_values(game: Game[Any], policy: Policy, state: State, logits: bool) -> list[Thought]:
    """What a policy thinks of public positions [B].

    logits: its scores are logits, and told as probabilities in percent; otherwise as they are,
        the best action of a position being the darkest.
    """
    legal = game.legal_action_mask(state)
    scores = mask_illegal(policy.scores(game, state)[0].nan_to_num(), legal).double()
    if logits:
        weights = scores.softmax(1).cpu().numpy()
        return [Thought(row, [*map(pictures.percent, row)], shared=True) for row in weights]
    low, high = scores.where(legal, torch.inf).amin(1, True), scores.amax(1, True)
    weights = ((scores - low) / (high - low).clamp(min=1e-9)).clamp(min=0).cpu().numpy()
    pairs = zip(weights, scores.tolist(), strict=True)
    return [Thought(row, [*map(_value, values)], shared=False) for row, values in pairs]


@torch.no_grad()
def values(game: Game[Any], policy: Policy, state: State, logits: bool) -> Tensor | None:
    """Float64 [B]: what a policy thinks that its public positions are worth, by its value head or
    its best action; None where it does not say."""
    scores, value = policy.scores(game, state)
    if value is None and not logits:
        value = mask_illegal(scores, game.legal_action_mask(state)).amax(1)
    return None if value is None else value.double().cpu()


def evenly_spaced(count: int, most: int) -> list[int]:
    """Numbers below count, the first, the last and others evenly between: at most so many."""
    return [round(place) for place in np.linspace(0, count - 1, min(count, most)).tolist()]


def show(
    game: Game[Any], policy: Policy, logits: bool, moves: Trajectories, final: State
) -> tuple[list[Image.Image], bytes]:
    """Single positions, and the whole game as a GIF.

    moves: of one game, in which the policy is player 0; public. final: where it ended [1].
    """
    own = (moves.player == 0).nonzero()[:, 0]
    stills = [
        _still(game, policy, logits, moves, int(own[n]))
        for n in evenly_spaced(len(own), NUM_STILLS)
    ]
    # What is hidden from the policy would show in the other's positions.
    seen = own.tolist() if game.spec.hidden else range(len(moves))
    shown = [seen[n] for n in evenly_spaced(len(seen), MAX_FRAMES - 1)]
    thought = action_values(
        game, policy, moves.state[torch.tensor(shown, device=own.device)], logits
    )
    frames = [_frame(game, moves, *each) for each in zip(shown, thought, strict=True)]
    end = game.view_from_seat(final, 0)
    frames.append(
        pictures.diagram(
            game, end, 0, _end(game, end, len(moves)), reveal=True, width=ANIMATION_WIDTH
        )
    )
    return stills, pictures.animation(frames)


def _still(
    game: Game[Any], policy: Policy, logits: bool, moves: Trajectories, ply: int
) -> Image.Image:
    (thought,) = action_values(game, policy, moves.state[ply : ply + 1], logits)
    title, action = _title(game, moves, ply), int(moves.action[ply])
    told = f"{thought.weights[action]:.0%} sure" if logits else f"worth {thought.words[action]}"
    return pictures.diagram(game, moves.state, ply, f"{title} ({told})", thought, action)


def _frame(game: Game[Any], moves: Trajectories, ply: int, thought: Thought) -> Image.Image:
    mine = int(moves.player[ply]) == 0
    title, action = _title(game, moves, ply), int(moves.action[ply])
    shown = thought if mine else None
    return pictures.diagram(game, moves.state, ply, title, shown, action, width=ANIMATION_WIDTH)


def _title(game: Game[Any], moves: Trajectories, ply: int) -> str:
    who = "" if int(moves.player[ply]) == 0 else ", opponent"
    return (
        f"move {ply + 1:,}{who}: {game.action_to_string(moves.state, ply, int(moves.action[ply]))}"
    )


def _end(game: Game[Any], end: State, plies: int) -> str:
    if not bool(end.done[0]):
        return f"after {plies:,} moves"
    score = end.score[0].tolist()
    if game.spec.goal == "outcome":
        return "won" if score[0] > score[-1] else "lost" if score[0] < score[-1] else "drawn"
    if game.spec.goal == "score":
        return f"the end: score {score[0]:,.0f}"
    return f"the end: {int(end.turn[0]):,} turns"


def _value(value: float) -> str:
    """Short; nothing for what is not legal."""
    if not np.isfinite(value):
        return ""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2f}"
