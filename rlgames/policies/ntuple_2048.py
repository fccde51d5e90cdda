"""N-tuple networks of 2048, see ntuple.py.

A network looks each of its tuples up in the eight views of the board, its rotations and
reflections. The contents of a tuple are four bits for each of its cells, the first the lowest. They
are gathered in runs of cells that are also consecutive in the view: a run is some bits of the view
rotated right.

Kernels are compiled for one network each: masks and rotations are constants of the code, which
computes the entries of all views at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partialmethod, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba.core import types
from numba.core.imputils import impl_ret_untracked
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array

from rlgames.games.game_2048 import Game2048, Rules2048, add_tile
from rlgames.kernels.jit import jit
from rlgames.kernels.nibbles import (
    Bits,
    columns_start,
    flip,
    mirror,
    slide_both,
    transpose,
)
from rlgames.kernels.ntuple import Memory, num_entries, sum_values
from rlgames.kernels.prefetch import prefetch
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, inlined

U = np.uint64


class Tuple(NamedTuple):
    """first: the entry of its contents 0. num_cells: its cells. runs: mask and rotation to the
    right of each. lookups: for each the views of which the lowest index counts."""

    first: int
    num_cells: int
    runs: tuple[tuple[int, int], ...]
    lookups: tuple[tuple[int, ...], ...]


class Network(NamedTuple):
    """radix: the values of a cell, 2 to 16; larger exponents count as the last. stride: numbers
    per entry of the table, of which the first is the value."""

    rows: int
    columns: int
    radix: int
    stride: int
    tuples: tuple[Tuple, ...]


class CompiledNetwork:
    """A network as an argument of kernels, which are compiled for it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.num_entries = U(sum(len(each.lookups) for each in network.tuples))


def make_network(
    game: Game2048, tuples: Sequence[Sequence[int]], radix: int, stride: int
) -> CompiledNetwork:
    """The network of a policy with these tuples. radix: the values of a cell. stride: numbers of
    the table per value."""
    described: list[Tuple] = []
    first = 0
    for cells in tuples:
        positions = [16 * (cell // game.columns) + 4 * (cell % game.columns) for cell in cells]
        views = tuple(tuple(views) for views in _views_by_lookup(game, cells))
        described.append(Tuple(first * stride, len(cells), tuple(_runs(positions)), views))
        first += radix ** len(cells)
    return CompiledNetwork(Network(game.rows, game.columns, radix, stride, tuple(described)))


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Mask and rotation to the right of each run of consecutive cells, given their lowest bits."""
    runs: list[tuple[int, int]] = []
    for index, position in enumerate(positions):
        rotation = (position - 4 * index) % 64
        if runs and runs[-1][1] == rotation:
            runs[-1] = (runs[-1][0] | 15 << (4 * index), rotation)
        else:
            runs.append((15 << (4 * index), rotation))
    return runs


def _views_by_lookup(game: Game2048, cells: Sequence[int]) -> list[list[int]]:
    """The views that show a tuple's cells on the same cells of the board, for each set of these."""
    grid = torch.arange(game.num_cells).view(game.rows, game.columns)
    views = [grid, grid.flip(1), grid.flip(0), grid.flip(0, 1)]
    views += [view.T for view in views] if game.rows == game.columns else []
    lookups: dict[frozenset[int], list[int]] = {}
    for number, view in enumerate(views):
        shown = frozenset(view.reshape(-1)[list(cells)].tolist())
        lookups.setdefault(shown, []).append(number)
    return list(lookups.values())


class Moves(NamedTuple):
    """entries: uint64 [8 · K], those of the boards after four moves, and after four likely ones.
    afters: uint64 [A], and points: float32 [A], what the moves lead to. recent: float32 [A], how
    often each action was made of late."""

    entries: Array
    afters: Array
    points: Array
    recent: Array


class Lanes:
    """Integers of 64 bits of which the compiled code computes all at once, as arrays of numpy do.

    builder: of the code. value: what it calls the vector of them.
    """

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder, self.value = builder, value

    def _with(self, operation: str, other: Any) -> Lanes:
        if isinstance(other, Lanes):
            operand = other.value
        else:
            operand = ir.Constant(self.value.type, [int(other)] * len(self))
        return Lanes(self.builder, getattr(self.builder, operation)(self.value, operand))

    __add__ = partialmethod(_with, "add")
    __sub__ = partialmethod(_with, "sub")
    __mul__ = partialmethod(_with, "mul")
    __and__ = partialmethod(_with, "and_")
    __or__ = partialmethod(_with, "or_")
    __xor__ = partialmethod(_with, "xor")
    __lshift__ = partialmethod(_with, "shl")
    __rshift__ = partialmethod(_with, "lshr")

    def __len__(self) -> int:
        return int(self.value.type.count)

    def take(self, numbers: Sequence[int], others: Lanes | None = None) -> Lanes:
        """Some of these, by number; with others, their numbers follow these."""
        second = self.value if others is None else others.value
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))
        return Lanes(self.builder, self.builder.shuffle_vector(self.value, second, mask))

    def join(self, others: Lanes) -> Lanes:
        """These, and as many others after them."""
        return self.take(range(2 * len(self)), others)

    def minimum(self, other: Lanes) -> Lanes:
        """The lower one of each two."""
        is_lower = self.builder.icmp_unsigned("<", self.value, other.value)
        return Lanes(self.builder, self.builder.select(is_lower, self.value, other.value))


