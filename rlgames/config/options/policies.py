"""The policies: networks and value functions."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import Part, key


@dataclass
class NetworkConfig:
    name: str = key()
    canonical: bool = False


@dataclass
class MlpConfig(NetworkConfig):
    name: str = "mlp"
    layers: list[int] = key([256, 256], 0, 65536)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))
    bias: bool = True


@dataclass
class StagedConfig(MlpConfig):
    name: str = "staged"
    by: str = "max_tile"
    at: list[float] = key([512.0], -1e18, 1e18)


@dataclass
class ConvConfig(NetworkConfig):
    name: str = "conv"
    channels: list[int] = key([32, 32, 32], 1, 4096)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))
    skip: bool = True


@dataclass
class AxialConfig(NetworkConfig):
    name: str = "axial"
    channels: list[int] = key([12, 12, 12], 1, 4096)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))


@dataclass
class BeliefPropagationConfig(NetworkConfig):
    name: str = "belief_propagation"
    layers: list[int] = key([32, 32, 32, 32, 32, 32], 1, 4096)
    memory: int = key(8, 1, 4096)


@dataclass
class EmbeddingConfig(NetworkConfig):
    name: str = "embedding"
    units: int = key(32, 1, 4096)
    num_cell_values: int = key(12, 2, 64)
    open_cells: bool = False
    line_length: int | None = key(None, 2, 19)
    layers: list[int] = key([256], 1, 65536)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))


@dataclass
class TableConfig:
    name: str = "table"
    init_value: float = key(0.0, -1e6, 1e6)


@dataclass
class NtupleConfig:
    name: str = "ntuple"
    tuples: list[list[int]] | None = key(None, 0, 63)
    num_tuples: int | None = key(None, 1, 10_000)
    num_cell_values: int = key(16, 2, 66)
    table_size: int | None = key(None, 1, 10**9)
    stage_tiles: list[int] = key([], 2, 2**15)
    init_value: float = key(0.0, -1e9, 1e9)


@dataclass
class NtupleLogitsConfig:
    name: str = "ntuple_logits"
    tuples: list[list[int]] | None = key(None, 0, 63)
    num_cell_values: int = key(14, 2, 66)


@dataclass
class LinearConfig:
    name: str = "linear"
    features: list[str] = key(
        ["corner", "vertical", "horizontal", "diagonal"],
        of=(
            *("corner", "vertical", "horizontal", "diagonal"),
            *("one", "empty", "pairs", "ordered", "rough"),
        ),
    )
    init_value: float = key(1.0, -1e6, 1e6)


POLICIES = {
    "mlp": Part(MlpConfig, "rlgames.policies.mlp:Mlp"),
    "conv": Part(ConvConfig, "rlgames.policies.conv:Conv"),
    "axial": Part(AxialConfig, "rlgames.policies.axial:Axial"),
    "belief_propagation": Part(
        BeliefPropagationConfig, "rlgames.policies.belief_propagation:BeliefPropagation"
    ),
    "embedding": Part(EmbeddingConfig, "rlgames.policies.embedding:Embedding"),
    "staged": Part(StagedConfig, "rlgames.policies.staged:Staged"),
    "table": Part(TableConfig, "rlgames.policies.table:Table"),
    "ntuple": Part(NtupleConfig, "rlgames.policies.ntuple:Ntuple"),
    "ntuple_logits": Part(NtupleLogitsConfig, "rlgames.policies.ntuple_logits:NtupleLogits"),
    "linear": Part(LinearConfig, "rlgames.policies.linear:LinearValue"),
}
