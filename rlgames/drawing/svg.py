"""Scenes as SVG: one picture, or an animation that needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from rlgames.drawing.cells import LIKELY, ground, shapes
from rlgames.drawing.mark_styles import Color, mark_kind
from rlgames.drawing.pictures import MIN_LABEL_CELL, page_scene
from rlgames.drawing.scene import Box, Cell, Item, Path, Scene, Shape
from rlgames.games.board_text import BoardFormat

FONT = "font-family='DejaVu Sans, Arial, sans-serif'"

MAX_LABEL = 9
"""Letters of a label on a page that are told apart; longer ones are drawn like these."""


def svg_document(scene: Scene) -> str:
    """One scene as a file."""
    return _document(scene.width, scene.height, _elements(scene.items))


def board_look(form: BoardFormat) -> dict[str, Any]:
    """How a page draws boards of a form, see boardSvg in page.js: the start of the picture, what is
    around the cells, where cells are and their names, and an empty cell with a shade and a label,
    by the length of the label. The page chooses colors by classes."""
    scene = page_scene(form)
    cells = [item for item in scene.items if isinstance(item, Cell)]
    around = [item for item in scene.items if not isinstance(item, Cell)]
    looks = [f"edge seat{each.seat}" if isinstance(each, Path) else "coordinate" for each in around]
    size = f"viewBox='0 0 {scene.width} {scene.height}'"
    has_labels = cells[0].size >= MIN_LABEL_CELL
    return {
        "head": f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT}>",
        "around": "".join(
            f"<g class='{look}'>{_elements([item])}</g>"
            for look, item in zip(looks, around, strict=True)
        ),
        "places": [f"{cell.x:g} {cell.y:g}" for cell in cells],
        "names": [form.cell_name(cell) for cell in range(len(cells))],
        "hints": [_hint(cells[0], "0" * length * has_labels) for length in range(MAX_LABEL + 1)],
    }


def mark_looks(form: BoardFormat, marks: Iterable[str]) -> dict[str, tuple[str, str]]:
    """By mark: its kind, and a cell with it at the origin."""
    cell = replace(
        next(each for each in page_scene(form).items if isinstance(each, Cell)), x=0, y=0
    )
    return {mark: (mark_kind(mark), _elements([replace(cell, mark=mark)])) for mark in marks}


def _hint(cell: Cell, label: str) -> str:
    """An empty cell at the origin with a shade, which is a layer above its ground, and a label."""
    plain = replace(cell, x=0, y=0, mark=".")
    first, *others = map(_element, shapes(replace(plain, label=label)))
    layer = _element(ground(plain, LIKELY), " fill-opacity='SHADE'")
    drawn = "".join([first, layer, *others])
    return drawn.replace(f">{label}<", ">LABEL<") if label else drawn


def animated_svg(scenes: Sequence[Scene], seconds: Sequence[float]) -> str:
    """Scenes one after the other, each for some seconds, again and again. If animations are not
    shown, the last scene is."""
    total, begin, groups = sum(seconds), 0.0, []
    for number, (scene, duration) in enumerate(zip(scenes, seconds, strict=True)):
        end = begin + duration
        times = f"0;{begin / total:.6f};{min(end / total, 1):.6f}"
        animation = (
            f"<animate attributeName='display' values='none;inline;none' keyTimes='{times}'"
            f" dur='{total:.3f}s' calcMode='discrete' repeatCount='indefinite'/>"
        )
        display = "inline" if number == len(scenes) - 1 else "none"
        groups.append(f"<g display='{display}'>\n{animation}\n{_elements(scene.items)}\n</g>")
        begin = end
    width, height = max(each.width for each in scenes), max(each.height for each in scenes)
    return _document(width, height, "\n".join(groups))


def _document(width: int, height: int, content: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'"
        f" viewBox='0 0 {width} {height}' {FONT}>\n"
        f"<rect width='{width}' height='{height}' fill='white'/>\n{content}\n</svg>\n"
    )


def _elements(items: Sequence[Item]) -> str:
    return "\n".join(_element(shape) for item in items for shape in shapes(item))


def _element(shape: Shape, more: str = "") -> str:
    if isinstance(shape, Path):
        points = " ".join(f"{shape.x + x:.1f},{shape.y + y:.1f}" for x, y in shape.points)
        name = "polyline" if shape.fill is None else "polygon"
        return f"<{name} points='{points}' stroke-linejoin='round'{_colors(shape)}{more}/>"
    if isinstance(shape, Box):
        width, height = shape.size
        place = f"x='{shape.x:g}' y='{shape.y:g}' width='{width:g}' height='{height:g}'"
        return f"<rect {place} rx='{shape.radius:g}'{_colors(shape)}{more}/>"
    place = f"x='{shape.x:g}' y='{shape.y:g}' dominant-baseline='central'"
    look = f"font-size='{shape.size}' fill='{_hex(shape.color)}' text-anchor='{shape.anchor}'"
    return f"<text {place} {look}>{escape(shape.text)}</text>"


def _colors(shape: Path | Box) -> str:
    stroke = ""
    if shape.stroke is not None:
        stroke = f" stroke='{_hex(shape.stroke)}' stroke-width='{shape.width:g}'"
    return f" fill='{'none' if shape.fill is None else _hex(shape.fill)}'{stroke}"


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
