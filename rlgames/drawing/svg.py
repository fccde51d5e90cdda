"""Scenes as SVG: one picture, or an animation that needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from rlgames.drawing import mark_styles, sprites
from rlgames.drawing.mark_styles import Color
from rlgames.drawing.scene import Arrow, Bar, Cell, Edge, Label, Scene, hexagon

FONT = "font-family='DejaVu Sans, Arial, sans-serif'"


def svg_document(scene: Scene) -> str:
    """One scene as a file."""
    return _document(scene.width, scene.height, "\n".join(_elements(scene)))


def board_svg(scene: Scene, names: Sequence[str], title: str) -> str:
    """A scene of one board for a page, which chooses its colors and makes it respond to clicks.

    Every cell is a group with its number, its name and its mark; classes tell what things are.
    """
    parts, number = [], 0
    for item in scene.items:
        if not isinstance(item, Cell):
            content = "".join(_elements(Scene(0, 0, [item])))
            look = f"edge seat{item.seat}" if isinstance(item, Edge) else "coordinate"
            parts.append(f"<g class='{look}'>{content}</g>")
            continue
        look = mark_styles.mark_kind(item.mark) + " chosen" * item.is_chosen
        parts.append(
            f"<g class='cell {look}' data-cell='{number}' data-name='{escape(names[number])}'"
            f" data-mark='{escape(item.mark)}'>{''.join(_page_cell(item))}</g>"
        )
        number += 1
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {scene.width} {scene.height}'"
        f" aria-label='{escape(title)}' {FONT}>{''.join(parts)}</svg>"
    )


def _page_cell(cell: Cell) -> Iterator[str]:
    """A cell whose shade is a layer above its ground, so that the page can choose the ground."""
    yield from _cell(replace(cell, shade=0, label=""))
    if cell.shade and mark_styles.mark_kind(cell.mark) == "empty":
        opacity = f" fill-opacity='{sprites.shade_fraction(cell.shade):.3g}'"
        yield _ground(cell, sprites.LIKELY, opacity)
    yield from _label(cell)


def animated_svg(scenes: Sequence[Scene], seconds: Sequence[float]) -> str:
    """Scenes one after the other, each for some seconds, again and again. If animations are not
    shown, the last scene is."""
    total, begin, groups = sum(seconds), 0.0, []
    for number, (scene, duration) in enumerate(zip(scenes, seconds, strict=True)):
        end = begin + duration
        is_last = number == len(scenes) - 1
        times = f"0;{begin / total:.6f};{min(end / total, 1):.6f}"
        animation = (
            f"<animate attributeName='display' values='none;inline;none' keyTimes='{times}'"
            f" dur='{total:.3f}s' calcMode='discrete' repeatCount='indefinite'/>"
        )
        display = "inline" if is_last else "none"
        elements = "\n".join([animation, *_elements(scene)])
        groups.append(f"<g display='{display}'>\n{elements}\n</g>")
        begin = end
    width, height = max(each.width for each in scenes), max(each.height for each in scenes)
    return _document(width, height, "\n".join(groups))


def _document(width: int, height: int, content: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'"
        f" viewBox='0 0 {width} {height}' {FONT}>\n"
        f"<rect width='{width}' height='{height}' fill='white'/>\n{content}\n</svg>\n"
    )


def _elements(scene: Scene) -> Iterator[str]:
    for item in scene.items:
        match item:
            case Cell():
                yield from _cell(item)
            case Label():
                yield _text(item)
            case Bar():
                size = f"width='{item.width:g}' height='{item.height:g}'"
                yield f"<rect x='{item.x:g}' y='{item.y:g}' {size} fill='{_hex(item.color)}'/>"
            case Edge():
                points = " ".join(f"{x:.1f},{y:.1f}" for x, y in item.points)
                color = _hex([*sprites.STONES.values()][item.seat - 1])
                line = f"fill='none' stroke='{color}' stroke-width='{item.width:g}'"
                yield f"<polyline points='{points}' {line} stroke-linejoin='round'/>"
            case Arrow():
                points = " ".join(
                    f"{item.x + x * item.size:.1f},{item.y + y * item.size:.1f}"
                    for x, y in sprites.arrow_points(item.direction)
                )
                yield f"<polygon points='{points}' fill='{_hex(item.color)}'/>"


def _cell(cell: Cell) -> Iterator[str]:
    size, kind = cell.size, mark_styles.mark_kind(cell.mark)
    edge, middle = size * 3 / 64, (cell.x + size / 2, cell.y + size / 2)
    frame = f" stroke='{_hex(sprites.CHOSEN)}' stroke-width='{2 * edge:g}'" * cell.is_chosen
    yield _ground(cell, sprites.ground(cell.mark, cell.shade), frame)
    circle = f"<circle cx='{middle[0]:g}' cy='{middle[1]:g}'"
    stroke = f"fill='none' stroke-width='{1.5 * edge:g}'"
    if kind in sprites.STONES:
        yield f"{circle} r='{size * 0.45:g}' fill='{_hex(sprites.STONES[kind])}'/>"
    elif cell.mark == "x":
        (x, y), d = middle, size / 4
        path = f"M{x - d:g} {y - d:g}L{x + d:g} {y + d:g}M{x - d:g} {y + d:g}L{x + d:g} {y - d:g}"
        yield f"<path d='{path}' stroke='white' {stroke}/>"
    elif cell.mark == "o":
        yield f"{circle} r='{size / 8:g}' fill='white'/>"
    elif cell.mark == "+":
        yield f"{circle} r='{size / 4:g}' stroke='{_hex(sprites.CHOSEN)}' {stroke}/>"
    if cell.mark not in sprites.UNWRITTEN_MARKS:
        height, color = sprites.mark_text(cell.mark, size)
        yield _text(Label(*middle, cell.mark, height, color, "middle"))
    yield from _label(cell)


def _ground(cell: Cell, color: Color, more: str) -> str:
    edge = cell.size * 3 / 64
    inner = cell.size - 2 * edge
    if cell.is_hexagon:
        corners = hexagon(cell.x + edge / 2, cell.y + edge / 2, cell.size - edge)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        return f"<polygon points='{points}' fill='{_hex(color)}'{more}/>"
    return (
        f"<rect x='{cell.x + edge:g}' y='{cell.y + edge:g}' width='{inner:g}' height='{inner:g}'"
        f" rx='{cell.size / 10:g}' fill='{_hex(color)}'{more}/>"
    )


def _label(cell: Cell) -> Iterator[str]:
    if cell.label:
        height, half = sprites.label_height(cell.size, cell.label), cell.size / 2
        place = cell.x + half, cell.y + half
        yield _text(Label(*place, cell.label, height, sprites.INK, "middle"))


def _text(label: Label) -> str:
    place = f"x='{label.x:g}' y='{label.y:g}' dominant-baseline='central'"
    look = f"font-size='{label.size}' fill='{_hex(label.color)}' text-anchor='{label.anchor}'"
    return f"<text {place} {look}>{escape(label.text)}</text>"


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
