"""What many tests build: random generators, small games, policies with their learners, text."""

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console, RenderableType

from rlgames.build.policies import make_reward, new_policy
from rlgames.commands.resume import load_resumable
from rlgames.config.commands import (
    COMMAND_SCHEMAS,
    SolveConfig,
    TrainConfig,
    load_command,
)
from rlgames.config.compose import load_config
from rlgames.config.registry import load_option, make
from rlgames.config.schema import arguments
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.core.text import printable
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.mlp import Mlp
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates
from rlgames.sampling import Argmax, Sampling
from rlgames.training.parts import Training, build_learner
from rlgames.training.sources import NextGames
from rlgames.training.train import resume

SMALL_RULES = {
    "battleship": ["board=6", "ships=[2]"],
    "salvo": ["board=3", "ships=[2,2]"],
    "salvo_duel": ["board=3", "ships=[2]"],
    "connect4": ["rows=4", "columns=4", "line=3"],
    "gomoku": ["board=8", "line=3"],
    "othello": ["board=4"],
    "hex": ["board=3"],
    "breakthrough": ["rows=4", "columns=3", "home_rows=1"],
    "2048": ["board=2"],
}


def rng(seed: int = 0) -> Rng:
    return Rng(seed)


def generator(seed: int = 0) -> torch.Generator:
    """Of torch, for numbers that have no place in a game."""
    return torch.Generator().manual_seed(seed)


def untrained(
    game: Game[Any], seed: int = 0, value: bool = False, sampling: Sampling | None = None
) -> Agent:
    """An agent whose network learned nothing, with large outputs, value head and all if wanted."""
    net = Mlp(
        game,
        [16],
        "tanh",
        "orthogonal",
        bias=True,
        value=value,
        generator=generator(seed),
        skip=False,
    )
    for number, head in enumerate([net.logits, *([net.value] if value else [])], 1):
        torch.nn.init.normal_(head.weight, generator=generator(seed + number))
    return Agent(game, net, sampling or Argmax("first"))


def some_states(game: Game[Any], count: int = 12) -> Any:
    """Public positions after 0, 1, 2, ... random plies, some of them over."""
    state, found = game.initial(count, rng(5)), []
    for ply in range(count):
        found.append(state[ply : ply + 1])
        state = game.step(state, Random(game).choose(state, rng(ply)), rng(ply))
    return game.public(type(state).cat(found))


def mean_turns(game: Game[Any], player: Player) -> float:
    """The mean number of turns over all layouts."""
    openings = game.openings(10_000)
    assert openings is not None
    state, probability = openings
    while not bool(state.done.all()):
        state = game.apply_action(state, player.choose(game.public(state), rng()))
    return float((state.turn * probability).sum())


class InOrder(Player):
    """Takes the first legal action, or the last one."""

    is_deterministic = True

    def __init__(self, game: Game[Any], is_reversed: bool = False) -> None:
        self.game, self.is_reversed = game, is_reversed

    def choose(self, state: Any, rng: Rng) -> torch.Tensor:
        legal = self.game.legal_action_mask(state).int()
        if self.is_reversed:
            return legal.shape[1] - 1 - legal.flip(1).argmax(1)
        return legal.argmax(1)


def make_game(*overrides: str) -> Any:
    """The game of a config, such as `game=2048 board=3`."""
    return make("game", load_config(SolveConfig, overrides).game)


def make_game_and_rules(*overrides: str) -> tuple[Any, dict[str, Any]]:
    """The same, with the config's rules as records of games store them."""
    rules = load_config(SolveConfig, overrides).game
    return make("game", rules), dataclasses.asdict(rules)


def make_small_game(name: str) -> Any:
    return make_game(f"game={name}", *SMALL_RULES.get(name, []))


def made(group: str, name: str, *parts: Any, **keys: Any) -> Any:
    """What an option makes of these parts, with the values of its file and these."""
    option = dataclasses.replace(make_option(group, name), **keys)
    return load_option(group, name)(*parts, **arguments(option))


def game_2048(board: int, columns: int, **keys: Any) -> Any:
    return made("game", "2048", board=board, columns=columns, **keys)


def ntuple(
    game: Game[Any],
    tuples: list[list[int]] | None,
    num_cell_values: int = 16,
    score_scale: float = 0.0,
    **keys: Any,
) -> Any:
    """An untrained n-tuple network."""
    from rlgames.policies.ntuple import Ntuple

    defaults = {"num_tuples": None, "line_length": None, "per_seat": True, "stages": 1}
    words = {"tuples": tuples, "num_cell_values": num_cell_values, "init_value": 0.0}
    return Ntuple(game, score_scale, **(words | defaults | keys))


def make_policy(cfg: TrainConfig, game: Game[Any], seed: int = 3) -> Any:
    """The policy of a training config, for this game; seed: of its weights."""
    return new_policy(cfg, game, generator(seed))


def learner_of(cfg: TrainConfig, game: Game[Any], policy: Any, seed: int = 0) -> Learner:
    """The learner of a training config, for this game and policy."""
    sampling = make("sampling", cfg.sampling)
    reward = make_reward(cfg.reward, game)
    context = LearnerContext(game, policy, sampling, reward, generator(seed))
    return build_learner(cfg.learner, context, cfg.lr)


def make_learner(
    game: Game[Any], *overrides: str, seeds: tuple[int, int] = (3, 4)
) -> tuple[Any, Any]:
    """The policy and the learner of a training config, for this game.

    seeds: of the policy's weights and of the learner.
    """
    agent, learner = agent_and_learner(load_config(TrainConfig, overrides), game, seeds)
    return agent.policy, learner


