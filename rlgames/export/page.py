"""One HTML file with a game, its player and a board, which needs neither a server nor a network."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlgames.drawing.mark_styles import legend
from rlgames.drawing.svg import mark_looks
from rlgames.export.machine import Machine, compiled_rules
from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game
from rlgames.games.game_2048 import MARKS, Game2048
from rlgames.games.notation import cells_to_choose, legal_names
from rlgames.web.table import STATIC

HERE = Path(__file__).parent

POLICY = """http-equiv="Content-Security-Policy" content="default-src 'none'; worker-src blob:;
 script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; style-src 'unsafe-inline'; img-src data:;
 base-uri 'none'; form-action 'none'\""""
"""It keeps the page from the network, whatever its scripts do."""

START_TILES = 2
"""Of 2048: chance before the first move. A hidden fleet is drawn once."""


def page_text(
    game: Game[Any],
    machine: Machine,
    about: dict[str, Any],
    *,
    agent: str,
    search: str | None,
    seats: Sequence[str],
    moves: str,
) -> str:
    """The page.

    Args:
        about: what page.js has to know about the game, as from a server.
        agent, search: the names of the player and its search.
        seats: who sits in each seat, as on the page.
        moves: played at the start of the first game.
    """
    data = _rules(game) | {
        "about": about,
        "agent": agent,
        "search": search,
        "seats": [*seats],
        "moves": moves,
        "hints": {kind: kind.capitalize() for kind in machine.hints},
        "shares": machine.hints,
        "layout": machine.layout,
        "size": len(machine.data),
    }
    parts = {
        "agent": json.dumps(data, separators=(",", ":")).replace("<", r"\u003c"),
        "code": _packed(machine.code),
        "numbers": _packed(_numbers(machine.data)),
        "worker": _text(HERE / "machine.js") + _text(HERE / "referee.js"),
    }
    scripts = [
        f'<script type="text/plain" id="{name}">{part}</script>\n' for name, part in parts.items()
    ]
    scripts.append(f"<script>\n{_text(HERE / 'frame.js')}{_text(STATIC / 'page.js')}</script>\n")
    return _assembled("".join(scripts))


def _assembled(scripts: str) -> str:
    """The page of serve with its style and other scripts inside."""
    style = f"<style>\n{_text(STATIC / 'page.css')}</style>"
    page = _text(STATIC / "index.html")
    for old, new in (
        ('<meta charset="utf-8">', f'<meta charset="utf-8">\n<meta {POLICY}>'),
        ('<link rel="stylesheet" href="page.css">', style),
        ('<script src="page.js" defer></script>\n', ""),
        ("</body>", f"{scripts}</body>"),
    ):
        before, found, after = page.partition(old)
        assert found, old
        page = before + new + after
    return page


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _numbers(data: bytes) -> bytes:
    """Which words of 32 bits are not 0, a bit for each, then the first byte of each of these, the
    second one and so on: all of them next to each other compress better."""
    words = np.frombuffer(data, np.uint32)
    is_set = np.packbits(words != 0, bitorder="little")
    return is_set.tobytes() + words[words != 0].view(np.uint8).reshape(-1, 4).T.tobytes()


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _rules(game: Game[Any]) -> dict[str, Any]:
    """What the page has to know of the rules besides the kernels: the names of all actions, for
    each seat, if nothing is captured and if something is, and the cells that choose them."""
    spec, start = game.spec, game.example_state()
    # In a finished game every action is legal, so all of them have names and cells.
    seats = [
        replace(start, done=torch.tensor([True]), current_seat=torch.tensor([seat]))
        for seat in range(spec.seats)
    ]
    empty, full = seats, seats
    second, marks = None, [".", "x", "o"]  # as export.fleets writes cells
    if isinstance(game, BoardGame):
        empty, full = (
            [replace(state, words=torch.full_like(state.words, word)) for state in seats]
            for word in (0, -1)
        )
        second, marks = game.second_view, [".", *game.seat_marks]
    if isinstance(game, Game2048):
        marks = MARKS[: game.num_cell_values]
    return {
        "actions": spec.actions,
        "start": [str(word) for word in compiled_rules(game).start],
        "startChance": START_TILES if isinstance(game, Game2048) else int(spec.hidden),
        "hasChance": spec.num_chance_inputs > 0,
        "marks": marks,
        "looks": mark_looks(game.board_format, marks),
        "legend": legend(marks, spec.hidden, spec.seats),
        "second": None if second is None else second.tolist(),
        "names": [
            [[*legal_names(game, state, 0).values()] for state in states]
            for states in (empty, full)
        ],
        "cells": [[*cells_to_choose(game, state, 0).values()] for state in empty],
    }
