"""N-tuple networks of 2048, see ntuple.py.

A network looks each of its tuples up in the eight views of the board, its rotations and
reflections. The contents of a tuple are four bits for each of its cells, the first the lowest. They
are gathered in runs of cells that are also consecutive in the view: a run is some bits of the view
rotated right.

Kernels are compiled for one network each. If masks and rotations are constants of the code,
the entries of a board are computed three times as fast as where they are read from an array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from rlgames.kernels.game_2048 import (
    COLUMNS,
    Bits,
    Rules2048,
    count_cells,
    empty_cells,
    mirror,
    slide_both,
    transpose,
)
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple import Memory, num_entries, sum_values
from rlgames.kernels.prefetch import prefetch
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled

U = np.uint64
NUM_VIEWS = 8


class Tuple(NamedTuple):
    """first: the entry of its contents 0. num_cells: its cells. runs: mask and rotation to the
    right of each. lookups: for each the views of which the lowest index counts."""

    first: int
    num_cells: int
    runs: tuple[tuple[int, int], ...]
    lookups: tuple[tuple[int, ...], ...]


class Network(NamedTuple):
    """radix: the values of a cell, 2 to 16; larger exponents count as the last. stride: numbers
    per entry of the table, of which the first is the value. stages: the exponents from which on
    the entries of the next stage count, at a distance of stage_size."""

    rows: int
    columns: int
    radix: int
    stride: int
    tuples: tuple[Tuple, ...]
    stages: tuple[int, ...] = ()
    stage_size: int = 0


class CompiledNetwork:
    """A network as an argument of kernels, which are compiled for it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.num_entries = U(sum(len(each.lookups) for each in network.tuples))

    @cached_property
    def write_entries(self) -> Callable[..., None]:
        """The function that replaces write_entries."""
        body = [f"entries[first + U({n})] = {{}}" for n in range(int(self.num_entries))]
        arguments = ("board", "network", "entries", "first")
        return self._function("write_entries", arguments, body)

    @cached_property
    def value(self) -> Callable[..., np.float32]:
        """The function that replaces value; it adds in the order of sum_values."""
        num, grouped = int(self.num_entries), int(self.num_entries) // 4 * 4
        sums = ["abcd"[n % 4] if n < grouped else "a" for n in range(num)]
        body = [f"{sum_name} += table[{{}}]" for sum_name in sums]
        before = ["a = b = c = d = np.float32(0)"]
        arguments = ("board", "network", "table")
        return self._function("value", arguments, body, before, ["return (a + b) + (c + d)"])

    def _function(
        self,
        name: str,
        arguments: Sequence[str],
        body: Sequence[str],
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> Callable[..., Any]:
        """A function with a line of the body for each lookup, {} in it being the entry."""
        lines = [*before, *_stage_lines(self.network), *_view_lines(self.network)]
        statements = iter(body)
        for each in self.network.tuples:
            for views in each.lookups:
                for view in views:
                    lines += _contents_lines(self.network, each, view)
                index = f"c{views[0]}"
                for view in views[1:]:
                    index = f"min({index}, c{view})"
                entry = f"{index} * U({self.network.stride}) + U({each.first})"
                entry += " + stage" if self.network.stages else ""
                lines.append(next(statements).format(entry))
        # Numba wants the annotations of the function that it replaces.
        typed = ", ".join(f"{argument}: Any" for argument in arguments)
        source = "\n    ".join([f"def {name}({typed}):", *lines, *after])
        # Only whole numbers of the network are part of the source.
        scope: dict[str, Any] = {
            "U": U,
            "np": np,
            "mirror": mirror,
            "flip": flip,
            "transpose": transpose,
        }
        scope |= {"clamp_exponents": clamp_exponents, "has_exponent": has_exponent}
        exec(compile(source, "<n-tuple network>", "exec"), scope)
        function: Callable[..., Any] = scope[name]
        return function


def _stage_lines(network: Network) -> list[str]:
    """Statements that set the distance of the entries of the board's stage from the first ones."""
    reached = [f"U(has_exponent(board, U({exponent})))" for exponent in network.stages]
    return [f"stage = U({network.stage_size}) * ({' + '.join(reached)})"] if reached else []


def _view_lines(network: Network) -> list[str]:
    """Statements that set v0 to v7, the views of the board."""
    across, down = 4 * (4 - network.columns), 16 * (4 - network.rows)
    lines = []
    if network.radix < 16:
        lines.append(f"board = clamp_exponents(board, U({network.radix}))")
    lines += ["v0 = board", f"v1 = mirror(v0) >> U({across})"]
    lines += [f"v{view + 2} = flip(v{view}) >> U({down})" for view in range(2)]
    if network.rows == network.columns:
        lines += [f"v{view + 4} = transpose(v{view})" for view in range(4)]
    return lines


def _contents_lines(network: Network, each: Tuple, view: int) -> list[str]:
    """Statements that set c0 to c7 to what the tuple shows in this view, in the network's radix."""
    name, board = f"c{view}", f"v{view}"
    runs = []
    for mask, right in each.runs:
        rotated = f"{board} >> U({right}) | {board} << U({64 - right})" if right else board
        runs.append(f"({rotated}) & U({mask})")
    lines = [f"{name} = {' | '.join(runs)}"]
    digits, weight = 1, network.radix
    while digits < each.num_cells and network.radix < 16:
        # Of every two digits the upper weighs less than in the binary number.
        mask = sum(((1 << 4 * digits) - 1) << 8 * digits * n for n in range(8 // digits))
        upper = f"({name} >> U({4 * digits})) & U({mask})"
        lines.append(f"{name} -= U({16**digits - weight}) * ({upper})")
        digits, weight = 2 * digits, weight * weight
    return lines


@jit()
def flip(board: Bits) -> Bits:
    """The board of four rows with top and bottom exchanged."""
    board = (board << U(32)) | (board >> U(32))
    low, high = U(0x0000FFFF0000FFFF), U(0xFFFF0000FFFF0000)
    return ((board & low) << U(16)) | ((board & high) >> U(16))


@jit()
def has_exponent(board: Bits, exponent: Bits) -> bool:
    """Whether a cell has this exponent or a larger one."""
    low, carry = U(0x0F0F0F0F0F0F0F0F), U(0x1010101010101010)
    excess = (U(16) - exponent) * U(0x0101010101010101)
    is_large = (((board & low) + excess) | (((board >> U(4)) & low) + excess)) & carry
    return is_large != U(0)  # type: ignore[no-any-return]


@jit()
def clamp_exponents(board: Bits, radix: Bits) -> Bits:
    """The board with exponents of radix and more as radix - 1."""
    if not has_exponent(board, radix):
        return board
    clamped = U(0)
    for shift in range(U(0), U(64), U(4)):
        exponent = (board >> shift) & U(15)
        clamped |= min(exponent, radix - U(1)) << shift
    return clamped


def write_entries(board: Bits, network: CompiledNetwork, entries: Array, first: Bits) -> None:
    """Write where the board's values are in the flat table, from entries[first] on."""
    network.write_entries(board, network, entries, first)


def _num_entries(network: CompiledNetwork) -> Bits:
    return network.num_entries


def value(board: Bits, network: CompiledNetwork, table: Array) -> np.float32:
    """The value of a board: the sum of its entries."""
    return network.value(board, network, table)


@compiled
def fetch_entries(
    board: Bits, network: CompiledNetwork, table: Array, entries: Array, first: Bits
) -> None:
    """Write where the board's values are, as write_entries does, and have them fetched."""
    write_entries(board, network, entries, first)
    for entry in range(first, first + num_entries(network)):
        prefetch(table, entries[entry])


class _NetworkType(types.Type):
    """Numba's type of one network: it is part of the signature for which a kernel is compiled."""

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


@overload(write_entries)
def _write_entries(board: Any, network: Any, entries: Any, first: Any) -> Any:
    return network.network.write_entries


@overload(value)
def _value(board: Any, network: Any, table: Any) -> Any:
    return network.network.value


@overload(_num_entries)
def _overload_num_entries(network: Any) -> Any:
    num = network.network.num_entries

    def implementation(network: Any) -> Any:
        return num

    return implementation


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
    """The values of all moves are fetched before the first is added up."""
    return score_boards(network, rules, U(position[0]), table, scale, memory)


@compiled
def score_boards(
    network: CompiledNetwork,
    rules: Rules2048,
    board: Bits,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    num, afters, points = num_entries(network), memory.afters, memory.points
    up, down, points[0] = slide_both(transpose(board), rules.rows, COLUMNS)
    afters[3], afters[1], points[1] = slide_both(board, rules.rows, U(0))
    afters[0], afters[2] = transpose(up), transpose(down)
    points[2], points[3] = points[0], points[1]
    for action in range(U(4)):
        if afters[action] != board:
            fetch_entries(afters[action], network, table, memory.entries, action * num)
    best: Any = -1
    highest = np.float32(-np.inf)
    for action in range(U(4)):
        score = np.float32(-np.inf)
        if afters[action] != board:
            value = sum_values(table, memory.entries, action * num, num, U(0))
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
    return (np.int64(memory.afters[action]),), False, memory.points[action]


@compiled
def find_places(network: CompiledNetwork, after: Position, seat: int, memory: Memory) -> np.uint64:
    write_entries(U(after[0]), network, memory.places, U(0))
    return U(0)


@compiled
def expected_best(
    network: CompiledNetwork,
    rules: Rules2048,
    after: Position,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> np.float32:
    board = U(after[0])
    empty = empty_cells(board, rules.cells)
    fours = np.float64(rules.fours) / np.float64(1 << 32)
    count, total = np.float64(count_cells(empty)), 0.0
    while empty != U(0):
        cell = empty & (~empty + U(1))
        empty ^= cell
        for tile in range(U(2)):
            probability = fours if tile else 1.0 - fours
            if probability > 0.0:
                best = score_boards(network, rules, board | (cell << tile), table, scale, memory)
                if best >= 0:
                    total += probability * np.float64(memory.scores[best])
    return np.float32(total / count)


implement(
    CompiledNetwork,
    num_entries=_num_entries,
    score_moves=score_moves,
    make_move=make_move,
    find_places=find_places,
    expected_best=expected_best,
)
