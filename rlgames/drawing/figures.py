"""Figures for papers, drawn with matplotlib, and the small charts of TensorBoard, without it.

Nothing imports matplotlib before a figure is asked for. The same numbers give the same file, byte
for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rlgames.core.errors import ConfigError, check_installed
from rlgames.core.output_files import check_writable
from rlgames.drawing.cells import FAINT, INK
from rlgames.drawing.images import draw_scene, text_width
from rlgames.drawing.scene import Item, Label, Scene
from rlgames.drawing.scene import Path as Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

FORMATS = (".png", ".svg", ".pdf")

WIDTHS = {"column": 3.25, "page": 6.75}
"""Inches of one column, and of a page with two of them, in most conference papers."""

MAX_LINES = 8
"""More lines in one panel cannot be distinguished."""

COLORS = {
    # Okabe and Ito's colors, without yellow, which is too light on white.
    "color": (
        *("#0072B2", "#D55E00", "#009E73", "#E69F00"),
        *("#CC79A7", "#56B4E9", "#000000", "#7F5B2E"),
    ),
    "gray": (
        *("#000000", "#8C8C8C", "#4D4D4D", "#B3B3B3"),
        *("#262626", "#A0A0A0", "#666666", "#C0C0C0"),
    ),
}
"""By the value of style=. Markers distinguish lines too, so both are readable without colors."""

MARKERS = "osD^vPX*"

MARKERS_PER_LINE = 8

DASHES = ((4, 2), (1, 2), (6, 2, 1, 2))
"""Of the references."""

MAX_TICK_LENGTH = 24
"""Longer texts at an axis are turned, all of them together."""

NARROW_WIDTH, LEGEND_LINE_HEIGHT = 4.0, 0.17
"""Inches. Narrower panels are taller in proportion."""

SETTINGS: dict[str, Any] = {
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 8.0,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "axes.titlesize": 8.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "legend.title_fontsize": 7.0,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "savefig.dpi": 150,
    "svg.hashsalt": "rlgames",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}


CHART_SIZE = (340, 220)
"""Pixels. TensorBoard shows pictures at about this width, and scales larger ones badly."""

LEFT, RIGHT, TOP, BOTTOM = 48, 16, 40, 24
CHART_COLORS = ((31, 119, 180), (214, 95, 14), (44, 140, 60), (120, 80, 160), (190, 30, 45))
"""Of the curves; more are not drawn."""

GRAY, CHART_TEXT, TICKS, BINS = (205, 205, 205), 10, 5, 40
"""The color of the grid, the size of texts, the numbers at each axis, the steps of a histogram."""


@dataclass(frozen=True)
class Line:
    """A curve: x and y, float64 [N], and a band around it, lower and upper limits, [N] each."""

    label: str
    x: Floats
    y: Floats
    band: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    references: levels that are drawn as dashed lines, by their names. ticks: the texts at x = 0, 1,
    and so on; the lines are then points with their intervals.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    references: Mapping[str, float] = field(default_factory=dict)
    ticks: Sequence[str] = ()


def check_figure(key: str, path: Path) -> None:
    """Raises ConfigError for a file of another format or that cannot be written, and where
    matplotlib is missing."""
    if path.suffix.lower() not in FORMATS:
        names = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise ConfigError(f"{key}={path} is not a picture", f"it should end in {names}")
    check_installed(f"{key}=", "figures", "matplotlib")
    check_writable(f"{key}={path}", path)


def width_in_inches(width: str | float) -> float:
    """The value of width=: inches, or a key of WIDTHS."""
    return WIDTHS[width] if isinstance(width, str) else width


def draw_panels(
    panels: Sequence[Sequence[Panel]], width: float, style: str = "color", note: str = ""
) -> Figure:
    """Panels in rows of equally many, with one legend below them; a label has one color in all.

    width: inches. style: a key of COLORS. note: the title of the legend. The legend lists the lines
    by the final values in the first panel that has them, the highest first.
    """
    from matplotlib import style as styles
    from matplotlib.figure import Figure

    columns, every = len(panels[0]), [panel for row in panels for panel in row]
    labels = dict.fromkeys(line.label for panel in every for line in panel.lines)
    looks = {label: number for number, label in enumerate(labels)}
    references = list(dict.fromkeys(name for panel in every for name in panel.references))
    across = width / columns
    ratio = 0.68 if across < NARROW_WIDTH else 0.5 if len(panels) == 1 else 0.36
    with styles.context(SETTINGS, after_reset=True):  # whatever a user's own matplotlibrc says
        figure = Figure(figsize=(width, len(panels) * across * ratio))
        shared: Any = {"sharey": "row"} if every[0].ticks else {"sharex": "col"}
        axes = figure.subplots(len(panels), columns, squeeze=False, **shared)
        handles: dict[str, Any] = {}
        for panel, place in zip(every, axes.flat, strict=True):
            _draw(place, panel, looks, COLORS[style], references)
            shown, names = place.get_legend_handles_labels()
            handles = dict(zip(names, shown, strict=True)) | handles
        for place in axes[:, 1:].flat if every[0].ticks else axes[:-1].flat:
            place.set(**{"ylabel" if every[0].ticks else "xlabel": ""})
        names = [name for name in [*_by_final_value(every), *references] if name]
        if len(names) > 1 or note:
            fit = int(width * 15 / (max(map(len, names), default=1) + 6))
            num_columns = max(1, min(fit, len(names), 4))
            num_lines = -(-len(names) // num_columns) + len(note.splitlines())
            figure.set_figheight(figure.get_figheight() + LEGEND_LINE_HEIGHT * num_lines)
            figure.legend(
                [handles[name] for name in names],
                names,
                loc="outside lower center",
                ncols=num_columns,
                title=note or None,
            )
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, in the format of the file's name. Raises OSError."""
    from matplotlib import style as styles

    suffix = path.suffix.lower().removeprefix(".")
    dateless = {"svg": "Date", "pdf": "CreationDate", "png": "Software"}
    with styles.context(SETTINGS, after_reset=True), path.open("wb") as file:
        figure.savefig(file, format=suffix, metadata={dateless[suffix]: None})


