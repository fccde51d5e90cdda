"""The model card of a published agent: Markdown after metadata that the hub reads."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import TrainConfig
from rlgames.config.files import Files
from rlgames.config.plugins import plugins_override
from rlgames.config.schema import arguments, as_typed
from rlgames.core.metrics import METRICS
from rlgames.core.text import escape_markdown, json_text, markdown_table, number_text
from rlgames.core.untrusted import sanitized
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.hub import MODEL, PREFIX
from rlgames.runs.names import run_name
from rlgames.runs.run_info import RunInfo
from rlgames.version import __version__

ESTIMATES = {"moves": "turns", "score": "score", "grid_sum": "grid_sum"}
ESTIMATES |= {name: name for name in ("win", "draw", "loss")}
"""The fields of a report that are estimates, and the metrics that they are about."""

AUTHORS = ("out=", "logger", "exist_ok=", "hydra.", "--")
"""What words of a command start with that says where the author's files are."""

PATH = re.compile(r"[^\s=\[\]{},'\"]*/[^\[\]{},'\"]*")

ABOUT = {
    MODEL: "weights, with the config in the header",
    "config.yaml": "every setting of the training",
    "learning_curve.png": "evaluations during the training",
    "game.gif": "a game",
    "README.md": "this card",
}


@dataclass(frozen=True)
class Agent:
    """What a card is about.

    repository: on the hub, None without an upload. report: from `rlgames eval`. run: how it was
    trained, as far as known. files: of the folder.
    """

    name: str
    repository: str | None
    config: TrainConfig
    checkpoint: Checkpoint
    report: dict[str, Any]
    run: RunInfo
    files: list[str]

    @property
    def title(self) -> str:
        name = self.name if self.repository is None else self.repository.rpartition("/")[2]
        return sanitized(name, 100)

    @property
    def word(self) -> str:
        """The name of the agent on a command line."""
        return "FOLDER" if self.repository is None else PREFIX + self.repository


def model_card(agent: Agent, license: str | None) -> str:
    """The text of README.md. license: of the agent, as the hub abbreviates it; None: not said."""
    config = agent.config
    parts = [
        f"---\n{yaml.safe_dump(_metadata(agent, license), sort_keys=False)}---\n",
        f"# {escape_markdown(agent.title)}\n",
        f"An agent for {_code(config.game.name)}, trained with {_code(config.learner.name)} by "
        "rlgames, a command-line experiment runner for learning to play games.\n",
        "![A game of the agent](game.gif)\n",
        markdown_table(["", ""], _facts(agent)),
        f"## Figures\n\n{_conditions(agent)}\n",
        markdown_table(["", "mean", "95% interval"], result_rows(agent.report)),
    ]
    if "learning_curve.png" in agent.files:
        parts.append("## Learning curve\n\n![Evaluations](learning_curve.png)\n")
    parts += [_use(agent), _reproduction(agent), "## Files\n"]
    files = [[_code(name), ABOUT[name]] for name in agent.files]
    parts.append(markdown_table(["file", "content"], files))
    return "\n".join(parts)


def result_rows(report: dict[str, Any]) -> list[list[str]]:
    """Each figure of a report of `rlgames eval`: its name, mean and interval, as text."""
    rows = []
    for name, metric in ESTIMATES.items():
        estimate = report.get(name)
        if isinstance(estimate, dict):
            mean = estimate["mean" if "mean" in estimate else "rate"]
            rows.append([METRICS[metric].label, number_text(mean), _interval(estimate, report)])
    tiles = {tile: rate for tile, rate in report.get("reach", {}).items() if rate["rate"] < 1}
    for tile, rate in tiles.items():
        label = f"fraction of games with tile {tile}"
        rows.append([label, number_text(rate["rate"]), _interval(rate, report)])
    if report.get("exploitability") is not None:
        label = METRICS["exploitability"].label
        rows.append([label, number_text(report["exploitability"]), "exact"])
    reference = report.get("reference", {})
    for name, label in (("random", "random play"), ("optimal", "optimum")):
        if reference.get(name) is not None:
            rows.append([f"for comparison: {label}", number_text(reference[name]), ""])
    return rows


def _interval(estimate: dict[str, Any], report: dict[str, Any]) -> str:
    ends = estimate["ci95"]
    if ends is None:
        return "exact" if report["exact"] else ""
    return f"{number_text(ends[0])} to {number_text(ends[1])}"


