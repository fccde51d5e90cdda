"""The tables of docs/results.md, from the run directories and JSON that reproduce.py writes."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MISSING = "–"

T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for an interval of 95 %, by the number of seeds less one, from 1."""


class Figures:
    """The results of the steps in one directory; None for anything that is missing."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def report(self, name: str) -> dict[str, Any] | None:
        """The JSON of an `eval` or a `solve`."""
        path = self.out / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def reports(self, run: str, measure: str) -> list[dict[str, Any]]:
        """One for each seed of a training."""
        paths = sorted((self.out / run).glob(f"*.{measure}.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def metrics(self, run: str) -> list[list[dict[str, float]]]:
        """The lines of metrics.jsonl, for each seed that is done."""
        figures = []
        for path in sorted((self.out / run).glob("*/metrics.jsonl")):
            text = path.read_text(encoding="utf-8")
            figures.append([json.loads(line) for line in text.splitlines()])
        return figures

    def seconds(self, run: str) -> list[float]:
        """How long each training took, from its first game to its last."""
        return [
            max(line["time/seconds"] for line in lines if "time/seconds" in line)
            for lines in self.metrics(run)
        ]


def mean(values: Sequence[float], digits: int = 2) -> str:
    """The mean over seeds: with its 95 % interval from three on, of two with both of them."""
    if not values:
        return MISSING
    middle = sum(values) / len(values)
    shown = f"{middle:,.{digits}f}"
    if len(values) == 1:
        return shown
    if len(values) == 2:
        return f"{shown} ({min(values):,.{digits}f}, {max(values):,.{digits}f})"
    spread = math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))
    half = T95[min(len(values) - 2, len(T95) - 1)] * spread / math.sqrt(len(values))
    return f"{shown} ± {half:,.{digits}f}"


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def over(reports: list[dict[str, Any]], *path: str, digits: int = 2, times: float = 1.0) -> str:
    """The mean over seeds of a figure deep in their reports."""
    values: list[Any] = list(reports)
    for name in path:
        values = [value[name] for value in values]
    return mean([times * value for value in values], digits)


def last_window(lines: list[dict[str, float]], key: str, games: int) -> float:
    """The mean of a metric over the log lines of the last `games` games."""
    end = max(line["games"] for line in lines)
    figures = [line[key] for line in lines if key in line and line["games"] > end - games]
    return sum(figures) / len(figures)


HEAD = ("figure", "reported", "here, same settings", "here, tuned", "random", "optimum", "seconds")


def landy(figures: Figures) -> str:
    names = ("landy", "landy_tuned")
    late = [
        mean([last_window(lines, "train/turns", 2000) for lines in figures.metrics(name)])
        for name in names
    ]
    first = [
        mean([first_below(lines, 4.6) for lines in figures.metrics(name)], 0) for name in names
    ]
    greedy = [over(figures.reports(name, "greedy"), "moves", "mean", digits=3) for name in names]
    random, optimum = references(figures.reports("landy", "greedy"))
    seconds = "; tuned ".join(mean(figures.seconds(name), 0) for name in names)
    body = [
        ("sampling policy, last 2,000 games", "about 4.55 (plot)", *late, random, optimum, seconds),
        ("games until the mean of 500 is below 4.6", "about 3,000 (plot)", *first, "", "", ""),
        ("greedy policy, every layout", MISSING, *greedy, random, optimum, ""),
    ]
    return "## Landy: shots on a line of 10 cells, ship of 3\n\n" + rows(HEAD, body)


def first_below(lines: list[dict[str, float]], bound: float) -> float:
    """After how many games the mean length of the last ones was below the bound."""
    return min((x["games"] for x in lines if x.get("train/turns", math.inf) < bound), default=0)


def references(reports: list[dict[str, Any]]) -> tuple[str, str]:
    """Random play and the optimum."""
    if not reports:
        return MISSING, MISSING
    reference = reports[0]["reference"]
    figures = [
        MISSING if reference[n] is None else f"{reference[n]:.2f}" for n in ("random", "optimal")
    ]
    return figures[0], figures[1]


CASES = {
    1: ("4×4, ship 4, 1 shot", "6.3", "13.7"),
    2: ("5×5, ships 4 and 2, 1 shot", "17.9", "22.1"),
    3: ("4×4, ship 2, 2 shots", "4.6", "6.2"),
    4: ("4×4, ship 4, 2 shots", "4.9", "6.7"),
    5: ("4×4, ships 4 and 2, 2 shots", "7.1", "7.4"),
}
"""The rules, and his figures for his agent and for random play."""


def ramesh(figures: Figures) -> str:
    body = []
    for case, (rules, published, random) in CASES.items():
        plain, tuned = f"ramesh_case{case}", f"ramesh_case{case}_tuned"
        solved = figures.report(f"solve_case{case}") or {}
        optimum = f"{solved['optimal']:.4f}" if solved.get("optimal") else MISSING
        ours = [
            f"{over(figures.reports(run, 'sampled'), 'moves', 'mean')}; "
            f"greedy {over(figures.reports(run, 'greedy'), 'moves', 'mean')}"
            for run in (plain, tuned)
        ]
        expected, _ = references(figures.reports(plain, "greedy"))
        seconds = "; tuned ".join(mean(figures.seconds(run), 0) for run in (plain, tuned))
        name = f"case {case}: {rules}"
        body.append((name, published, *ours, f"{expected} (reported {random})", optimum, seconds))
    return (
        "## Ramesh: turns per game of battleship and Salvo\n\n"
        + rows(HEAD, body)
        + "\n\nThe sampled policy over 500 games, as in his report, and the greedy policy over\n"
        f"every layout. {_held_out(figures)}"
    )


def _held_out(figures: Figures) -> str:
    """What Landy's footnote suggests, on the board where it makes sense."""
    said = [
        f"{report['trained_on']['mean']:.2f} turns on the training layouts and "
        f"{report['held_out']['mean']:.2f} on the held-out ones"
        for report in figures.reports("ramesh_case2_holdout", "greedy")
    ]
    return (
        "With a fifth of case 2's layouts held out, as a footnote in Landy's document\n"
        f"suggests, the tuned agent's greedy play takes {'; '.join(said) or MISSING}."
    )


