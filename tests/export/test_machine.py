"""Players of exported pages in Node against the same players in Python, position by position."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from markers import quick, slow

import rlgames.export.machine
from rlgames.build.players import with_search
from rlgames.build.policies import new_policy
from rlgames.commands.match import with_run
from rlgames.config.commands import ShowConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.export.machine import build_machine
from rlgames.export.players import rounded
from rlgames.games.fleets.game import FleetState
from rlgames.players.player import Agent
from rlgames.policies.ntuple import Ntuple
from rlgames.rng import Rng
from rlgames.sampling import Argmax
from rlgames.search.search import Search

SCRIPTS = Path(rlgames.export.machine.__file__).parent

RANDOM_OPENING, RANDOM_MOVES = 7, 0.1
"""Games begin with up to so many random moves, and this share of later ones is random, so that
they differ."""

MCTS = ("search=mcts", "search.leaf=value")

SEARCHES = {
    "connect4": ("search=alphabeta",),
    "connect4 by simulations": (*MCTS, "search.simulations=100", "search.temperature=0.15"),
    "gomoku": ("search=alphabeta", "search.plies=3"),
    "hex": MCTS,
    "othello": ("search=alphabeta", "search.plies=3"),
    "breakthrough": ("search=alphabeta",),
    "2048": ("search=expectimax", "search.tile_downgrading=256"),
}
"""By the name of the agent: what a person types."""

POLICIES = {
    "logits": ("game=tictactoe", "policy=mlp", "learner=ppo"),
    "action values": ("game=tictactoe", "policy=mlp", "learner=dqn"),
    "values after moves": ("game=hex", "game.board=3", "policy=mlp", "learner=td_lambda"),
    "values of tiles": ("game=2048", "game.board=3", "policy=mlp", "learner=td_lambda"),
    "contents of lines": ("game=tictactoe", "policy=embedding", "policy.line_length=3"),
    "a table": ("game=tictactoe", "policy=table", "learner=td"),
    "n-tuples": ("game=gomoku", "game.board=7", "policy=ntuple", "learner=td_ntuple"),
}
"""By what they are: trainings, of whose policies the first weights are compared."""

AGENTS = dict.fromkeys(name.split()[0] for name in SEARCHES)
GAMES = dict.fromkeys(["tictactoe", *AGENTS, "battleship", "salvo"], 1000)
"""By the name of the agent: games in which each of its moves is compared."""

FEW_GAMES = ("tictactoe", 50)

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


@dataclass
class Opened:
    game: Any
    player: Any


def opened(name, *words):
    words = ["sampling=argmax", *words]
    cfg, run = with_run(load_config(ShowConfig, [name.split()[0], *words]))
    agent = run.agent(cfg.sampling, torch.device("cpu"))
    round_tables(agent.policy)
    return Opened(agent.game, with_search(agent, agent.game, cfg.search, run.config.reward))


def round_tables(policy):
    """Give n-tuples the numbers that a page has."""
    if isinstance(policy, Ntuple):
        policy.values.copy_(torch.from_numpy(rounded(policy.values.numpy())))


@torch.no_grad()
def opinions(player, state):
    """The actions of a player, int64 [B], and its probabilities or values, [B, A]; None if it does
    not tell."""
    rng = Rng(1)
    if isinstance(player, Search):
        found = player.search(state, rng)
        return found.action, found.policy
    if not isinstance(player, Agent):
        return player.choose(state, rng), None
    scores, _ = player.policy.scores(player.game, state)
    if player.policy.scores_are_logits:
        legal = player.game.legal_action_mask(state)
        scores = scores.masked_fill(~legal, -torch.inf).softmax(1)
    return player.choose(state, rng), scores


def words_of(state):
    """Int64 [B, W]: positions as kernels take them."""
    if not isinstance(state, FleetState):
        return state.words
    bits = 1 << torch.arange(state.ships.shape[1])
    return torch.stack([((state.ships > 0) * bits).sum(1), (state.shot * bits).sum(1)], 1)


def cells_of(game, state):
    """Int64 [B, N]: the values of cells, as kernels write them."""
    if isinstance(state, FleetState):
        return state.shot.int() * (2 - (state.ships > 0).int())
    return game.relative_cells(state).flatten(1)


def recorded(table, games, max_plies):
    """What the rules and the player say in every position of some games."""
    game, plies, rng = table.game, [], Rng(1)
    state = game.initial(games, rng)
    opening = rng.fold_in(0).uniform(games) * RANDOM_OPENING
    while not bool(state.done.all()) and int(state.turn.max()) < max_plies:
        live = ~state.done
        state, opening = state[live], opening[live]
        action, scores = opinions(table.player, game.public(state))
        ply = rng.fold_in(1 + int(state.turn.max()))
        u = ply.fold_in(1).uniform(len(state), 2)
        is_random = (state.turn < opening) | (u[:, 0] < RANDOM_MOVES)
        random = game.sample_legal_action(state, u[:, 1])
        played = torch.where(is_random, random, action)
        after = game.apply_action(state, played)
        columns = {
            "seat": state.current_seat,
            "legal": game.legal_action_mask(state).int(),
            "cells": cells_of(game, state),
            "action": action,
            "scores": torch.zeros(len(state), 0) if scores is None else scores,
            "played": played,
            "over": after.done.int(),
        }
        lists = {name: column.tolist() for name, column in columns.items()}
        lists |= {
            name: [[*map(str, words)] for words in words_of(each).tolist()]
            for name, each in (("words", state), ("after", after))
        }
        plies += [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        state = game.step(state, played, ply)
    return plies


def replayed(table, plies, folder):
    """How often the machine of a player differs in Node, by what."""
    machine = build_machine(table.game, table.player)
    (folder / "code.wasm").write_bytes(machine.code)
    (folder / "data").write_bytes(machine.data)
    question = "search" if machine.has_search else "policy"
    plies = [{"question": question, "rng": "1"} | ply for ply in plies]
    about = {"layout": machine.layout, "plies": plies}
    (folder / "plies.json").write_text(json.dumps(about).replace("-Infinity", "-1e999"))
    command = ["node", Path(__file__).parent / "replay.js", SCRIPTS / "machine.js", folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def check_agreement(table, games, folder, max_plies=100):
    plies = recorded(table, games, max_plies)
    found = replayed(table, plies, folder)
    print(f"{len(plies)} positions: {found}")
    assert found["rules"] == 0
    assert found["actions"] == 0
    # The processor rounds a product and a sum once, WebAssembly twice: equal moves may swap places,
    # and simulations may go another way.
    assert found["ties"] <= len(plies) // 50
    assert found["scores"] <= len(plies) // 500


@needs_node
@pytest.mark.parametrize(("name", "games"), [FEW_GAMES, *map(slow, GAMES.items())])
def test_a_page_plays_as_python_does(name, games, tmp_path):
    check_agreement(opened(name), games, tmp_path)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_a_page_searches_as_python_does(name, tmp_path):
    check_agreement(opened(name, *SEARCHES[name]), 50, tmp_path)


@needs_node
@pytest.mark.parametrize("name", quick(POLICIES, "a table"))
def test_each_kind_of_policy_plays_on_a_page(name, tmp_path):
    cfg = load_config(TrainConfig, [*POLICIES[name]])
    game = make("game", cfg.game)
    policy = new_policy(cfg, game, torch.Generator().manual_seed(3)).eval()
    round_tables(policy)
    check_agreement(Opened(game, Agent(game, policy, Argmax("first"))), 20, tmp_path)
