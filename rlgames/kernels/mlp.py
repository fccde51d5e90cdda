"""The outputs of fully connected networks whose inputs are boards.

Many numbers are 0, and their rows of weights are skipped.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.rules import Position, implement, observe, write_cells
from rlgames.kernels.sparse_rows import BLOCK, LANES, TILE, mask_of, multiply
from rlgames.kernels.words import Floats, Integers, Words, compiled

F = np.float32
RELU, TANH, SILU, GELU = range(4)
ACTIVATIONS = {"relu": RELU, "tanh": TANH, "silu": SILU, "gelu": GELU}


class MlpWeights(NamedTuple):
    """widths: int64 [layers + 1], of the inputs and of each layer. weights: float32, for one layer
    after the other its matrix, in tiles as in multiply, and its biases; both with zeros up to a
    multiple of LANES outputs. activation: between layers. No layers: no network.

    lines: int64 [L, K], cells, if the first layer reads which contents K cells have, else None. Its
    inputs are then one for each content of each line, of which one in each line is 1, and what is
    given is the value of each cell. num_cell_values: distinct values.

    skip: a hidden layer whose inputs are as many as its outputs, other than the first one, adds to
    these what its inputs were before their activation.
    """

    widths: Integers
    weights: Floats
    activation: int
    lines: Integers | None
    num_cell_values: int
    skip: bool


PLANES = -1
"""An open_value: the network reads observations, not the values of cells."""


class CompiledPolicy(NamedTuple):
    """A network as kernels take it. open_value: of the cells that it reads, as in write_cells, or
    PLANES; num_inputs: how many numbers it reads. has_value: whether its last output is the value
    of the position."""

    network: MlpWeights
    open_value: int
    num_inputs: int
    has_value: bool


MAX_ROWS = 64
"""How many rows one tile of a matrix is multiplied by while it is in the cache."""

NO_NETWORK = MlpWeights(np.zeros(0, np.int64), np.zeros(0, np.float32), RELU, None, 0, False)


NO_POLICY = CompiledPolicy(NO_NETWORK, PLANES, 0, False)


@compiled
def write_inputs(
    policy: CompiledPolicy,
    rules: Any,
    position: Position,
    seat: int,
    inputs: Floats,
    outputs: Floats,
) -> None:
    if policy.num_inputs == 0:
        return
    if policy.open_value == PLANES:
        observe(rules, position, inputs)
    else:
        write_cells(rules, position, policy.open_value, inputs)


@jit()
def copy_row(source: Floats, target: Floats) -> None:
    """Numba's assignment of a slice takes ten times as long."""
    for i in range(len(source)):
        target[i] = source[i]


@jit(_nrt=False, error_model="numpy")  # which vector instructions need
def apply_tanh(x: Floats, scale: np.float32) -> None:
    """Replace x by tanh(scale · x), with an error of at most 5e-7: of a quarter by Lambert's
    continued fraction, then twice tanh 2t = 2t / (1 + t²).

    It takes a tenth of the time of math.tanh.
    """
    for i in range(len(x)):
        quarter = min(max(scale * x[i], F(-10)), F(10)) * F(0.25)
        s = quarter * quarter
        above = quarter * (F(135135) + s * (F(17325) + s * (F(378) + s)))
        t = above / (F(135135) + s * (F(62370) + s * (F(3150) + s * F(28))))
        t = F(2) * t / (F(1) + t * t)
        x[i] = F(2) * t / (F(1) + t * t)


@jit()
def activate(x: Floats, activation: int, scratch: Floats) -> None:
    """Replace x by its activations; scratch: as long, overwritten."""
    if activation == TANH:
        apply_tanh(x, F(1))
        return
    if activation == SILU:  # x / (1 + e^-x) = x/2 · (1 + tanh x/2)
        copy_row(x, scratch)
        apply_tanh(scratch, F(0.5))
        for i in range(len(x)):
            x[i] = F(0.5) * x[i] * (F(1) + scratch[i])
        return
    for i in range(len(x)):
        if activation == RELU:
            x[i] = max(x[i], F(0))
        else:
            x[i] = 0.5 * x[i] * (1 + math.erf(x[i] / math.sqrt(2)))


@jit()
def add_row(source: Floats, target: Floats) -> None:
    for i in range(len(source)):
        target[i] += source[i]


@jit()
def list_contents(lines: Integers, num_cell_values: int, cells: Floats, index: Integers) -> None:
    """Write the inputs that are 1, by the values of cells."""
    length = lines.shape[1]
    contents = num_cell_values**length
    for line in range(len(lines)):
        content = 0
        for place in range(length - 1, -1, -1):
            content = content * num_cell_values + int(cells[lines[line, place]])
        index[line] = line * contents + content


