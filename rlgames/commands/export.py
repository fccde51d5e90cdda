"""`rlgames export`: a run's network as an ONNX file that needs neither rlgames nor torch."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.config.commands import ExportConfig
from rlgames.config.compose import load_config
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError, check_installed
from rlgames.core.output_files import check_writable
from rlgames.core.text import json_text
from rlgames.factory.agents import load_agent, trained_config
from rlgames.games.game import Game
from rlgames.players.player import Random
from rlgames.policies.policy import Network
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.runs import storage
from rlgames.runs.names import run_name
from rlgames.version import __version__

TOLERANCE = 1e-4
"""The absolute and the relative difference from torch's scores that is allowed."""


def export_command(run: Path, overrides: list[str]) -> dict[str, str]:
    """Write the network of a run's checkpoint, which reads what policy.inputs(game, state) gives,
    and compare it with torch.

    Raises ConfigError for a policy that is not a network, if the extra onnx is not installed, and
    for a file that gives other scores than torch.
    """
    cfg = load_config(ExportConfig, overrides)
    check_installed("export", "onnx", "onnx", "onnxscript", "onnxruntime")
    agent = load_agent(run, checkpoint=cfg.checkpoint)
    game, policy = agent.game.to("cpu"), agent.policy.to("cpu")
    trained = trained_config(run)
    torch.set_num_threads(trained.threads)
    if not isinstance(policy, Network):
        parts = f"policy={trained.policy.name} learner={trained.learner.name}"
        raise ConfigError(
            f"{run_name(run)} has no network to export: it has {parts}",
            "mlp, conv, belief_propagation, embedding and staged are networks, of all learners "
            "but td_lambda",
        )
    # Agents that come with rlgames lie among its own files.
    default = run / "policy.onnx" if run.is_dir() else f"{run.stem}.onnx"
    path = Path(cfg.out or default)
    if path.suffix.lower() != ".onnx":  # it might be a checkpoint, which would be lost
        raise ConfigError(f"out={path} is not an ONNX file", "write out=policy.onnx")
    check_writable(str(path), path)
    outputs = ["scores", *(["value"] if policy.has_value else [])]
    metadata = {
        "rlgames": __version__,
        "game": json_text(to_plain(trained.game)),
        "policy": json_text(to_plain(trained.policy)),
    }
    inputs = _positions(game, policy)
    model = _exported(policy, inputs[:2], outputs, metadata)
    difference = _difference(policy, inputs, model)
    storage.write_file(path.parent, path.name, model)
    return {
        "file": str(path),
        "inputs": json_text(["batch", *inputs.shape[1:]]),
        "outputs": ", ".join(outputs),
        "difference": f"{difference:.1e} from torch at most, over {len(inputs)} positions",
    }


def _positions(game: Game[Any], policy: Network) -> Tensor:
    """The inputs of the network at some positions of random play."""
    games = GamePool(
        game, [Random(game)], UNLIMITED_GAMES, torch.Generator().manual_seed(0), batch=8
    )
    moves, _ = games.collect(plies=20)
    return policy.inputs(game, moves.state)


def _exported(
    policy: Network, inputs: Tensor, outputs: list[str], metadata: dict[str, str]
) -> bytes:
    batch = torch.export.Dim("batch")
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # of the exporter
    try:
        with warnings.catch_warnings(action="ignore"):
            program = torch.onnx.export(
                policy,
                (inputs,),
                dynamo=True,
                dynamic_shapes=({0: batch},),
                input_names=["inputs"],
                output_names=outputs,
                verbose=False,
            )
    finally:
        logging.disable(disabled)
    assert program is not None
    program.model.metadata_props.update(metadata)
    return bytes(program.model_proto.SerializeToString())


def _difference(policy: Network, inputs: Tensor, model: bytes) -> float:
    """The largest difference over all outputs. Raises ConfigError beyond the tolerance."""
    import onnxruntime

    outputs = onnxruntime.InferenceSession(model).run(None, {"inputs": inputs.numpy()})
    with torch.no_grad():
        expected = [output for output in policy(inputs) if output is not None]
    difference = 0.0
    for output, exported in zip(expected, map(torch.from_numpy, outputs), strict=True):
        if not torch.allclose(output, exported, TOLERANCE, TOLERANCE):
            raise ConfigError("the exported network and torch give different scores")
        difference = max(difference, float((output - exported).abs().max()))
    return difference
