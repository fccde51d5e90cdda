"""The second part of docs/results.md: the strongest presets of every game, game by game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import RECORD, RecordedFigures, update
from results import MISSING, Figures, mean, over, over_games, reached, rows
from results_battleship import CASES, random_turns
from results_curves import of_curves
from results_targets import of_targets, value_losses
from steps import ONE, SEEDS, Step

NAMES_2048 = {
    "2048": "the default, n-tuple network, one ply",
    "2048_ntuple": "n-tuple network, 80,000 games, one ply",
    "2048_long": "the same, 400,000 games, one ply",
}
"""All learn from rewards alone."""

SMALL_2048 = {
    "2048_3x3_finetuned": ("3×3", "5,468.49"),
    "2048_4x3_ntuple": ("4×3", "50,724.26"),
}
"""The boards that are small enough to be solved, and the optimum."""

RANDOM_2048 = "2048_random"
TILES = (2048, 4096, 8192, 16384, 32768)

BEGUN = {
    "ramesh_case2_finetuned": "ramesh_case2_occupancy",
    "2048_3x3_finetuned": "2048_3x3_ntuple",
}
"""The runs that start from the weights of others."""

SALVO = {case: f"ramesh_case{case}_tuned" for case in CASES} | {
    2: "ramesh_case2_finetuned",
    5: "ramesh_case5_rollout",
}
TICTACTOE = {"tictactoe": "ppo", "tictactoe_alphazero": "alphazero"}
CONNECT4 = ("connect4_alphazero", "connect4_ntuple", "connect4")
EXACT_PLIES = (("connect4_ntuple", 1), ("connect4_ntuple", 5), ("connect4", 1))


@dataclass(frozen=True)
class Fleet:
    """The standard fleet by some rules. rules: the words after `shots`; boards: how many are
    played; players: those that are measured; seeds: those of the networks, if any.
    """

    title: str
    shots: int
    boards: int
    players: tuple[str, ...]
    seeds: range = SEEDS
    rules: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        return f"shots={self.shots}", *self.rules

    @property
    def random_turns(self) -> str:
        """The exact mean of random play."""
        return f"{random_turns(FLEET_CELLS, FLEET_SHIP_CELLS, self.shots)[0]:.2f}"

    @property
    def games(self) -> tuple[str, str]:
        """All boards at once, because players that draw numbers change those that come later."""
        return f"games={self.boards}", f"batch={self.boards}"

    @property
    def trained(self) -> bool:
        return len(self.seeds) > 0


FLEET_CELLS, FLEET_SHIP_CELLS = 100, 17
PLAYERS = ("hunt_target", "density", "density_rollout")
COUNTING_PLAYERS = PLAYERS[1:]
FLEETS = {
    "fleet": Fleet("one shot", 1, 10_000, PLAYERS[:2]),
    "fleet_salvo": Fleet("five shots", 5, 2_500, PLAYERS, ONE),
    "fleet_announced": Fleet(
        "one shot, sinkings announced", 1, 2_500, ("density",), range(0), ("show=[sunk]",)
    ),
}
DUEL_OPPONENTS = ("random", "hunt_target", "density")
LOOKAHEAD = ("fleet", "fleet_announced")
"""The rules by which both counting players are compared on the same boards."""


def seconds(figures: Figures, name: str) -> list[float]:
    """Of each training, with that of the run that it went on from."""
    each = [figures.seconds(of) for of in (name, BEGUN.get(name)) if of]
    return [sum(of) for of in zip(*each, strict=False)]


def of_2048(figures: Figures) -> str:
    report = figures.report(RANDOM_2048)
    body = [("random", *_scores([report] if report else []), "")]
    for name, what in NAMES_2048.items():
        if played := figures.reports(name, "played"):
            body.append((what, *_scores(played), mean(figures.seconds(name), 0)))
    searched = figures.reports("2048_long", "three_plies")
    took = over(searched, "wall_seconds", digits=0)
    what = "the n-tuple network of 400,000 games, three plies, 60 games"
    body.append((what, *_scores(searched), took))
    head = ("1,000 games", "mean score", "highest", *(f"{n}, %" for n in TILES), "seconds")
    commands = figures.commands(*NAMES_2048, BEGUN["2048_3x3_finetuned"], *SMALL_2048)
    return f"### 2048\n\n{rows(head, body)}\n\n{SECONDS}\n\n{_small(figures)}\n\n{commands}"


def _small(figures: Figures) -> str:
    """The boards whose optimum is published."""
    body = []
    for name, (board, optimum) in SMALL_2048.items():
        scores = [
            over_games(figures.reports(name, how), "score", digits=0)
            for how in ("played", "three_plies")
        ]
        body.append([board, f"`{name}`", *scores, optimum, mean(seconds(figures, name), 0)])
    head = ("board", "preset", "one ply, 10,000 games", "three plies, 1,000", "optimum", "seconds")
    return rows(head, body)


def _scores(reports: list[dict[str, Any]]) -> list[str]:
    """The mean and the highest score, and how many of the games reach the tiles."""
    highest = max((report["score"]["max"] for report in reports), default=None)
    return [
        over_games(reports, "score", digits=0),
        MISSING if highest is None else f"{highest:,.0f}",
        *(reached(reports, tile) for tile in TILES),
    ]


def of_tictactoe(figures: Figures) -> str:
    body = []
    for name, what in TICTACTOE.items():
        reports = figures.reports(name, "played")
        gained = "; ".join("{:.3f}, {:.3f}".format(*r["exploitability_seats"]) for r in reports)
        body.append([what, gained or MISSING, mean(figures.seconds(name), 0)])
    head = (
        "learner (semicolons separate seeds)",
        "exploitability by seat: first, second",
        "seconds",
    )
    return f"### Tic-tac-toe\n\n{rows(head, body)}\n\n{figures.commands(*TICTACTOE)}"


def of_connect4(figures: Figures) -> str:
    body = []
    for name in CONNECT4:
        won = []
        for opponent in ("random", "win_or_block"):
            seats = [report["seats"] for report in figures.reports(name, opponent)]
            for seat in (0, 1):
                won.append(mean([100 * of[seat]["win"]["rate"] for of in seats], 1))
        body.append([f"`{name}`", *won, mean(figures.seconds(name), 0)])
    head = (
        "games won, %",
        *("`random`, first seat", "second seat"),
        *("`win_or_block`, first seat", "second seat"),
        "seconds",
    )
    return "\n\n".join(
        [
            "### Connect 4",
            "Greedy play of final networks, three seeds, 10,000 games each.",
            rows(head, body),
            figures.commands(*CONNECT4),
            losses(figures),
            exact_games(figures),
        ]
    )


def exact_games(figures: Figures) -> str:
    """Games in the first seat against exact play."""
    body = []
    for name, plies in EXACT_PLIES:
        counts = figures.report(f"{name}_exact_{plies}") or {}
        counts.pop("wall_seconds", None)
        shown = ["; ".join(str(of[n]) for of in counts.values()) or MISSING for n in range(3)]
        body.append([f"`{name}`", str(plies), *shown])
    head = ("200 games (semicolons separate seeds)", "plies", "won", "drawn", "lost")
    return f"{rows(head, body)}\n\n{EXACT}"


def losses(figures: Figures) -> str:
    """The share of moves that lose value, by stage of the game."""
    groups = value_losses(figures)
    if not groups:
        return MISSING
    body = []
    for name, published in PUBLISHED.items():
        means = [
            mean([100 * counts[name][0] / counts[name][2] for counts in group], 1)
            for group in groups.values()
        ]
        _, could, count = groups["random"][0][name]
        body.append((f"{name} ({count}, {could})", *means, *published))
    head = ("positions (number, number with a losing move)", *groups, *PEERS)
    return f"{rows(head, body)}\n\n{LOSSES}"


def of_salvo(figures: Figures) -> str:
    cases = [(rules, SALVO[case], case) for case, (rules, *_) in CASES.items()]
    cases.append((f"{CASES[5][0]}: the default", "salvo", 5))
    body = []
    for rules, name, case in cases:
        reports = figures.reports(name, "greedy")
        solved = figures.report(f"solve_case{case}") or {}
        optimum, turns = solved.get("optimal"), [r["moves"]["mean"] for r in reports]
        gap = MISSING
        if optimum and turns:
            above = 100 * (sum(turns) / len(turns) / optimum - 1)
            gap = f"{round(above, 2) + 0.0:.2f}"  # no -0.00
        shown = f"{optimum:.4f}" if optimum else MISSING
        every = ", ".join(f"{turn:.3f}" for turn in turns)
        body.append([rules, mean(turns, 4), every, shown, gap, mean(seconds(figures, name), 0)])
    head = ("Salvo, turns over all layouts", "mean", "seeds", "optimum", "gap, %", "seconds")
    names = [BEGUN["ramesh_case2_finetuned"], *SALVO.values(), "salvo"]
    return f"### Salvo\n\n{rows(head, body)}\n\n{PLANE}\n\n{figures.commands(*names)}"


def of_fleet(figures: Figures) -> str:
    body = []
    for name, fleet in FLEETS.items():
        reports = [figures.report(f"{name}_{player}") for player in PLAYERS]
        turns = [over_games([report] if report else [], "moves") for report in reports]
        network = over_games(figures.reports(name, "greedy"), "moves")
        took = mean(figures.seconds(name), 0)
        columns = [network, fleet.random_turns, *turns]
        body.append([fleet.title, *columns, f"{fleet.boards:,}", took])
    head = ("5-4-3-3-2, turns", "network", "random, exact", *PLAYERS, "boards", "seconds")
    commands = figures.commands(*(name for name, fleet in FLEETS.items() if fleet.trained))
    parts = [rows(head, body), lookahead(figures), FLEET, commands]
    return "### The fleet on 10×10\n\n" + "\n\n".join(parts)


def lookahead(figures: Figures) -> str:
    """Both counting players on the same boards."""
    body = []
    for name in LOOKAHEAD:
        report = figures.report(f"{name}_lookahead")
        reports = [] if report is None else [report]
        columns = [over_games(reports, column) for column in (*COUNTING_PLAYERS, "difference")]
        body.append([FLEETS[name].title, *columns])
    return rows(("1,000 boards, turns", *COUNTING_PLAYERS, "difference"), body)


def of_duel(figures: Figures) -> str:
    name = "salvo_duel_occupancy"
    body = []
    for opponent in DUEL_OPPONENTS:
        reports = figures.reports(name, opponent)
        seats = [
            mean([100 * report["seats"][seat]["win"]["rate"] for report in reports], 1)
            for seat in (0, 1)
        ]
        body.append([f"`{opponent}`", *seats, over(reports, "win", "rate", digits=1, times=100)])
    head = ("5×5, ships 3, 2 and 2: won, %", "first seat", "second seat", "both")
    gains = figures.reports("salvo_duel_response", "gain")
    gain = over(gains, "win", "rate", digits=1, times=100)
    said = DUEL.format(seconds=mean(figures.seconds(name), 0), gain=gain)
    commands = figures.commands(name, "salvo_duel_response")
    return f"### Two-player Salvo\n\n{rows(head, body)}\n\n{said}\n\n{commands}"


PEERS = ("AlphaZero.jl", "minimax of depth 5")
PUBLISHED = {
    "end easy": ("0", "1.7"),
    "middle easy": ("0", "0.7"),
    "middle medium": ("0", "1.4"),
    "beginning easy": ("2", "7.3"),
    "beginning medium": ("2.8", "9.2"),
    "beginning hard": ("7.5", "23"),
}
"""Their errors on the public test sets, in %, by stage."""

INTRODUCTION = """## How far two cores go

