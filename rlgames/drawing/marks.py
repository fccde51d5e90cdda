"""What the marks of boards mean, for whoever colours them."""

from __future__ import annotations

from collections.abc import Iterable

Colour = tuple[int, int, int]

KINDS = {
    ".": "empty",
    "x": "hit",
    "o": "miss",
    "+": "aim",
    "#": "ship",
    "X": "first",
    "O": "second",
}
"""Of the marks that have a meaning of their own; first and second: a seat's stones."""

OF_HIDDEN = {"x": "hit", "o": "missed", "+": "aimed at", "#": "a ship"}
OF_TWO = {"X": "seat 1", "O": "seat 2"}
"""What to tell a person of the marks of games that hide something, and of others for two."""

TILES: tuple[Colour, ...] = (
    *((238, 228, 218), (237, 224, 200), (242, 177, 121), (245, 149, 99), (246, 124, 95)),
    *((246, 94, 59), (237, 207, 114), (237, 204, 97), (237, 200, 80), (237, 197, 63)),
    *((237, 194, 46), (94, 218, 146), (36, 187, 100), (113, 180, 213), (94, 160, 220)),
)
"""Of 2, 4, 8 and so on."""


def kind(mark: str) -> str:
    """One of KINDS, or "tile" for a number; any other letter is a ship, hit where it is large, and
    any other mark is "other"."""
    if mark in KINDS:
        return KINDS[mark]
    if mark.isdecimal():
        return "tile"
    letter = len(mark) == 1 and mark.isalpha()
    return "other" if not letter else "hit" if mark.isupper() else "ship"


def legend(marks: Iterable[str], hidden: bool, seats: int) -> str:
    """What marks mean in a game for so many seats that hides something or nothing, in one line."""
    known = OF_HIDDEN if hidden else OF_TWO if seats == 2 else {}
    seen = {*marks}
    return ", ".join(f"{mark}: {meaning}" for mark, meaning in known.items() if mark in seen)


def tile(mark: str) -> Colour:
    """The colour of a number; beyond the last of TILES all are alike."""
    return TILES[min(max(int(mark).bit_length() - 2, 0), len(TILES) - 1)]
