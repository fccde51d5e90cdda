"""docs/results.md from the directories and the JSON that scripts/reproduce.py leaves behind."""

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


class Found:
    """What the steps left in one directory; anything that is not there is None."""

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
        found = []
        for path in sorted((self.out / run).glob("*/metrics.jsonl")):
            text = path.read_text(encoding="utf-8")
            found.append([json.loads(line) for line in text.splitlines()])
        return found

    def seconds(self, run: str) -> list[float]:
        """How long each training took, from its first game to its last."""
        return [
            max(line["time/seconds"] for line in lines if "time/seconds" in line)
            for lines in self.metrics(run)
        ]


def mean(values: Sequence[float], digits: int = 2) -> str:
    """The mean over seeds, with its 95 % interval where there are several."""
    if not values:
        return MISSING
    middle = sum(values) / len(values)
    if len(values) == 1:
        return f"{middle:,.{digits}f} (one seed)"
    spread = math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))
    half = T95[min(len(values) - 2, len(T95) - 1)] * spread / math.sqrt(len(values))
    return f"{middle:,.{digits}f} ± {half:,.{digits}f}"


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
    """The mean of a metric over the log lines of the last so many games."""
    end = max(line["games"] for line in lines)
    found = [line[key] for line in lines if key in line and line["games"] > end - games]
    return sum(found) / len(found)


HEAD = ("figure", "theirs", "ours, their settings", "ours, tuned", "random", "optimum", "seconds")


