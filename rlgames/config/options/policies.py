"""The policies: networks and value functions."""

from __future__ import annotations

from rlgames.config.schema import Option, OptionConfig, key


class NetworkConfig(OptionConfig):
    """Keys of neural networks."""

    canonical: bool = key(help="map symmetric boards to one before reading them")


class LayersConfig(NetworkConfig):
    """Keys of networks of dense or convolutional layers."""

    activation: str = key(of=("tanh", "relu", "gelu", "silu"), help="tanh, relu, gelu or silu")
    init: str = key(
        of=("orthogonal", "truncated_normal"), help="truncated_normal: deviation 0.1/sqrt(inputs)"
    )


class MlpConfig(LayersConfig):
    layers: list[int] = key(0, 65536, help="width of each hidden layer; 0: the input's width")
    bias: bool = key(help="use biases in the layers")
    skip: bool = key(help="residual connections between layers of equal width")


class StagedConfig(MlpConfig):
    by: str = key(help="turn, score or a game's measure that sets the stage")
    at: list[float] = key(-1e18, 1e18, help="rising thresholds where a new stage begins")


class ConvConfig(LayersConfig):
    channels: list[int] = key(1, 4096, help="width of each layer")
    skip: bool = key(help="residual connections between layers of equal width")


class BeliefPropagationConfig(NetworkConfig):
    layers: list[int] = key(1, 4096, help="width of each hidden layer")
    memory: int = key(1, 4096, help="features that a cell hands to the next layer")


class EmbeddingConfig(LayersConfig):
    units: int = key(1, 4096, help="length of a vector")
    num_cell_values: int = key(2, 64, help="distinct cell values; larger ones count as the last")
    open_cells: bool = key(help="encode empty cells that a move can take now separately")
    line_length: int | None = key(
        2, 19, help="cells of each line, in all directions; null: whole rows and columns"
    )
    layers: list[int] = key(1, 65536, help="width of each hidden layer")


class TableConfig(OptionConfig):
    init_value: float = key(-1e6, 1e6, help="initial value of a board")


class NtupleConfig(OptionConfig):
    tuples: list[list[int]] | None = key(
        0, 360, help="lists of cell indices; null: 2x3 blocks and 4+2 rows, or random walks"
    )
    num_tuples: int | None = key(
        1, 10_000, help="number of random walks, with two seats; null: 70 without other tuples"
    )
    line_length: int | None = key(
        2,
        16,
        help="all straight lines of this many cells, or of a side, are tuples too, with two seats",
    )
    num_cell_values: int = key(
        2, 16, help="distinct tiles; with two seats 3, or 4 to tell where stones can fall"
    )
    per_seat: bool = key(
        help="each of two seats has its own values; false: the board is read as the seat that "
        "moved sees it"
    )
    stages: int = key(1, 64, help="parts of the game with their own values, by stones on the board")
    init_value: float = key(-1e9, 1e9, help="initial value of a board")


class LinearConfig(OptionConfig):
    features: list[str] = key(
        of=(
            *("corner", "vertical", "horizontal", "diagonal"),
            *("one", "empty", "pairs", "ordered", "rough"),
        ),
        help="features of the board that are summed",
    )
    init_value: float = key(-1e6, 1e6, help="initial value of every weight")


POLICIES = {
    "mlp": Option(MlpConfig, "rlgames.policies.mlp:Mlp"),
    "conv": Option(ConvConfig, "rlgames.policies.conv:Conv"),
    "belief_propagation": Option(
        BeliefPropagationConfig, "rlgames.policies.belief_propagation:BeliefPropagation"
    ),
    "embedding": Option(EmbeddingConfig, "rlgames.policies.embedding:Embedding"),
    "staged": Option(StagedConfig, "rlgames.policies.staged:Staged"),
    "table": Option(TableConfig, "rlgames.policies.table:Table"),
    "ntuple": Option(NtupleConfig, "rlgames.policies.ntuple:Ntuple"),
    "linear": Option(LinearConfig, "rlgames.policies.linear:LinearValue"),
}
