"""Ramesh's open questions: the runs that answer them, and their table in docs/results.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import variance

from results import MISSING, Figures, mean, over, rows
from steps import Step, measure, train

from rlgames.core.intervals import student_t


@dataclass(frozen=True)
class Change:
    """A change to the settings of a baseline, measured with three seeds.

    name: of its runs. words: what is typed. weight: about how many seconds a run takes; 0 for a
    baseline that another table trains.
    """

    name: str
    question: str
    words: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class Group:
    """Settings, and changes to them; the first of `changes` is no change."""

    words: tuple[str, ...]
    changes: tuple[Change, ...]


def _state(prefix: str, weight: float) -> tuple[Change, ...]:
    """What he would add to the state."""
    return (
        Change(
            f"{prefix}_sunk",
            "the state has the ships' sizes and which are sunk",
            ("show=[sizes,sunk]",),
            weight,
        ),
        Change(f"{prefix}_first_hit", "the first hit is marked", ("show=[first_hit]",), weight),
    )


REINFORCE, PPO = "open_reinforce", "open_ppo"
SHORT_PPO = ("experiment=ramesh_case5_tuned", "games=30000", "batch=256", "eval_every=10000")
HIS = ("experiment=ramesh_case5",)
GROUPS = (
    Group(
        HIS,
        (
            Change("ramesh_case5", "the article's settings", (), 0),
            Change(f"{REINFORCE}_conv", "a convolutional policy", ("policy=conv", "lr=0.02"), 50),
            *_state(REINFORCE, 32),
            Change(
                f"{REINFORCE}_random_turn",
                "the article's reward, minus what a whole random turn hits",
                ("reward.minus=random_turn",),
                28,
            ),
            Change(f"{REINFORCE}_turns", "−1 per turn as the reward", ("reward=turns",), 28),
        ),
    ),
    Group(
        SHORT_PPO,
        (
            Change(f"{PPO}_baseline", "the tuned preset, shorter", (), 8),
            Change(f"{PPO}_conv", "a convolutional policy", ("policy=conv",), 20),
            *_state(PPO, 10),
        ),
    ),
)
"""The settings on case 5, each with the changes that are compared with them."""

LARGER = (
    Group(HIS, (Change(f"{REINFORCE}_board5", "two shots on 5×5", ("board=5",), 40),)),
    Group(
        SHORT_PPO,
        (
            Change(f"{PPO}_shots3", "three shots on 4×4", ("shots=3",), 12),
            Change(f"{PPO}_board5", "two shots on 5×5", ("board=5",), 20),
            Change(f"{PPO}_board6", "two shots on 6×6", ("board=6",), 35),
        ),
    ),
)
"""Other rules, which are compared with random play, `density` and, where known, the optimum."""

DUEL = "open_duel"
DUEL_WORDS = ("experiment=salvo_duel", "games=15000", "eval_every=5000")
DUEL_OPPONENTS = ("random", "hunt_target")


def steps() -> list[Step]:
    """Train and evaluate everything."""
    every: list[Step] = []
    for group in (*GROUPS, *LARGER):
        for change in group.changes:
            if change.weight:
                words = (*group.words, *change.words, "solve_seconds=0")
                every += train(change.name, *words, weight=change.weight)
                for name, checkpoint in (("final", "final"), ("selected", "best")):
                    where = (f"checkpoint={checkpoint}", "games=all", "solve_seconds=0")
                    every += measure(name, change.name, *where, weight=1)
    every += train(DUEL, *DUEL_WORDS, weight=30)
    for name in DUEL_OPPONENTS:
        words = ("checkpoint=final", f"opponent={name}", "games=2000")
        every += measure(name, DUEL, *words, weight=3)
    game = ("game=salvo", "ships=[4,2]", "format=json")
    for change in LARGER[1].changes:
        rules = _rules(change)
        words = ("eval", "player=density", *game, *change.words, "games=all", "solve_seconds=0")
        every.append(Step(f"open_density_{rules}", words, 3))
    every.append(Step("open_solve_shots3", ("solve", *game, "shots=3"), 5))
    return every


def _rules(change: Change) -> str:
    return change.name.rpartition("_")[2]


def difference(values: Sequence[float], control: Sequence[float]) -> str:
    """The difference of two means over seeds, with Welch's 95% interval."""
    if min(len(values), len(control)) < 2:
        return MISSING
    shown = f"{sum(values) / len(values) - sum(control) / len(control):+.2f}"
    errors = [variance(each) / len(each) for each in (values, control)]
    if not any(errors):
        return shown
    parts = zip(errors, (values, control), strict=True)
    freedom = sum(errors) ** 2 / sum(error**2 / (len(each) - 1) for error, each in parts)
    half = student_t(freedom) * math.sqrt(sum(errors))
    return f"{shown} ± {half:.2f}"