def hickman(figures: Figures) -> str:
    drawn = "; ".join(
        " ".join(f"{line['train/draws']:.1%}" for line in lines if "train/draws" in line)
        for lines in figures.metrics("hickman_greedy")
    )
    frozen = [figures.reports(run, "frozen") for run in ("hickman", "hickman_tuned")]
    for name in ("random", "exact"):
        report = figures.report(f"tictactoe_{name}")
        frozen.append([report] if report else [])
    seconds = [mean(figures.seconds(run), 1) for run in ("hickman", "hickman_tuned")]
    nothing = (MISSING, MISSING)
    body: list[Sequence[str]] = [
        (
            "seconds of training",
            "about 120",
            f"{seconds[0]} for 100,000 games",
            f"{seconds[1]} for 200,000",
            *nothing,
        ),
        (
            "greedy while still learning, five groups of 500 games: drawn",
            "nearly all, then all",
            drawn or MISSING,
            MISSING,
            *nothing,
        ),
    ]
    for seat, name in enumerate(("first", "second")):
        shares = [
            "; ".join(_shares(report["exact_seats"][seat]) for report in reports) or MISSING
            for reports in frozen
        ]
        what = f"frozen, {name} seat against random, exact: % won / drawn / lost"
        body.append((what, MISSING, *shares))
    score_scale = [
        "; ".join("{:.3f}, {:.3f}".format(*r["exploitability_seats"]) for r in reports) or MISSING
        for reports in frozen
    ]
    body.append(("exploitability by seat: first, second", MISSING, *score_scale))
    head = ("figure", "reported", "here, same settings", "here, tuned", "random", "minimax")
    return (
        "## Hickman: tic-tac-toe by a table of values\n\n"
        + rows(head, body)
        + "\n\nSemicolons separate seeds. Drawing against itself proves little: such a table,\n"
        "frozen, can lose to a best response."
    )


def _shares(seat: dict[str, float]) -> str:
    return " / ".join(f"{100 * seat[name]:.1f}" for name in ("win", "draw", "loss"))


