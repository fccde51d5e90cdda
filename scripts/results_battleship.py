"""The tables of docs/results.md about Landy's and Ramesh's documents."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from results import MISSING, Figures, mean, over, rows

from rlgames.evaluation.curves import Curve, moving_mean

CASES = {
    1: ("4×4, ship 4, 1 shot", "6.3", "13.7"),
    2: ("5×5, ships 4 and 2, 1 shot", "17.9", "22.1"),
    3: ("4×4, ship 2, 2 shots", "4.6", "6.2"),
    4: ("4×4, ship 4, 2 shots", "4.9", "6.7"),
    5: ("4×4, ships 4 and 2, 2 shots", "7.1", "7.4"),
}
"""The rules, and his figures for his agent and for random play."""

REPORTED_GAMES = 500
"""The games of his figures."""

RULES = {1: (16, 4, 1), 2: (25, 6, 1), 3: (16, 2, 2), 4: (16, 4, 2), 5: (16, 6, 2)}
"""The cells of the board, those of all ships, and the shots per turn."""

LAST_GAMES, MEAN_GAMES, BOUND = 2000, 500, 4.6
"""What Landy's figures are means over, and the length of game that is passed."""


def training_curve(lines: list[dict[str, float]], key: str) -> Curve:
    """A metric of training and the games played, ascending. lines: those of a metrics.jsonl."""
    points = [(line["games"], line[key]) for line in lines if key in line and line["games"] > 0]
    return np.array([x for x, _ in points]), np.array([y for _, y in points])


def last_window(lines: list[dict[str, float]], key: str, games: int) -> float:
    """The mean over the last `games` games; a line that lies partly within them counts for that
    part. Raises ConfigError where a line covers more games."""
    return float(moving_mean(training_curve(lines, key), games)[1][-1])


def first_below(lines: list[dict[str, float]], bound: float, games: int) -> float:
    """After how many games the mean over the last `games` was first below the bound; infinite if
    it never was."""
    x, y = moving_mean(training_curve(lines, "train/turns"), games)
    below = (y < bound).nonzero()[0]
    return float(x[below[0]]) if len(below) else math.inf


def landy(figures: Figures) -> str:
    names = ("landy", "landy_loop", "landy_tuned")
    late, first, greedy, selected, seconds = [], [], [], [], []
    for name in names:
        logs = figures.metrics(name)
        late.append(mean([last_window(lines, "train/turns", LAST_GAMES) for lines in logs]))
        passed = [first_below(lines, BOUND, MEAN_GAMES) for lines in logs]
        # An interval of counts up to a threshold says little: show each seed.
        counts = ["never" if games == math.inf else f"{games:,.0f}" for games in passed]
        first.append(", ".join(counts) or MISSING)
        greedy.append(over(figures.reports(name, "final"), "moves", "mean", digits=3))
        selected.append(over(figures.reports(name, "selected"), "moves", "mean", digits=3))
        seconds.append(mean(figures.seconds(name), 0))
    random, optimum = references(figures.reports("landy", "final"))
    body = [
        (
            f"sampling policy, mean of the last {LAST_GAMES:,} games of training",
            "about 4.55 (plot)",
            *late,
            random,
            optimum,
        ),
        (
            f"games until the mean of the last {MEAN_GAMES} is below {BOUND}, by seed",
            "about 3,000 (plot)",
            *first,
            "",
            "",
        ),
        ("final network, greedy, every layout", MISSING, *greedy, random, optimum),
        ("selected checkpoint, greedy, every layout", MISSING, *selected, random, optimum),
        ("seconds", MISSING, *seconds, "", ""),
    ]
    head = (
        "figure",
        "reported",
        "`landy`: a step per game, the article's text",
        "`landy_loop`: a step per move, the article's program",
        "`landy_tuned`",
        "random",
        "optimum",
    )
    return (
        "## Landy: shots on a line of 10 cells, ship of 3\n\n"
        + rows(head, body)
        + f"\n\n{LANDY_SOURCE}\n\n{figures.commands(*names)}"
    )


LANDY_SOURCE = """Source: the article's only plot, the running mean of the game's length; its text
has no figure, so both are read off by eye. The article does not give the length of the plot's
window; 500 games are assumed. Training games are sampled from the policy."""


