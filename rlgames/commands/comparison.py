"""Compares agents: rows of the table of runs, over one game or several, in pairs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgames.config.schema import as_typed
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import Rank, direction, goal_of
from rlgames.core.text import printable
from rlgames.evaluation.estimates import Estimate, Scores, normalized
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.runs.table import Row, Run, grouped
from rlgames.terminal.tables import Column, print_note, print_titled

REFERENCES = ("random", "optimal", "held_out_optimal")
"""Results that are references for the metrics of a run."""

NORMALIZED = "normalized score"
"""The metric that is 0 for random play and 1 for the optimum."""

NOTE = "95% intervals in parentheses; IQM: mean of the middle half of the runs"

OF_GAMES = ("game", "seed")
"""Settings that do not tell agents apart, like the rules of their games."""

CHECKPOINTS = {BEST_IN_WORDS: "", FINAL_IN_WORDS: FINAL_PREFIX}
"""Before the names of the results of each checkpoint that a run evaluates at its end."""


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as one types them, without a name for the option of a game."""
    words = [f"{key}={as_typed(value)}" for key, value in settings.items() if key != "name"]
    return printable(" ".join([*([settings["name"]] if "name" in settings else []), *words]))


def typed_text(value: Any) -> str:
    """A value as one types it; nothing in it controls a terminal."""
    return "" if value is None else printable(as_typed(value))


@dataclass(frozen=True)
class Comparison:
    """What compare= says about agents, the best one first; each is a row.

    name: the setting that tells them apart. statistics: of each metric, checkpoint and agent.
    pairs: of each metric, checkpoint and two agents.
    """

    name: str
    agents: list[Row]
    statistics: list[dict[str, Any]]
    pairs: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""

        def plain(entry: dict[str, Any]) -> dict[str, Any]:
            return {
                name: value.as_dict("value") if isinstance(value, Estimate) else value
                for name, value in entry.items()
            }

        return {
            "agents": [
                {
                    "agent": agent.label,
                    "config": {self.name: agent.settings.get(self.name)},
                    "runs": {
                        game: [str(run.path) for run in row.runs]
                        for game, row in agent.games.items()
                    },
                }
                for agent in self.agents
            ],
            "statistics": [*map(plain, self.statistics)],
            "pairs": [*map(plain, self.pairs)],
        }