def connect_zero(figures: Figures) -> str:
    names = ("connect_zero", "connect_zero_tuned")
    body = [
        (
            f"games won against {whom}, %",
            published,
            *(
                over(figures.reports(name, whom), "win", "rate", digits=1, times=100)
                for name in names
            ),
        )
        for whom, published in (
            ("random", MISSING),
            ("win_or_block", "68 (REINFORCE with baseline) to 88 (actor-critic)"),
        )
    ]
    body.append(("seconds", MISSING, *(mean(figures.seconds(name), 0) for name in names)))
    head = ("figure", "reported in later posts", "here, the post's settings", "here, tuned")
    return "## Connect-Zero: Connect 4, greedy, both seats\n\n" + rows(head, body)


TILES = (256, 512, 1024, 2048)
PLAYED = {
    "stochastic": "stochastic policy, as printed, 600 batches",
    "stochastic_faster": "the same, step size 0.1 to 0.01, 300 batches",
    "epsilon_greedy": "ε-greedy, as printed, 600 batches",
    "epsilon_greedy_faster": "ε-greedy, step size 0.1 to 0.01, 300 batches",
    "win": "reward of 1 for a win, step size as above",
    "warm_start": "five games of `corner` added to each batch, step size as above",
    "adp": "ADP, four features",
    "adp_cloning": "network cloned from the ADP's moves",
    "adp_tuned": "ADP, tuned",
    "stochastic_tuned": "stochastic policy, the paper's network, tuned",
    "staged": "the same with a separate network from tile 512 on, 8,000 games",
    "dqn": "DQN",
}
"""The trainings for the 2048 paper, in the order of its table."""


def dedieu_amar(figures: Figures) -> str:
    body = [_random_2048(figures, "2048_random_twos", "random, only twos")]
    body.append(_random_2048(figures, "2048_random", "random, a tenth of fours"))
    for run, what in PLAYED.items():
        name = f"dedieu_amar_{run}"
        body.append(
            (
                what,
                *scores(figures.reports(name, "played")),
                _course(figures.metrics(name), "train/score", 0),
                _course(figures.metrics(name), "train/distance_to_certainty", 2),
                mean(figures.seconds(name), 0),
            )
        )
    searched = figures.reports("dedieu_amar_stochastic_tuned", "search")
    seconds = over(searched, "wall_seconds", digits=0)
    what = "MCTS with the tuned policy and value head, 100 simulations per move, 20 games, seed 0"
    body.append((what, *scores(searched), "", "", seconds))
    head = (
        "greedy play, 1,000 games",
        "mean score",
        "highest",
        *(f"{tile}, %" for tile in TILES),
        "score in training",
        "distance to certainty",
        "seconds",
    )
    claims = rows(("the paper says", "here"), [(claim, said(figures)) for claim, said in CLAIMS])
    return f"## Dedieu and Amar: 2048\n\n{rows(head, body)}\n\n{claims}\n\n{MISPRINTS}"


def _random_2048(figures: Figures, name: str, what: str) -> tuple[str, ...]:
    report = figures.report(name)
    return (what, *scores([report] if report else []), "", "", "")


def scores(reports: list[dict[str, Any]]) -> list[str]:
    """The mean and the highest score, and how many of the games reach the tiles."""
    reached = [
        mean([100 * r["reach"].get(str(tile), {"rate": 0.0})["rate"] for r in reports], 1)
        for tile in TILES
    ]
    scores = [over(reports, "score", which, digits=0) for which in ("mean", "max")]
    return [*scores, *reached]


def _course(runs: list[list[dict[str, float]]], key: str, digits: int) -> str:
    """A metric of training, the mean over seeds of its first and its last log line."""
    lines = [[line[key] for line in run if key in line] for run in runs]
    lines = [values for values in lines if values]
    if not lines:
        return ""
    first, last = (sum(values[at] for values in lines) / len(lines) for at in (0, -1))
    return f"{first:,.{digits}f} → {last:,.{digits}f}"


def _values(reports: list[dict[str, Any]], figure: str, which: str) -> float:
    """The mean over seeds, NaN where nothing was measured."""
    values = [report[figure][which] for report in reports]
    return sum(values) / len(values) if values else math.nan