def references(reports: list[dict[str, object]]) -> tuple[str, str]:
    """Random play and the optimum."""
    if not reports:
        return MISSING, MISSING
    reference = reports[0]["reference"]
    assert isinstance(reference, dict)
    random, optimal = (
        MISSING if reference[name] is None else f"{reference[name]:.2f}"
        for name in ("random", "optimal")
    )
    return random, optimal


def random_turns(cells: int, ship_cells: int, shots: int) -> tuple[float, float]:
    """The mean and the standard deviation of the turns of random play.

    The cells are shot at in random order; the last ship cell is the m-th of them with probability
    C(m-1, k-1) ÷ C(n, k).
    """
    ways = [math.comb(m, ship_cells) for m in range(cells + 1)]
    chance = {m: (b - a) / ways[-1] for m, (a, b) in enumerate(pairwise(ways), 1)}
    average = sum(p * math.ceil(m / shots) for m, p in chance.items())
    variance = sum(p * (math.ceil(m / shots) - average) ** 2 for m, p in chance.items())
    return average, math.sqrt(variance)


def ramesh(figures: Figures) -> str:
    body = []
    names = []
    for case, (rules, published, _) in CASES.items():
        plain, tuned = f"ramesh_case{case}", f"ramesh_case{case}_tuned"
        names += [plain, tuned]
        solved = figures.report(f"solve_case{case}") or {}
        optimum = f"{solved['optimal']:.4f}" if solved.get("optimal") else MISSING
        for run, reported in ((plain, published), (tuned, MISSING)):
            body.append(
                (
                    f"case {case}: {rules}",
                    f"`{run}`",
                    reported,
                    over(figures.reports(run, "final_sampled"), "moves", "mean"),
                    over(figures.reports(run, "final"), "moves", "mean"),
                    over(figures.reports(run, "selected"), "moves", "mean"),
                    optimum,
                    mean(figures.seconds(run), 0),
                )
            )
    head = (
        "case",
        "preset",
        "reported, 500 games",
        "final network, sampled, 500 games",
        "final network, greedy, every layout",
        "selected checkpoint, greedy, every layout",
        "optimum",
        "seconds",
    )
    parts = (
        "## Ramesh: turns per game of battleship and Salvo",
        rows(head, body),
        f"{RAMESH_SOURCE} {_held_out(figures)}",
        _random_play(),
        figures.commands("ramesh_case1", "ramesh_case1_tuned", "ramesh_case2_holdout")
        + "\n- the other cases: the same with the presets in the table",
    )
    return "\n\n".join(parts)


RAMESH_SOURCE = """Source: the captions of the five plots under "Experimental Results". Ramesh
measured the network when training was over, over 500 games. The article does not say whether it
then samples its shots, as in training, or takes the likeliest, so both are shown. `ramesh_caseN`
has the article's settings. A gradient step per game and a tanh layer as wide as the board has cells
are assumed from Landy's article, from which Ramesh took network and training."""


def _random_play() -> str:
    """How far his random play is from the exact expectation."""
    body = []
    for case, (rules, _, reported) in CASES.items():
        average, deviation = random_turns(*RULES[case])
        error = deviation / math.sqrt(REPORTED_GAMES)
        body.append(
            (
                f"case {case}: {rules}",
                reported,
                f"{average:.4f}",
                f"{deviation:.3f}",
                f"{(float(reported) - average) / error:+.1f}",
            )
        )
    head = (
        "random play",
        "reported, 500 games",
        "exact mean",
        "exact standard deviation",
        "difference in standard errors",
    )
    return f"{rows(head, body)}\n\n{RANDOM_PLAY}"


RANDOM_PLAY = """A difference of more than 3 standard errors is hardly ever due to chance.
Rounding to one decimal moves a figure by at most 1.4 of them, so the random player of cases 3 and
4 does not play uniformly at random on uniformly random layouts: it is too slow in case 3 and too
fast in case 4."""


def _held_out(figures: Figures) -> str:
    """What Landy's footnote suggests, on the board where it makes sense."""
    measured = [
        f"{report['trained_on']['mean']:.2f} turns on the training layouts and "
        f"{report['held_out']['mean']:.2f} on the held-out ones"
        for report in figures.reports("ramesh_case2_holdout", "final")
    ]
    return (
        "With a fifth of case 2's layouts held out, as footnote 2 of Landy's article\n"
        f"suggests, the final network of the tuned agent takes {'; '.join(measured) or MISSING}."
    )
