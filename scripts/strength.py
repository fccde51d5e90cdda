"""Trains the strongest presets of every game and writes their part of docs/results.md.

Steps as in reproduce.py: done once, as many side by side as there are cores. Usage:

    python scripts/strength.py [--out outputs/strength] [--only 2048 ramesh ...] [--table]
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

from reproduce import solve_cases
from results import MISSING, TILES, Figures, mean, over, rows, scores
from results_battleship import CASES
from results_curves import CURVES, of_curves
from steps import ONE, SEEDS, Step, main, measure, train

FIVE = range(5)
FLEET = ("game=salvo", "board=10", "ships=[5,4,3,3,2]", "solve_seconds=0", "format=json")
GUNNERS = {"random": 2000, "hunt_target": 2000, "density": 2000}
"""Scripted players of the fleet and how many boards they play."""

SALVO = {case: f"ramesh_case{case}_tuned" for case in CASES} | {2: "ramesh_case2_finetuned"}
BEGUN = {
    "ramesh_case2_finetuned": "ramesh_case2_occupancy",
    "2048_3x3_finetuned": "2048_3x3_ntuple",
}
"""The runs that start from the weights of others."""

TICTACTOE = {"tictactoe": "ppo", "tictactoe_alphazero": "alphazero"}
EXACT_PLIES = (1, 5)
DEPTH = ("search.plies=5",)
NTUPLES = [f"{{connect4_ntuple/{seed}}}/checkpoints/latest.safetensors" for seed in SEEDS]
SEARCHED_NTUPLES = [f"{run}+alphabeta" for run in NTUPLES]
SEARCH = ("search=mcts", "search.simulations=400", "search.leaf=value")
BOARDS = {
    "breakthrough": "Breakthrough 6×6",
    "gomoku": "Gomoku 9×9",
    "hex": "Hex 7×7",
    "othello": "Othello 6×6",
}
PLAIN_SEARCH = (
    *("opponent=random", "opponent_search=mcts", "opponent_search.simulations=1000"),
    *("opponent_search.num_parallel=20", "games=100", "solve_seconds=0"),
)
NETWORK_SEARCH = ("search=mcts", "search.simulations=100", "search.leaf=value")
LONG_2048 = ("experiment=2048_ntuple", "games=900000")
TEACHER_OF_2048 = "teacher={2048_long/SEED}"
NAMES_2048 = {
    "2048": "the default, n-tuple network, one ply",
    "2048_ntuple": "n-tuple network, one ply",
    "2048_long": "the same, 900,000 games, one ply",
    "2048_td_lambda": "value network by temporal differences, one ply",
    "2048_ntuple_logits": "n-tuple policy by actor-critic, one evaluation",
    "2048_ppo": "policy network by policy gradient, one evaluation",
    "2048_dagger": "n-tuple policy cloned from the one of 900,000 games, one evaluation",
}
"""All but the last one learn from rewards alone."""


def begun(name: str, *settings: str, weight: float, seeds: range) -> list[Step]:
    """Trainings, each from the weights of the one of its seed that BEGUN names, if any."""
    start = [f"init_from={{{BEGUN[name]}/SEED}}"] if name in BEGUN else []
    return train(name, f"experiment={name}", *start, *settings, weight=weight, seeds=seeds)


def seconds(steps: Figures, name: str) -> list[float]:
    """Of each training, with that of the run that it went on from."""
    each = [steps.seconds(of) for of in (name, BEGUN.get(name)) if of]
    return [sum(of) for of in zip(*each, strict=False)]


def tiles() -> list[Step]:
    steps = [
        *train("2048", "experiment=2048", weight=90, seeds=ONE),
        *train("2048_ntuple", "experiment=2048_ntuple", weight=700, threads=2),
        *train("2048_long", *LONG_2048, weight=3000, seeds=ONE, threads=2),
        *train("2048_td_lambda", "experiment=2048_td_lambda", weight=800, seeds=ONE),
        *train("2048_ppo", "experiment=2048_ppo", weight=1500, seeds=ONE),
        *train("2048_ntuple_logits", "experiment=2048_ntuple_logits", weight=1500, seeds=ONE),
        *train("2048_dagger", "experiment=2048_dagger", TEACHER_OF_2048, weight=300, seeds=ONE),
        *train("2048_3x3_ntuple", "experiment=2048_3x3_ntuple", weight=60, seeds=ONE),
        *begun("2048_3x3_finetuned", weight=1200, seeds=ONE),
        Step("2048_random", ("eval", "game=2048", "player=random", "games=1000", "format=json")),
    ]
    for name in NAMES_2048:
        steps += measure("played", name, "games=1000", "solve_seconds=0", weight=20, seeds=ONE)
    small = ("games=10000", "solve_seconds=0")
    steps += measure("played", "2048_3x3_finetuned", *small, weight=20, seeds=ONE)
    plies = ("search=expectimax", "search.plies=3", "games=100", "solve_seconds=0")
    return steps + measure("three_plies", "2048_long", *plies, weight=800, seeds=ONE)


def lines() -> list[Step]:
    steps: list[Step] = []
    for name in TICTACTOE:
        steps += train(name, f"experiment={name}", weight=50)
        steps += measure("played", name, "games=2000")
    steps += train("connect4_alphazero", "experiment=connect4_alphazero", weight=1300)
    for whom in ("random", "win_or_block"):
        against = f"opponent={whom}"
        steps += measure(whom, "connect4_alphazero", against, "games=10000", weight=20, seeds=ONE)
    steps += train("connect4_ntuple", "experiment=connect4_ntuple", weight=600)
    run = "{connect4_alphazero/0}/checkpoints/latest.safetensors"
    players = ("random", "win_or_block", run, run + "+mcts", *NTUPLES, *SEARCHED_NTUPLES)
    words = ("value_losses", *players, *SEARCH, "format=json")
    return [*steps, Step("value_losses", words, 60), *first_seat()]


def first_seat() -> list[Step]:
    """The final n-tuples against exact play, moving first, with one ply and with several."""
    steps = []
    for plies in EXACT_PLIES:
        players = NTUPLES if plies == 1 else SEARCHED_NTUPLES
        words = ("connect4_exact", *players, "games=200", *([] if plies == 1 else DEPTH))
        steps.append(Step(f"connect4_exact_{plies}", (*words, "format=json"), 100))
    return steps


def boards() -> list[Step]:
    """AlphaZero in larger games against tree search without a network."""
    steps: list[Step] = []
    for game in BOARDS:
        name = f"{game}_alphazero"
        steps += train(name, f"experiment={name}", weight=1500, seeds=ONE)
        steps += measure("greedy", name, *PLAIN_SEARCH, weight=60, seeds=ONE)
        searched = (*PLAIN_SEARCH, *NETWORK_SEARCH)
        steps += measure("searched", name, *searched, weight=90, seeds=ONE)
    return steps


def sea() -> list[Step]:
    steps = solve_cases()
    for name in SALVO.values():
        if first := BEGUN.get(name):
            steps += train(first, f"experiment={first}", "solve_seconds=0", seeds=FIVE)
        steps += begun(name, "solve_seconds=0", weight=100, seeds=FIVE)
        steps += measure("greedy", name, "games=all", "solve_seconds=0", seeds=FIVE)
    for shots, name in ((1, "fleet"), (5, "fleet_salvo")):
        seeds = SEEDS if name in CURVES else ONE
        steps += train(name, f"experiment={name}", weight=1200, seeds=seeds)
        steps += measure("greedy", name, "games=2000", "seed=1", "solve_seconds=0", seeds=ONE)
        for player, boards in GUNNERS.items():
            words = ("eval", *FLEET, f"shots={shots}", f"player={player}", f"games={boards}")
            steps.append(Step(f"{name}_{player}", words, 60))
    return steps


def of_2048(steps: Figures) -> str:
    report = steps.report("2048_random")
    body = [("random", *scores([report] if report else []), "")]
    for name, what in NAMES_2048.items():
        played = steps.reports(name, "played")
        body.append((what, *scores(played), mean(steps.seconds(name), 0)))
    searched = steps.reports("2048_long", "three_plies")
    took = over(searched, "wall_seconds", digits=0)
    body.append(("the last n-tuple network, three plies, 100 games", *scores(searched), took))
    head = ("1,000 games", "mean score", "highest", *(f"{n}, %" for n in TILES), "seconds")
    small = over(steps.reports("2048_3x3_finetuned", "played"), "score", "mean", digits=0)
    said = SMALL.format(score=small, seconds=mean(seconds(steps, "2048_3x3_finetuned"), 0))
    return f"### 2048\n\n{rows(head, body)}\n\n{said}"


def of_tictactoe(steps: Figures) -> str:
    body = []
    for name, what in TICTACTOE.items():
        reports = steps.reports(name, "played")
        gained = "; ".join("{:.3f}, {:.3f}".format(*r["exploitability_seats"]) for r in reports)
        body.append([what, gained or MISSING, mean(steps.seconds(name), 0)])
    head = (
        "learner (semicolons separate seeds)",
        "exploitability by seat: first, second",
        "seconds",
    )
    return "### Tic-tac-toe\n\n" + rows(head, body)


def of_connect4(steps: Figures) -> str:
    body = []
    for whom in ("random", "win_or_block"):
        seats = [report["seats"] for report in steps.reports("connect4_alphazero", whom)]
        won = [mean([100 * of[seat]["win"]["rate"] for of in seats], 1) for seat in (0, 1)]
        body.append([whom, *won])
    head = ("greedy, 10,000 games against", "won in the first seat, %", "in the second, %")
    took = mean(steps.seconds("connect4_alphazero"), 0)
    return (
        f"### Connect 4\n\n{rows(head, body)}\n\nTrained by self-play for {took} s.\n\n"
        + losses(steps)
        + "\n\n"
        + exact_games(steps)
    )


def exact_games(steps: Figures) -> str:
    """Games in the first seat against exact play."""
    body = []
    for plies in EXACT_PLIES:
        counts = steps.report(f"connect4_exact_{plies}") or {}
        counts.pop("wall_seconds", None)
        shown = ["; ".join(str(of[n]) for of in counts.values()) or MISSING for n in range(3)]
        body.append([str(plies), *shown])
    took = mean(steps.seconds("connect4_ntuple"), 0)
    head = ("plies (semicolons separate seeds)", "won", "drawn", "lost")
    return f"{rows(head, body)}\n\n{EXACT.format(seconds=took)}"


def losses(steps: Figures) -> str:
    """The share of moves that lose value, by stage of the game."""
    counts = steps.report("value_losses")
    if counts is None:
        return MISSING
    counts.pop("wall_seconds")
    names = ("random", "win_or_block", "network", "network, 400 simulations")
    seeds = ("n-tuples", "n-tuples, 5 plies")
    body = []
    for group, published in PUBLISHED.items():
        shares = [100 * of[group][0] / of[group][2] for of in counts.values()]
        one = [f"{share:.1f}" for share in shares[: len(names)]]
        _, could, count = next(iter(counts.values()))[group]
        middle = len(names) + len(SEEDS)
        means = [mean(each, 1) for each in (shares[len(names) : middle], shares[middle:])]
        body.append((f"{group} ({count}, {could})", *one, *means, *published))
    head = ("positions (number, number with a losing move)", *names, *seeds, *PEERS)
    return f"{rows(head, body)}\n\n{LOSSES}"


def of_boards(steps: Figures) -> str:
    """Games of AlphaZero's networks against tree search without a network."""
    body = []
    for game, what in BOARDS.items():
        name = f"{game}_alphazero"
        played = [_results(steps.reports(name, how)) for how in ("greedy", "searched")]
        body.append([what, *played, mean(steps.seconds(name), 0)])
    head = ("won / drawn / lost of 100", "greedy", "with 100 simulations", "seconds")
    return f"### Breakthrough, Gomoku, Hex and Othello\n\n{rows(head, body)}\n\n{PLAIN}"