def open_questions(figures: Figures) -> str:
    return "\n\n".join(
        (
            "### Ramesh's open questions, answered",
            INTRODUCTION,
            *(_changes(figures, group) for group in GROUPS),
            _larger(figures),
            _duel(figures),
        )
    )


def _turns(figures: Figures, run: str, name: str) -> list[float]:
    return [report["moves"]["mean"] for report in figures.reports(run, name)]


def _changes(figures: Figures, group: Group) -> str:
    body = []
    control = _turns(figures, group.changes[0].name, "final")
    for change in group.changes:
        values = _turns(figures, change.name, "final")
        body.append(
            (
                change.question,
                f"`{' '.join(change.words)}`" if change.words else "",
                mean(values),
                difference(values, control) if change.words else "",
                mean(_turns(figures, change.name, "selected")),
                mean(figures.seconds(change.name), 0),
            )
        )
    head = (
        f"`{' '.join(group.words)}` and",
        "words",
        "final network",
        "difference",
        "selected checkpoint",
        "seconds",
    )
    return rows(head, body)


def _larger(figures: Figures) -> str:
    body = []
    for group in LARGER:
        for change in group.changes:
            rules = _rules(change)
            solved = figures.report(f"open_solve_{rules}") or {}
            density = figures.report(f"open_density_{rules}")
            random = [r["reference"]["random"] for r in figures.reports(change.name, "final")[:1]]
            body.append(
                (
                    change.question,
                    f"`{' '.join((*group.words, *change.words))}`",
                    mean(_turns(figures, change.name, "final")),
                    mean(_turns(figures, change.name, "selected")),
                    mean(random),
                    mean([density["moves"]["mean"]] if density else []),
                    mean([solved["optimal"]] if solved.get("optimal") else []),
                    mean(figures.seconds(change.name), 0),
                )
            )
    head = (
        "other rules, ships 4 and 2",
        "words",
        "final network",
        "selected checkpoint",
        "random",
        "`density`",
        "optimum",
        "seconds",
    )
    return f"{rows(head, body)}\n\n{LARGER_TEXT}"


def _duel(figures: Figures) -> str:
    games = [
        over(figures.reports(DUEL, name), "win", "rate", digits=1, times=100)
        for name in DUEL_OPPONENTS
    ]
    head = (
        "two-player Salvo",
        *(f"won against `{name}`, %" for name in DUEL_OPPONENTS),
        "seconds",
    )
    body = [
        ("5×5, ships 3, 2 and 2, final network, greedy", *games, mean(figures.seconds(DUEL), 0))
    ]
    return f"{rows(head, body)}\n\n{figures.commands(DUEL)}"


INTRODUCTION = """Turns of greedy play over every layout, three seeds each, on case 5 unless a row
says otherwise. "Discussion" and "Introduction" of the report suggest all of these; it tries none.
`rlgames train`, the words above the first column and in the row, and `seed=SEED` repeat a row;
`rlgames eval RUN checkpoint=final games=all` measures the final network, `checkpoint=best` the
selected checkpoint. Differences compare final networks with the first row, with Welch's 95%
interval: fewer turns are negative, and an interval that contains 0 shows no difference. The
ships' sizes are the same in every game, so only the planes that tell which are sunk can help; a
sinking is announced by them, which the rules of the other rows do not do. The convolutional policy
has a third of that learning rate: with 0.06, the weights of two of three seeds grow until the loss
is not a finite number any more, which ends the run."""

LARGER_TEXT = """Ramesh used at most two shots and to boards below 5×5, where 10,000 games took
about 30 minutes ("Appendix", 3). Three shots on 4×4 make 560 sets of cells, so `aim=auto` aims
cell by cell there and on 6×6. `density` shoots at the likeliest cells given all layouts that are
left. If the optimum is missing, `rlgames solve` cannot reach it."""
