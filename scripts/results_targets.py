"""The first table of the strongest presets: each figure beside its target and what is published."""

from __future__ import annotations

from typing import Any

from results import MISSING, Figures, mean, over, over_games, reached, rows
from steps import SEEDS

ZIAP = "[ziap/2048-tdl](https://github.com/ziap/2048-tdl), 1 M games"
DEMO = "[TDL2048-Demo](https://github.com/moporgic/TDL2048-Demo), 100,000 games"
SOLVED_4X3 = "[solved](https://arxiv.org/abs/2510.04580)"
CLONED = "[policy network](https://doi.org/10.2197/ipsjjip.29.336)"
TECHDAYS = "[best of ten runs](https://github.com/MarkusThill/techdays26)"
ALPHAZERO = "[AlphaZero.jl](https://github.com/jonathan-laurent/AlphaZero.jl)"
MAYFLOWER = "[exact density](https://github.com/Canon-Regularis/mayflower)"
"""Where the published figures are from."""


VALUE_LOSSES = ("value_losses", "value_losses_ntuple")
"""The steps that count moves that lose value in Connect 4."""

COUNTED = {
    "random": 1,
    "win_or_block": 1,
    "network": len(SEEDS),
    "network, 400 simulations": len(SEEDS),
    "n-tuples": len(SEEDS),
    "n-tuples, 5 plies": len(SEEDS),
}
"""The players that they are given, in this order, and how many of each."""


def of_targets(figures: Figures) -> str:
    body = [*_of_2048(figures), *_of_connect4(figures), *_of_battleship(figures)]
    head = ("figure", "here", "target", "published")
    return f"### Targets\n\n{TEXT}\n\n{rows(head, body)}"


def _of_2048(figures: Figures) -> list[tuple[str, ...]]:
    def score(name: str, measure: str = "played") -> str:
        return over_games(figures.reports(name, measure), "score", digits=0)

    def share(name: str, tile: int, measure: str = "played") -> str:
        return f"{score(name, measure)}; {reached(figures.reports(name, measure), tile)}%"

    long = "2048_long"
    return [
        (
            "2048, n-tuples, one ply, 15 minutes at most: score; 2048",
            share("2048_ntuple", 2048),
            "100,000; 97%",
            f"68,664; 91.2% ({DEMO})",
        ),
        ("the same, 60 minutes at most", score(long), "200,000", f"201,381 ({ZIAP})"),
        (
            "the same, three plies: score; 32768",
            share(long, 32768, "three_plies"),
            "400,000; 33%",
            "419,479; 35.7% (the same)",
        ),
        ("2048 on 3×3", score("2048_3x3_finetuned"), "5,414", "5,468.49 (optimum)"),
        (
            "2048 on 4×3, one ply; three plies",
            f"{score('2048_4x3_ntuple')}; {score('2048_4x3_ntuple', 'three_plies')}",
            "49,710",
            f"50,724.26 (optimum, {SOLVED_4X3})",
        ),
    ]


def _of_connect4(figures: Figures) -> list[tuple[str, ...]]:
    def exact(plies: int, result: int, format_: str) -> str:
        counts = figures.report(f"connect4_ntuple_exact_{plies}")
        if counts is None:
            return MISSING
        games = [count for count in counts.values() if isinstance(count, list)]
        shares = [format_.format(count[result] / sum(count)) for count in games]
        return ", ".join(shares)

    return [
        (
            "Connect 4, n-tuples, one ply, won in the first seat against exact play, by seed",
            exact(1, 0, "{:.1%}"),
            "90%",
            f"91% ({TECHDAYS})",
        ),
        (
            "the same, five plies: not won, by seed",
            f"{exact(5, 1, '{:.1%}')} drawn; {exact(5, 2, '{:.1%}')} lost",
            "0",
            MISSING,
        ),
        (
            "Connect 4, AlphaZero, 30 minutes at most, network alone: moves that lose value, %",
            _losses(figures, "network"),
            "5.5, 5, 8.5, 2, 6, 11",
            MISSING,
        ),
        (
            "the same, 400 simulations",
            _losses(figures, "network, 400 simulations"),
            "0, 0, 0, 2, 2.8, 7.5",
            f"0, 0, 0, 2, 2.8, 7.5 ({ALPHAZERO})",
        ),
    ]