def landy(found: Found) -> str:
    names = ("landy", "landy_tuned")
    late = [
        mean([last_window(lines, "train/turns", 2000) for lines in found.metrics(name)])
        for name in names
    ]
    first = [mean([first_below(lines, 4.6) for lines in found.metrics(name)], 0) for name in names]
    greedy = [over(found.reports(name, "greedy"), "moves", "mean", digits=3) for name in names]
    random, optimum = references(found.reports("landy", "greedy"))
    seconds = "; tuned ".join(mean(found.seconds(name), 0) for name in names)
    body = [
        ("sampling policy, last 2 000 games", "about 4.55 (plot)", *late, random, optimum, seconds),
        ("games until the mean of 500 is below 4.6", "about 3 000 (plot)", *first, "", "", ""),
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
    found = [
        MISSING if reference[n] is None else f"{reference[n]:.2f}" for n in ("random", "optimal")
    ]
    return found[0], found[1]


CASES = {
    1: ("4×4, ship 4, 1 shot", "6.3", "13.7"),
    2: ("5×5, ships 4 and 2, 1 shot", "17.9", "22.1"),
    3: ("4×4, ship 2, 2 shots", "4.6", "6.2"),
    4: ("4×4, ship 4, 2 shots", "4.9", "6.7"),
    5: ("4×4, ships 4 and 2, 2 shots", "7.1", "7.4"),
}
"""The rules, and his figures for his agent and for random play."""


def ramesh(found: Found) -> str:
    body = []
    for case, (rules, theirs, random) in CASES.items():
        plain, tuned = f"ramesh_case{case}", f"ramesh_case{case}_tuned"
        solved = found.report(f"solve_case{case}") or {}
        optimum = f"{solved['optimal']:.4f}" if solved.get("optimal") else MISSING
        ours = [
            f"{over(found.reports(run, 'sampled'), 'moves', 'mean')}; "
            f"greedy {over(found.reports(run, 'greedy'), 'moves', 'mean')}"
            for run in (plain, tuned)
        ]
        expected, _ = references(found.reports(plain, "greedy"))
        seconds = "; tuned ".join(mean(found.seconds(run), 0) for run in (plain, tuned))
        name = f"case {case}: {rules}"
        body.append((name, theirs, *ours, f"{expected} (his {random})", optimum, seconds))
    return (
        "## Ramesh: turns a game of battleship and Salvo\n\n"
        + rows(HEAD, body)
        + "\n\nThe sampling policy over 500 games, as he measured it, and the greedy one over\n"
        "every layout."
    )


def hickman(found: Found) -> str:
    drawn = "; ".join(
        " ".join(f"{line['train/draws']:.1%}" for line in lines if "train/draws" in line)
        for lines in found.metrics("hickman_greedy")
    )
    frozen = [found.reports(run, "frozen") for run in ("hickman", "hickman_tuned")]
    for name in ("random", "exact"):
        report = found.report(f"tictactoe_{name}")
        frozen.append([report] if report else [])
    seconds = [mean(found.seconds(run), 1) for run in ("hickman", "hickman_tuned")]
    nothing = (MISSING, MISSING)
    body: list[Sequence[str]] = [
        (
            "seconds of training",
            "about 120",
            f"{seconds[0]} for 100 000 games",
            f"{seconds[1]} for 200 000",
            *nothing,
        ),
        (
            "greedy and still learning, five groups of 500 games: drawn",
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
        what = f"frozen, {name} seat against random, worked out: % won / drawn / lost"
        body.append((what, MISSING, *shares))
    gains = [
        "; ".join("{:.3f}, {:.3f}".format(*r["exploitability_seats"]) for r in reports) or MISSING
        for reports in frozen
    ]
    body.append(("gained by a best response on the first, second seat", MISSING, *gains))
    head = ("figure", "theirs", "ours, his settings", "ours, tuned", "random", "minimax")
    return (
        "## Hickman: tic-tac-toe by a table of values\n\n"
        + rows(head, body)
        + "\n\nSemicolons part seeds. Drawing with oneself proves little: such a table, frozen,\n"
        "can lose to a best response."
    )


def _shares(seat: dict[str, float]) -> str:
    return " / ".join(f"{100 * seat[name]:.1f}" for name in ("win", "draw", "loss"))


def connect_zero(found: Found) -> str:
    names = ("connect_zero", "connect_zero_tuned")
    body = [
        (
            f"games won against {whom}, %",
            theirs,
            *(
                over(found.reports(name, whom), "win", "rate", digits=1, times=100)
                for name in names
            ),
        )
        for whom, theirs in (
            ("random", MISSING),
            ("win_or_block", "68 (REINFORCE with baseline) to 88 (actor-critic)"),
        )
    ]
    body.append(("seconds", MISSING, *(mean(found.seconds(name), 0) for name in names)))
    head = ("figure", "theirs, in later posts", "ours, the post's settings", "ours, tuned")
    return "## Connect-Zero: Connect 4, greedy, both seats\n\n" + rows(head, body)


def dedieu_amar(found: Found) -> str:
    """Each claim of the 2048 paper, and what runs here say of it."""
    name = "dedieu_amar_{}".format
    played = {
        run: found.reports(name(run), "played")
        for run in (
            "stochastic",
            "stochastic_faster",
            "epsilon_greedy",
            "epsilon_greedy_faster",
            "win",
            "stochastic_tuned",
            "staged",
            "q",
            "adp",
            "adp_tuned",
            "adp_clone",
        )
    }
    random = [report for report in [found.report("2048_random_twos")] if report]
    random_fours = [report for report in [found.report("2048_random")] if report]

    def score(reports: list[dict[str, Any]]) -> str:
        return over(reports, "score", "mean", digits=0)

    def most(reports: list[dict[str, Any]]) -> str:
        return over(reports, "score", "max", digits=0)

    def reached(reports: list[dict[str, Any]], tile: int) -> str:
        rates = [r["reach"].get(str(tile), {"rate": 0.0})["rate"] for r in reports]
        return mean([100 * rate for rate in rates], 1)

    def grid(run: str) -> str:
        """Mean sum of the grid in training: first and last 200 games; each game's return is it."""
        runs = [[x for x in m if "train/return" in x] for m in found.metrics(name(run))]
        return (
            "; ".join(f"{m[0]['train/score']:,.0f} → {m[-1]['train/score']:,.0f}" for m in runs)
            or MISSING
        )

    def doubt(run: str) -> str:
        key = "train/distance_to_certainty"
        runs = [[x[key] for x in m if key in x] for m in found.metrics(name(run))]
        return "; ".join(f"{m[0]:.2f} → {m[-1]:.2f}" for m in runs) or MISSING

    settings, faster, tuned = (
        played[run] for run in ("stochastic", "stochastic_faster", "stochastic_tuned")
    )
    head = (
        "figure",
        "theirs",
        "ours, their settings",
        "the same, α from 0.1",
        "ours, tuned",
        "random",
    )
    body = [
        (
            "mean score, greedy",
            MISSING,
            score(settings),
            score(faster),
            score(tuned),
            f"{score(random)}; with fours {score(random_fours)}",
        ),
        (
            "highest score of 1 000 games",
            "4 times random's",
            most(settings),
            most(faster),
            most(tuned),
            f"{most(random)}; with fours {most(random_fours)}",
        ),
        *(
            (
                f"games that reach {tile}, %",
                theirs,
                reached(settings, tile),
                reached(faster, tile),
                reached(tuned, tile),
                reached(random, tile),
            )
            for tile, theirs in (
                (256, "random: never"),
                (512, MISSING),
                (1024, "“a significant number”"),
                (2048, "never"),
            )
        ),
        (
            "mean score while training, first and last games",
            "rises within some hundred batches",
            grid("stochastic"),
            grid("stochastic_faster"),
            grid("stochastic_tuned"),
            MISSING,
        ),
        (
            "distance to certainty while training",
            "near 1.5 → near 0",
            doubt("stochastic"),
            doubt("stochastic_faster"),
            doubt("stochastic_tuned"),
            "1.5 for four moves",
        ),
        (
            "seconds",
            MISSING,
            *(
                mean(found.seconds(name(run)), 0)
                for run in ("stochastic", "stochastic_faster", "stochastic_tuned")
            ),
            MISSING,
        ),
    ]
    others = [
        (what, said, score(played[run]), grid(run), mean(found.seconds(name(run)), 0))
        for what, said, run in (
            ("ε-greedy training", "no better than random after 600 batches", "epsilon_greedy"),
            ("the same, α from 0.1", MISSING, "epsilon_greedy_faster"),
            ("1 for a win, else 0, as reward", "too rare to learn from", "win"),
            ("ADP, four features", "not satisfactory; some weights negative", "adp"),
            ("ADP, tuned", MISSING, "adp_tuned"),
            ("their network fitted to the ADP's moves", MISSING, "adp_clone"),
            ("networks before and after 512", "left for later", "staged"),
            ("Q network", "left for later", "q"),
        )
    ]
    weights = [_weights(lines) for lines in found.metrics(name("adp"))]
    adp = "; ".join(", ".join(f"{k} {v:+.0f}" for k, v in w.items()) for w in weights) or MISSING
    search = []
    for step, what in (
        ("search", "MCTS, 100 simulations a move, 20 games"),
        ("greedy20", "the same policy, greedy"),
    ):
        reports = found.reports(name("stochastic_tuned"), step)
        search.append(
            (
                what,
                score(reports),
                reached(reports, 1024),
                reached(reports, 2048),
                over(reports, "wall_seconds", digits=0),
            )
        )
    return "\n\n".join(
        [
            "## Dedieu and Amar: 2048",
            rows(head, body),
            rows(
                ("method", "theirs", "mean score, greedy", "score while training", "seconds"),
                others,
            ),
            f"Weights of the ADP after training, by seed: {adp}.",
            rows(
                ("play of the tuned policy", "mean score", "1024, %", "2048, %", "seconds"), search
            ),
            CLAIMS,
        ]
    )


def _weights(lines: list[dict[str, float]]) -> dict[str, float]:
    """The last logged weights of a linear value, by feature."""
    prefix = "train/weight_"
    found = [x for x in lines if any(key.startswith(prefix) for key in x)]
    return {k.removeprefix(prefix): v for k, v in found[-1].items() if k.startswith(prefix)}


CLAIMS = """PLACEHOLDER"""

PARTS: list[Callable[[Found], str]] = [landy, ramesh, hickman, connect_zero, dedieu_amar]


def table(out: Path) -> str:
    """The whole page."""
    found = Found(out)
    introduction = INTRODUCTION.format(today=datetime.date.today())
    return "\n\n".join([introduction, *(part(found) for part in PARTS)]) + "\n"


INTRODUCTION = """# What the five documents report, and what runs here reach

Written by `make reproduce` (scripts/reproduce.py) on {today}. Intervals are of 95 %,
over seeds unless something else is said; seconds are those of one training on one thread, with
another beside it."""