def _draw(
    axes: Axes,
    panel: Panel,
    looks: Mapping[str, int],
    colors: Sequence[str],
    references: Sequence[str],
) -> None:
    """looks: the number of each label, which gives its color and its marker."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    if panel.ticks:
        for line in panel.lines:
            ends = None if line.band is None else np.abs(np.subtract(line.band, line.y))
            axes.errorbar(line.x, line.y, ends, fmt="o", capsize=2, color=colors[0])
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
        axes.set_xlim(-0.5, len(panel.ticks) - 0.5)
        if sum(map(len, panel.ticks)) > MAX_TICK_LENGTH:
            axes.tick_params("x", labelrotation=30)
        return
    for line in panel.lines:
        number = looks[line.label]
        color, marker = colors[number % len(colors)], MARKERS[number % len(MARKERS)]
        step = max(1, len(line.x) // MARKERS_PER_LINE)
        start = min(number * step // len(MARKERS), len(line.x) - 1)
        if line.band is not None:
            axes.fill_between(line.x, *line.band, color=color, alpha=0.2, linewidth=0)
            if len(line.x) == 1:
                axes.vlines(line.x, *line.band, color=color)
        look: dict[str, Any] = {"color": color, "marker": marker, "markevery": (start, step)}
        axes.plot(line.x, line.y, label=line.label, **look)
    for name, level in panel.references.items():
        dashes = (0, DASHES[references.index(name) % len(DASHES)])
        axes.axhline(level, color="#555555", linewidth=1.0, linestyle=dashes, label=name, zorder=1)
    axes.set_ylim(*_range_of_means(panel))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if max(float(line.x.max()) for line in panel.lines) >= 1000:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _range_of_means(panel: Panel) -> tuple[float, float]:
    """The range of the lines and references with a margin; a wide band does not flatten them."""
    values = np.concatenate([*(line.y for line in panel.lines), [*panel.references.values()]])
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return low - margin, high + margin


def _by_final_value(panels: Sequence[Panel]) -> list[str]:
    """The labels of the lines, ordered by their final values, the highest first."""
    names: dict[str, None] = {}
    for panel in panels:
        ordered = sorted(panel.lines, key=lambda line: -float(line.y[-1]))
        names |= dict.fromkeys(line.label for line in ordered)
    return list(names)


def histogram_lines(groups: Mapping[str, Floats]) -> list[Line]:
    """The distribution of the numbers of each group, float64 [N], as fractions of the group."""
    everything = np.concatenate(list(groups.values()))
    low, high = _non_empty(float(everything.min()), float(everything.max()))
    edges = np.linspace(low, high, BINS + 1)
    lines = []
    for name, values in groups.items():
        fraction = np.histogram(values, edges)[0] / max(len(values), 1)
        # Each bin is a horizontal step.
        steps = np.repeat(edges, 2)[1:-1], np.repeat(fraction, 2)
        lines.append(Line(f"{name} ({len(values):,})", *steps))
    return lines


def line_chart(
    title: str, lines: Sequence[Line], top: float | None = None, is_counted: bool = False
) -> Image.Image:
    """A small chart for TensorBoard, drawn without matplotlib; the y axis starts at 0.

    top: where it ends; None: at the highest point. is_counted: x are whole numbers.
    """
    xs, ys = (np.concatenate([getattr(line, axis) for line in lines]) for axis in "xy")
    left, right = _non_empty(float(xs.min()), float(xs.max()))
    _, high = _non_empty(0.0, top or float(ys.max()))
    (width, height), below = CHART_SIZE, CHART_SIZE[1] - BOTTOM
    items: list[Item] = [Label(LEFT, 12, title, CHART_TEXT, INK)]

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (x - left) / (right - left), y / high
        return LEFT + across * (width - LEFT - RIGHT), below - up * (below - TOP)

    for tick in np.linspace(0, high, TICKS).tolist():
        ends = place(left, tick), place(right, tick)
        items.append(Curve(0, 0, ends, stroke=GRAY, width=1))
        items.append(Label(LEFT - 6, ends[0][1], f"{tick:.3g}", CHART_TEXT, FAINT, "end"))
    ticks = np.linspace(left, right, TICKS)
    for tick in (np.unique(ticks.round()) if is_counted else ticks).tolist():
        label = f"{tick:,.0f}" if is_counted else f"{tick:.3g}"
        items.append(Label(place(tick, 0)[0], below + 12, label, CHART_TEXT, FAINT, "middle"))
    end = float(LEFT)
    for color, line in zip(CHART_COLORS, lines, strict=False):
        points = [place(x, y) for x, y in zip(line.x, line.y, strict=True)]
        items.append(Curve(0, 0, points, stroke=color, width=2))
        items.append(Label(end, 28, line.label, CHART_TEXT, color))
        end += 16 + text_width(line.label, CHART_TEXT)
    return draw_scene(Scene(width, height, items))


def _non_empty(low: float, high: float) -> tuple[float, float]:
    return low, high if high > low else low + 1
