"""Scenes as SVG: one picture, or an animation that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from rlgames.drawing.cells import LIKELY, ground, shade_fraction, shapes
from rlgames.drawing.mark_styles import Color, mark_kind
from rlgames.drawing.scene import Box, Cell, Item, Path, Scene, Shape

FONT = "font-family='DejaVu Sans, Arial, sans-serif'"


def svg_document(scene: Scene) -> str:
    """One scene as a file."""
    return _document(scene.width, scene.height, _elements(scene.items))


def board_svg(scene: Scene, names: Sequence[str], title: str) -> str:
    """A scene of one board for a page, which chooses its colors and makes it respond to clicks.

    Every cell is a group with its number, its name and its mark; classes tell what things are.
    """
    parts, cells = [], iter(enumerate(names))
    for item in scene.items:
        if isinstance(item, Cell):
            number, name = next(cells)
            look = mark_kind(item.mark) + " chosen" * item.is_chosen
            look = f"cell {look}' data-cell='{number}' data-name='{escape(name)}"
            look += f"' data-mark='{escape(item.mark)}"
        else:
            look = f"edge seat{item.seat}" if isinstance(item, Path) else "coordinate"
        parts.append(f"<g class='{look}'>{item_on_page(item)}</g>")
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {scene.width} {scene.height}'"
        f" aria-label='{escape(title)}' {FONT}>{''.join(parts)}</svg>"
    )


def item_on_page(item: Item) -> str:
    """An item; the shade of a cell is a layer above its ground, whose color the page chooses."""
    if not isinstance(item, Cell) or not item.shade or mark_kind(item.mark) != "empty":
        return _elements([item])
    first, *others = map(_element, shapes(replace(item, shade=0.0)))
    opacity = f" fill-opacity='{shade_fraction(item.shade):.3g}'"
    layer = _element(ground(replace(item, is_chosen=False), LIKELY), opacity)
    return "".join([first, layer, *others])


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
