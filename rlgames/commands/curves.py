"""Learning curves of several runs as one figure: `rlgames report curves=`; reads only files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlgames.commands.comparison import (
    game_titles,
    group_agents,
    in_words,
    random_and_optimum,
    typed_text,
)
from rlgames.config.commands import ReportConfig
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import METRICS
from rlgames.core.text import counted, printable
from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel
from rlgames.evaluation.curves import (
    X_AXES,
    Curve,
    along,
    moving_mean,
    over_seeds,
    seeds_in_words,
    up_to_optimum,
)
from rlgames.evaluation.estimates import Floats, normalized
from rlgames.runs.files import as_text, varying_settings
from rlgames.runs.table import ColumnText, Row, Run, grouped, rows_of
from rlgames.runs.where import sorted_by

NORMALIZED = "normalized"
"""The value of metric= for the game's metric between random play (0) and the optimum (1)."""

BEST_BY = "best_by"
"""The metric that selects the checkpoints of each game."""

AGGREGATES = {"mean": "mean", "iqm": "interquartile mean"}
"""By the values of aggregate=: what the legend calls them."""

TRAINING_LABELS = {
    "draws": "fraction of games drawn",
    "first_seat_wins": "fraction won by the first seat",
    "entropy": "entropy (nats per move)",
    "target_entropy": "entropy of the search (nats per move)",
    "lr": "learning rate",
    "grad_norm": "norm of the gradient",
    "loss": "loss",
}
"""Labels of metrics of training, which are not about how well a policy plays."""

REFERENCES = {"random": "random play", "optimal": "optimum"}


def draw(runs: list[Run], rows: Sequence[Row], keys: Sequence[str], options: ReportConfig) -> None:
    """Write the curves of the first rows, or of agents, with bands over their seeds.

    Metrics are rows of panels, and games are columns. Raises ConfigError for a format that is not
    known, an unknown metric, a window that the logs do not allow, and OSError.
    """
    path = Path(options.curves or "")
    figures.check_figure("curves", path)
    drawing = _Drawing(runs, options)
    sources = _sources(runs, rows, keys, options.compare)
    panels = drawing.panels(drawing.metrics(), sources)
    width = figures.width_in_inches(options.width)
    figure = figures.draw_panels(panels, width, options.style, drawing.note())
    figures.save_figure(figure, path)