def make_agent(*overrides: str, seeds: tuple[int, int] = (3, 4)) -> tuple[Any, Any, Any]:
    """The game of a training config, its agent and its learner."""
    cfg = load_config(TrainConfig, overrides)
    game = make("game", cfg.game)
    return game, *agent_and_learner(cfg, game, seeds)


def agent_and_learner(
    cfg: TrainConfig, game: Game[Any], seeds: tuple[int, int] = (3, 4)
) -> tuple[Agent, Learner]:
    """The agent and the learner of a training config, for this game; seeds: as of make_learner."""
    policy, sampling = make_policy(cfg, game, seeds[0]), make("sampling", cfg.sampling)
    learner = learner_of(cfg, game, policy, seeds[1])
    records = learner.needs_log_prob
    return Agent(game, policy, sampling, records_log_prob=records), learner


def learn(
    learner: Learner, pool: GamePool, plies: int | None
) -> tuple[FinalStates, dict[str, float]]:
    """Have a learner play and learn from the games of a pool, at the start of a training."""
    games: Any = SimpleNamespace(pool=lambda: pool, plies=plies)
    return learner.learn(games, 0.0)


def interrupt_after(patch: pytest.MonkeyPatch, batches: int) -> None:
    """Interrupt a training when one batch more than these was played, or before its learner plays
    it."""
    count, play, pool = 0, NextGames.play, NextGames.pool

    def interrupted(next_one: Any) -> Any:
        nonlocal count
        batch = play(next_one)
        count += 1
        if count > batches:
            raise Interrupted(15)
        return batch

    def interrupted_pool(next_one: Any) -> Any:
        nonlocal count
        count += 1
        if count > batches:
            raise Interrupted(15)
        return pool(next_one)

    patch.setattr(NextGames, "play", interrupted)
    patch.setattr(NextGames, "pool", interrupted_pool)


def next_games(training: Training, games_played: int) -> NextGames:
    """The games of the update after this many others."""
    cfg = training.cfg
    fraction, nothing = games_played / cfg.games, contextlib.nullcontext()
    return NextGames(training.source, cfg.batch, games_played, fraction, nothing, lambda: None)


def command(name: str, run: Any = None, words: Sequence[str] = ()) -> Any:
    """What the function of a command returns; run: a run or names, None for none."""
    named = run if isinstance(run, list) else [] if run is None else [str(run)]
    return load_command(name).run(load_config(COMMAND_SCHEMAS[name], [*named, *words]))


def write_report(run: Path, name: str, result: dict[str, Any], **fields: Any) -> None:
    """Write a report of a run by its file."""
    (run / "reports").mkdir(parents=True, exist_ok=True)
    report = {"command": "train", "config": {}, "checkpoints": {}, "date": "2026-11-20"}
    (run / f"reports/{name}.json").write_text(json.dumps(report | {"result": result} | fields))


def read_result(run: Path, name: str = "train_best") -> Any:
    """The result of a report of a run."""
    return json.loads((run / f"reports/{name}.json").read_text())["result"]


def resumable(directory: Path, *words: str) -> Any:
    """The config, the checkpoint and the lock of a run that `rlgames resume` resumes with these
    words."""
    return load_resumable(directory, load_config(COMMAND_SCHEMAS["resume"], words))


def resume_run(directory: Path, *words: str) -> Any:
    """The result of `rlgames resume` with these words."""
    return resume(directory, *resumable(directory, *words))


SMALL_TRAINING = [
    *("game=tictactoe", "policy=mlp", "games=20", "batch=10", "eval_games=4", "policy.layers=[8]"),
]
"""A training that is done in about a second."""

SMALL_SALVO = [
    *("experiment=null", "game=salvo", "board=3", "ships=[2]", "shots=1", "policy.layers=[8]"),
    "batch=20",
]
"""A training on a small board, whose games and intervals a test chooses."""


def check_refused(done: Any, *hints: str) -> str:
    """A command was refused in one line, which has these hints and is returned; nothing else was
    printed."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for hint in hints:
        assert hint in done.stderr
    return str(done.stderr)


def check_uncompiled(code: str) -> str:
    """Code prints the same here and in a process where kernels are plain Python; what it prints."""
    here = io.StringIO()
    with redirect_stdout(here):
        exec(code, {})
    process = plain_python()
    process.stdin.write(json.dumps(code) + "\n")
    process.stdin.flush()
    printed, error = json.loads(process.stdout.readline())
    assert not error, error
    assert printed == here.getvalue() != ""
    return str(printed)


TESTS = Path(__file__).parent
PLAIN_PYTHON = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    printed, error = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(json.loads(line), {})
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""


@cache
def plain_python() -> Any:
    """A process where kernels are plain Python: it runs a line of code and prints what that prints.

    There is one, because to import torch takes longer than what most tests do in it.
    """
    places = ("", "kernels")
    folders = (TESTS.parent, *(TESTS / place for place in places))
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PLAIN_PYTHON],  # numpy warns of wrapped numbers
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": ":".join(map(str, folders))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


MAX_MESSAGE_LENGTH = 1000


def check_message(error: ConfigError) -> None:
    """An error and its hint are one line of bounded length, whatever was typed."""
    line = printable(f"{error.error}; {error.hint}")
    assert "\n" not in error.error + error.hint, line
    assert len(line) <= MAX_MESSAGE_LENGTH, line


def rendered(
    renderable: RenderableType, width: int = 80, encoding: str = "utf-8", **settings: Any
) -> str:
    """What a terminal of this width and encoding receives."""
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=file, width=width, force_terminal=True, **settings)
    console.print(renderable)
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(encoding)