@jit()
def add_rows(matrix: Floats, index: Integers, columns: int, total: Floats) -> None:
    """total += Σ_j matrix[index[j]]. matrix: in tiles, as in multiply."""
    column, inputs = 0, len(matrix) // columns
    while column < columns:
        width = min(TILE, columns - column)
        tile, sums, j = matrix[inputs * column :], total[column : column + width], 0
        while j + 4 <= len(index):  # four at once: sums are read and written less often
            a, b = tile[width * index[j] :], tile[width * index[j + 1] :]
            c, d = tile[width * index[j + 2] :], tile[width * index[j + 3] :]
            for i in range(width):
                sums[i] = sums[i] + a[i] + b[i] + c[i] + d[i]
            j += 4
        while j < len(index):
            add_row(tile[width * index[j] :][:width], sums)
            j += 1
        column += width


@jit(_nrt=True)
def add_contents(
    lines: Integers | None,
    num_cell_values: int,
    cells: Floats,
    matrix: Floats,
    columns: int,
    total: Floats,
    stride: int,
) -> bool:
    """total += the products of a matrix with the contents of lines in rows of cells; False if there
    are no lines, and nothing more is compiled then."""
    if lines is None:
        return False
    index = np.empty(len(lines), np.int64)
    for row in range(len(cells)):
        list_contents(lines, num_cell_values, cells[row], index)
        add_rows(matrix, index, columns, total[row * stride :])
    return True


@jit(_nrt=True)  # otherwise it would have the option of the kernel that calls it
def forward(network: MlpWeights, inputs: Floats, outputs: Floats) -> None:
    """Write the outputs, float32 [M, last width], of inputs, float32 [M, first width or cells]."""
    has_lines, widest = network.lines is not None, 0
    for layer in range(int(has_lines), len(network.widths)):
        widest = max(widest, network.widths[layer])
    stride, rows = -(-widest // BLOCK) * BLOCK, min(MAX_ROWS, len(inputs))
    x, total = np.empty(rows * stride, np.float32), np.empty(rows * stride, np.float32)
    before, scratch = np.empty(rows * stride, np.float32), np.empty(stride, np.float32)
    masks = np.empty(rows * stride // BLOCK, np.uint64)
    for begin in range(0, len(inputs), MAX_ROWS):
        given = inputs[begin : begin + MAX_ROWS]
        if not has_lines:
            copy_rows(given, x, stride)
        first = 0
        for layer in range(len(network.widths) - 1):
            num_inputs, columns = network.widths[layer], network.widths[layer + 1]
            padded = -(-columns // LANES) * LANES
            end = first + num_inputs * padded
            matrix, biases = network.weights[first:end], network.weights[end : end + padded]
            first = end + padded
            for row in range(len(given)):
                copy_row(biases, total[row * stride :])
            contents = given, matrix, padded, total, stride
            if layer > 0 or not add_contents(network.lines, network.num_cell_values, *contents):
                write_masks(x, masks, stride, len(given), num_inputs)
                multiply(x, masks, stride, len(given), matrix, num_inputs, padded, total)
            if layer < len(network.widths) - 2:
                is_residual = network.skip and layer > 0 and num_inputs == columns
                for row in range(len(given)):
                    part = total[row * stride : row * stride + padded]
                    if is_residual:
                        add_row(before[row * stride : row * stride + padded], part)
                    if network.skip:
                        copy_row(part, before[row * stride :])
                    activate(part, network.activation, scratch[:padded])
                    total[row * stride + padded : (row + 1) * stride] = 0
            x, total = total, x
        for row in range(len(given)):
            copy_row(x[row * stride : row * stride + outputs.shape[1]], outputs[begin + row])


@jit()
def copy_rows(rows: Floats, x: Floats, stride: int) -> None:
    """Write rows to x, float32, flat, which begin at multiples of stride there; zeros follow."""
    length = rows.shape[1]
    for row in range(len(rows)):
        copy_row(rows[row], x[row * stride :])
        x[row * stride + length : (row + 1) * stride] = 0


@jit()
def write_masks(x: Floats, masks: Words, stride: int, rows: int, inputs: int) -> None:
    """Write the masks of multiply."""
    for row in range(rows):
        for block in range(-(-inputs // BLOCK)):
            start = row * stride + block * BLOCK
            masks[start // BLOCK] = mask_of(x, start)


@jit(_nrt=True)
def forward_policy(policy: CompiledPolicy, inputs: Floats, outputs: Floats) -> None:
    forward(policy.network, inputs, outputs)


implement(CompiledPolicy, read_position=write_inputs, compute_outputs=forward_policy)