class _Drawing:
    """Panels of metrics, and what their legend has to say."""

    def __init__(self, runs: list[Run], options: ReportConfig) -> None:
        self.runs, self.options = runs, options
        self.num_left_out = 0
        self.seeds: dict[str, str] = {}  # by the labels of lines; all seeds before others
        self.titles_left_out: list[str] = []

    def metrics(self) -> list[str]:
        """The metrics to draw, by default BEST_BY. Raises ConfigError."""
        options, runs = self.options, self.runs
        if not options.metric:
            games = grouped(runs, lambda run: run.game).values()
            is_pooled = options.compare is not None and len(games) > 1
            return [NORMALIZED if is_pooled and all(map(random_and_optimum, games)) else BEST_BY]
        for metric in options.metric:
            if options.window is not None and not metric.startswith("train/"):
                hint = "metric=train/turns is a mean over training games"
                raise ConfigError(f"window={options.window} needs a metric of training", hint)
            is_known = metric == NORMALIZED or any(len(run.points(metric)[0]) for run in runs)
            if not is_known:
                names = {name for run in runs for line in run.lines for name in line} - {"games"}
                near = nearest(metric, sorted(names)) if names else "no run has any metrics yet"
                raise ConfigError(f"metric={metric} is in no run's metrics.jsonl", near)
        return list(options.metric)

    def panels(self, metrics: Sequence[str], sources: Sequence[Row]) -> list[list[Panel]]:
        """A row for each metric. A column for each game or, for the normalized scores of agents,
        for all games that they share; without games whose metric is unknown.

        Raises ConfigError if nothing is left.
        """
        is_pooled = self.options.compare is not None and [*metrics] == [NORMALIZED]
        shared = {tuple(sorted(source.games)) for source in sources}
        games = sorted({game for each in shared for game in each})
        titles = game_titles(games) if len(games) > 1 else dict.fromkeys(games, "")
        columns, tried = [], dict[str, None]()
        for group in sorted(shared) if is_pooled else [(game,) for game in games]:
            title = f"{len(group)} games" if len(group) > 1 else titles[group[0]]
            own = next(run.best_by for run in self.runs if run.game == group[0])
            named = [f"eval/{own}" if metric == BEST_BY else metric for metric in metrics]
            tried |= dict.fromkeys(named)
            panels = [self._panel(title, metric, sources, group) for metric in named]
            if all(panel.lines for panel in panels):
                columns.append(panels)
            else:
                self.titles_left_out.append(title)
        if columns:
            return [list(row) for row in zip(*columns, strict=True)]
        if self.options.window is not None:
            window = f"window={self.options.window}"
            raise ConfigError(f"{window} is longer than every run", "use a shorter window")
        logged = f" and {X_AXES[self.options.x][0]}" if self.options.x != "games" else ""
        text = f"no run has values of {', '.join(tried)}{logged}"
        raise ConfigError(text, f"choose another metric={' or x=games' if logged else ''}")

    def _panel(
        self, title: str, metric: str, sources: Sequence[Row], games: Sequence[str]
    ) -> Panel:
        lines, references = list[Line](), self._references(metric, games)
        for source in sources:
            if any(game not in source.games for game in games):
                continue
            curves = [self._of_seeds(metric, source.games[game]) for game in games]
            if not all(curves):
                continue
            if len(lines) == figures.MAX_LINES:
                self.num_left_out += 1
                continue
            # Otherwise the curve would jump where a seed or a game ends.
            is_shared = len(games) > 1 or self.options.x != "games"
            x, y, limits, counts = over_seeds(curves, self.options.aggregate, is_shared)
            if limits and len(references) == len(REFERENCES):
                limits = up_to_optimum(y, *limits, *references.values())
            if len(x):
                lines.append(Line(source.label, x, y, limits))
                rows = [source.games[game] for game in games]
                words = self._seeds_in_words(rows, x, counts, is_shared)
                if "," in words or source.label not in self.seeds:
                    self.seeds[source.label] = words
        return Panel(title, X_AXES[self.options.x][1], _y_label(metric), lines, references)

    def _seeds_in_words(
        self, rows: Sequence[Row], x: Floats, counts: Sequence[int], is_shared: bool
    ) -> str:
        """How many seeds a line is of, and where fewer; rows: of its games."""
        number = max(len(row.by_seed) for row in rows)
        if not is_shared:
            return seeds_in_words(number, x, counts, self.options.x)
        missing = sum(run.status != "done" for row in rows for run in row.runs)
        ended = f", to the end of the shortest run, because {missing:,} not done" if missing else ""
        return counted(number, "seed") + ended

    def _of_seeds(self, metric: str, row: Row) -> list[Curve]:
        """A curve for each seed that has points, of its longest run."""
        of_seeds = [[self._points(run, metric) for run in seed] for seed in row.by_seed]
        longest = [max(seed, key=lambda curve: len(curve[0])) for seed in of_seeds]
        return [curve for curve in longest if len(curve[0])]

    def _points(self, run: Run, metric: str) -> Curve:
        curve = run.points(f"eval/{run.metric}" if metric == NORMALIZED else metric)
        if self.options.window is not None:
            curve = moving_mean(curve, self.options.window)
        axis, _ = X_AXES[self.options.x]
        x, y = along(curve, run.points(axis)) if axis else curve
        if metric != NORMALIZED:
            return x, y
        ends = random_and_optimum([each for each in self.runs if each.game == run.game])
        if ends is None:
            (title,) = game_titles([run.game]).values()
            raise ConfigError(f"metric={NORMALIZED} needs a known optimum, and {title} has none")
        return x, normalized(y, *ends)

    def _references(self, metric: str, games: Sequence[str]) -> dict[str, float]:
        if metric == NORMALIZED:
            return {"random play": 0.0, "optimum": 1.0}
        for run in self.runs:
            is_own = metric in (f"eval/{run.metric}", f"train/{run.metric}")
            if run.results and is_own and run.game in games:
                return {
                    words: run.results[name]
                    for name, words in REFERENCES.items()
                    if name in run.results
                }
        return {}

    def note(self) -> str:
        """What the curves and bands are; empty for a single seed as logged."""
        words, different = [], [*dict.fromkeys(self.seeds.values())]
        most = max(
            (text.partition(",")[0] for text in different), key=lambda text: (len(text), text)
        )
        if different != ["1 seed"]:
            shown = different[0] if len(different) == 1 else most
            words.append(f"{AGGREGATES[self.options.aggregate]} of {shown}, band: 95% interval")
        if self.options.window is not None:
            words.append(f"mean of the last {self.options.window:,} games")
        if self.num_left_out:
            words.append(f"the best {figures.MAX_LINES} only")
        if self.titles_left_out:
            words.append(f"without values: {', '.join(self.titles_left_out)}")
        fewer = [f"{label}: {text}" for label, text in self.seeds.items() if text != most]
        return "\n".join([", ".join(words), *(fewer if len(different) > 1 else ())])


