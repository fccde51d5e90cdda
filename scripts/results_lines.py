"""The tables of docs/results.md about Hickman's document and Connect-Zero."""

from __future__ import annotations

from collections.abc import Sequence

from results import MISSING, Figures, mean, over, rows

HICKMAN = ("hickman", "hickman_every_game", "hickman_tuned")

CHECKPOINTS = {"final": "final network", "selected": "selected checkpoint"}


def hickman(figures: Figures) -> str:
    names, nothing = HICKMAN, (MISSING, MISSING)
    milliseconds = [
        mean(
            [
                1000 * seconds / max(line["games"] for line in lines)
                for seconds, lines in zip(figures.seconds(name), figures.metrics(name), strict=True)
            ]
        )
        for name in names
    ]
    drawn = [_drawn(figures, f"{name}_greedy") for name in names]
    body: list[Sequence[str]] = [
        ("milliseconds per game of training", "1.35 (mean of 1,000)", *milliseconds, *nothing),
        (
            "greedy while still learning, five groups of 500 games: drawn, %",
            "nearly all, then all (plot)",
            *drawn,
            *nothing,
        ),
    ]
    references = [
        [report] if (report := figures.report(f"tictactoe_{name}")) else []
        for name in ("random", "exact")
    ]
    for key, what in CHECKPOINTS.items():
        frozen = [figures.reports(name, key) for name in names] + references
        for seat, number in enumerate(("first", "second")):
            cells = [
                "; ".join(_percentages(report["exact_seats"][seat]) for report in reports)
                or MISSING
                for reports in frozen
            ]
            title = f"{what}, {number} seat against random, exact: % won / drawn / lost"
            body.append((title, MISSING, *cells))
        cells = [
            "; ".join(
                "{:.3f}, {:.3f}".format(*report["exploitability_seats"]) for report in reports
            )
            or MISSING
            for reports in frozen
        ]
        body.append((f"{what}, exploitability by seat: first, second", MISSING, *cells))
    head = (
        "figure",
        "reported",
        "`hickman`: batches of 100 games",
        "`hickman batch=1`: learns after every game, as in the article",
        "`hickman_tuned`",
        "random",
        "minimax",
    )
    return (
        "## Hickman: tic-tac-toe by a table of values\n\n"
        + rows(head, body)
        + f"\n\n{HICKMAN_TEXT}\n\n{figures.commands(*names, 'hickman_greedy')}"
    )


HICKMAN_TEXT = """Semicolons separate seeds. Sources: the time is a `microbenchmark` of 1,000
games, in C++ called from R; the games drawn are the second plot, read off by eye, and the article
says that in the end all are drawn. With `batch=1` a game of some 7 moves makes about 1,480 calls
to torch, nearly all on tensors of a few numbers, whose fixed cost takes the time; the article's
program has no such cost. In batches of 100 the same calls serve 100 games, and a board that
several of them share is updated as if one game had followed another. The article shuffles moves of
equal value: greedy play is here uniform over them (`sampling.ties=random`), in games and in exact
results, so no figure rests on the order of moves. Drawing against itself proves little: such a
table, frozen, can lose to a best response. The games that are still learned from start with the
final network."""


def _drawn(figures: Figures, run: str) -> str:
    """The percentages of each seed."""
    seeds = [
        " ".join(f"{100 * line['train/draws']:.1f}" for line in lines if "train/draws" in line)
        for lines in figures.metrics(run)
    ]
    return "; ".join(seeds) or MISSING


def _percentages(seat: dict[str, float]) -> str:
    return " / ".join(f"{100 * seat[name]:.1f}" for name in ("win", "draw", "loss"))


def connect_zero(figures: Figures) -> str:
    names = ("connect_zero", "connect_zero_tuned")
    body = []
    for key, what in CHECKPOINTS.items():
        for opponent, published in (
            ("random", MISSING),
            ("win_or_block", "68 (REINFORCE with baseline) to 88 (actor-critic)"),
        ):
            won = [
                over(figures.reports(name, f"{opponent}_{key}"), "win", "rate", digits=1, times=100)
                for name in names
            ]
            body.append((f"{what}: won against `{opponent}`, %", published, *won))
    body.append(("seconds", MISSING, *(mean(figures.seconds(name), 0) for name in names)))
    head = ("figure", "reported in later posts", *(f"`{name}`" for name in names))
    return (
        "## Connect-Zero: Connect 4, greedy, both seats\n\n"
        + rows(head, body)
        + f"\n\n{CONNECT_ZERO_TEXT}\n\n{figures.commands(*names)}"
    )


CONNECT_ZERO_TEXT = """Source: the post has formulas and code and no figure. The percentages are
from later posts of its series, whose agents are trained differently: the second has two-ply
bootstrapping. `connect_zero` has the post's algorithm; network, batch size, step size and number
of games are not in it and are assumed. `connect_zero_tuned` trains against
`win_or_block` itself."""
