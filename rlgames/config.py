"""Typed schemas, range checks, and configs into objects: the only file that knows Hydra.

Nothing heavy is imported until something is built, so that a mistyped word is answered at once.
"""

from __future__ import annotations

import difflib
import math
import sys
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

if TYPE_CHECKING:
    import torch

    from rlgames.games.game import Game
    from rlgames.learners.reinforce import Reinforce
    from rlgames.policies.policy import Policy
    from rlgames.rewards import Reward
    from rlgames.sampling import Sampling


class ConfigError(Exception):
    """Bad input: one line that says what was wrong, and a hint that mends it."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error, self.hint = error, hint


def key(
    default: Any = MISSING, low: float = -math.inf, high: float = math.inf, of: Any = ()
) -> Any:
    """A field with its range (a low given as 1e-300 means more than 0) or its choices."""
    metadata = {"low": low, "high": high, "of": tuple(of)}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


POSITIVE = 1e-300


@dataclass
class BattleshipConfig:
    name: str = "battleship"
    board: int = key(10, 1, 1000)
    ships: list[int] = key([3], 1, 1000)
    shots: int = key(1, 1, 1000)
    aim: str = key("auto", of=("auto", "joint", "sequential"))
    encoding: str = key("planes", of=("signed", "planes"))


@dataclass
class SalvoConfig(BattleshipConfig):
    name: str = "salvo"
    board: int = key(4, 1, 32)
    ships: list[int] = key([4, 2], 1, 32)
    shots: int = key(2, 1, 1024)


@dataclass
class RewardConfig:
    name: str = key()
    scored: str = key(of=("gain", "turns"))
    minus: str = key(of=("nothing", "random_shot", "random_turn"))
    discount: float = key(1.0, 0, 1)


@dataclass
class MlpConfig:
    name: str = "mlp"
    layers: list[int] = key([256, 256], 0, 65536)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))


@dataclass
class ConvConfig:
    name: str = "conv"
    channels: list[int] = key([32, 32, 32], 1, 4096)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))
    skip: bool = True


@dataclass
class StochasticConfig:
    name: str = "stochastic"
    temperature: float = key(1.0, POSITIVE, 1e6)


@dataclass
class EpsilonGreedyConfig:
    name: str = "epsilon_greedy"
    epsilon: float = key(0.1, 0, 1)
    epsilon_end: float | None = key(None, 0, 1)


@dataclass
class ArgmaxConfig:
    name: str = "argmax"


@dataclass
class ReinforceConfig:
    name: str = "reinforce"
    optimizer: str = key("adam", of=("sgd", "adam", "rmsprop"))
    lr_end: float | None = key(None, 0, 100)
    baseline: str = key("value", of=("none", "mean", "standardised", "value"))
    masked: bool = True
    entropy: float = key(0.0, 0, 100)
    entropy_end: float | None = key(None, 0, 100)
    value_weight: float = key(0.5, 0, 1000)
    epochs: int = key(1, 1, 1000)
    minibatches: int = key(1, 1, 100_000)
    clip: float = key(0.2, POSITIVE, 1e6)
    max_norm: float | None = key(None, POSITIVE, 1e6)


@dataclass
class PlayerConfig:
    name: str = key("random", of=("random",))


SCHEMAS: dict[str, dict[str, type]] = {
    "game": {"battleship": BattleshipConfig, "salvo": SalvoConfig},
    "reward": {"hits": RewardConfig, "turns": RewardConfig},
    "policy": {"mlp": MlpConfig, "conv": ConvConfig},
    "sampling": {
        "stochastic": StochasticConfig,
        "epsilon_greedy": EpsilonGreedyConfig,
        "argmax": ArgmaxConfig,
    },
    "learner": {"reinforce": ReinforceConfig},
    "player": {"random": PlayerConfig},
}

SEED_END = 2**64
MAX_BATCH = 1 << 24


@dataclass
class RunConfig:
    """The keys that train, eval and solve share."""

    seed: int = key(0, 0, SEED_END - 1)
    device: str = "cpu"
    threads: int = key(1, 1, 1024)


@dataclass
class TrainConfig(RunConfig):
    games: int = key(10_000, 1, 10**12)
    batch: int = key(256, 1, MAX_BATCH)
    lr: float = key(0.001, POSITIVE, 100)
    log_every: int = key(500, 1, 10**12)
    eval_every: int | None = key(None, 1, 10**12)
    eval_games: int = key(500, 1, 10**8)
    save_every: int | None = key(None, 1, 10**12)
    solve_seconds: float = key(20.0, 0, 1e6)
    out: str | None = None


@dataclass
class EvalConfig(RunConfig):
    games: str | int = "auto"
    batch: int = key(4096, 1, MAX_BATCH)
    trace: int = key(0, 0, 1000)
    solve_seconds: float = key(20.0, 0, 1e6)
    format: str = key("table", of=("table", "json"))


@dataclass
class SolveConfig:
    seconds: float = key(60.0, 0, 1e6)
    memory_gb: float = key(4.0, POSITIVE, 1e4)
    format: str = key("table", of=("table", "json"))


COMMANDS: dict[str, type] = {"train": TrainConfig, "eval": EvalConfig, "solve": SolveConfig}
GROUPS = {
    "train": ("game", "reward", "policy", "sampling", "learner"),
    "eval": ("game", "player", "sampling"),
    "solve": ("game",),
}


def known_keys(command: str) -> set[str]:
    """The groups and the keys at the top of a command's config."""
    return {*GROUPS[command], *(item.name for item in fields(COMMANDS[command]))}