def value_losses(figures: Figures) -> dict[str, list[dict[str, Any]]]:
    """The counts of each of these players, by the positions' class; empty if a step is missing."""
    reports = [report for name in VALUE_LOSSES if (report := figures.report(name))]
    if len(reports) < len(VALUE_LOSSES):
        return {}
    every = [counts for report in reports for counts in report.values() if isinstance(counts, dict)]
    groups = {}
    for name, count in COUNTED.items():
        groups[name], every = every[:count], every[count:]
    return groups


def _losses(figures: Figures, name: str) -> str:
    """The mean over three seeds."""
    players = value_losses(figures).get(name)
    if players is None:
        return MISSING
    shares = [
        sum(100 * counts[name][0] / counts[name][2] for counts in players) / len(players)
        for name in players[0]
    ]
    return ", ".join(f"{share:.1f}" for share in shares)


def _of_battleship(figures: Figures) -> list[tuple[str, ...]]:
    def turns(name: str, key: str = "moves") -> str:
        report = figures.report(name)
        return over_games([report] if report else [], key)

    def above(name: str, case: int) -> str:
        solved = figures.report(f"solve_case{case}")
        if solved is None:
            return MISSING
        turns = [report["moves"]["mean"] for report in figures.reports(name, "greedy")]
        return mean([round(100 * (each / solved["optimal"] - 1), 3) + 0.0 for each in turns])

    def won(opponent: str, seat: int | None = None) -> str:
        reports = figures.reports("salvo_duel_occupancy", opponent)
        if seat is not None:
            reports = [report["seats"][seat] for report in reports]
        return f"{over(reports, 'win', 'rate', digits=1, times=100)}%"

    def both_seats(opponent: str) -> str:
        return f"{won(opponent, 0)}; {won(opponent, 1)}"

    gains = figures.reports("salvo_duel_response", "gain")
    cases = "; ".join(above(f"ramesh_case{case}_tuned", case) for case in (1, 3, 4))
    network = over(figures.reports("fleet", "greedy"), "moves", "mean")
    return [
        ("Salvo, cases 1, 3 and 4: above the optimum, %", cases, "0", MISSING),
        ("case 2, %", above("ramesh_case2_finetuned", 2), "0.1", MISSING),
        ("case 5, %", above("ramesh_case5_rollout", 5), "0.1", MISSING),
        ("case 5, by `game=salvo` alone, %", above("salvo", 5), "0.5", MISSING),
        ("fleet on 10×10, `density`: turns", turns("fleet_density"), MISSING, "47.99 ± 0.22"),
        (
            "the same, `density_rollout` less `density`",
            turns("fleet_lookahead", "difference"),
            "-0.1",
            MISSING,
        ),
        ("the same, network", network, "47.9", MISSING),
        (
            "the same, five shots: `density`; `density_rollout`; network",
            f"{turns('fleet_salvo_density')}; {turns('fleet_salvo_density_rollout')}; "
            f"{over_games(figures.reports('fleet_salvo', 'greedy'), 'moves')}",
            "11.0",
            MISSING,
        ),
        (
            "the same, one shot, sinkings announced: `density`; `density_rollout`",
            f"{turns('fleet_announced_lookahead', 'density')}; "
            f"{turns('fleet_announced_lookahead', 'density_rollout')}",
            "44.2",
            f"44.37 ({MAYFLOWER})",
        ),
        (
            "two-player Salvo against `hunt_target`, by seat",
            both_seats("hunt_target"),
            "90%",
            MISSING,
        ),
        ("the same against `density`", both_seats("density"), "50%", MISSING),
        (
            "the same, an approximate best response wins",
            f"{over(gains, 'win', 'rate', digits=1, times=100)}%",
            "55% at most",
            MISSING,
        ),
    ]


TEXT = """What we set out to reach on two cores, and what others have published, most of them with
more computing. The sections below say how each figure was measured; where a target is missed,
[the log](log.md) lists the attempts."""