def on_lanes(function: Any) -> Any:
    """A kernel of a board as a function of several boards at once."""
    return function.py_func


def all_entries(board: Lanes, network: Network) -> list[Lanes]:
    """Where the values of a board are, by tuple."""
    views = board.join(on_lanes(mirror)(board) >> (4 * (4 - network.columns)))
    views = views.join(on_lanes(flip)(views) >> (16 * (4 - network.rows)))
    if network.rows == network.columns:
        views = views.join(on_lanes(transpose)(views))
    entries = []
    for each in network.tuples:
        contents = _contents(views, each, network.radix)
        by_rank = zip(*each.lookups, strict=True)
        lowest = reduce(Lanes.minimum, [contents.take(numbers) for numbers in by_rank])
        entries.append(lowest * network.stride + each.first)
    return entries


def _contents(views: Lanes, each: Tuple, radix: int) -> Lanes:
    """What a tuple shows in each view, as a number in this radix."""
    runs = []
    for mask, right in each.runs:
        rotated = (views >> right) | (views << (64 - right)) if right else views
        runs.append(rotated & mask)
    contents = reduce(or_, runs)
    digits, weight = 1, radix
    while digits < each.num_cells and radix < 16:
        # Of every two digits the upper weighs less than in the binary number.
        mask = sum(((1 << 4 * digits) - 1) << 8 * digits * n for n in range(8 // digits))
        contents -= ((contents >> (4 * digits)) & mask) * (16**digits - weight)
        digits, weight = 2 * digits, weight * weight
    return contents


@jit()
def clamp_exponents(board: Bits, radix: Bits) -> Bits:
    """The board with exponents of radix and more as radix - 1."""
    low, carry = U(0x0F0F0F0F0F0F0F0F), U(0x1010101010101010)
    excess = (U(16) - radix) * U(0x0101010101010101)
    if not (((board & low) + excess) | (((board >> U(4)) & low) + excess)) & carry:
        return board
    clamped = U(0)
    for shift in range(U(0), U(64), U(4)):
        exponent = (board >> shift) & U(15)
        clamped |= min(exponent, radix - U(1)) << shift
    return clamped


def write_entries(board: Bits, network: CompiledNetwork, entries: Array, first: Bits) -> None:
    """Write where the board's values are in the flat table, from entries[first] on."""
    raise NotImplementedError("only compiled")


def _num_entries(network: CompiledNetwork) -> Bits:
    return network.num_entries


@jit()
def make_own(network: CompiledNetwork, actions: int) -> Moves:
    return Moves(
        np.zeros(2 * actions * np.int64(num_entries(network)), np.uint64),
        np.zeros(actions, np.uint64),
        np.zeros(actions, np.float32),
        np.zeros(actions, np.float32),
    )


@compiled
def fetch_entries(
    board: Bits, network: CompiledNetwork, table: Array, entries: Array, first: Bits
) -> None:
    """Write where the board's values are, as write_entries does, and have them fetched."""
    write_entries(board, network, entries, first)
    for entry in range(first, first + num_entries(network)):
        prefetch(table, entries[entry])


class _NetworkType(types.Type):
    """Numba's type of one network: it is part of the signature of a compiled kernel."""

    def __init__(self, network: CompiledNetwork) -> None:
        self.network = network
        digest = hashlib.sha256(repr(network.network).encode()).hexdigest()
        super().__init__(f"Network_{digest[:16]}")
        self.instance_class = CompiledNetwork


register_model(_NetworkType)(models.OpaqueModel)


@typeof_impl.register(CompiledNetwork)
def _typeof(network: CompiledNetwork, _context: Any) -> _NetworkType:
    return _NetworkType(network)


@unbox(_NetworkType)  # type: ignore[untyped-decorator]
def _unbox(_type: _NetworkType, _network: Any, compiler: Any) -> NativeValue:
    return NativeValue(compiler.context.get_dummy_value())


@intrinsic
def _write_entries(_context: Any, entries: Any, first: Any, board: Any, network: Any) -> Any:
    """Write the entries of a board with clamped exponents, a tuple's at once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        one_lane = ir.VectorType(ir.IntType(64), 1)
        board = Lanes(builder, builder.bitcast(arguments[2], one_lane))
        for each in all_entries(board, network.network.network):
            target = builder.bitcast(place, each.value.type.as_pointer())
            builder.store(each.value, target, align=8)
            place = builder.gep(place, [ir.IntType(64)(len(each))])
        return impl_ret_untracked(
            context, builder, signature.return_type, context.get_dummy_value()
        )

    return types.none(entries, types.uint64, types.uint64, network), generate


@overload(write_entries)
def _overload_write_entries(board: Any, network: Any, entries: Any, first: Any) -> Any:
    radix = U(network.network.network.radix)

    def implementation(board: Any, network: Any, entries: Any, first: Any) -> Any:
        shown = clamp_exponents(board, radix) if radix < U(16) else board
        _write_entries(entries, first, shown, network)  # type: ignore[call-arg]

    return implementation


@overload(_num_entries)
def _overload_num_entries(network: Any) -> Any:
    num = network.network.num_entries

    def implementation(network: Any) -> Any:
        return num

    return implementation


@inlined
def fetch_ahead(
    network: CompiledNetwork, rules: Rules2048, board: Bits, table: Array, memory: Memory
) -> None:
    """Have the values of all moves after the legal action that was made most often of late fetched,
    with the tile that is drawn next."""
    likely: Any = U(0)
    highest, num = np.float32(-1), num_entries(network)
    for action in range(U(4)):
        if memory.own.afters[action] != board and memory.own.recent[action] > highest:
            highest, likely = memory.own.recent[action], action
    state = memory.rng[0]
    after = add_tile(memory.own.afters[likely], rules.cells, rules.fours, memory.rng)
    memory.rng[0] = state
    up, down, _ = slide_both(transpose(after), rules.rows, columns_start(rules.rows))
    left, right, _ = slide_both(after, rules.rows, U(0))
    fetch_entries(transpose(up), network, table, memory.own.entries, U(4) * num)
    fetch_entries(transpose(down), network, table, memory.own.entries, U(5) * num)
    fetch_entries(left, network, table, memory.own.entries, U(6) * num)
    fetch_entries(right, network, table, memory.own.entries, U(7) * num)


@compiled
def score_moves(
    network: CompiledNetwork,
    rules: Rules2048,
    position: Position,
    seat: int,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    """The values of all moves are fetched before the first is added up, and while they are on their
    way, those after the likely move, which is right for half of the moves."""
    board = U(position[0])
    num, afters, points = num_entries(network), memory.own.afters, memory.own.points
    up, down, points[0] = slide_both(transpose(board), rules.rows, columns_start(rules.rows))
    afters[3], afters[1], points[1] = slide_both(board, rules.rows, U(0))
    afters[0], afters[2] = transpose(up), transpose(down)
    points[2], points[3] = points[0], points[1]
    for action in range(U(4)):
        if afters[action] != board:
            fetch_entries(afters[action], network, table, memory.own.entries, action * num)
    fetch_ahead(network, rules, board, table, memory)
    best: Any = -1
    highest = np.float32(-np.inf)
    for action in range(U(4)):
        score = np.float32(-np.inf)
        if afters[action] != board:
            value = sum_values(table, memory.own.entries, action * num, num, U(0))
            score = scale * points[action] + value
            if best < 0 or score > highest:
                best, highest = np.int64(action), score
        memory.scores[action] = score
    return int(best)


@compiled
def make_move(
    network: CompiledNetwork,
    rules: Rules2048,
    position: Position,
    seat: int,
    action: int,
    memory: Memory,
) -> Played:
    for other in range(4):
        memory.own.recent[other] *= np.float32(0.9)
    memory.own.recent[action] += np.float32(1)
    return (np.int64(memory.own.afters[action]),), False, memory.own.points[action]


@compiled
def find_places(
    network: CompiledNetwork, after: Position, seat: int, memory: Memory
) -> tuple[np.uint64, np.uint64]:
    write_entries(U(after[0]), network, memory.places, U(0))
    return U(0), U(0)


@compiled
def fetch_places(network: CompiledNetwork, after: Position, memory: Memory, table: Array) -> None:
    fetch_entries(U(after[0]), network, table, memory.own.entries, U(0))


implement(
    CompiledNetwork,
    num_entries=_num_entries,
    make_own=make_own,
    score_moves=score_moves,
    make_move=make_move,
    find_places=find_places,
    fetch_places=fetch_places,
)
