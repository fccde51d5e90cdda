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
from rlgames.terminal.tables import Column, print_table

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
    samples = [*_samples(agents, games)]
    _, sign, first = samples[0]
    means = [float(np.concatenate(scores).mean()) for scores in first]
    order = sorted(range(len(agents)), key=lambda i: Rank(-sign * means[i]))[:top]
    statistics, pairs = list[dict[str, Any]](), list[dict[str, Any]]()
    for about, _, scores in samples:
        for index in order:
            own = scores[index]
            entry = {"agent": agents[index].label, **about, "runs": sum(map(len, own))}
            estimates = {"mean": Estimate.of_seeds(own), "iqm": Estimate.of_seeds(own, "iqm")}
            statistics.append(entry | estimates)
        for pair in itertools.combinations(order, 2):
            difference = Estimate.difference(*(scores[index] for index in pair))
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


def _samples(
    agents: list[Row], games: list[str]
) -> Iterator[tuple[dict[str, Any], int, list[Scores]]]:
    """The game's metric, if there is one game, and the normalized score, if there is an optimum,
    of each checkpoint: what the sample is about, 1 if higher is better, else -1, and the scores of
    each agent, for each game one number per seed. Raises ConfigError if there is none."""
    rows = [[agent.games[game] for game in games] for agent in agents]
    metric = rows[0][0].first.metric
    ranges = [
        random_and_optimum([run for row in each for run in row.runs])
        for each in zip(*rows, strict=True)
    ]
    known = [ends for ends in ranges if ends is not None]
    if len(games) > 1 and len(known) < len(games):
        unknown = games[ranges.index(None)]
        raise ConfigError(
            f"no run of {game_in_words(unknown)} knows its optimum and random play, so its results "
            "cannot be compared with other games'",
            "choose one game with where=game=NAME",
        )
    for checkpoint, prefix in CHECKPOINTS.items():
        scores = [[np.array(row.values(prefix + row.first.metric)) for row in own] for own in rows]
        if not all(len(values) for own in scores for values in own):
            continue
        about = {"games": [*map(game_in_words, games)], "metric": metric, "checkpoint": checkpoint}
        if len(games) == 1:
            yield about, direction(goal_of(metric), metric) or 1, [*scores]
        if len(known) == len(games):
            normal = [
                [normalized(values, *ends) for values, ends in zip(own, known, strict=True)]
                for own in scores
            ]
            yield about | {"metric": NORMALIZED}, 1, [*normal]


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
    def text(found: Estimate) -> str:
        ends = found.interval
        return f"{found.value:z,.4f}" + (
            "" if ends is None else " ({:z,.4f} to {:z,.4f})".format(*ends)
        )

    return Column(heading, [text(each[name]) for each in entries], rank)