def compare(runs: list[Run], name: str, top: int | None) -> Comparison:
    """Compare agents that a setting tells apart, in each game.

    Runs of the same agent and game are its seeds, so nothing else may differ between them. Games
    with a known optimum are also compared together, between random play and the optimum of each.
    top: how many of the best agents are compared; None: all. Raises ConfigError for an unknown
    setting and for runs that cannot be compared.
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
    samples = [*_samples(agents, games)]
    order = _best_first(samples, len(agents))[:top]
    begun = grouped(runs, lambda run: (as_text(run.settings.get(name)), run.game))
    statistics, pairs = list[dict[str, Any]](), list[dict[str, Any]]()
    for sample in samples:
        about = sample.fields()
        for index in order:
            own, value = sample.scores[index], as_text(agents[index].settings.get(name))
            seeds = sum(len(Row(begun[value, game]).by_seed) for game in sample.games)
            entry = {"agent": agents[index].label, **about}
            entry |= {"runs": sum(map(len, own)), "of_runs": seeds}
            estimates = {"mean": Estimate.of_seeds(own), "iqm": Estimate.of_seeds(own, "iqm")}
            statistics.append(entry | estimates)
        for pair in itertools.combinations(order, 2):
            difference = Estimate.difference(*(sample.scores[index] for index in pair))
            entry = {"agents": [agents[index].label for index in pair], **about}
            pairs.append(entry | {"difference": difference})
    return Comparison(name, [agents[index] for index in order], statistics, pairs)


def group_agents(runs: list[Run], name: str) -> list[Row]:
    """The agents that a setting tells apart, in the order of their first runs.

    Raises ConfigError for an unknown setting, and for runs of one agent and game that differ in
    more than their seeds.
    """
    names = dict.fromkeys(
        key for run in runs for key in run.settings if key not in (*run.config["game"], *OF_GAMES)
    )
    if name not in names:
        raise ConfigError(f"compare={name} is not a setting", nearest(name, [*names]))
    groups = grouped(runs, lambda run: as_text(run.settings.get(name))).values()
    agents = [Row(group, in_words({name: group[0].settings.get(name)})) for group in groups]
    for agent in agents:
        for row in agent.games.values():
            for key in differing([run.settings for run in row.runs]):
                if key != "seed":
                    text = f"the runs of {agent.label} differ in {key}"
                    text += ", so they are not seeds of one agent"
                    raise ConfigError(text, f"compare={key}, or name fewer directories")
    return agents


@dataclass(frozen=True)
class _Sample:
    """A metric of a checkpoint in some games. sign: 1 if higher is better, else -1. scores: of each
    agent, for each game one number per seed."""

    title: str
    games: Sequence[str]
    metric: str
    checkpoint: str
    sign: int
    scores: list[Scores]

    def fields(self) -> dict[str, Any]:
        games = [*map(game_in_words, self.games)]
        fields = {"title": self.title, "games": games, "metric": self.metric}
        return fields | {"checkpoint": self.checkpoint}


def _samples(agents: list[Row], games: list[str]) -> Iterator[_Sample]:
    """The metrics of each game and, between random play and the optimum, the normalized score: of
    all games together whose optimum is known."""
    titles, known = game_titles(games), dict[str, tuple[float, float]]()
    for game in games:
        if ends := random_and_optimum([run for agent in agents for run in agent.games[game].runs]):
            known[game] = ends
        first = agents[0].games[game].first
        for checkpoint, prefix in CHECKPOINTS.items():
            for metric in dict.fromkeys([first.metric, first.best_by, "exploitability"]):
                sign = direction(goal_of(first.metric), metric) or 1
                scores = [[np.array(agent.games[game].values(prefix + metric))] for agent in agents]
                if all(len(values) for (values,) in scores):
                    yield _Sample(titles[game], [game], metric, checkpoint, sign, [*scores])
    pooled = [*known]
    for checkpoint, prefix in CHECKPOINTS.items() if pooled else ():
        rows = [[agent.games[game] for game in pooled] for agent in agents]
        scores = [[np.array(row.values(prefix + row.first.metric)) for row in own] for own in rows]
        if all(len(values) for own in scores for values in own):
            normal = [
                [normalized(each, *known[game]) for each, game in zip(own, pooled, strict=True)]
                for own in scores
            ]
            names = ", ".join(titles[game] for game in pooled)
            title = names if len(pooled) == 1 else f"{len(pooled)} games ({names})"
            yield _Sample(title, pooled, NORMALIZED, checkpoint, 1, [*normal])


def _best_first(samples: Sequence[_Sample], count: int) -> list[int]:
    """The indices of the agents by their results in all games together, or by their mean ranks in
    the first metric of each game."""
    pooled = [sample for sample in samples if len(sample.games) > 1]
    first = [of[0] for of in grouped(samples, lambda sample: sample.title).values()]
    ranks = [0] * count
    for sample in pooled[:1] or first:
        means = [Rank(-sample.sign * float(np.concatenate(own).mean())) for own in sample.scores]
        for index, mean in enumerate(means):
            ranks[index] += sum(bool(other < mean) for other in means)
    return sorted(range(count), key=ranks.__getitem__)


def random_and_optimum(runs: Sequence[Run]) -> tuple[float, float] | None:
    """What random and optimal play reach in the game of these runs; None if no run knows both."""
    known = [run.results for run in runs]
    ends = [(of["random"], of["optimal"]) for of in known if "random" in of and "optimal" in of]
    if not ends:
        return None
    random, optimum = (float(value) for value in np.mean(ends, 0))
    return (random, optimum) if random != optimum else None


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


def show(comparison: Comparison, format: str, left_out: str) -> None:
    """Print the statistics of agents, then of pairs of agents, game by game. left_out: the runs
    that do not count, in words."""
    of_titles = grouped([*comparison.statistics, *comparison.pairs], lambda each: each["title"])
    for title, entries in of_titles.items():
        for kind, key in (("agents", "agent"), ("pairs of agents", "agents")):
            if own := [entry for entry in entries if key in entry]:
                print_titled(f"{kind}, {title}", _columns(own), format)
                print()
    for line in [NOTE, left_out] if left_out else [NOTE]:
        print_note(line, format)


def _columns(entries: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of the statistics of agents, or of pairs."""
    metrics = [f"{each['metric']}, {each['checkpoint']}" for each in entries]
    metric = Column("metric", metrics, is_text=True)
    if "agents" in entries[0]:
        first, second = ([each["agents"][place] for each in entries] for place in (0, 1))
        names = [Column("A", first, is_text=True), Column("B", second, is_text=True)]
        return [*names, metric, _estimates("A - B", "difference", entries)]
    runs = [
        f"{each['runs']}" + f" of {each['of_runs']}" * (each["runs"] < each["of_runs"])
        for each in entries
    ]
    return [
        Column("agent", [each["agent"] for each in entries], is_text=True),
        metric,
        Column("runs", runs, 1 if all(map(str.isdigit, runs)) else 0),
        _estimates("mean", "mean", entries),
        _estimates("IQM", "iqm", entries, 2),
    ]


def _estimates(heading: str, name: str, entries: Sequence[dict[str, Any]], rank: int = 0) -> Column:
    def text(found: Estimate) -> str:
        ends = found.interval
        return f"{found.value:z,.4f}" + (
            "" if ends is None else " ({:z,.4f} to {:z,.4f})".format(*ends)
        )

    return Column(heading, [text(each[name]) for each in entries], rank)