Written by `make strength` (scripts/strength.py) from [the figures](strength.json) measured
{dates}. Greedy play of the checkpoint that evaluations during training selected, one network
evaluation or one ply, unless noted; games that selected nothing, or every layout. ± is a 95%
interval over training seeds where there are three or more, and over games otherwise. Seconds are
wall-clock time of one training run on two cores: with two threads for `2048_ntuple` and
`2048_4x3_ntuple`, otherwise with one thread alongside another run. SEED is 0 unless a table shows
several seeds."""

SECONDS = """Seconds are training time; in the row of three plies, they are the time of its games.
The fine-tuned network of 3×3 starts from the weights of `2048_3x3_ntuple`, whose seconds are
included."""

PLANE = """Networks alone, without a search. On 5×5 the network sees how likely each cell is to hold
a ship. Its training starts from the weights of `ramesh_case2_occupancy`, whose seconds are
included. `ramesh_case2_finetuned` and `ramesh_case5_rollout` learn from rollouts over all layouts
that agree with what was seen; the networks of the other rows learn from games alone.
Always shooting at the likeliest cell takes 12.176 turns."""

LOSSES = """Moves that lose value, in % of the positions of each class, by final networks:
`connect4_alphazero` and `connect4_ntuple`, three seeds each (`python scripts/value_losses.py RUN
RUN+mcts search.simulations=400 search.leaf=value`; with n-tuples `RUN RUN+alphabeta`). The
positions are our own, from random moves, labeled by our solver and, early in the game, by bitbully
(scripts/label_connect4.py), and selected nothing. The two columns on the right are published
figures for 1,000 other positions of each class."""

EXACT = """Final networks in the first seat, where every game can be won, against replies with the
best exact score, all equally likely: they delay a loss as long as possible (`python
scripts/connect4_exact.py RUN games=200`)."""

FLEET = """Final networks, one evaluation per turn, three seeds with one shot and one with five.
`density` shoots where most layouts that agree with all results have a ship, all of them counted.
When at most 10,000 are left, `density_rollout` takes the turn after which `density` needs the
fewest turns; with several shots, it also spreads them. Both and the networks play the same
boards, `hunt_target` 2,000 others. The mean of random play is computed: on N cells with T ship
cells, one shot at a time, it is T(N + 1) ÷ (T + 1). In the second table, means over the listed
layouts replace the rest of each game, which is exact (`python scripts/lookahead_gain.py`). These
rules are too large for `rlgames solve`, which gives no lower bound either."""

DUEL = """Final networks, three seeds, 2,000 games each; trained for {seconds} s from finished
games. Exploitability is not computed for games with hidden fleets. An approximate best response,
trained by PPO against the frozen network of seed 0 from that network's weights, wins {gain}% of
10,000 games."""

PARTS = (
    *(of_targets, of_2048, of_tictactoe, of_connect4, of_salvo, of_fleet, of_duel),
    of_curves,
)


def section(out: Path, steps: Sequence[Step] = ()) -> str:
    """The whole part. steps: those that made the figures, whose commands it shows."""
    figures = RecordedFigures(out, steps, update(RECORD, out, steps))
    introduction = INTRODUCTION.format(dates=figures.dates())
    return "\n\n".join([introduction, *(part(figures) for part in PARTS)]) + "\n"