def _results(reports: list[dict[str, Any]]) -> str:
    """Games won, drawn and lost of the first report, if any."""
    if not reports:
        return MISSING
    return " / ".join(str(reports[0][name]["count"]) for name in ("win", "draw", "loss"))


def of_salvo(steps: Figures) -> str:
    body = []
    for case, (rules, *_) in CASES.items():
        name = SALVO[case]
        reports = steps.reports(name, "greedy")
        solved = steps.report(f"solve_case{case}") or {}
        optimum, turns = solved.get("optimal"), [r["moves"]["mean"] for r in reports]
        gap = MISSING
        if optimum and turns:
            above = 100 * (sum(turns) / len(turns) / optimum - 1)
            gap = f"{round(above, 2) + 0.0:.2f}"  # no -0.00
        shown = f"{optimum:.4f}" if optimum else MISSING
        every = ", ".join(f"{turn:.3f}" for turn in turns)
        body.append([rules, mean(turns, 4), every, shown, gap, mean(seconds(steps, name), 0)])
    head = ("Salvo, turns over all layouts", "mean", "seeds", "optimum", "gap, %", "seconds")
    return f"### Salvo\n\n{rows(head, body)}\n\n{PLANE}"


def of_fleet(steps: Figures) -> str:
    body = []
    for name, shots in (("fleet", "one shot"), ("fleet_salvo", "five shots")):
        turns = [_turns(steps.report(f"{name}_{player}")) for player in GUNNERS]
        played = next(iter(steps.reports(name, "greedy")), None)
        body.append([shots, _turns(played), *turns, mean(steps.seconds(name), 0)])
    boards = [f"{player}, {boards} boards" for player, boards in GUNNERS.items()]
    head = ("5-4-3-3-2, turns", "network, 2000 boards", *boards, "seconds")
    return "### The fleet on 10×10\n\n" + rows(head, body)


