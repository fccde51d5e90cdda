"""What the marks of boards mean, and the colors of tiles."""

from __future__ import annotations

from collections.abc import Iterable

Color = tuple[int, int, int]

MARK_KINDS = {
    ".": "empty",
    "x": "hit",
    "o": "miss",
    "+": "aim",
    "#": "ship",
    "X": "first",
    "O": "second",
}
"""What marks with a fixed meaning show; first and second: the stones of a seat."""

FLEET_LEGEND = {"x": "hit", "o": "missed", "+": "aimed at", "#": "a ship"}
TWO_SEAT_LEGEND = {"X": "seat 1", "O": "seat 2"}
"""The legend of games with hidden fleets, and of other two-player games."""

TILE_COLORS: tuple[Color, ...] = (
    *((238, 228, 218), (237, 224, 200), (242, 177, 121), (245, 149, 99), (246, 124, 95)),
    *((246, 94, 59), (237, 207, 114), (237, 204, 97), (237, 200, 80), (237, 197, 63)),
    *((237, 194, 46), (94, 218, 146), (36, 187, 100), (113, 180, 213), (94, 160, 220)),
)
"""Of the tiles 2, 4, 8 and so on."""


def mark_kind(mark: str) -> str:
    """A value of MARK_KINDS; "tile" for a number; "ship" for other letters, or "hit" if they are
    upper case; "other" for anything else."""
    if mark in MARK_KINDS:
        return MARK_KINDS[mark]
    if mark.isdecimal():
        return "tile"
    is_letter = len(mark) == 1 and mark.isalpha()
    return "other" if not is_letter else "hit" if mark.isupper() else "ship"


def legend(marks: Iterable[str], hidden: bool, seats: int) -> str:
    """What these marks mean, in one line. hidden, seats: as in the game's spec."""
    used = {*marks}
    return ", ".join(
        f"{mark}: {meaning}" for mark, meaning in meanings(hidden, seats).items() if mark in used
    )


def meanings(hidden: bool, seats: int) -> dict[str, str]:
    """What marks mean in such a game, for its legend."""
    return FLEET_LEGEND if hidden else TWO_SEAT_LEGEND if seats == 2 else {}


def tile_color(mark: str) -> Color:
    """The color of a number; larger tiles share the last color."""
    return TILE_COLORS[min(max(int(mark).bit_length() - 2, 0), len(TILE_COLORS) - 1)]