def _sources(
    runs: list[Run], rows: Sequence[Row], keys: Sequence[str], compare: str | None
) -> list[Row]:
    """Agents, or rows without the keys of their games, which the panels name; the best first."""
    if compare is not None:
        order = [run.path for row in rows for run in row.runs]
        agents = group_agents(runs, compare)
        return sorted(agents, key=lambda agent: min(order.index(run.path) for run in agent.runs))
    sources: list[Row] = []
    for row in rows:
        own = {"game", *row.first.config["game"]}
        several = len({each.first.game for each in rows}) > 1
        label = _label(row, [key for key in keys if not (several and key in own)])
        if any(label == source.label and row.first.game in source.games for source in sources):
            label = f"{label} ({row.first.path})"
        sources.append(Row(row.runs, label))
    return sources


def draw_effects(
    runs: list[Run], keys: Sequence[str], columns: Sequence[ColumnText], options: ReportConfig
) -> None:
    """Write what each setting that varies changes: the means over all others, with intervals.

    Settings are columns of panels. Rows are games and metrics: columns=, by default the metric
    that selects checkpoints. Raises ConfigError if nothing varies, and OSError.
    """
    path = Path(options.effects or "")
    figures.check_figure("effects", path)
    done = [run for run in runs if run.results]
    games = grouped(done, lambda run: run.settings["game"])
    keys = _independent([*games.values()], keys)
    if not 0 < len(keys) <= figures.MAX_LINES:
        text = f"effects= draws 1 to {figures.MAX_LINES} settings, and {len(keys)} vary"
        raise ConfigError(text, "name other runs, or choose some with where=")
    panels = []
    for game, own in games.items():
        known = {name for run in own for name in run.measured}
        names = [column.metric for column in columns if column.metric in known]
        names = names or sorted({run.best_by for run in own})
        title = game if len(games) > 1 else ""
        panels += [[_effect(title, own, key, name) for key in keys] for name in names]
    note = "means over all other settings and seeds, with 95% intervals"
    note += (
        f", of the {len(done)} of {len(runs)} runs that are done" if len(done) < len(runs) else ""
    )
    width = figures.width_in_inches(options.width)
    figures.save_figure(figures.draw_panels(panels, width, options.style, note), path)


def _independent(games: Sequence[list[Run]], keys: Sequence[str]) -> list[str]:
    """The settings that vary among the runs of a game, without those that another one tells."""

    def tells(first: str, second: str) -> bool:
        values = (grouped(of, lambda run: as_text(run.settings.get(first))) for of in games)
        every = (own for of in values for own in of.values())
        return all(second not in varying_settings(run.settings for run in own) for own in every)

    vary = {name for of in games for name in varying_settings(run.settings for run in of)}
    keys = [key for key in keys if key in vary]
    told = {
        key
        for place, key in enumerate(keys)
        for other in (*keys[:place], *(each for each in keys[place + 1 :] if not tells(key, each)))
        if tells(other, key)
    }
    return [key for key in keys if key not in told]


def _effect(title: str, runs: list[Run], key: str, name: str) -> Panel:
    """A metric for each value of a setting."""
    rows = sorted_by(rows_of(runs, key), lambda row: row.settings.get(key), False)
    found = [(row, each) for row in rows if (each := row.estimate(name)) is not None]
    if not found:
        raise ConfigError(f"effects= needs a {name} of every {key}", "name other columns=")
    y = np.array([each.value for _, each in found])
    ends = np.array([each.interval or (each.value, each.value) for _, each in found])
    points = Line("", np.arange(len(y), dtype=float), y, (ends[:, 0], ends[:, 1]))
    label = _y_label(f"eval/{name}" if name in METRICS else name)
    return Panel(
        title, key, label, [points], ticks=[typed_text(row.settings.get(key)) for row, _ in found]
    )


def _y_label(metric: str) -> str:
    """A metric with its unit, and whose play it is of."""
    if metric == NORMALIZED:
        return "normalized score\n(greedy play)"
    source, _, name = metric.partition("/")
    label = (name or metric).replace("_", " ")
    if source != "eval" and name in TRAINING_LABELS:
        label = TRAINING_LABELS[name]
    elif name in METRICS:
        label = METRICS[name].label
    words = {"eval": "\n(greedy play)", "train": "\n(training)"}.get(source, "")
    return printable(label) + words


def _label(row: Row, keys: Sequence[str]) -> str:
    """The settings that distinguish a row; if there are none, where its runs are."""
    words = in_words({key: row.settings[key] for key in keys if key in row.settings})
    folders = {run.path.parent if len(row.runs) > 1 else run.path for run in row.runs}
    name = words or printable(str(folders.pop() if len(folders) == 1 else row.first.path))
    return name if len(name) <= 90 else name[:89] + "…"