def conf_dir() -> Path:
    """Where the YAML files lie: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "conf"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "conf"


def options(group: str) -> list[str]:
    """The names of a config group's files."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def nearest(word: str, names: list[str]) -> str:
    """A hint with the nearest of names, or with all of them where none is near."""
    near = difflib.get_close_matches(word, names, 1, 0.5)
    return f"did you mean {near[0]}?" if near else "there is: " + ", ".join(sorted(names))


def load(command: str, overrides: list[str], multirun: bool = False) -> list[DictConfig]:
    """Compose and check a command's config, one for each job of a sweep.

    Raises ConfigError for anything that a run could not be made from.
    """
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise ConfigError(
            f"cannot read {error.override!r}", "write key=value, with quotes around odd characters"
        ) from None
    groups = [path.name for path in conf_dir().iterdir() if path.is_dir()]
    for override in parsed:
        name, line = override.key_or_group, override.input_line
        if name.startswith("hydra"):
            continue
        if override.is_delete() or override.is_add() or override.is_force_add():
            raise ConfigError(
                f"{line}: keys cannot be added or removed", f"write {name}=value for a known key"
            )
        if override.is_sweep_override() and not multirun:
            raise ConfigError(f"{line} names several values", "add -m to sweep over them")
        if name in groups and not override.is_sweep_override():
            value = str(override.value())
            if value not in options(name) and value != "None":
                raise ConfigError(f"no {name} is called {value!r}", nearest(value, options(name)))
    jobs = [overrides]
    if multirun:
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

        plain = [override for override in parsed if not override.key_or_group.startswith("hydra")]
        jobs = BasicSweeper.split_arguments(plain, max_batch_size=None)[0]
    return [check(command, _compose(command, list(job), groups)) for job in jobs]


def _compose(command: str, overrides: list[str], groups: list[str]) -> DictConfig:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            return compose(command, overrides)
        except HydraException as error:
            choices = [text for text in overrides if text.split("=")[0] in groups]
            wrong = [text for text in overrides if text.split("=")[0] not in groups]
            try:
                known = compose(command, choices)
            except HydraException:
                known = compose(command)
                wrong = overrides
            names = [str(name) for name in known] + [*GROUPS[command], "experiment"]
            for name, node in ((str(name), node) for name, node in known.items()):
                if isinstance(node, DictConfig):
                    names += [name + "." + str(inner) for inner in node]
            for text in wrong:
                name = text.split("=")[0]
                if name not in names:
                    raise ConfigError(
                        f"no key is called {name!r} here", nearest(name, names)
                    ) from None
            raise ConfigError(str(error).splitlines()[0]) from None