def _times_random(figures: Figures) -> str:
    twos, fours = (
        [report] if (report := figures.report(name)) else []
        for name in ("2048_random_twos", "2048_random")
    )
    said = []
    for run, random in (
        ("stochastic", twos),
        ("stochastic_faster", twos),
        ("stochastic_tuned", fours),
    ):
        reports = figures.reports(f"dedieu_amar_{run}", "played")
        highest, usual = (
            _values(reports, "score", which) / _values(random, "score", which)
            for which in ("max", "mean")
        )
        said.append(
            f"{PLAYED[run]}: {highest:.1f} times random's highest, {usual:.1f} times its mean"
        )
    return "; ".join(said)


def _reaches(runs: Sequence[str], tile: int) -> Callable[[Figures], str]:
    def said(figures: Figures) -> str:
        parts = []
        for run in runs:
            reports = figures.reports(f"dedieu_amar_{run}", "played")
            rates = [r["reach"].get(str(tile), {"rate": 0.0})["rate"] for r in reports]
            parts.append(f"{PLAYED[run]}: {mean([100 * rate for rate in rates], 1)} %")
        return "; ".join(parts)

    return said


def _random_reaches_256(figures: Figures) -> str:
    report = figures.report("2048_random_twos")
    share = report["reach"]["256"]["rate"] if report and "256" in report["reach"] else 0.0
    return f"uniformly random play reaches it in {share:.1%} of games"


def _epsilon(figures: Figures) -> str:
    said = []
    for run in ("epsilon_greedy", "epsilon_greedy_faster"):
        course = _course(figures.metrics(f"dedieu_amar_{run}"), "train/score", 0)
        said.append(f"{PLAYED[run]}: {course}")
    return "score in training, " + "; ".join(said)


def _weights(figures: Figures) -> str:
    """The last logged weights of the ADP, by seed."""
    prefix, said = "train/weight_", []
    for lines in figures.metrics("dedieu_amar_adp"):
        last = [line for line in lines if any(key.startswith(prefix) for key in line)][-1]
        named = {k.removeprefix(prefix): v for k, v in last.items() if k.startswith(prefix)}
        said.append(", ".join(f"{name} {weight:+.0f}" for name, weight in named.items()))
    return "weights by seed: " + "; ".join(said)


def _search(figures: Figures) -> str:
    searched = _values(figures.reports("dedieu_amar_stochastic_tuned", "search"), "score", "mean")
    greedy = _values(figures.reports("dedieu_amar_stochastic_tuned", "played")[:1], "score", "mean")
    return (
        f"{searched / greedy:.2f} times the greedy mean, leaves valued by the value head, "
        "no rollouts"
    )


CLAIMS: list[tuple[str, Callable[[Figures], str]]] = [
    ("maximum score four times that of random play", _times_random),
    ("the random network never reached 256", _random_reaches_256),
    (
        "reached 1024 a significant number of times",
        _reaches(("stochastic", "stochastic_faster", "stochastic_tuned"), 1024),
    ),
    ("never reached 2048", _reaches(("stochastic", "stochastic_faster", "stochastic_tuned"), 2048)),
    ("ε-greedy training is no better than random over 600 batches", _epsilon),
    ("some of the ADP's weights turn negative, and it plays poorly", _weights),
    ("tree search on top (no figure given)", _search),
]

MISPRINTS = """Misprints corrected here: the gradient of the log-probability is A − P, not
A − log P; the derivative of ReLU is 1 where h > 0, not where h < 0; the ADP's step goes down the
gradient, λ − αΔ. With one running scalar per matrix, a step size of 0.01 moves a whole matrix by
0.01, and throughout the 600 reported batches the sampled policy scores like random play (greedy
play is better). A step size ten times as large learns."""

PARTS: list[Callable[[Figures], str]] = [landy, ramesh, hickman, connect_zero, dedieu_amar]


def table(out: Path) -> str:
    """The whole page."""
    figures = Figures(out)
    introduction = INTRODUCTION.format(today=datetime.date.today())
    return "\n\n".join([introduction, *(part(figures) for part in PARTS)]) + "\n"


INTRODUCTION = """# Results: five documents, as reported and as reproduced

Written by `make reproduce` (scripts/reproduce.py) on {today}. Intervals are 95% intervals over
three seeds; for two seeds, both figures are in parentheses; for one seed, there is only the figure.
Seconds are for one training run on one thread, with another run on the machine."""
