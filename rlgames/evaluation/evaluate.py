"""How well a player plays, between random play and the exact optimum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.evaluation.parallel import ShardedGames
from rlgames.evaluation.statistics import Estimate, Rate
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.policy import Policy, ValueFunction
from rlgames.rollouts.holdout import sampled_from
from rlgames.rollouts.play import InitialStates, collect_games, sampled_by_game
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Stochastic, distance_to_certainty
from rlgames.solvers.graph import Graph
from rlgames.solvers.optimum import on_cpu

ALL_LAYOUTS = 5000
"""Deterministic players are played on every layout while there are at most this many."""


EVAL_BATCH = 4096


MAX_RANDOM_PLAY_POSITIONS = 1e40
"""Random play is no reference for boards with more positions than that, 6×6 cells of 2048 say."""


@dataclass(frozen=True)
class Evaluation:
    """What a player did over some games.

    turns: the length of the games, in turns. score: the player's final score. measures: the
    game's own figures of the final positions. results: for two seats, by seat, how many games
    were won, drawn and lost. seconds, moves: of the playing itself.
    """

    games: int
    exact: bool
    turns: Estimate
    score: Estimate
    measures: dict[str, Estimate]
    reach: dict[str, Rate]
    results: list[dict[str, Rate]]
    moves: int
    seconds: float
    final: State = field(repr=False)

    def share(self, name: str) -> Rate:
        """ "win", "draw" or "loss" over both seats."""
        parts = [seat[name] for seat in self.results]
        return Rate(sum(part.count for part in parts), sum(part.games for part in parts))

    @property
    def points(self) -> float:
        """The share of games won, drawn ones counting half."""
        return self.share("win").rate + self.share("draw").rate / 2

    def headline(self) -> dict[str, float]:
        """The figures that training logs, by name."""
        if self.results:
            rates = {name: self.share(name).rate for name in ("win", "draw", "loss")}
            return {"points": self.points, **rates, "turns": self.turns.mean}
        return {"turns": self.turns.mean, "score": self.score.mean}


def evaluate(
    game: Game[Any],
    player: Player,
    games: str | int,
    sampled: int,
    rng: torch.Generator,
    opponent: Player | None = None,
    batch: int = EVAL_BATCH,
    layouts: State | None = None,
    record: Callable[[Trajectories, FinalStates], None] | None = None,
) -> Evaluation:
    """Play and count; what threads torch has share long evaluations, see play_in_shares.

    games: a number of games with fresh layouts; "all" plays every layout, weighted by the prior;
        "auto" plays all where that is exact and they are few, otherwise `sampled` games.
    opponent: who sits in the other seat of a game of two; each has either seat in half the games.
    layouts: the only openings to play, all equally likely. record: is handed the games played.
    Raises ConfigError for "all" where the layouts cannot be listed.
    """
    two = game.spec.seats == 2
    openings = None
    if games == "all" or (games == "auto" and player.deterministic):
        openings = _openings(game, 10**9 if games == "all" else ALL_LAYOUTS, layouts)
        if openings is None and games == "all":
            raise ConfigError("games=all: the ways a game can go cannot be listed", "give a number")
    count = sampled if isinstance(games, str) else games
    start = sampled_by_game(game) if layouts is None else sampled_from(layouts)
    if openings is not None:
        states, weight = openings[0].to(rng.device), openings[1]
        count = len(states)
        start = _in_order(states)
    else:
        weight = torch.full((count,), 1 / count, dtype=torch.float64)
    seating, players = None, [player]
    if two:
        assert opponent is not None
        players = [player] if opponent is player else [player, opponent]
        second = (torch.arange(count, device=rng.device) % 2)[:, None]
        seating = torch.cat([second, 1 - second], 1)
    begin = time.perf_counter()
    # Nothing tells a player from itself: it needs no seating.
    seating_or_none = None if opponent is player else seating
    sharded = ShardedGames(game, players, count, batch, start, seating_or_none)
    if record is None:
        found = sharded.run(rng)
    else:
        moves, found = sharded.collect(rng)
    seconds = time.perf_counter() - begin
    if record is not None:
        record(moves, found)
    exact = openings is not None and player.deterministic
    seat = torch.zeros(count, dtype=torch.int64) if seating is None else seating[:, 0].cpu()
    score = found.score.cpu().gather(1, seat[:, None])[:, 0].double()
    measures = {name: value.cpu().double() for name, value in game.measures(found.state).items()}
    tiles = measures.pop("max_tile", None)
    return Evaluation(
        games=count,
        exact=exact,
        turns=Estimate.of(found.turns.cpu().double(), weight, exact),
        score=Estimate.of(score, weight, exact),
        measures={name: Estimate.of(value, weight, exact) for name, value in measures.items()},
        reach={} if tiles is None else _reach(tiles),
        results=_results(found.score.cpu(), seat) if two else [],
        moves=found.moves,
        seconds=seconds,
        final=found.state,
    )


def _in_order(states: State) -> InitialStates:
    """Game i starts in position i."""
    return lambda first, count, rng: states[first : first + count]


def _openings(game: Game[Any], most: int, layouts: State | None) -> tuple[State, Tensor] | None:
    """What can be hidden and its probability, float64; None for more ways than most, and where
    that does not settle how a game goes."""
    if layouts is not None:
        equal = torch.full((len(layouts),), 1 / len(layouts), dtype=torch.float64)
        return (layouts, equal) if len(layouts) <= most else None
    settled = game.spec.hidden and game.spec.seats == 1 and not game.spec.num_chance_inputs
    return game.openings(most) if settled else None


def _reach(most: Tensor) -> dict[str, Rate]:
    """For each tile that some game reached, from 8 on, in how many it was reached."""
    top = int(most.max())
    tiles = [2**power for power in range(3, max(top, 8).bit_length())]
    return {str(tile): Rate(int((most >= tile).sum()), len(most)) for tile in tiles}


def _results(score: Tensor, seat: Tensor) -> list[dict[str, Rate]]:
    """By seat of the player; score: float32 [G, 2], seat: int64 [G]."""
    ahead = score.gather(1, seat[:, None]) - score.gather(1, 1 - seat[:, None])
    tables = []
    for sat in (0, 1):
        own = ahead[seat == sat, 0]
        kinds = {"win": own > 0, "draw": own == 0, "loss": own < 0}
        tables.append({name: Rate(int(is_.sum()), len(own)) for name, is_ in kinds.items()})
    return tables


def random_play_mean(game: Game[Any]) -> float | None:
    """What random play comes to in a game for one: turns where theory gives them, else the score
    of 1 000 games. None where that takes too long, and in games for two."""
    if game.spec.goal == "turns":
        return game.expected_random_turns()
    if game.spec.goal == "outcome" or game.spec.max_positions > MAX_RANDOM_PLAY_POSITIONS:
        return None
    rng = torch.Generator().manual_seed(0)
    here = on_cpu(game)
    return evaluate(here, Random(here), 1000, 1000, rng).score.mean


def certainty_by_move(game: Game[Any], policy: Policy, rng: torch.Generator) -> Tensor:
    """Float32 [T]: the distance to certainty at each move of one game, drawn by the policy."""
    agent = Agent(game, policy, Stochastic())
    moves, _ = collect_games(game, [agent], 1, rng)
    return distance_to_certainty(agent.probabilities(moves.state).float())


def afterstate_values(
    game: Game[Any], policy: ValueFunction, graph: Graph | None, rng: torch.Generator
) -> dict[str, Tensor]:
    """What the boards that a move can lead to are worth to its mover: float32 [N] by kind.

    "won": the move wins the game; "other". They are all boards that can be reached where graph
    lists them, else those of 200 random games; each board counts once. A kind that has none is
    left out.
    """
    if graph is None:
        moves, _ = collect_games(game, [Random(game)], 200, rng)
        states = [moves.state]
    else:
        states = [game.state_from_key(layer.keys) for layer in graph.layers.values()]
    found: dict[tuple[int, bool], float] = {}
    for state in states:
        legal = game.legal_action_mask(state)
        for action in range(game.spec.actions):
            rows = state[(legal[:, action] & ~state.done).nonzero()[:, 0]]
            after = game.apply_action(rows, torch.full_like(rows.current_seat, action))
            won = after.done & (after.score.gather(1, rows.current_seat[:, None])[:, 0] > 0)
            worth = policy.value(game, after)
            found |= dict(
                zip(
                    zip(game.key(after).tolist(), won.tolist(), strict=True),
                    worth.tolist(),
                    strict=True,
                )
            )
    kinds = {"won": True, "other": False}
    values = {
        name: torch.tensor([worth for (_, won), worth in found.items() if won == kind])
        for name, kind in kinds.items()
    }
    return {name: worths for name, worths in values.items() if len(worths)}
