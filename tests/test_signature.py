"""The signature of behavior: one number for what rules, n-tuple learning and search do.

Moves are chosen and results compared as integers, so the number is the same on every processor. If
you change behavior on purpose, run this file, which prints the number, put it here, and say so in
the changelog.
"""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import torch
from helpers import learn, make_agent, make_small_game, rng

from rlgames.config.conf import option_names
from rlgames.config.typed import make_option
from rlgames.games.capabilities import Chance, find
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.search.mcts import Mcts

SIGNATURE = 0xB2491540

LEARNER = [
    *("experiment=null", "game=2048", "board=3", "reward=score", "policy=ntuple"),
    *("sampling=argmax", "learner=td_ntuple", "learner.step_size=constant", "learner.td_lambda=0"),
    *("policy.tuples=[[0,1,2],[3,4,5],[0,1,3,4],[1,2,4,5]]", "policy.num_cell_values=9"),
    *("reward.scale=1", "reward.discount=1", "lr=0.5", "solve_seconds=0"),
]
"""Steps of 1/64 of an integer: nothing is rounded in the first moves."""


def number_of(*tensors, start=0):
    """A checksum of the values of tensors of integers, in the order of their rows."""
    for tensor in tensors:
        start = zlib.crc32(tensor.long().contiguous().numpy().tobytes(), start)
    return start


def of_rules(name, games=8):
    """Games whose moves and chance are a function of the ply and the number of the game."""
    game, number, ply = make_small_game(name), 0, 0
    state, chance = game.initial(games, rng()), find(game, Chance)
    while not bool(state.done.all()):
        mix = (torch.arange(games) * 40503 + ply * 2654435761) >> 4
        legal = game.legal_action_mask(state)
        nth = mix % legal.sum(1) + 1
        action = ((legal.cumsum(1) == nth[:, None]) & legal).int().argmax(1)
        state = game.apply_action(state, action)
        if chance is not None:
            columns = torch.arange(game.spec.num_chance_inputs) * 7919
            state = chance.apply_chance(state, ((mix[:, None] + columns) % 64 + 0.5) / 64)
        number = number_of(legal, state.current_seat, state.turn, 2 * state.score, start=number)
        ply += 1
    return number


def of_learning():
    """The games that a learner plays while it learns, and its values in eighths."""
    game, player, learner = make_agent(*LEARNER)
    pool = GamePool(game, [player], UNLIMITED_GAMES, rng(), batch=4)
    final, _ = learn(learner, pool, 100)
    values = (player.policy.values * 8).round()
    return number_of(final.state.words, final.turns, final.score, values)


def of_search():
    """The visits of searches with random games from each new position."""
    number = 0
    for game in (KInARow(3, 3, 3, gravity=False), KInARow(6, 7, 4, gravity=True)):
        state = game.initial(4, rng())
        for ply in range(4):
            search = Mcts(game, Random(game), make_option("search", "mcts", simulations=60))
            visits = search.search(state, rng(ply)).visits
            number = number_of(visits, start=number)
            state = game.apply_action(state, visits.argmax(1))
    return number


def signature():
    parts = {name: of_rules(name) for name in option_names("game")}
    parts |= {"learning": of_learning(), "search": of_search()}
    return zlib.crc32(repr(sorted(parts.items())).encode()), parts


def test_behavior_is_as_signed():
    number, parts = signature()
    assert number == SIGNATURE, f"the signature is {number:#010x}; its parts: {parts}"
    changelog = (Path(__file__).parents[1] / "docs/changelog.md").read_text(encoding="utf-8")
    assert f"0x{number:08X}" in changelog


@pytest.mark.slow
def test_other_instructions_give_the_same_signature(tmp_path):
    """A processor without wide vectors and fused operations, whose kernels are compiled anew."""
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "ATEN_CPU_CAPABILITY": "default",
    }
    paths = [Path(__file__).parent, Path(__file__).parents[1] / "scripts/checks"]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | plain | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[0] == f"{SIGNATURE:#010x}"


if __name__ == "__main__":
    print(f"{signature()[0]:#010x}", signature()[1])