def _metadata(agent: Agent, license: str | None) -> dict[str, Any]:
    """The metadata at the start of a card, by the hub's names."""
    game = str(agent.config.game.name)
    names = [game, str(agent.config.learner.name)]
    metrics = [
        {"type": name, "name": name, "value": mean if not interval else f"{mean} ({interval})"}
        for name, mean, interval in result_rows(agent.report)
        if not name.startswith("for comparison")
    ]
    task = {"type": "reinforcement-learning", "name": "reinforcement-learning"}
    result = {"task": task, "dataset": {"type": game, "name": game}, "metrics": metrics}
    return {
        "library_name": "rlgames",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "rlgames", *names],
        **({} if license is None else {"license": license}),
        "model-index": [{"name": agent.title, "results": [result]}],
    }


def _facts(agent: Agent) -> Iterator[list[str]]:
    config = agent.config
    for group in (
        "game",
        "reward",
        "policy",
        "sampling",
        "learner",
        "teacher",
        "search",
        "opponent",
    ):
        node = getattr(config, group)
        if node is not None:
            keys = [f"{name}={as_typed(value)}" for name, value in arguments(node).items()]
            yield [group, " ".join(_code(each) for each in (node.name, *keys))]
    if (preset := _preset(agent)) is not None:
        yield ["preset", _code(f"experiment={preset}")]
    yield ["games played", f"{agent.checkpoint.games:,}"]
    yield ["parameters", f"{agent.checkpoint.num_parameters:,}"]
    yield ["seed", _code(config.seed)]
    if versions := agent.run.versions:
        yield ["versions", ", ".join(_code(f"{name} {each}") for name, each in versions.items())]
    else:
        yield ["published with", _code(f"rlgames {__version__}")]


def _preset(agent: Agent) -> str | None:
    """The preset of the training, as far as the command of the run tells."""
    words = _words(agent)
    if not words or any(word.startswith("config=") for word in words):
        return None
    typed = [word.partition("=")[2] for word in words if word.startswith("experiment=")]
    preset = typed[-1] if typed else str(agent.config.game.name)
    return preset if preset in Files().names("experiment") else None


def _words(agent: Agent) -> list[str]:
    """The words after `rlgames train`, without those about where the author's files are, and with
    the last part of each path; empty where the run was started otherwise."""
    command = agent.run.command
    if command[1:2] != ["train"]:
        return []
    words = [PATH.sub(lambda path: shared_name(path[0]), sanitized(word)) for word in command[2:]]
    return [word for word in words if not word.startswith(AUTHORS)]


def shared_name(path: str) -> str:
    """An agent that others have by its name, and anything else by the last part of its path."""
    name = run_name(path)
    return name if name != path or path.startswith(PREFIX) else Path(path).name


def _conditions(agent: Agent) -> str:
    report = agent.report
    opponent = "" if report["opponent"] is None else f" against {_code(report['opponent'])}"
    games = "All possible games" if report["exact"] else f"{report['games']:,} games"
    return (
        f"{games}{opponent}, seed {_code(report['seed'])}, actions by "
        f"{_code(report['sampling'])}, without search."
    )


def _use(agent: Agent) -> str:
    words = shlex.join(filter(None, [agent.word, plugins_override(agent.config.plugins)]))
    lines = [f"rlgames play {words}", f"rlgames eval {words}", f"rlgames arena {words} random"]
    note = "\n\nFOLDER is the folder of this card." if agent.repository is None else ""
    extra = "" if agent.repository is None else "[hub]"
    return f"## Use\n\n```sh\npip install 'rlgames{extra}'\n" + "\n".join(lines) + f"\n```{note}\n"


def _reproduction(agent: Agent) -> str:
    plugins = plugins_override(agent.config.plugins)
    words = filter(None, ["rlgames", "train", "config=config.yaml", "out=again", plugins])
    text = (
        f"## How to reproduce it\n\n```sh\n{shlex.join(words)}\n```\n\n"
        "On a CPU, the same versions and the same seed give the same weights, to the last bit.\n"
    )
    if typed := _words(agent):
        command = " ".join(["rlgames train", *typed]).replace("`", "'")
        text += f"The run was started with:\n\n```sh\n{command}\n```\n"
    commit = agent.run.commit
    return text + (f"\nCommit of rlgames: {_code(commit)}\n" if commit else "")


def _code(value: Any) -> str:
    """A value, which a stranger may have chosen, as code that ends nowhere else."""
    text = value if isinstance(value, str) else json_text(value)
    return f"`{sanitized(text, 200).replace('`', chr(39)).replace('|', '/')}`"
