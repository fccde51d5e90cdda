"""How well a player plays: lengths, scores and outcomes of its games, with intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.evaluation.parallel import ShardedGames, find_random_play
from rlgames.evaluation.statistics import Estimate, Rate
from rlgames.games.game import Game, State
from rlgames.players.player import Player, Random
from rlgames.rollouts.holdout import sampled_from
from rlgames.rollouts.play import InitialStates, sampled_by_game
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.solvers.optimum import on_cpu

MAX_ENUMERATED_LAYOUTS = 5000
"""games="auto" plays a deterministic player on every layout if there are at most this many."""

MAX_LAYOUTS = 10**9
"""games="all" plays at most this many layouts."""

EVAL_BATCH = 4096

MAX_RANDOM_PLAY_POSITIONS = 1e40
"""Random play is no reference for games with more positions than this, such as 2048 on 6×6."""

RANDOM_PLAY_GAMES = 1000

OUTCOMES = ("win", "draw", "loss")


@dataclass(frozen=True)
class EvaluationSettings:
    """Which games an evaluation plays.

    games: a number of games on sampled layouts; "all" plays every layout, weighted by its prior
        probability, as often as a player that is not deterministic needs; "auto" plays all if that
        is exact and they are few, otherwise `sampled_games`.
    batch: games side by side. layouts: the only initial positions, all equally likely; None: those
    of the game.
    """

    games: int | str = "auto"
    sampled_games: int = 2000
    batch: int = EVAL_BATCH
    layouts: State | None = None


@dataclass(frozen=True)
class Evaluation:
    """Statistics of a player's games.

    is_exact: all ways the games can go were played. turns: the length of the games. score: the
    player's final score. measures: the game's own measures of the final positions. tile_rates:
    how many games reached each tile of 2048. outcomes_by_seat: for two seats, how many games the
    player won, drew and lost in each. num_moves, seconds: of the play itself. state: the final
    positions.
    """

    games: int
    is_exact: bool
    turns: Estimate
    score: Estimate
    measures: dict[str, Estimate]
    tile_rates: dict[str, Rate]
    outcomes_by_seat: list[dict[str, Rate]]
    num_moves: int
    seconds: float
    state: State = field(repr=False)

    def outcome_rate(self, outcome: str) -> Rate:
        """The rate of "win", "draw" or "loss" over both seats."""
        return Rate.pooled([seat[outcome] for seat in self.outcomes_by_seat])

    @property
    def points(self) -> float:
        """The fraction of games won, where a draw counts half."""
        return self.outcome_rate("win").rate + self.outcome_rate("draw").rate / 2


def evaluate(
    game: Game[Any],
    player: Player,
    settings: EvaluationSettings,
    rng: torch.Generator,
    opponent: Player | None = None,
    on_games: Callable[[Trajectories, FinalStates], None] | None = None,
) -> Evaluation:
    """Play games and compute their statistics; see ShardedGames for the use of several threads.

    opponent: the player in the other seat of a two-player game; each has either seat in half of the
    games. on_games: called with the recorded games.
    Two deterministic players can play one game in each seating of a game without chance: then
    these two are played, whatever the settings.
    Raises ConfigError for games="all" if the layouts cannot be listed.
    """
    start = _choose_start(game, player, opponent, settings, rng.device)
    players, seating = _assign_seats(game, player, opponent, start.games, rng.device)
    # A player against itself needs no seating, and its two seats play in one batch.
    pool_seating = None if len(players) == 1 else seating
    random_play = None
    if on_games is None:
        random_play = find_random_play(game, players, start.games, settings.batch, rng.device)
    games = ShardedGames(
        game, players, start.games, settings.batch, start.initial_states, pool_seating, random_play
    )
    final, seconds = _play(games, rng, on_games)
    seat = torch.zeros(start.games, dtype=torch.int64) if seating is None else seating[:, 0].cpu()
    return _summarize(game, final, seat, start, seconds)


def random_play_mean(game: Game[Any]) -> float | None:
    """The mean of random play in a one-player game: turns from theory if known, else the score of
    1,000 games. None if that takes too long, and in two-player games."""
    if game.spec.goal == "turns":
        return game.expected_random_turns()
    if game.spec.goal == "outcome" or game.spec.max_positions > MAX_RANDOM_PLAY_POSITIONS:
        return None
    rng = torch.Generator().manual_seed(0)
    cpu_game = on_cpu(game)
    settings = EvaluationSettings(games=RANDOM_PLAY_GAMES)
    return evaluate(cpu_game, Random(cpu_game), settings, rng).score.mean


@dataclass(frozen=True)
class _Start:
    """How many games start where. weight: float64 [G], adds up to 1. is_exact: the games cover
    everything that can happen. layout: int64 [G], the layout of each game if every layout is played
    several times, otherwise None."""

    games: int
    initial_states: InitialStates
    weight: Tensor
    is_exact: bool = False
    layout: Tensor | None = None


def _choose_start(
    game: Game[Any],
    player: Player,
    opponent: Player | None,
    settings: EvaluationSettings,
    device: torch.device,
) -> _Start:
    games, layouts = settings.games, settings.layouts
    is_determined = not game.spec.hidden and not game.spec.num_chance_inputs
    if opponent and is_determined and player.deterministic and opponent.deterministic:
        weight = torch.full((2,), 0.5, dtype=torch.float64)
        return _Start(2, sampled_by_game(game), weight, is_exact=True)
    if games == "all" or (games == "auto" and player.deterministic):
        limit = MAX_LAYOUTS if games == "all" else MAX_ENUMERATED_LAYOUTS
        openings = list_openings(game, limit, layouts)
        if openings is not None:
            states, weight = openings[0].to(device), openings[1]
            if player.deterministic:
                return _Start(len(states), _in_order(states), weight, is_exact=True)
            repeats = max(2, math.ceil(settings.sampled_games / len(states)))
            layout = torch.arange(len(states)).repeat_interleave(repeats)
            initial_states = _in_order(states, repeats)
            return _Start(len(layout), initial_states, weight[layout] / repeats, layout=layout)
        if games == "all":
            raise ConfigError("games=all: the layouts of this game cannot be listed", "use games=N")
    count = settings.sampled_games if isinstance(games, str) else games
    initial_states = sampled_by_game(game) if layouts is None else sampled_from(layouts)
    weight = torch.full((count,), 1 / count, dtype=torch.float64)
    return _Start(count, initial_states, weight)


def list_openings(
    game: Game[Any], limit: int, layouts: State | None
) -> tuple[State, Tensor] | None:
    """All initial positions and their probabilities, float64; None if there are more than limit,
    or if the initial position does not determine the game."""
    if layouts is not None:
        weight = torch.full((len(layouts),), 1 / len(layouts), dtype=torch.float64)
        return (layouts, weight) if len(layouts) <= limit else None
    is_determined = game.spec.hidden and game.spec.seats == 1 and not game.spec.num_chance_inputs
    return game.openings(limit) if is_determined else None


def _in_order(states: State, repeats: int = 1) -> InitialStates:
    """Each position starts this many games, one after the other."""
    if repeats == 1:
        return lambda first, count, rng: states[first : first + count]
    device = states.done.device
    return lambda first, count, rng: states[
        torch.arange(first, first + count, device=device) // repeats
    ]


def _assign_seats(
    game: Game[Any], player: Player, opponent: Player | None, games: int, device: torch.device
) -> tuple[list[Player], Tensor | None]:
    """The different players, and for two seats who sits where, int64 [games, 2]; the player has
    seat 0 in every other game."""
    if game.spec.seats == 1:
        return [player], None
    if opponent is None:
        raise ValueError(f"{game.spec.name} needs an opponent")
    second = (torch.arange(games, device=device) % 2)[:, None]
    players = [player] if opponent is player else [player, opponent]
    return players, torch.cat([second, 1 - second], 1)


def _play(
    games: ShardedGames,
    rng: torch.Generator,
    on_games: Callable[[Trajectories, FinalStates], None] | None,
) -> tuple[FinalStates, float]:
    """The final states, and the seconds of play."""
    begin = time.perf_counter()
    if on_games is None:
        final = games.run(rng)
        return final, time.perf_counter() - begin
    trajectories, final = games.collect(rng)
    seconds = time.perf_counter() - begin
    on_games(trajectories, final)
    return final, seconds


def _summarize(
    game: Game[Any], final: FinalStates, seat: Tensor, start: _Start, seconds: float
) -> Evaluation:
    """seat: int64 [G], the player's."""
    stratum = seat if start.layout is None else start.layout

    def estimate(value: Tensor) -> Estimate:
        return Estimate.of(value.cpu().double(), start.weight, start.is_exact, stratum)

    measures = game.measures(final.state)
    max_tile = measures.pop("max_tile", None)
    score = final.score.cpu()
    return Evaluation(
        games=start.games,
        is_exact=start.is_exact,
        turns=estimate(final.turns),
        score=estimate(score.gather(1, seat[:, None])[:, 0]),
        measures={name: estimate(value) for name, value in measures.items()},
        tile_rates={} if max_tile is None else _tile_rates(max_tile.cpu()),
        outcomes_by_seat=_outcomes_by_seat(score, seat, start) if game.spec.seats == 2 else [],
        num_moves=final.num_moves,
        seconds=seconds,
        state=final.state,
    )


def _tile_rates(max_tile: Tensor) -> dict[str, Rate]:
    """For each tile from 8 to the largest of all games, how many games reached it."""
    top = int(max_tile.max())
    tiles = [2**power for power in range(3, max(top, 8).bit_length())]
    return {str(tile): Rate(int((max_tile >= tile).sum()), len(max_tile)) for tile in tiles}


def _outcomes_by_seat(score: Tensor, seat: Tensor, start: _Start) -> list[dict[str, Rate]]:
    """By seat of the player; score: float32 [G, 2], seat: int64 [G]."""
    lead = (score.gather(1, seat[:, None]) - score.gather(1, 1 - seat[:, None]))[:, 0]
    rates = []
    for index in (0, 1):
        seat_lead = lead[seat == index]
        counts = [(seat_lead > 0).sum(), (seat_lead == 0).sum(), (seat_lead < 0).sum()]
        rates.append(
            {
                name: Rate(int(count), len(seat_lead), start.is_exact)
                for name, count in zip(OUTCOMES, counts, strict=True)
            }
        )
    return rates
