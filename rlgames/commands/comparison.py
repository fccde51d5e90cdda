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
from rlgames.evaluation.estimates import Estimate, Floats, Scores, normalized
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.runs.find import RunSummary
from rlgames.terminal.tables import Column, print_table

NORMALIZED = "normalized score"
"""The metric that is 0 for random play and 1 for the optimum."""

NOTE = "95% intervals in parentheses; IQM: mean of the middle half of the runs"

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
    """The scores of all agents in one metric at one checkpoint.

    scores: by agent, for each game one number per seed. sign: 1 where higher is better, else -1.
    """

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
    samples = _samples(agents, _shared_games(agents))
    means = [float(np.concatenate(scores).mean()) for scores in samples[0].scores]
    order = sorted(range(len(agents)), key=lambda i: Rank(-samples[0].sign * means[i]))[:top]
    pairs = [*itertools.combinations(order, 2)]
    return Comparison(
        [agents[index] for index in order],
        [_statistics(each, agents[i], each.scores[i]) for each in samples for i in order],
        [_pair(each, agents, indices) for each in samples for indices in pairs],
    )


def _shared_games(agents: list[Agent]) -> list[str]:
    """The games of every agent. Raises ConfigError if an agent lacks one of them."""
    games = sorted({game for agent in agents for game in agent.games})
    lacking = min(agents, key=lambda agent: len(agent.games))
    if missing := sorted({*games} - {*lacking.games}):
        text = f"{lacking.label} has no run of {game_in_words(missing[0])}"
        raise ConfigError(text, "agents are compared on the same games")
    return games


def group_agents(runs: list[RunSummary], name: str) -> list[Agent]:
    """The agents that a setting tells apart, in the order of their first runs.

    Raises ConfigError for an unknown setting, and for runs of one agent and game that differ in
    more than their seeds.
    """
    own_keys = {run.path: {*run.config["game"], "game", "seed"} for run in runs}
    names = dict.fromkeys(
        key for run in runs for key in run.settings if key not in own_keys[run.path]
    )
    if name not in names:
        raise ConfigError(f"compare={name} is not a setting", nearest(name, [*names]))
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(as_text(run.settings.get(name)), []).append(run)
    agents = []
    for group in groups.values():
        settings = {name: group[0].settings.get(name)}
        label = in_words(settings)
        by_game: dict[str, list[RunSummary]] = {}
        for run in group:
            by_game.setdefault(run.game, []).append(run)
        for members in by_game.values():
            for key in differing([run.settings for run in members]):
                if key != "seed":
                    text = (
                        f"the runs of {label} differ in {key}, so they are not seeds of one agent"
                    )
                    raise ConfigError(text, f"compare={key}, or name fewer directories")
        agents.append(Agent(label, settings, {game: Row(each) for game, each in by_game.items()}))
    return agents


def _samples(agents: list[Agent], games: list[str]) -> list[Sample]:
    """The game's metric, if there is one game, and the normalized score, if there is an optimum,
    of each checkpoint."""
    rows = [row for agent in agents for row in agent.games.values()]
    metric = rows[0].first.metric
    ranges = {
        game: random_and_optimum([run for agent in agents for run in agent.games[game].runs])
        for game in games
    }
    samples = []
    for checkpoint, prefix in CHECKPOINTS.items():
        scores = [[_values(agent.games[game], prefix) for game in games] for agent in agents]
        if any(not len(values) for each in scores for values in each):
            continue
        if len(games) == 1:
            sign = direction(goal_of(metric), metric) or 1
            samples.append(Sample(metric, checkpoint, list(scores), sign))
        if all(ends is not None for ends in ranges.values()):
            normal = [
                [
                    normalized(values, *(ranges[game] or (0.0, 1.0)))
                    for game, values in zip(games, each, strict=True)
                ]
                for each in scores
            ]
            samples.append(Sample(NORMALIZED, checkpoint, list(normal), 1))
    if not samples:
        unknown = next((game for game, ends in ranges.items() if ends is None), games[0])
        raise ConfigError(
            f"{game_in_words(unknown)} has no optimum or random play in run.json, so its results "
            "cannot be compared with other games'",
            "name runs of one game",
        )
    return samples


def _values(row: Row, prefix: str) -> Floats:
    """The metric of each seed."""
    return np.array(row.values(prefix + row.first.metric))


def random_and_optimum(runs: list[RunSummary]) -> tuple[float, float] | None:
    """What random and optimal play reach in the game of these runs; None if no run knows both."""
    known = [run.results for run in runs]
    ends = [(of["random"], of["optimal"]) for of in known if "random" in of and "optimal" in of]
    if not ends:
        return None
    random, optimum = (float(value) for value in np.mean(ends, 0))
    return (random, optimum) if random != optimum else None


def _about(sample: Sample, agent: Agent) -> dict[str, Any]:
    return {
        "games": [game_in_words(game) for game in sorted(agent.games)],
        "metric": sample.metric,
        "checkpoint": sample.checkpoint,
    }


def _statistics(sample: Sample, agent: Agent, scores: Scores) -> dict[str, Any]:
    return {
        "agent": agent.label,
        **_about(sample, agent),
        "runs": sum(map(len, scores)),
        "mean": Estimate.of_seeds(scores),
        "iqm": Estimate.of_seeds(scores, "iqm"),
    }


def _pair(sample: Sample, agents: list[Agent], indices: tuple[int, int]) -> dict[str, Any]:
    """The comparison of two agents."""
    first, second = indices
    return {
        "agents": [agents[first].label, agents[second].label],
        **_about(sample, agents[first]),
        "difference": Estimate.difference(sample.scores[first], sample.scores[second]),
    }


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
    for heading, table in (
        ("agents", _agent_columns(comparison.statistics)),
        ("pairs of agents", _pair_columns(comparison.pairs)),
    ):
        if table[0].cells:
            print_table(heading, table, format)
            print()
    print(f"% {NOTE}" if format == "latex" else NOTE)


def _agent_columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    runs = [f"{each['runs']} of {_games(each)}" for each in entries]
    return [
        Column("agent", [each["agent"] for each in entries], is_text=True),
        _metric_column(entries),
        Column("runs", runs, 1),
        Column("mean", [_in_words(each["mean"]) for each in entries]),
        Column("IQM", [_in_words(each["iqm"]) for each in entries], 2),
    ]


def _pair_columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    return [
        Column("A", [each["agents"][0] for each in entries], is_text=True),
        Column("B", [each["agents"][1] for each in entries], is_text=True),
        _metric_column(entries),
        Column("A - B", [_in_words(each["difference"]) for each in entries]),
    ]


def _metric_column(entries: Sequence[dict[str, Any]]) -> Column:
    metrics = [f"{each['metric']}, {each['checkpoint']}" for each in entries]
    return Column("metric", metrics, is_text=True)


def _games(entry: dict[str, Any]) -> str:
    games: list[str] = entry["games"]
    return games[0] if len(games) == 1 else f"{len(games)} games"


def _in_words(estimate: Estimate) -> str:
    text = f"{estimate.value:z,.4f}"
    if estimate.interval is None:
        return text
    low, high = estimate.interval
    return f"{text} ({low:z,.4f} to {high:z,.4f})"
