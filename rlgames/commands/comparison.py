"""Compares runs, by their files: those that differ only in their seeds form a row, with means, and
the rows of one agent, over several games, are compared with other agents."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from rlgames.config.schema import as_typed
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import Rank, direction, gap_to_optimum, goal_of
from rlgames.core.text import printable
from rlgames.evaluation.estimates import Estimate, Scores, normalized
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS, FINAL_PREFIX, as_text, differing
from rlgames.runs.find import RunSummary
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


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seeds, the best first."""

    runs: list[RunSummary]
    _results: dict[str, Estimate | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def first(self) -> RunSummary:
        return self.runs[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the best run."""
        return self.first.settings

    @cached_property
    def by_seed(self) -> list[list[RunSummary]]:
        """The runs of each seed; a repeated run adds nothing to a mean over seeds."""
        seeds: dict[str, list[RunSummary]] = {}
        for run in self.runs:
            seeds.setdefault(as_text(run.settings.get("seed")), []).append(run)
        return list(seeds.values())

    def values(self, name: str) -> list[float]:
        """A result of the seeds that have it."""
        by_seed = (
            [run.results[name] for run in seed if name in run.results] for seed in self.by_seed
        )
        return [fmean(values) for values in by_seed if values]

    def mean(self, name: str) -> float | None:
        """The mean of a result over the seeds that have it; None without one."""
        values = self.values(name)
        return float(np.mean(values)) if values else None

    def result(self, name: str) -> Estimate | None:
        """The same with its interval."""
        if name not in self._results:
            values = self.values(name)
            self._results[name] = Estimate.of_seeds([np.array(values)]) if values else None
        return self._results[name]

    def so_far(self, name: str) -> float | None:
        """The mean of a result over the runs while none of them is done; None once one is."""
        known = [run.so_far[name] for run in self.runs if name in run.so_far]
        return fmean(known) if known and self.result(name) is None else None

    def gap(self, prefix: str = "") -> float | None:
        """How much worse than the optimum the best checkpoint is, as a fraction of the optimum.

        prefix: FINAL_PREFIX: the same of the final network.
        """
        mean, optimum = map(self.mean, (prefix + self.first.metric, "optimal"))
        if mean is None or optimum is None:
            return None
        return gap_to_optimum(goal_of(self.first.metric), mean, optimum)

    @property
    def seconds(self) -> float | None:
        """The mean time of a run."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        return fmean(known) if known else None

    @property
    def status(self) -> str:
        names = [run.status for run in self.runs]
        if len(names) == 1:
            return self.first.status_in_words
        kinds = sorted(set(names))
        return kinds[0] if len(kinds) == 1 else ", ".join(f"{names.count(k)} {k}" for k in kinds)

    @property
    def rank(self) -> tuple[bool, Any, Any]:
        values = {name: self.values(name) for name in (self.first.best_by, "points")}
        return sort_key(self.first, {name: fmean(of) for name, of in values.items() if of})

    def record(self, keys: Sequence[str], metrics: Sequence[str]) -> dict[str, Any]:
        """The values by the names of columns; an interval takes two of them. None: unknown."""
        record = {key: self.settings.get(key) for key in keys}
        record |= {"status": self.status, "runs": len(self.runs)}
        for name in metrics:
            mean = self.result(name)
            record[name] = self.so_far(name) if mean is None else mean.value
            ends = None if mean is None else mean.interval
            record[f"{name} low"], record[f"{name} high"] = ends or (None, None)
        for name in REFERENCES:
            record[name] = self.mean(name)
        record |= {"gap": self.gap(), "final/gap": self.gap(FINAL_PREFIX)}
        times = {"seconds": self.seconds, "started": self.first.start}
        return record | times | {"run": str(self.first.path)}

    @property
    def order(self) -> tuple[bool, str, tuple[bool, Any, Any]]:
        """A sort key: by game, then the best first; damaged runs come last."""
        return bool(self.first.damage), self.first.game, self.rank


def sort_key(run: RunSummary, results: dict[str, float]) -> tuple[bool, Any, Any]:
    """A key by which the best sorts first, by the run's best_by and then by points; runs without a
    metric that ranks them come last."""
    sign = direction(goal_of(run.metric), run.best_by)
    if run.best_by not in results or not sign:
        return True, Rank(0.0), Rank(0.0)
    return False, Rank(-sign * results[run.best_by]), Rank(-results.get("points", 0.0))


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as one types them, without a name for the option of a game."""
    words = [f"{key}={as_typed(value)}" for key, value in settings.items() if key != "name"]
    return printable(" ".join([*([settings["name"]] if "name" in settings else []), *words]))


def typed_text(value: Any) -> str:
    """A value as one types it; nothing in it controls a terminal."""
    return "" if value is None else printable(as_typed(value))


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