def _turns(report: dict[str, Any] | None) -> str:
    """The mean and half its interval."""
    if report is None:
        return MISSING
    turns = report["moves"]
    if turns["ci95"] is None:
        return f"{turns['mean']:.2f}"
    low, high = turns["ci95"]
    return f"{turns['mean']:.2f} ± {(high - low) / 2:.2f}"


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

Written by `make strength` (scripts/strength.py) on {today}. Greedy play of the
checkpoint that evaluations during training selected, one network evaluation or one ply, unless
noted; games that selected nothing, or every layout; 95% intervals; seconds are wall-clock time of
one training run: with two threads for 2048's n-tuples, and with one and another run beside it
otherwise, on two cores."""

SMALL = """Seconds are training time; in the row of three plies, they are the time of its games.
On 3×3 an n-tuple network (`2048_3x3_ntuple`, then `2048_3x3_finetuned`) scores {score} over 10,000
games after {seconds} s; the optimum is 5,468.49.
Published for four six-tuples after 100,000 games: 2048 in 91% of games."""

PLANE = """On 5×5 the network sees how likely each cell is to hold a ship. Training starts from the
weights of `ramesh_case2_occupancy`, whose seconds are included, and continues with
`ramesh_case2_finetuned`.
Always shooting at the likeliest cell takes 12.176 turns."""

LOSSES = """Moves that lose value, in % of the positions of each class, by final networks; for
n-tuples (`connect4_ntuple`), the mean of three seeds. The positions are our own, from random moves,
labeled by our solver and, early in the game, by bitbully (scripts/label_connect4.py), and selected
nothing. The two columns on the right are published figures for 1,000 other positions of each
class."""


EXACT = """The final n-tuples (`connect4_ntuple`, trained for {seconds} s) in the first seat, where
every game can be won, against replies with the best exact score, all equally likely: they delay a
loss as long as possible (scripts/connect4_exact.py). Published for the best of ten runs, one ply:
91% won."""


PLAIN = """Networks of AlphaZero (`breakthrough_alphazero`, ...) against tree search with 1,000
simulations a move, random playouts and no network; half of the games in each seat."""


def section(out: Path) -> str:
    steps = Figures(out)
    introduction = INTRODUCTION.format(today=datetime.date.today())
    parts = (of_2048, of_tictactoe, of_connect4, of_boards, of_salvo, of_fleet, of_curves)
    return "\n\n".join([introduction, *(part(steps) for part in parts)]) + "\n"


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__.splitlines()[0],
            "strength",
            [*tiles(), *lines(), *boards(), *sea()],
            section,
            "strength",
        )
    )
