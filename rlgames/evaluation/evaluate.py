"""How well a player plays: lengths, scores and outcomes of its games, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.compiling import clock
from rlgames.core.errors import ConfigError
from rlgames.evaluation.estimates import Z_95, Estimate, Floats
from rlgames.evaluation.played import PlayedGames, play_all
from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, InitialStates, Openings, sampled_by_game
from rlgames.rollouts.trajectories import Trajectories

NOT_LISTED = ("games=all: the layouts of this game cannot be listed", "use games=N")
"""An error and its hint."""

MAX_ENUMERATED_LAYOUTS = 5000
"""games="auto" plays a deterministic player on every layout if there are at most this many."""

MAX_LAYOUTS = 10**9
"""games="all" plays at most this many layouts."""

EVAL_BATCH = 4096

OUTCOMES = ("win", "draw", "loss")


@dataclass(frozen=True)
class EvaluationSettings:
    """Which games an evaluation plays.

    games: a number of games on sampled layouts; "all" plays every layout, weighted by its prior
        probability, as often as a player that is not deterministic needs; "auto" plays all if that
        is exact and they are few, otherwise `sampled_games`.
    batch: games side by side. layouts: the only initial positions, all equally likely; None: those
    of the game. opening_turns: random turns at the start of each game, which depend on opening_seed
    only: the same in both seats and for all players.
    """

    games: int | str = "auto"
    sampled_games: int = 2000
    batch: int = EVAL_BATCH
    layouts: State | None = None
    opening_turns: int = 0
    opening_seed: int = 0


@dataclass(frozen=True)
class Evaluation:
    """Statistics of a player's games.

    games: how many were played. distinct_games: those with different moves, positions or seats. If
    all games in a seat are the same, all else counts them as one game. is_exact: all ways the games
    can go were played. turns: the length of the games. score: the player's final score. measures:
    the game's own measures of the final positions. tiles: how many games reached each tile of 2048,
    and of how many. outcomes: for two seats, how many games the player won, drew and lost in each,
    float64 [2, 3]; [0, 3] for one. num_moves, seconds: of the play itself. state: the final
    positions. trajectories: the moves, if they were recorded.
    """

    games: int
    distinct_games: int
    is_exact: bool
    turns: Estimate
    score: Estimate
    measures: dict[str, Estimate]
    tiles: dict[str, tuple[int, int]]
    outcomes: Floats
    num_moves: int
    seconds: float
    state: State = field(repr=False)
    trajectories: Trajectories | None = field(repr=False)

    def outcome_rate(self, outcome: str, seat: int | None = None) -> Estimate:
        """The rate of "win", "draw" or "loss" in a seat; None: over both seats."""
        seats = self.outcomes if seat is None else self.outcomes[[seat]]
        column = OUTCOMES.index(outcome)
        parts = [(int(counts[column]), int(counts.sum())) for counts in seats]
        return Estimate.of_rate(*parts, is_exact=self.is_exact)

    @property
    def moves_per_second(self) -> float:
        return self.num_moves / max(self.seconds, 1e-9)

    @property
    def points(self) -> float:
        """The fraction of games won, where a draw counts half."""
        return self.outcome_rate("win").value + self.outcome_rate("draw").value / 2

    def details(self, metric: str) -> dict[str, float]:
        """The standard error of "turns", "score" or "points", and the points in each seat."""
        if metric != "points":
            half = 0.0 if self.is_exact else getattr(self, metric).half
            return {} if half is None else {f"{metric}_std_error": half / Z_95}
        counts = self.outcomes[self.outcomes.sum(1) > 0]
        rate = counts / counts.sum(1, keepdims=True)
        points = rate @ [1, 0.5, 0]
        variance = (rate @ [1, 0.25, 0] - points**2) / counts.sum(1)
        error = 0.0 if self.is_exact else math.sqrt(variance.sum()) / len(counts)
        names = ("first_seat_points", "second_seat_points")
        return {"points_std_error": error} | dict(zip(names, points.tolist(), strict=False))


def evaluate(
    game: Game[Any],
    player: Player,
    settings: EvaluationSettings,
    rng: Rng,
    opponent: Player | None = None,
    records: bool = False,
) -> Evaluation:
    """Play games and compute their statistics.

    opponent: the player in the other seat of a two-player game; each has either seat in half of the
    games, and at least in one. records: whether to record every move.
    If neither the game nor a player uses chance, each game that is possible is played once. In a
    game with a single initial position that holds whatever the settings. See
    Player.is_deterministic.
    Raises ConfigError for games="all" if the layouts cannot be listed.
    """
    if game.spec.seats == 2 and opponent is None:
        raise ValueError(f"{game.spec.name} needs an opponent")
    players = [player] if opponent is None or opponent is player else [player, opponent]
    is_deterministic = all(each.is_deterministic for each in players) and not settings.opening_turns
    start = _start(game, settings, is_deterministic, rng.device)
    seat = torch.zeros(start.games, dtype=torch.int64, device=rng.device)
    if game.spec.seats == 2:  # the player has seat 0 in every other game
        seat = torch.arange(start.games, device=rng.device) % 2
    # A player against itself needs no seating, and its two seats play in one batch.
    seating = None if len(players) == 1 else torch.stack([seat, 1 - seat], 1)
    openings = None
    if settings.opening_turns:
        rng_of_openings = Rng(settings.opening_seed, "openings", rng.device)
        openings = Openings(rng_of_openings, settings.opening_turns)
    begin = clock()
    pool = GamePool(
        game,
        players,
        start.games,
        rng,
        batch=settings.batch,
        initial_states=start.initial_states,
        seating=seating,
        openings=openings,
    )
    played = play_all(pool, records)
    seconds = clock() - begin
    return _summarize(game, played, seat.cpu(), start, seconds)


def useful_opening_turns(game: Game[Any], players: Sequence[Player]) -> int:
    """How many random turns, 2 to 6, show how well players without chance play, where two of them
    would play the same game again and again; else 0."""
    if game.spec.seats == 1 or sum(player.is_deterministic for player in players) < 2:
        return 0
    openings = openings_to_play(game, "auto")
    is_single = openings is not None and len(openings[0]) == 1
    return 2 * max(1, min(3, game.spec.max_plies // 16)) if is_single else 0


def openings_to_play(
    game: Game[Any], games: int | str, layouts: State | None = None
) -> tuple[State, Tensor] | None:
    """All initial positions and their probabilities, float64, of a game without chance afterwards;
    None if they are sampled: in other games, and if they are too many.

    layouts: the only initial positions, all equally likely; None: the game's. Raises ConfigError
    for games="all" if the layouts cannot be listed.
    """
    limit = {"auto": MAX_ENUMERATED_LAYOUTS, "all": MAX_LAYOUTS}.get(str(games), 1)
    openings = None
    if not game.spec.num_chance_inputs:
        if layouts is None:
            openings = game.openings(limit)
        elif len(layouts) <= limit:
            weight = torch.full((len(layouts),), 1 / len(layouts), dtype=torch.float64)
            openings = layouts, weight
    if openings is None and games == "all":
        raise ConfigError(*NOT_LISTED)
    return openings


@dataclass(frozen=True)
class _Start:
    """How many games start where. weight: float64 [G], adds up to 1; None: equal in each seat.
    layout: int64 [G], the layout of each game if all are played, otherwise None. is_exact: the
    games are all that can be played."""

    games: int
    initial_states: InitialStates
    weight: Tensor | None = None
    layout: Tensor | None = None
    is_exact: bool = False


def _start(
    game: Game[Any], settings: EvaluationSettings, is_deterministic: bool, device: torch.device
) -> _Start:
    """is_deterministic: no player uses chance."""
    games, layouts, seats = settings.games, settings.layouts, game.spec.seats
    openings = openings_to_play(game, games, layouts)
    is_exact = openings is not None and is_deterministic
    if openings is None or not (is_exact or games == "all"):
        count = max(settings.sampled_games if isinstance(games, str) else games, seats)
        if layouts is None:
            return _Start(count, sampled_by_game(game))
        from rlgames.rollouts.holdout import sampled_from

        return _Start(count, sampled_from(layouts))
    if not is_exact and (seats == 2 or not game.spec.hidden):
        raise ConfigError(*NOT_LISTED)
    states, probability = openings[0].to(device), openings[1]
    repeats = seats if is_exact else max(2, math.ceil(settings.sampled_games / len(states)))
    layout = torch.arange(len(states)).repeat_interleave(repeats)

    def initial_states(first: int, count: int, rng: Rng) -> State:
        return states[layout[first : first + count].to(device)]

    weight = probability[layout] / repeats
    return _Start(len(layout), initial_states, weight, layout, is_exact)


def _summarize(
    game: Game[Any], played: PlayedGames, seat: Tensor, start: _Start, seconds: float
) -> Evaluation:
    """seat: int64 [G], the player's."""
    final, hashes = played.final, played.hashes
    state, weight = final.state, start.weight
    distinct = sum(len(hashes[seat == each].unique()) for each in range(game.spec.seats))
    if weight is None:
        counted = _without_repeats(hashes, seat)
        state, seat = state[counted.to(state.done.device)], seat[counted]
        weight = 1 / (game.spec.seats * torch.bincount(seat)[seat].double())
    stratum = seat if start.layout is None else start.layout

    def estimate(value: Tensor) -> Estimate:
        return Estimate.of_games(value.cpu().double(), weight, stratum, start.is_exact)

    values = game.measures(state)
    max_tile = values.pop("max_tile", None)
    score = state.score.cpu()
    return Evaluation(
        games=start.games,
        distinct_games=distinct,
        is_exact=start.is_exact,
        turns=estimate(state.turn),
        score=estimate(score.gather(1, seat[:, None])[:, 0]),
        measures={name: estimate(value) for name, value in values.items()},
        tiles={} if max_tile is None else _tiles(max_tile.cpu()),
        outcomes=_outcomes(score, seat) if game.spec.seats == 2 else np.empty((0, 3)),
        num_moves=final.num_moves,
        seconds=seconds,
        state=final.state,
        trajectories=played.trajectories,
    )


