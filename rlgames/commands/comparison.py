"""Statistics of agents over seeds and games: `rlgames report compare=`; reads only files."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlgames.commands.report_rows import Row, in_words
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import direction, goal_of
from rlgames.evaluation.aggregate import (
    Floats,
    Scores,
    Statistic,
    aggregate,
    difference_of_means,
    normalized,
    performance_profile,
    probability_of_improvement,
    seeds_needed,
)
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.runs.index import RunSummary

NORMALIZED = "normalized score"
"""The metric that is 0 for random play and 1 for the optimum."""

DEFAULT_TOP = 10
"""Agents that are compared: all pairs of a thousand are half a million."""

PROFILE_LEVELS = np.linspace(0.0, 1.0, 101)

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


@dataclass
class Comparison:
    """What compare= says about agents.

    statistics: of each sample and agent. pairs: of each sample and two agents. profiles: by label
    and checkpoint, the fraction of runs at each of PROFILE_LEVELS; empty without an optimum.
    num_left_out: agents that are not among the best ones.
    """

    agents: list[Agent]
    statistics: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    profiles: dict[str, Floats]
    power: float
    num_left_out: int = 0

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
            "power": self.power,
            "profiles": {
                "levels": PROFILE_LEVELS.tolist() if self.profiles else [],
                "fractions": {name: values.tolist() for name, values in self.profiles.items()},
            },
        }


def compare(
    runs: list[RunSummary],
    name: str,
    power: float,
    difference: float | None,
    top: int | None = None,
) -> Comparison:
    """Compare agents that a setting tells apart, or their whole configs.

    Runs of the same agent and game are its seeds, so nothing else may differ between them. Several
    games are compared between random play and the optimum of each. power, difference: of
    seeds_needed; the difference is in the game's metric, or in the normalized score of several.
    top: how many of the best agents are compared, by default DEFAULT_TOP.
    Raises ConfigError for an unknown setting and for runs that cannot be compared.
    """
    finished = [run for run in runs if run.metric in run.results]
    if not finished:
        raise ConfigError("compare= needs runs that are done", "resume them with rlgames resume")
    comparison = Comparison([], [], [], {}, power)
    for games, agents in _agents_by_games(group_agents(finished, name), name).items():
        _add(comparison, list(games), agents, difference, top or DEFAULT_TOP)
    return comparison


def _agents_by_games(agents: list[Agent], name: str) -> dict[tuple[str, ...], list[Agent]]:
    """The agents that have runs of the same games. Raises ConfigError where one setting tells
    agents apart and one of them lacks a game."""
    groups: dict[tuple[str, ...], list[Agent]] = {}
    for agent in agents:
        groups.setdefault(tuple(sorted(agent.games)), []).append(agent)
    if name != "config" and len(groups) > 1:
        games = {game for agent in agents for game in agent.games}
        lacking = min(agents, key=lambda agent: len(agent.games))
        missing = sorted(games - set(lacking.games))
        text = f"{lacking.label} has no run of {game_in_words(missing[0])}"
        raise ConfigError(text, "agents are compared on the same games")
    return groups


def _add(
    comparison: Comparison,
    games: list[str],
    agents: list[Agent],
    difference: float | None,
    top: int,
) -> None:
    """Add the statistics of the best agents that played the same games, the best one first."""
    samples = _samples(agents, games)
    means = [samples[0].sign * np.concatenate(scores).mean() for scores in samples[0].scores]
    order = [int(index) for index in np.argsort(means)[::-1][:top]]
    comparison.num_left_out += len(agents) - len(order)
    agents = [agents[index] for index in order]
    comparison.agents.extend(agents)
    for sample in samples:
        sample = replace(sample, scores=[sample.scores[index] for index in order])
        target = difference if sample.metric == samples[0].metric else None
        for agent, scores in zip(agents, sample.scores, strict=True):
            comparison.statistics.append(_statistics(sample, agent, scores))
            if sample.metric == NORMALIZED:
                profile = performance_profile(scores, PROFILE_LEVELS)
                comparison.profiles[f"{agent.label}, {sample.checkpoint}"] = profile
        for indices in itertools.combinations(range(len(agents)), 2):
            comparison.pairs.append(_pair(sample, agents, indices, comparison.power, target))


def group_agents(runs: list[RunSummary], name: str) -> list[Agent]:
    """The agents that a setting or their whole configs (name=config) tell apart, in the order of
    their first runs.

    Raises ConfigError for an unknown setting, and for runs of one agent and game that differ in
    more than their seeds.
    """
    own_keys = {run.path: {*run.config["game"], "game", "seed"} for run in runs}
    names = dict.fromkeys(
        key for run in runs for key in run.settings if key not in own_keys[run.path]
    )
    if name != "config" and name not in names:
        raise ConfigError(f"compare={name} is not a setting", nearest(name, ["config", *names]))
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        keys = [key for key in names if key in run.settings] if name == "config" else [name]
        agent = {key: run.settings.get(key) for key in keys}
        groups.setdefault(as_text(agent), []).append(run)
    shown = differing([group[0].settings for group in groups.values()])
    shown = [key for key in shown if key in names] if name == "config" else [name]
    agents = []
    for group in groups.values():
        settings = {key: group[0].settings.get(key) for key in shown}
        label = in_words(settings) or "all runs"
        by_game: dict[str, list[RunSummary]] = {}
        for run in group:
            by_game.setdefault(run.game, []).append(run)
        games = {game: Row(members) for game, members in by_game.items()}
        for members in by_game.values():
            for key in differing([run.settings for run in members]):
                if key != "seed":
                    text = (
                        f"the runs of {label} differ in {key}, so they are not seeds of one agent"
                    )
                    hint = f"compare=config or compare={key}, or name fewer directories"
                    raise ConfigError(text, hint)
        agents.append(Agent(label, settings, games))
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
            "cannot be compared with those of other games",
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


def _statistics(sample: Sample, agent: Agent, scores: Scores) -> dict[str, Any]:
    return {
        "agent": agent.label,
        "games": [game_in_words(game) for game in sorted(agent.games)],
        "metric": sample.metric,
        "checkpoint": sample.checkpoint,
        "runs": sum(map(len, scores)),
        **aggregate(scores),
    }


def _pair(
    sample: Sample,
    agents: list[Agent],
    indices: tuple[int, int],
    power: float,
    difference: float | None,
) -> dict[str, Any]:
    """The comparison of two agents. difference: to be detected; None: the observed one."""
    first_scores, second_scores = (sample.scores[index] for index in indices)
    observed = difference_of_means(first_scores, second_scores)
    better = [[sample.sign * game for game in scores] for scores in (first_scores, second_scores)]
    target = abs(observed.value) if difference is None else difference
    return {
        "agents": [agents[index].label for index in indices],
        "games": [game_in_words(game) for game in sorted(agents[indices[0]].games)],
        "metric": sample.metric,
        "checkpoint": sample.checkpoint,
        "difference": observed,
        "probability_of_improvement": probability_of_improvement(*better),
        "detects": target,
        "seeds_needed": seeds_needed(target, first_scores, second_scores, power),
    }


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.as_dict() if isinstance(value, Statistic) else value
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
