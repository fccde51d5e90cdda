"""Statistics of agents over seeds and games: `rlgames report compare=`; reads only files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgames.commands.report_rows import Row, in_words
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import Rank, direction, goal_of
from rlgames.evaluation.estimates import Estimate, Scores, normalized
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.runs.find import RunSummary
from rlgames.terminal.tables import Column, print_table

NORMALIZED = "normalized score"
"""The metric that is 0 for random play and 1 for the optimum."""

NOTE = "95% intervals in parentheses; IQM: mean of the middle half of the runs"

OF_GAMES = ("game", "seed")
"""Settings that do not tell agents apart, like the rules of their games."""

CHECKPOINTS = {BEST_IN_WORDS: "", FINAL_IN_WORDS: FINAL_PREFIX}
"""Before the names of the results of each checkpoint that a run evaluates at its end."""


@dataclass(frozen=True)
class Agent:
    """The runs of one agent. label: the settings that tell it apart. games: by game, the runs that
    differ in their seeds only."""

    label: str
    settings: dict[str, Any]
    games: dict[str, Row]


@dataclass(frozen=True)
class Sample:
    """The scores of all agents in one metric at one checkpoint: by agent, for each game one number
    per seed. sign: 1 where higher is better, else -1."""

    metric: str
    checkpoint: str
    scores: list[Scores]
    sign: int


@dataclass(frozen=True)
class Comparison:
    """What compare= says about agents, the best one first.

    statistics: of each sample and agent. pairs: of each sample and two agents.
    """

    agents: list[Agent]
    statistics: list[dict[str, Any]]
    pairs: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        return {
            "agents": [
                {
                    "agent": agent.label,
                    "config": agent.settings,
                    "runs": {
                        game: [str(run.path) for run in row.runs]
                        for game, row in agent.games.items()
                    },
                }
                for agent in self.agents
            ],
            "statistics": [_plain(each) for each in self.statistics],
            "pairs": [_plain(each) for each in self.pairs],
        }


def compare(runs: list[RunSummary], name: str, top: int | None) -> Comparison:
    """Compare agents that a setting tells apart.

    Runs of the same agent and game are its seeds, so nothing else may differ between them. Several
    games are compared between random play and the optimum of each. top: how many of the best agents
    are compared; None: all. Raises ConfigError for an unknown setting and for runs that cannot be
    compared.
    """
    finished = [run for run in runs if run.metric in run.results]
    if not finished:
        raise ConfigError("compare= needs runs that are done", "resume them with rlgames resume")
    agents = group_agents(finished, name)
    games = sorted({game for agent in agents for game in agent.games})
    for agent in agents:
        if missing := sorted({*games} - {*agent.games}):
            text = f"{agent.label} has no run of {game_in_words(missing[0])}"
            raise ConfigError(text, "agents are compared on the same games")
    samples = _samples(agents, games)
    means = [float(np.concatenate(scores).mean()) for scores in samples[0].scores]
    order = sorted(range(len(agents)), key=lambda i: Rank(-samples[0].sign * means[i]))[:top]
    comparison = Comparison([agents[index] for index in order], [], [])
    for sample in samples:
        about = {
            "games": [*map(game_in_words, games)],
            "metric": sample.metric,
            "checkpoint": sample.checkpoint,
        }
        for index in order:
            scores = sample.scores[index]
            estimates = {"mean": Estimate.of_seeds(scores), "iqm": Estimate.of_seeds(scores, "iqm")}
            entry = {"agent": agents[index].label, **about, "runs": sum(map(len, scores))}
            comparison.statistics.append(entry | estimates)
        for pair in itertools.combinations(order, 2):
            difference = Estimate.difference(*(sample.scores[index] for index in pair))
            entry = {"agents": [agents[index].label for index in pair], **about}
            comparison.pairs.append(entry | {"difference": difference})
    return comparison


def group_agents(runs: list[RunSummary], name: str) -> list[Agent]:
    """The agents that a setting tells apart, in the order of their first runs.

    Raises ConfigError for an unknown setting, and for runs of one agent and game that differ in
    more than their seeds.
    """
    names = dict.fromkeys(
        key for run in runs for key in run.settings if key not in (*run.config["game"], *OF_GAMES)
    )
    if name not in names:
        raise ConfigError(f"compare={name} is not a setting", nearest(name, [*names]))
    groups: dict[str, dict[str, list[RunSummary]]] = {}
    for run in runs:
        group = groups.setdefault(as_text(run.settings.get(name)), {})
        group.setdefault(run.game, []).append(run)
    agents = []
    for group in groups.values():
        settings = {name: next(iter(group.values()))[0].settings.get(name)}
        label = in_words(settings)
        for members in group.values():
            for key in differing([run.settings for run in members]):
                if key != "seed":
                    text = (
                        f"the runs of {label} differ in {key}, so they are not seeds of one agent"
                    )
                    raise ConfigError(text, f"compare={key}, or name fewer directories")
        agents.append(Agent(label, settings, {game: Row(each) for game, each in group.items()}))
    return agents


def _samples(agents: list[Agent], games: list[str]) -> list[Sample]:
    """The game's metric, if there is one game, and the normalized score, if there is an optimum,
    of each checkpoint."""
    rows = [[agent.games[game] for game in games] for agent in agents]
    metric = rows[0][0].first.metric
    ranges = [
        random_and_optimum([run for row in each for run in row.runs])
        for each in zip(*rows, strict=True)
    ]
    known = [ends for ends in ranges if ends is not None]
    samples = []
    for checkpoint, prefix in CHECKPOINTS.items():
        scores = [[np.array(row.values(prefix + row.first.metric)) for row in own] for own in rows]
        if not all(len(values) for own in scores for values in own):
            continue
        if len(games) == 1:
            sign = direction(goal_of(metric), metric) or 1
            samples.append(Sample(metric, checkpoint, [*scores], sign))
        if len(known) == len(games):
            normal = [
                [normalized(values, *ends) for values, ends in zip(own, known, strict=True)]
                for own in scores
            ]
            samples.append(Sample(NORMALIZED, checkpoint, [*normal], 1))
    if not samples:
        unknown = games[ranges.index(None)] if None in ranges else games[0]
        raise ConfigError(
            f"{game_in_words(unknown)} has no optimum or random play in run.json, so its results "
            "cannot be compared with other games'",
            "name runs of one game",
        )
    return samples


def random_and_optimum(runs: list[RunSummary]) -> tuple[float, float] | None:
    """What random and optimal play reach in the game of these runs; None if no run knows both."""
    known = [run.results for run in runs]
    ends = [(of["random"], of["optimal"]) for of in known if "random" in of and "optimal" in of]
    if not ends:
        return None
    random, optimum = (float(value) for value in np.mean(ends, 0))
    return (random, optimum) if random != optimum else None


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.as_dict("value") if isinstance(value, Estimate) else value
        for name, value in entry.items()
    }


def game_in_words(game: str) -> str:
    """A game with its rules as one types them; game: its settings as JSON."""
    return in_words(json.loads(game))


def game_titles(games: list[str]) -> dict[str, str]:
    """The name of each game, with the rules that differ between games of one name."""
    rules = {game: json.loads(game) for game in games}
    titles = {}
    for game, own in rules.items():
        shown = differing([each for each in rules.values() if each["name"] == own["name"]])
        titles[game] = in_words({key: own[key] for key in own if key in ("name", *shown)})
    return titles


def show(comparison: Comparison, format: str) -> None:
    """Print the statistics of agents, then of pairs of agents."""
    for title, entries in (
        ("agents", comparison.statistics),
        ("pairs of agents", comparison.pairs),
    ):
        if entries:
            print_table(title, _columns(entries), format)
            print()
    print(f"% {NOTE}" if format == "latex" else NOTE)


def _columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of the statistics of agents, or of pairs."""
    metrics = [f"{each['metric']}, {each['checkpoint']}" for each in entries]
    metric = Column("metric", metrics, is_text=True)
    if "agents" in entries[0]:
        first, second = ([each["agents"][place] for each in entries] for place in (0, 1))
        names = [Column("A", first, is_text=True), Column("B", second, is_text=True)]
        return [*names, metric, _estimates("A - B", "difference", entries)]
    games = [each["games"] for each in entries]
    several = [of[0] if len(of) == 1 else f"{len(of)} games" for of in games]
    runs = [f"{each['runs']} of {of}" for each, of in zip(entries, several, strict=True)]
    return [
        Column("agent", [each["agent"] for each in entries], is_text=True),
        metric,
        Column("runs", runs, 1),
        _estimates("mean", "mean", entries),
        _estimates("IQM", "iqm", entries, 2),
    ]


def _estimates(heading: str, name: str, entries: Sequence[dict[str, Any]], rank: int = 0) -> Column:
    cells = []
    for estimate in (each[name] for each in entries):
        ends = (
            ""
            if estimate.interval is None
            else " ({:z,.4f} to {:z,.4f})".format(*estimate.interval)
        )
        cells.append(f"{estimate.value:z,.4f}{ends}")
    return Column(heading, cells, rank)
