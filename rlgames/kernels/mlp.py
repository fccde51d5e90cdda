"""The outputs of fully connected networks whose inputs are boards.

With few inputs a call of torch would take longer. Most numbers are 0, and their rows of weights are
skipped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.jit import jit

RELU, TANH, SILU, GELU = range(4)
ACTIVATIONS = {"relu": RELU, "tanh": TANH, "silu": SILU, "gelu": GELU}

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class MlpWeights(NamedTuple):
    """widths: int64 [layers + 1], of the inputs and of each layer. weights: float32, for one layer
    after the other its matrix [inputs, outputs] and its biases [outputs]. activation: between
    layers. No layers: no network.

    lines: int64 [L, K], cells; not empty if the first layer reads which contents K cells have. Its
    inputs are then one for each content of each line, of which one in each line is 1, and what is
    given is the value of each cell. num_cell_values: distinct values.

    skip: a hidden layer whose inputs are as many as its outputs, other than the first one, adds to
    these what its inputs were before their activation.
    """

    widths: Integers
    weights: Floats
    activation: int
    lines: Integers
    num_cell_values: int
    skip: bool


MIN_SPARSITY = 8
"""How many inputs there are for one that is not 0 if torch is slower than sums of rows."""

NO_LINES = np.zeros((0, 0), np.int64)
NO_NETWORK = MlpWeights(np.zeros(0, np.int64), np.zeros(0, np.float32), RELU, NO_LINES, 0, False)


@jit()
def activate(x: Floats, activation: int) -> None:
    """Replace x by its activations."""
    for i in range(len(x)):
        if activation == RELU:
            x[i] = max(x[i], np.float32(0))
        elif activation == TANH:
            x[i] = math.tanh(x[i])
        elif activation == SILU:
            x[i] = x[i] / (1 + math.exp(-x[i]))
        else:
            x[i] = 0.5 * x[i] * (1 + math.erf(x[i] / math.sqrt(2)))


@jit()
def list_nonzero(x: Floats, index: Integers, factor: Floats) -> int:
    """Write where x is not 0 and its numbers there; returns how many."""
    count = 0
    for i in range(len(x)):
        index[count], factor[count] = i, x[i]
        count += x[i] != 0  # cheaper than a jump that cannot be predicted
    return count


@jit()
def list_contents(network: MlpWeights, cells: Floats, index: Integers, factor: Floats) -> int:
    """Write the inputs that are 1, by the values of cells; returns how many."""
    lines, length = network.lines.shape
    contents = network.num_cell_values**length
    for line in range(lines):
        content = 0
        for place in range(length - 1, -1, -1):
            value = int(cells[network.lines[line, place]])
            content = content * network.num_cell_values + value
        index[line], factor[line] = line * contents + content, 1
    return int(lines)


@jit(fastmath={"contract"})
def add_rows(matrix: Floats, index: Integers, factor: Floats, count: int, total: Floats) -> None:
    """total += Σ_j factor[j] · matrix[index[j]], over the first `count` of them."""
    columns, j = len(total), 0
    while j + 4 <= count:  # four at once: total is read and written less often
        a, b = matrix[index[j]], matrix[index[j + 1]]
        c, d = matrix[index[j + 2]], matrix[index[j + 3]]
        p, q, r, s = factor[j], factor[j + 1], factor[j + 2], factor[j + 3]
        for column in range(columns):
            total[column] = (
                total[column] + p * a[column] + q * b[column] + r * c[column] + s * d[column]
            )
        j += 4
    while j < count:
        a, p = matrix[index[j]], factor[j]
        for column in range(columns):
            total[column] += p * a[column]
        j += 1


@jit(_nrt=True)  # otherwise it would have the option of the kernel that calls it
def forward(network: MlpWeights, inputs: Floats, outputs: Floats) -> None:
    """Write the outputs, float32 [M, last width], of inputs, float32 [M, first width or cells]."""
    widths, layers = network.widths, len(network.widths) - 1
    widest = max(inputs.shape[1], len(network.lines), widths[1:].max())
    index, factor = np.empty(widest, np.int64), np.empty(widest, np.float32)
    hidden, before = np.empty(widest, np.float32), np.empty(widest, np.float32)
    for row in range(len(inputs)):
        if len(network.lines) > 0:
            count = list_contents(network, inputs[row], index, factor)
        else:
            count = list_nonzero(inputs[row], index, factor)
        begin = 0
        for layer in range(layers):
            rows, columns = widths[layer], widths[layer + 1]
            end = begin + rows * columns
            matrix = network.weights[begin:end].reshape(rows, columns)
            total = outputs[row] if layer == layers - 1 else hidden[:columns]
            total[:] = network.weights[end : end + columns]
            add_rows(matrix, index, factor, count, total)
            begin = end + columns
            if layer < layers - 1:
                if network.skip:
                    if layer > 0 and rows == columns:
                        total += before[:columns]
                    before[:columns] = total
                activate(total, network.activation)
                count = list_nonzero(total, index, factor)


@jit(_nrt=True)
def sparse_layer(network: MlpWeights, inputs: Floats, hidden: Floats) -> bool:
    """Write the first hidden layer, float32 [M, its width or 0], if most inputs are 0, and whether
    it did."""
    rows, columns = inputs.shape[1], hidden.shape[1]
    if columns == 0:
        return False
    index, factor = np.empty(rows, np.int64), np.empty(rows, np.float32)
    limit, count = len(inputs) * rows // MIN_SPARSITY, 0
    for row in range(len(inputs)):
        for i in range(rows):
            count += inputs[row, i] != 0
    if count > limit:
        return False
    matrix = network.weights[: rows * columns].reshape(rows, columns)
    biases = network.weights[rows * columns : rows * columns + columns]
    for row in range(len(inputs)):
        count = list_nonzero(inputs[row], index, factor)
        hidden[row] = biases
        add_rows(matrix, index, factor, count, hidden[row])
        activate(hidden[row], network.activation)
    return True
