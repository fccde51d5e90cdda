"""Figures for papers, drawn with matplotlib, and the small charts of TensorBoard, without it.

Nothing imports matplotlib before a figure is asked for. The same numbers give the same file, byte
for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rlgames.core.errors import ConfigError, check_installed
from rlgames.core.output_files import check_writable

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

GRAY, BLACK, WHITE = (205, 205, 205), (40, 40, 40), (255, 255, 255)


@dataclass(frozen=True)
class Line:
    """A curve: x and y, float64 [N], and a band around it, lower and upper limits, [N] each."""

    label: str
    x: Floats
    y: Floats
    band: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes. references: levels that are drawn as dashed lines, by their names."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    references: Mapping[str, float] = field(default_factory=dict)


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
    from matplotlib.figure import Figure

    columns = len(panels[0])
    with _settings():
        across = width / columns
        ratio = 0.68 if across < NARROW_WIDTH else 0.5 if len(panels) == 1 else 0.36
        figure = Figure(figsize=(width, len(panels) * across * ratio))
        every = [panel for row in panels for panel in row]
        labels = list(dict.fromkeys(line.label for panel in every for line in panel.lines))
        looks = {label: _look(number, style) for number, label in enumerate(labels)}
        references = list(dict.fromkeys(name for panel in every for name in panel.references))
        axes = figure.subplots(len(panels), columns, squeeze=False, sharex="col")
        for panel, place in zip(every, axes.flat, strict=True):
            _draw(place, panel, looks, references)
        for place in axes[:-1].flat:
            place.set_xlabel("")
        handles: dict[str, Any] = {}
        for place in axes.flat:
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        names = [name for name in [*_by_final_value(every), *references] if name]
        if len(names) > 1 or note:
            fit = int(width * 15 / (max(map(len, names), default=1) + 6))
            num_columns = max(1, min(fit, len(names), 4))
            num_lines = -(-len(names) // num_columns) + bool(note)
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
    suffix = path.suffix.lower().removeprefix(".")
    dateless = {"svg": "Date", "pdf": "CreationDate", "png": "Software"}
    with _settings(), path.open("wb") as file:
        figure.savefig(file, format=suffix, metadata={dateless[suffix]: None})


@contextmanager
def _settings() -> Iterator[None]:
    """A block where only SETTINGS apply, whatever a user's own matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        parameters: Any = matplotlib.rcParams  # its stubs list every name
        parameters.update(SETTINGS)
        yield


def _look(number: int, style: str) -> dict[str, Any]:
    colors = COLORS[style]
    return {
        "color": colors[number % len(colors)],
        "marker": MARKERS[number % len(MARKERS)],
        "offset": number,
    }


def _draw(
    axes: Axes, panel: Panel, looks: Mapping[str, dict[str, Any]], references: Sequence[str]
) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    for line in panel.lines:
        look = dict(looks[line.label])
        step = max(1, len(line.x) // MARKERS_PER_LINE)
        start = look.pop("offset") * step // len(MARKERS)
        if line.band is not None:
            axes.fill_between(line.x, *line.band, color=look["color"], alpha=0.2, linewidth=0)
            if len(line.x) == 1:
                low, high = (float(limit[0]) for limit in line.band)
                axes.vlines(line.x, low, high, color=look["color"])
        axes.plot(
            line.x, line.y, label=line.label, markevery=(min(start, len(line.x) - 1), step), **look
        )
    for name, level in panel.references.items():
        dashes = (0, DASHES[references.index(name) % len(DASHES)])
        axes.axhline(level, color="#555555", linewidth=1.0, linestyle=dashes, label=name, zorder=1)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
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


def histogram_lines(groups: Mapping[str, Floats], bins: int = 40) -> list[Line]:
    """The distribution of the numbers of each group, float64 [N], as fractions of the group."""
    everything = np.concatenate(list(groups.values()))
    low, high = _non_empty(float(everything.min()), float(everything.max()))
    edges = np.linspace(low, high, bins + 1)
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
    image = Image.new("RGB", CHART_SIZE, WHITE)
    draw = ImageDraw.Draw(image)
    xs, ys = (np.concatenate([getattr(line, axis) for line in lines]) for axis in "xy")
    left, right = _non_empty(float(xs.min()), float(xs.max()))
    low, high = _non_empty(0.0, top or float(ys.max()))
    across, up = CHART_SIZE[0] - LEFT - RIGHT, CHART_SIZE[1] - BOTTOM - TOP

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - left) / (right - left) * across, TOP + (high - y) / (high - low) * up

    step, ticks = _ticks(low, high)
    for tick in ticks:
        start = place(left, tick)
        draw.line((start, place(right, tick)), GRAY)
        draw.text((LEFT - 6, start[1]), _tick(tick, step), BLACK, anchor="rm")
    step, ticks = _ticks(left, right, 1.0 if is_counted else 0.0)
    for tick in ticks:
        draw.text((place(tick, 0)[0], TOP + up + 8), _tick(tick, step), BLACK, anchor="ma")
    draw.text((LEFT, 6), title, BLACK)
    end = float(LEFT)
    for color, line in zip(CHART_COLORS, lines, strict=False):
        draw.line([place(x, y) for x, y in zip(line.x, line.y, strict=True)], color, 2, "curve")
        draw.text((end, 22), line.label, color)
        end += 16 + draw.textlength(line.label)
    return image


def _non_empty(low: float, high: float) -> tuple[float, float]:
    return low, high if high > low else low + 1


def _ticks(low: float, high: float, smallest: float = 0.0) -> tuple[float, list[float]]:
    """A step of 1, 2 or 5 times a power of ten, from smallest on, and its multiples from low to
    high, at most 7."""
    least = max((high - low) / 6, smallest)
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(step for step in (unit, 2 * unit, 5 * unit, 10 * unit) if step >= least * 0.999999)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return step, [number * step for number in range(first, last + 1)]


def _tick(value: float, step: float) -> str:
    """A multiple of the step, with as many digits as it needs."""
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-6))}f}"
