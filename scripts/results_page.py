"""The first part of docs/results.md: the five documents."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

from dedieu_amar import dedieu_amar
from open_questions import open_questions
from results import Figures, rows
from results_battleship import landy, ramesh
from results_lines import connect_zero, hickman
from steps import Step

FIGURES = [
    (
        "Landy, the plot: running mean of the game's length",
        "report outputs/reproduce/landy curves=landy.png metric=train/turns window=500",
    ),
    *(
        (
            f"Ramesh, plot of case {case}: mean turns of each 100 games",
            f"report outputs/reproduce/ramesh_case{case} curves=case{case}.png metric=train/turns"
            " window=100",
        )
        for case in range(1, 6)
    ),
    (
        "Hickman, first plot: learned values of winning and of other boards",
        "train experiment=hickman out=RUN",
    ),
    (
        "Hickman, second plot: games drawn, in groups of 500",
        "report outputs/reproduce/hickman_greedy curves=drawn.png metric=train/draws window=500",
    ),
    (
        "Dedieu and Amar, figure 3: mean sum of the grid over batches, ε-greedy",
        "report outputs/reproduce/dedieu_amar_epsilon_greedy curves=figure3.png"
        " metric=train/grid_sum",
    ),
    (
        "Dedieu and Amar, figure 4: the same, probabilistic",
        "report outputs/reproduce/dedieu_amar_stochastic curves=figure4.png metric=train/grid_sum",
    ),
    (
        "Dedieu and Amar, figure 5: distance to certainty over batches",
        "report outputs/reproduce/dedieu_amar_stochastic curves=figure5.png"
        " metric=train/distance_to_certainty",
    ),
    (
        "Dedieu and Amar, figure 6a: the same over one game, at the start",
        "train experiment=dedieu_amar_stochastic games=10 out=RUN",
    ),
    (
        "Dedieu and Amar, figure 6b: the same after 500 batches",
        "train experiment=dedieu_amar_stochastic games=5000 out=RUN",
    ),
]
"""Each plot of the documents, and the words after `rlgames` that draw it."""

INTRODUCTION = """# Results: five documents, as reported and as reproduced

Written by `make reproduce` (scripts/reproduce.py) on {today}. SEED is 0, 1 and 2 unless a table
says otherwise.

- **Final network, selected checkpoint.** The documents measured the network that training ended
  with: compare their figures with "final network". The selected checkpoint is the one that plays
  best in the evaluations during training; commands use it by default. Selection favors it where
  evaluations are few and noisy.
- **Intervals** after ± are 95% intervals of the mean over training seeds (Student's t). They say
  how much another set of seeds would differ, not how much one network's games vary. With three
  seeds they are wide. Three equal values have no interval and are marked so; of two seeds, both
  values are in parentheses; of one, there is only the value. "Every layout" is exact for a greedy
  policy.
- **Seconds** are wall-clock time of one training run on one thread of two shared cores, with
  other jobs alongside. Compare them with each other only.
- **Reported** figures are the documents'. The text after each table says where in the document
  they are, and what it leaves open."""

FIGURES_TEXT = """## The documents' plots

Each command draws one, from the runs of `make reproduce` where it names them. `train` draws into
RUN/pictures: `values.png` for Hickman, `certainty.png` for Dedieu and Amar. Ten games are a batch
of theirs. Connect-Zero has no plot; figures 1, 2 and 7 of Dedieu and Amar are illustrations."""


def plots() -> str:
    body = [(what, f"`rlgames {words}`") for what, words in FIGURES]
    return f"{FIGURES_TEXT}\n\n{rows(('plot', 'command'), body)}"


PARTS: list[Callable[[Figures], str]] = [
    *(landy, ramesh, open_questions, hickman, connect_zero, dedieu_amar)
]


def table(out: Path, steps: Sequence[Step] = ()) -> str:
    """The whole part. steps: those that made the figures, whose commands it shows."""
    figures = Figures(out, {step.name: step.words for step in steps})
    introduction = INTRODUCTION.format(today=datetime.date.today())
    return "\n\n".join([introduction, *(part(figures) for part in PARTS), plots()]) + "\n"