def check(command: str, config: DictConfig) -> DictConfig:
    """The same config with every value converted to its declared type and inside its range."""
    result: dict[str, Any] = {}
    for group in GROUPS[command]:
        node = config.get(group)
        if node is None:
            continue
        name = str(node.get("name"))
        if name not in SCHEMAS[group]:
            raise ConfigError(f"no {group} is called {name!r}", nearest(name, list(SCHEMAS[group])))
        result[group] = typed(SCHEMAS[group][name], node, group)
    schema = COMMANDS[command]
    own = {item.name: config.get(item.name) for item in fields(schema) if item.name in config}
    result.update(typed(schema, OmegaConf.create(own), ""))
    return OmegaConf.create(result)


def typed(schema: type, node: DictConfig, prefix: str) -> dict[str, Any]:
    """A node's values as plain Python, converted and checked by a schema."""
    values: dict[str, Any] = {}
    merged = OmegaConf.structured(schema)
    for name in map(str, node):
        shown = name if not prefix or name in TOP_LEVEL else f"{prefix}.{name}"
        try:
            raw = OmegaConf.to_container(OmegaConf.create({"v": node[name]}), resolve=True)
            raw = raw["v"] if isinstance(raw, dict) else raw
            if raw == "" or (isinstance(raw, str) and raw != raw.strip()):
                raise ConfigError(f"{shown}={raw!r} is empty or has blanks around it")
            kind = _type(schema, name)
            # OmegaConf would take 3 for true and "01" for 1.
            loose = isinstance(raw, str) and "number" in kind and "a word" not in kind
            if kind and (loose or isinstance(raw, bool) != (kind == "true or false")):
                raise ConfigError(f"{shown}={raw} is not of the right kind", f"it should be {kind}")
            merged[name] = raw
            values[name] = plain(merged)[name]
        except OmegaConfBaseException:
            names = [item.name for item in fields(schema)]
            if name not in names:
                raise ConfigError(f"no key is called {shown!r}", nearest(name, names)) from None
            raise ConfigError(
                f"{shown}={raw} is not of the right kind",
                f"it should be {_type(schema, name)}",
            ) from None
    for item in fields(schema):
        if item.name in values:
            shown = item.name if not prefix or item.name in TOP_LEVEL else f"{prefix}.{item.name}"
            _check_range(shown, values[item.name], item.metadata)
    return values


TOP_LEVEL = {"board", "ships", "shots", "aim", "encoding"}
"""Keys of a game that are written without their group."""


def _type(schema: type, name: str) -> str:
    kind = {item.name: str(item.type) for item in fields(schema)}.get(name, "")
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
    words["list[int]"] = "a list of whole numbers, as in [4,2]"
    return " or ".join(words.get(part.strip(), part.strip()) for part in kind.split("|")).replace(
        "None", "null"
    )


def _check_range(name: str, value: Any, metadata: Any) -> None:
    if value is None or not metadata:
        return
    if isinstance(value, list):
        for item in value:
            _check_range(name, item, metadata)
        return
    choices, low, high = metadata["of"], metadata["low"], metadata["high"]
    if choices and value not in choices:
        raise ConfigError(f"{name}={value} is not a choice", nearest(str(value), list(choices)))
    if isinstance(value, int | float) and not low <= value <= high:
        least = "more than 0" if low == POSITIVE else f"at least {low:g}"
        most = f"at most {high if isinstance(high, int) else format(high, 'g')}"
        raise ConfigError(f"{name}={value} is out of range", f"it should be {least} and {most}")


