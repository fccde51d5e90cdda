"""A game and a player as one function of WebAssembly, and the memory that it works in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba import cfunc, int64

from rlgames.core.errors import ConfigError
from rlgames.export.freeze import compiled_rules, frozen_player
from rlgames.export.image import Image
from rlgames.export.players import Opinion, decide
from rlgames.export.wasm import to_wasm
from rlgames.games.game import Game
from rlgames.kernels.jit import jit, kept_on_disk
from rlgames.kernels.rules import add_chance, is_legal, load, play, store, write_cells
from rlgames.kernels.words import Array, compiled
from rlgames.players.player import Player

LOOK, PLAY, CHANCE, POLICY, SEARCH = range(5)
"""What a page asks of a position: which actions are legal and what lies on the cells; the position
after an action, before chance; the position after chance; and the action of the policy, or of its
search. machine.js has the same numbers."""

MAX_STORED, MAX_MEMORY = 128 << 20, 1 << 30
"""Bytes: of the numbers in a page, whose file is a third larger and takes a browser seconds to
open, and of the memory that its player works in."""


class Desk(NamedTuple):
    """What a page and kernels share. words: int64 [1, W], the position. legal: bool [A]. cells:
    float32 [N], as in write_cells. points: float32 [1], of the last action."""

    rules: Any
    words: Array
    legal: Array
    cells: Array
    points: Array
    opinion: Opinion


@jit()
def ask_player(player: Any, desk: Desk, seat: int) -> int:
    """The action of a player whose seat is to move."""
    return decide(player, desk.rules, load(desk.rules.start, desk.words, 0), seat, desk.opinion)


@compiled
def ask_rules(desk: Desk, question: int, action: int) -> int:
    """Answer any other question; whether the game is over."""
    rules, is_over = desk.rules, False
    position = load(rules.start, desk.words, 0)
    if question == PLAY:
        position, is_over, desk.points[0] = play(rules, position, action)
    elif question == CHANCE:
        position, is_over = add_chance(rules, position, desk.opinion.rng)
    else:
        for each in range(rules.actions):
            desk.legal[each] = is_legal(rules, position, each)
        write_cells(rules, position, 0, desk.cells)
    store(desk.words, 0, position)
    return int(is_over)


@dataclass(frozen=True)
class Machine:
    """A player and its game.

    Args:
        code: WebAssembly, which exports `answer`; the address of the memory is its first argument.
        data: what the memory begins with; zeros follow.
        size: of the memory, in bytes.
        layout: where the arrays of Desk and Opinion are in it, by name.
        hints: as in Frozen.
        has_search: whether SEARCH may be asked.
    """

    code: bytes
    data: bytes
    size: int
    layout: dict[str, int]
    hints: dict[str, bool]
    has_search: bool


def build_machine(game: Game[Any], player: Player) -> Machine:
    """Raises ConfigError for a player that is not made of kernels, for tables that are too large,
    and if this version of numba compiles kernels in a way that is not known."""
    rules = compiled_rules(game)
    frozen = frozen_player(game, player)
    actions, cells = game.spec.actions, math.prod(game.spec.observation[1:])
    opinion = Opinion(_floats(actions), _floats(1), np.zeros(1, np.uint64))
    words, legal = np.array([rules.start], np.int64), np.zeros(actions, np.bool_)
    desk = Desk(rules, words, legal, _floats(cells), _floats(1), opinion)
    players = [each for each in (frozen.policy, frozen.search) if each is not None]
    image = Image(desk, *players)
    _check_size("the agent has", len(image.data), MAX_STORED, "train a smaller policy")
    _check_size("the search needs", image.size, MAX_MEMORY, "use fewer search.simulations")
    modules = {*image.modules, "rlgames.export.image", "rlgames.export.wasm"}
    key = image.layout, llvmlite.__version__
    code = kept_on_disk(ask_player, modules, key, lambda: _compile(image, desk, players))
    arrays = {**desk._asdict(), **desk.opinion._asdict()}
    layout = {
        name: image.offset(each) for name, each in arrays.items() if isinstance(each, np.ndarray)
    }
    return Machine(code, image.data, image.size, layout, frozen.hints, len(players) > 1)


def _floats(size: int) -> Array:
    return np.zeros(size, np.float32)


def _check_size(what: str, size: int, limit: int, hint: str) -> None:
    """Raises ConfigError for too many bytes."""
    if size > limit:
        text = f"{what} {size / 2**20:,.0f} MiB of numbers, and a page holds {limit >> 20:,}"
        raise ConfigError(text, hint)


def _compile(image: Image, desk: Desk, players: list[Any]) -> bytes:
    """The code of a machine. Raises ConfigError."""
    shared, policy, search = map(image.finder, (desk, players[0], players[-1]))

    def answer(base: int, question: int, argument: int) -> int:
        if question == POLICY:
            return ask_player(policy(base), shared(base), argument)
        if question == SEARCH:
            return ask_player(search(base), shared(base), argument)
        return ask_rules(shared(base), question, argument)

    try:
        made = cfunc(int64(int64, int64, int64))(answer)
        return to_wasm(made.inspect_llvm(), made.native_name, "answer")
    except Exception as error:
        versions = f"numba {numba.__version__} and llvmlite {llvmlite.__version__}"
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"{versions} do not compile this agent for a page: {reason}",
            "use another version of numba, or rlgames serve",
        ) from error
