"""Learning curves of the strongest presets, as pictures of docs/results.md."""

from contextlib import chdir

from results import Figures
from steps import RESULTS, SEEDS

from rlgames.cli import main as cli_main
from rlgames.core.text import json_text

CURVES = {
    "2048_ntuple": "score in 2048 of n-tuple networks, one ply",
    "connect4_ntuple": "points of n-tuples in Connect 4 against `win_or_block`",
    "connect4_alphazero": "points of AlphaZero in Connect 4 against `win_or_block`, without search",
    "fleet": "turns of the network on 10×10",
}
"""The trainings of three seeds whose learning curves are drawn, and what they show."""

BESIDE_RANDOM = "fleet"
"""Drawn beside random play: its intervals are wider than what it still gains."""


def of_curves(steps: Figures) -> str:
    """The learning curves of trainings with three seeds that are done."""
    lines = ["### Learning curves", "Means of three seeds with 95% intervals, during training."]
    for name, what in CURVES.items():
        runs = [f"{name}/{seed}" for seed in SEEDS]
        picture = RESULTS.parent / "pictures" / f"strength_{name}.png"
        if len(steps.metrics(name)) == len(runs):
            with chdir(steps.out):  # the legend has the paths of runs
                references = f"references={json_text(name == BESIDE_RANDOM)}"
                words = (f"curves={picture}", "width=column", references)
                code = cli_main.run("report", [*runs, *words])
            if code != 0:
                picture.unlink(missing_ok=True)
        if picture.exists():
            title = what[0].upper() + what[1:].replace("`", "")
            lines.append(f"`{name}`: {what}\n\n![{title}](pictures/{picture.name})")
    return "\n\n".join(lines)
