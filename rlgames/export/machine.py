"""A game and a player as one function of WebAssembly, and the memory that it works in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import cfunc, int64

from rlgames.core.errors import ConfigError
from rlgames.export.fleets import fleet_rules
from rlgames.export.image import Image
from rlgames.export.players import Desk, Frozen, frozen_player, mark_legal
from rlgames.export.wasm import to_wasm
from rlgames.games.battleship import Battleship
from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game
from rlgames.kernels.jit import kept_on_disk
from rlgames.kernels.rules import add_chance, load, play, store, write_cells
from rlgames.kernels.words import compiled
from rlgames.players.player import Player

LOOK, PLAY, CHANCE, POLICY, SEARCH = range(5)
"""What a page asks of a position: which actions are legal and what lies on the cells; the position
after an action, before chance; the position after chance; and the action of the policy, or of its
search. machine.js has the same numbers."""

MAX_SIZE = 128 << 20
"""Bytes of the memory that a player works in. A file is up to a third larger, and takes a browser
seconds to open."""


@compiled
def ask_rules(desk: Desk, question: int, action: int) -> int:
    """Answer a question about the rules; whether the game is over."""
    rules, is_over = desk.rules, False
    position = load(rules.start, desk.words, 0)
    if question == PLAY:
        position, is_over, desk.points[0] = play(rules, position, action)
    elif question == CHANCE:
        position, is_over = add_chance(rules, position, desk.rng)
    else:
        mark_legal(desk)
        write_cells(rules, position, 0, desk.cells)
    store(desk.words, 0, position)
    return int(is_over)


@dataclass(frozen=True)
class Machine:
    """A player and its game.

    Args:
        code: WebAssembly. The last function in its table is the answer to a question: its arguments
            are the address of the memory, the question, and an action or the seat to move.
        data: what the memory begins with.
        layout: where the arrays of Desk are in it, by name.
        hints: by the questions that write scores, whether these are shares, as in Frozen.
        has_search: whether SEARCH may be asked.
    """

    code: bytes
    data: bytes
    layout: dict[str, int]
    hints: dict[str, bool]
    has_search: bool


def build_machine(game: Game[Any], player: Player) -> Machine:
    """Raises ConfigError for a player that is not made of kernels, for tables that are too large,
    and if this version of numba compiles kernels in a way that is not known."""
    rules, actions = compiled_rules(game), game.spec.actions
    policy, search = frozen_player(game, player)
    columns = {
        "words": np.array([rules.start], np.int64),
        "legal": np.zeros(actions, np.bool_),
        "cells": np.zeros(math.prod(game.spec.observation[1:]), np.float32),
        "points": np.zeros(1, np.float32),
        "scores": np.zeros((1, actions), np.float32),
        "value": np.zeros(1, np.float32),
        "rng": np.zeros(1, np.uint64),
    }
    desk, players = Desk(rules, **columns), [policy, search or policy]
    image = Image(desk, *(each.arguments for each in players))
    if len(image.data) > MAX_SIZE:
        size, limit = len(image.data) / 2**20, MAX_SIZE >> 20
        text = f"the player needs {size:,.0f} MiB of numbers, and a page holds {limit:,}"
        raise ConfigError(text, "train a smaller policy, or use fewer search.simulations")
    modules = {*image.modules, *(each.kernel.__module__ for each in players)}
    modules |= {"rlgames.export.image", "rlgames.export.wasm"}
    key = image.layout, [each.kernel.__name__ for each in players], llvmlite.__version__
    code = kept_on_disk(ask_rules, modules, key, lambda: _compile(image, desk, players))
    layout = {name: image.offset(array) for name, array in columns.items()}
    shares = {"policy": policy.are_shares, "search": search and search.are_shares}
    hints = {kind: each for kind, each in shares.items() if each is not None}
    return Machine(code, image.data, layout, hints, search is not None)


def compiled_rules(game: Game[Any]) -> Any:
    """The rules of a game as kernels take them. Raises ConfigError if there are none."""
    if isinstance(game, BoardGame):
        return game.rules
    if type(game) is Battleship:
        return fleet_rules(game)
    text = f"the rules of {game.spec.name} are not compiled, so no page can play it"
    raise ConfigError(text, "use rlgames serve")


def _compile(image: Image, desk: Desk, players: list[Frozen]) -> bytes:
    """The code of a machine. Raises ConfigError."""
    shared, *arguments = map(image.finder, (desk, *(each.arguments for each in players)))
    ask_policy, ask_search = (each.kernel for each in players)
    of_policy, of_search = arguments

    def answer(base: int, question: int, argument: int) -> int:
        if question == POLICY:
            return ask_policy(shared(base), argument, *of_policy(base))
        if question == SEARCH:
            return ask_search(shared(base), argument, *of_search(base))
        return ask_rules(shared(base), question, argument)

    try:
        made = cfunc(int64(int64, int64, int64))(answer)
        return to_wasm(made.inspect_llvm(), made.native_name)
    except Exception as error:
        versions = f"numba {numba.__version__} and llvmlite {llvmlite.__version__}"
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"{versions} do not compile this agent for a page: {reason}",
            "use another version of numba, or rlgames serve",
        ) from error
