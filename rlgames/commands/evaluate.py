"""`rlgames eval`: how well a player plays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rlgames.config.commands import EvalConfig
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory
from rlgames.core.metrics import gap_to_optimum
from rlgames.core.text import counted
from rlgames.evaluation.estimates import Estimate
from rlgames.evaluation.evaluate import (
    OUTCOMES,
    Evaluation,
    EvaluationSettings,
    evaluate,
    useful_opening_turns,
)
from rlgames.evaluation.references import References, exact_mean
from rlgames.games.capabilities import KnownRandomPlay, find
from rlgames.games.game import Game, State
from rlgames.players.player import HasProbabilities, Random
from rlgames.rng import REPORT_STREAM, Rng, torch_seeded
from rlgames.rollouts.trajectories import FinalStates, bytes_per_game, bytes_per_result
from rlgames.runs.reports import keep_report
from rlgames.solvers.graph import Graph, exact_results, exploitability, find_graph
from rlgames.terminal.tables import Column, print_titled

if TYPE_CHECKING:
    from rlgames.commands.match import Match

DEFAULT_GAMES = 2000
"""The number of games where not all can be played."""

COMMON_TILE_RATE = 0.995
"""Tiles that more games reach are not listed."""

MAX_ASYMMETRY = 0.1
"""Intervals whose ends are less alike, relative to their width, are shown with both ends."""

RANDOM_PLAY, OPTIMUM = "random play", "exact optimum"
GAP, EXPLOITABILITY = "gap to the optimum", "exploitability"
COMPUTED = RANDOM_PLAY, OPTIMUM, GAP, EXPLOITABILITY
"""The names of rows that are computed where exact results of a player are."""

STATISTICS = {
    "proven_moves": "moves proven optimal",
    "exact_moves": "moves by exact counts",
    "opponent_proven_moves": "opponent's moves proven optimal",
}
"""The rates of moves that players tell, in words; see Player.statistics."""

FORFEITS = {"forfeits": "games forfeited", "opponent_forfeits": "games that the opponent forfeited"}
"""The games that players have forfeited, in words."""

LAYOUTS = {"trained_on": "training layouts", "held_out": "held-out layouts"}
"""The parts of the layouts of a run with holdout=, in JSON and in words."""

Rows = list[tuple[str, str]]
"""The rows of a table: names and values."""

Reference = dict[str, float | None]
"""In a one-player game: the mean of random play and its standard deviation, the optimum, and the
relative gap to it, positive where play is worse. None: not known."""


@dataclass(frozen=True)
class Result:
    """What `rlgames eval` prints.

    parts: by the names of LAYOUTS. statistics: of the players, see Player.statistics. exact: what
    is computed, by its names in JSON, see _exact.
    """

    match: Match
    evaluation: Evaluation
    parts: dict[str, tuple[Evaluation, Reference]]
    statistics: dict[str, float]
    exact: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        match, result = self.match, self.evaluation
        return {
            **match.as_dict(),
            "games": result.games,
            "distinct_games": result.distinct_games,
            "opening_turns": match.cfg.opening_turns,
            "exact": result.is_exact,
            "seed": match.cfg.seed,
            "moves": result.turns.as_dict(),
            **{
                name: {"games": part.games, "exact": part.is_exact, **part.turns.as_dict()}
                | {"reference": reference}
                for name, (part, reference) in self.parts.items()
            },
            **_game_fields(result, match.goal),
            **self.exact,
            **self.statistics,
            "seconds": result.seconds,
            "moves_per_s": result.moves_per_second,
        }


def _game_fields(result: Evaluation, goal: str) -> dict[str, Any]:
    """What depends on the goal of the game."""
    if goal == "outcome":
        both, *seats = (
            {
                name: {"count": int(count), **result.outcome_rate(name, seat).as_dict("rate")}
                for name, count in zip(OUTCOMES, counts, strict=True)
            }
            for seat, counts in ((None, result.outcomes.sum(0)), *enumerate(result.outcomes))
        )
        return {**both, "points": result.points, "seats": seats}
    estimates = {"score": result.score, **result.measures} if goal == "score" else {}
    fields: dict[str, Any] = {name: estimate.as_dict() for name, estimate in estimates.items()}
    if result.tiles:
        fields["reach"] = {
            tile: {"count": part[0], **Estimate.of_rate(part).as_dict("rate")}
            for tile, part in result.tiles.items()
        }
    return fields


def run(config: EvalConfig) -> Result:
    """Evaluate a run or a player, and keep the report of a run."""
    from rlgames.commands.match import open_match

    match = open_match(config)
    cfg, game = match.cfg, match.game
    count = check_games(game, cfg.games)
    if game.device.type == "cpu":
        check_memory("batch", min(cfg.batch, count), bytes_per_game(game, 1), "for its moves")
    if isinstance(match.player, Random) and isinstance(match.opponent, Random):
        match = replace(match, opponent=match.player)
    if cfg.record:
        from rlgames.rollouts import records

        records.check_players(match.player, match.opponent)
        records.check_writable(Path(cfg.record), game, to_plain(cfg)["game"])
    # Inference mode makes each call faster: random play takes 7 to 20% less time.
    with torch.inference_mode(), torch_seeded(Rng(cfg.seed, REPORT_STREAM)):
        result = _evaluate(match)
    keep_report(cfg, match.directory, match.digests, result.as_dict(), match.seats)
    return result


def check_games(game: Game[Any], games: str | int, sampled_games: int = DEFAULT_GAMES) -> int:
    """How many games are played if not all are: sampled_games unless games is a number.

    Raises ConfigError for fewer games than seats, and for more than fit in memory.
    """
    count = sampled_games if isinstance(games, str) else games
    if count < game.spec.seats:
        raise ConfigError(
            f"games={games} leaves out a seat of {game.spec.name}", f"use games={game.spec.seats}"
        )
    if game.device.type == "cpu":
        check_memory("games", count, bytes_per_result(game), "for final states")
    return count


def _evaluate(match: Match) -> Result:
    """Play the games, then compute what is known exactly."""
    cfg, game, player, opponent = match.cfg, match.game, match.player, match.opponent
    rng = Rng(cfg.seed, REPORT_STREAM, game.device)
    evaluation = _play(match, rng, records=bool(cfg.record))
    if cfg.record and evaluation.trajectories is not None:
        rules, final = to_plain(cfg)["game"], FinalStates(evaluation.state, evaluation.num_moves)
        path = Path(cfg.record)
        from rlgames.rollouts import records

        records.append(path, game, rules, match.names, evaluation.trajectories, final)
    parts = _evaluate_parts(match, rng)
    others = {} if opponent is None or opponent is player else opponent.statistics()
    statistics = player.statistics() | opponent_names(others)
    return Result(match, evaluation, parts, statistics, _exact(match, evaluation))


def _play(
    match: Match, rng: Rng, layouts: State | None = None, records: bool = False
) -> Evaluation:
    """Play the games that the config asks for; layouts: on these only."""
    cfg = match.cfg
    settings = EvaluationSettings(
        cfg.games, DEFAULT_GAMES, cfg.batch, layouts, cfg.opening_turns, cfg.seed
    )
    return evaluate(match.game, match.player, settings, rng, match.opponent, records)


def _exact(match: Match, evaluation: Evaluation) -> dict[str, Any]:
    """In a one-player game the player's mean, and a reference; in a two-player game the player's
    exploitability, the mean and by seat, and the rates of OUTCOMES in each seat. None: not known.
    """
    cfg, game, player, opponent = match.cfg, match.game, match.player, match.opponent
    graph = None if match.goal == "turns" else find_graph(game, cfg.solve_seconds)
    if match.goal != "outcome":
        exact = exact_mean(game, player, graph)
        mean = estimate_of_goal(evaluation, match.goal).value if exact is None else exact
        return {"exact_mean": exact, "reference": _reference(match, mean, graph=graph)}
    if graph is None or not isinstance(player, HasProbabilities):
        return {"exploitability": None, "exact_seats": None}
    seats = None
    if isinstance(opponent, HasProbabilities):
        seats = exact_results(graph, player.probabilities, opponent.probabilities)
    mean, by_seat = exploitability(graph, player.probabilities)
    return {"exploitability": mean, "exact_seats": seats, "exploitability_seats": by_seat}


def opponent_names(statistics: dict[str, float]) -> dict[str, float]:
    """The statistics of an opponent."""
    return {f"opponent_{name}": value for name, value in statistics.items()}


def _evaluate_parts(match: Match, rng: Rng) -> dict[str, tuple[Evaluation, Reference]]:
    """The games on the layouts that a run was trained on, and on those that it held out."""
    trained = None if match.run is None else match.run.config
    from rlgames.rollouts.holdout import split_layouts

    split = None if trained is None else split_layouts(match.game, trained.holdout, trained.seed)
    parts = {}
    for name, layouts in {} if split is None else vars(split).items():
        played = _play(match, rng, layouts)
        parts[name] = played, _reference(match, played.turns.value, layouts)
    return parts


def _reference(
    match: Match, mean: float, layouts: State | None = None, graph: Graph | None = None
) -> Reference:
    """What a mean in a one-player game is compared with; layouts, graph: as in References."""
    game, goal = match.game, match.goal
    references, known = References(game, layouts), find(game, KnownRandomPlay)
    references.compute_random(graph)
    if graph is not None or goal == "turns":
        references.solve(match.cfg.solve_seconds, graph)
    optimal = references.optimal
    return {
        "random": references.random,
        "random_std": None if known is None else known.random_turns_std(),
        "optimal": optimal,
        "gap_to_optimal": None if optimal is None else gap_to_optimum(goal, mean, optimal),
    }


def show(result: Result) -> None:
    """Print the table of `rlgames eval`."""
    match, evaluation, rows = result.match, result.evaluation, list[tuple[str, str]]()
    names, plain = match.names, to_plain(match.cfg)
    games = games_in_words(
        evaluation.games, evaluation.distinct_games, evaluation.is_exact, len(names)
    )
    if match.run is not None:
        rows.append(("checkpoint", match.run.checkpoint))
        rows.append(("trained for", f"{match.run.games:,} games"))
    search = _search_suffix(plain["search"])
    exact: Rows = []
    if match.goal == "outcome":
        other = _search_suffix(plain["opponent_search"])
        title = f"{names[0]}{search} against {names[1]}{other}, {games}"
        rows += _outcome_rows(result)
        if seats := result.exact["exact_seats"]:
            both = {name: sum(seat[name] for seat in seats) / len(seats) for name in seats[0]}
            exact = _rate_rows([*seats, both])
    else:
        title = f"{match.goal} per game{search}, {games}"
        rows += _one_player_rows(result)
        if (mean := result.exact["exact_mean"]) is not None:
            exact = [(names[0], number(mean))]
    if exact and not evaluation.is_exact:  # the results in COMPUTED belong to the second column
        played = [(name, "" if name in COMPUTED else value) for name, value in rows]
        computed = [*exact, *((name, value) for name, value in rows if name in COMPUTED)]
        print_columns(title, ["played", "computed exactly"], [played, computed])
    else:
        print_columns(title, [], [rows])
    if evaluation.is_exact and match.opponent is not None:
        turns = useful_opening_turns(match.game, [match.player, match.opponent])
        if turns:
            hint = f"opening_turns={turns} starts others with random turns"
            print(f"neither player uses chance, so these are their only games; {hint}")
    print(f"{evaluation.moves_per_second:,.0f} moves/s, {evaluation.seconds:.1f} s of play")


def games_in_words(games: int, distinct: int, is_exact: bool, seats: int) -> str:
    """How many games were played, and how many of them differ, if that is known."""
    if is_exact:
        every = "all layouts" if seats == 1 else f"all {games:,} possible games"
        words = {1: "the only possible game", 2: "both possible games"}
        return f"{words.get(games, every)} (exact)"
    if distinct == games:
        return counted(games, "game")
    return f"{games:,} games, {distinct:,} of them different"


def _outcome_rows(result: Result) -> Rows:
    """The rows of an evaluation in a game with two seats."""
    rows = seat_rows(result.evaluation)
    rows.append(("turns per game", mean_text(result.evaluation.turns)))
    rows.append((EXPLOITABILITY, number(result.exact["exploitability"])))
    return rows + statistic_rows(result.statistics)


def _one_player_rows(result: Result) -> Rows:
    """The rows of an evaluation in a game with one seat."""
    reference = result.exact["reference"]
    estimate = estimate_of_goal(result.evaluation, result.match.goal)
    assert estimate.spread is not None
    value = mean_text(estimate)
    rows = reference_rows(reference["random"], result.match.names[0], value, reference["optimal"])
    if reference["gap_to_optimal"] is not None:
        rows.append((GAP, f"{reference['gap_to_optimal']:z.2%}"))
    rows.append(("median, min, max", ", ".join(f"{each:zg}" for each in estimate.spread)))
    for part, (evaluation, own) in result.parts.items():
        rows.append((LAYOUTS[part], mean_text(evaluation.turns)))
        rows.append((f"exact optimum, {LAYOUTS[part]}", number(own["optimal"])))
    return rows + statistic_rows(result.statistics) + reach_rows(result.evaluation)


def estimate_of_goal(evaluation: Evaluation, goal: str) -> Estimate:
    """The turns or the score, by the goal of a one-player game."""
    return evaluation.turns if goal == "turns" else evaluation.score


def _search_suffix(search: dict[str, Any] | None) -> str:
    if search is None:
        return ""
    # The simulations of search=rollout are for each action, and only where worlds are not listed.
    has_simulations = "simulations" in search and search["name"] != "rollout"
    size = f" ({search['simulations']:,} simulations)" if has_simulations else ""
    return f" with {search['name']}{size}"


def seat_rows(evaluation: Evaluation) -> Rows:
    """The rates of wins, draws and losses, in each seat and in both."""
    rate = evaluation.outcome_rate
    rows = _rate_rows(
        [{name: rate(name, seat).value for name in OUTCOMES} for seat in (0, 1, None)]
    )
    if (interval := rate("win").interval) is not None:
        rows.append(("win, 95%", "{:.2%} to {:.2%}".format(*interval)))
    return rows


def _rate_rows(rates: Sequence[dict[str, float]]) -> Rows:
    """rates: in the first seat, the second, and both."""
    texts = [" / ".join(f"{seat[name]:.2%}" for name in OUTCOMES) for seat in rates]
    names = ("first seat", "second seat", "both")
    return [("", "won / drawn / lost"), *zip(names, texts, strict=True)]


def statistic_rows(statistics: dict[str, float]) -> Rows:
    """How much of the players' play is exact, where they have a limit, and what they forfeited."""
    rows = [
        (STATISTICS[name], f"{statistics[name]:.1%}") for name in STATISTICS & statistics.keys()
    ]
    return rows + [
        (FORFEITS[name], f"{statistics[name]:,.0f}") for name in FORFEITS & statistics.keys()
    ]