def _without_repeats(hashes: Tensor, seat: Tensor) -> Tensor:
    """Int64 [N]: the rows of games [G] that count. If all games in a seat are the same, one does:
    nothing shows that chance has a part in them."""
    counts = torch.ones_like(seat, dtype=torch.bool)
    for each in seat.unique():
        rows = (seat == each).nonzero()[:, 0]
        if bool((hashes[rows] == hashes[rows[0]]).all()):
            counts[rows[1:]] = False
    return counts.nonzero()[:, 0]


def _tiles(max_tile: Tensor) -> dict[str, tuple[int, int]]:
    """For each tile from 8 to the largest of all games, how many games reached it, and of all."""
    top = int(max_tile.max())
    tiles = [2**power for power in range(3, max(top, 8).bit_length())]
    return {str(tile): (int((max_tile >= tile).sum()), len(max_tile)) for tile in tiles}


def _outcomes(score: Tensor, seat: Tensor) -> Floats:
    """[2, 3], as in Evaluation; score: float32 [G, 2], seat: int64 [G], the player's."""
    lead = (score.gather(1, seat[:, None]) - score.gather(1, 1 - seat[:, None]))[:, 0]
    column = 1 - lead.sign().long()
    return (3 * seat + column).bincount(minlength=6).view(2, 3).double().numpy()
