"""What a policy in training is certain of, and what it expects."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.capabilities import ExactKey, find
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Random
from rlgames.policies.policy import Policy, ValueFunction
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Stochastic, distance_to_certainty, mask_illegal
from rlgames.solvers.graph import Graph

NUM_RANDOM_GAMES = 200


def certainty_by_move(game: Game[Any], policy: Policy, rng: torch.Generator) -> Tensor:
    """Float32 [T]: the distance to certainty at each move of one game sampled from the policy."""
    agent = Agent(game, policy, Stochastic())
    trajectories, _ = collect_games(game, [agent], 1, rng)
    return distance_to_certainty(agent.probabilities(trajectories.state).float())


@torch.no_grad()
def expected_returns(
    game: Game[Any], policy: Policy, state: State
) -> tuple[Tensor | None, Tensor | None]:
    """The returns that a policy expects at live public positions, float32 [B], and after each
    action, float32 [B, A]; None for what it does not tell."""
    scores, value = policy.scores(game, state)
    if policy.scores_are_logits:
        return value, None
    return mask_illegal(scores, game.legal_action_mask(state)).amax(1), scores


def afterstate_values(
    game: Game[Any], policy: ValueFunction, graph: Graph | None, rng: torch.Generator
) -> dict[str, Tensor]:
    """The policy's values of afterstates for the seat that moved: float32 [N] by kind.

    The kinds are "won", where the move wins the game, and "other"; empty kinds are left out. The
    afterstates come from all reachable positions if graph lists them, else from 200 random
    games; each counts once.
    """
    keys = find(game, ExactKey)
    if graph is None:
        trajectories, _ = collect_games(game, [Random(game)], NUM_RANDOM_GAMES, rng)
        states = [trajectories.state]
    else:
        states = [graph.keys.state_from_key(layer.keys) for layer in graph.layers.values()]
    values: dict[tuple[int | bytes, bool], float] = {}
    for state in states:
        legal = game.legal_action_mask(state)
        for action in range(game.spec.actions):
            before = state[(legal[:, action] & ~state.done).nonzero()[:, 0]]
            after = game.apply_action(before, torch.full_like(before.current_seat, action))
            score = after.score.gather(1, before.current_seat[:, None])[:, 0]
            is_won = after.done & (score > 0)
            value = policy.value(game, after)
            identity = _observed(game, after) if keys is None else keys.key(after).tolist()
            afterstates = zip(identity, is_won.tolist(), strict=True)
            values |= dict(zip(afterstates, value.tolist(), strict=True))
    by_kind = {
        kind: torch.tensor([value for (_, won), value in values.items() if won == is_won])
        for kind, is_won in (("won", True), ("other", False))
    }
    return {kind: value for kind, value in by_kind.items() if len(value)}


def _observed(game: Game[Any], state: State) -> list[int | bytes]:
    """What the seats to move see, as bytes."""
    seen = torch.cat([state.current_seat[:, None], game.observe(state).flatten(1)], 1)
    return [row.tobytes() for row in seen.cpu().numpy()]