def reference_rows(random: float | None, name: str, value: str, optimal: float | None) -> Rows:
    """A value between random play, if it is known, and the optimum."""
    rows = [] if random is None else [(RANDOM_PLAY, number(random))]
    return [*rows, (name, value), (OPTIMUM, number(optimal))]


def reach_rows(evaluation: Evaluation) -> Rows:
    """The rates of the tiles that not nearly every game reaches."""
    rates = [(tile, count / games) for tile, (count, games) in evaluation.tiles.items()]
    return [(f"reach {tile}", f"{rate:.2%}") for tile, rate in rates if rate < COMMON_TILE_RATE]


def print_columns(
    title: str, headings: list[str], columns: list[Rows], format: str = "table"
) -> None:
    """A table of rows that may have several values; the heading of each column, or none at all."""
    names = list(dict.fromkeys(name for rows in columns for name, _ in rows))
    values = [[dict(rows).get(name, "") for name in names] for rows in columns]
    several = map(Column, headings or [""] * len(columns), values)
    print_titled(title, [Column("", names, is_text=True), *several], format)


def mean_text(estimate: Estimate) -> str:
    """A mean with half its 95% interval, or with both ends where these are not alike."""
    mean, interval = estimate.value, estimate.interval
    if estimate.is_exact:
        return f"{mean:z.4f}"
    is_utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    if interval is None:
        return f"{mean:z.4f} ± –" if is_utf else f"{mean:z.4f} +- ?"
    low, high = interval
    if abs(low + high - 2 * mean) > MAX_ASYMMETRY * (high - low):
        return f"{mean:z.4f} ({low:z.4f} to {high:z.4f})"
    return f"{mean:z.4f} {'±' if is_utf else '+-'} {(high - low) / 2:.4f}"


def number(value: float | None) -> str:
    """A computed value, if there is one."""
    return "not computed" if value is None else f"{value:z.4f}"