def build_game(config: DictConfig) -> Game[Any]:
    """Raises ConfigError where the rules cannot be."""
    from rlgames.games.battleship import Battleship

    node = config.game
    rows = 1 if node.name == "battleship" else node.board
    try:
        return Battleship(
            rows, node.board, list(node.ships), node.shots, node.aim, node.encoding, node.name
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_sampling(config: DictConfig) -> Sampling:
    from rlgames import sampling

    kinds = {
        "stochastic": sampling.Stochastic,
        "epsilon_greedy": sampling.EpsilonGreedy,
        "argmax": sampling.Argmax,
    }
    rule: Sampling = kinds[config.sampling.name](**_arguments(config.sampling))
    return rule


def build_reward(config: DictConfig) -> Reward:
    from rlgames.rewards import Reward

    return Reward(**_arguments(config.reward))


def build_policy(config: DictConfig, game: Game[Any], rng: torch.Generator) -> Policy:
    from rlgames.policies.conv import Conv
    from rlgames.policies.mlp import Mlp

    kinds = {"mlp": Mlp, "conv": Conv}
    value = config.learner.baseline == "value"
    policy: Policy = kinds[config.policy.name](
        game.spec, value=value, rng=rng, **_arguments(config.policy)
    )
    return policy


def build_learner(
    config: DictConfig, game: Game[Any], policy: Policy, sampling: Sampling, rng: torch.Generator
) -> Reinforce:
    from rlgames.learners.reinforce import Reinforce

    return Reinforce(
        game,
        policy,
        sampling,
        build_reward(config),
        rng,
        lr=config.lr,
        **_arguments(config.learner),
    )


def build_device(config: DictConfig) -> torch.device:
    """Set the number of threads too. Raises ConfigError for a device that is not there."""
    import torch

    torch.set_num_threads(config.threads)
    try:
        device = torch.device(config.device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = "cuda" if torch.cuda.is_available() else "cpu"
        raise ConfigError(f"device={config.device} is not here", f"use device={have}") from None
    return device


def check_memory(batch: int, game: Game[Any]) -> None:
    """Raises ConfigError where the moves of one batch cannot fit in the memory that is free.

    Counted for each move: its position, its observation twice (as played, as learnt from), and
    for each action a mask and four floats (scores, log-probabilities and their gradients).
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = (
            next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
        )
    except (OSError, StopIteration):
        return
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    a_move = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    a_game = a_move * spec.longest
    if batch * a_game > free:
        raise ConfigError(
            f"batch={batch} may need {batch * a_game / 2**30:.1f} GiB for its moves, and "
            f"{free / 2**30:.1f} GiB are free",
            f"batch={max(1, free // a_game)} fits",
        )


def stream(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator of its own for each use of chance: the same seed and name, the same numbers."""
    import numpy as np
    import torch

    words = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]) << 32 | int(words[1]))


def _arguments(node: DictConfig) -> dict[str, Any]:
    values = OmegaConf.to_container(node)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items() if name != "name"}


def plain(config: DictConfig) -> dict[str, Any]:
    """A config as plain dicts, lists and values."""
    values = OmegaConf.to_container(config)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def from_plain(values: dict[str, Any]) -> DictConfig:
    """The inverse of plain, checked again: a checkpoint's config is text from a stranger."""
    raw = OmegaConf.create()
    for name, value in values.items():
        if "${" in json_text(value):
            raise ConfigError(f"the checkpoint's {name} holds an interpolation; that is refused")
        raw[name] = value
    return check("train", raw)


def json_text(value: Any) -> str:
    import json

    return json.dumps(value)


def to_yaml(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config)


def stop(error: ConfigError, as_json: bool) -> int:
    """Say what was wrong in one line; the exit code for bad input."""
    if as_json:
        print(json_text({"error": error.error, "hint": error.hint}))
    else:
        print(
            f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else ""), file=sys.stderr
        )
    return 2
