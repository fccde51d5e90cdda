"""The command: what it refuses before it writes, and what its page knows of a game."""

import json

import pytest
import torch
from markers import quick
from test_machine import GAMES, MCTS, opened

from rlgames.commands import export
from rlgames.config.commands import ExportConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.export import machine, wasm
from rlgames.export.image import Image
from rlgames.export.machine import build_machine
from rlgames.export.page import _rules
from rlgames.games.notation import cells_to_choose, legal_names
from rlgames.rng import Rng


def exported(folder, *words):
    return export.run(load_config(ExportConfig, [*words, f"out={folder / 'page.html'}"]))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["salvo", "search=rollout"], "cannot search with Rollouts"),
        (["salvo_duel"], "the rules of salvo_duel are not compiled"),
        (["tictactoe", *MCTS], "only torch searches with these values"),
        (["hex", "search=mcts", "search.leaf=rollout"], "only torch computes rollouts"),
        (["hex", *MCTS, "search.rule=gumbel"], "only torch adds noise"),
        (["connect4", "search=alphabeta", "search.solve_positions=100"], "ExactEndgame"),
        (["hex", "sampling=stochastic"], "makes its best move"),
        (["2048", "seat=2"], "one-player game"),
        (["2048", "moves=up"], "has chance"),
        (["tictactoe", "moves=B2 B2"], "'B2' is not a legal move"),
        (["tictactoe", "moves=A1 A2 B1 B2 C1 C2"], "the game is over before C2"),
        ([], "export needs a run"),
    ],
)
def test_what_no_page_can_do_is_said_before_a_page_is_written(words, reason, tmp_path):
    with pytest.raises(ConfigError, match=reason):
        exported(tmp_path, *words)
    assert not [*tmp_path.iterdir()]


def test_what_is_too_large_for_a_page_is_said_with_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "MAX_SIZE", 1 << 20)
    with pytest.raises(ConfigError, match="the player needs 2 MiB of numbers, and a page holds 1"):
        exported(tmp_path, "connect4")


def test_an_unknown_version_of_numba_is_named(tmp_path, monkeypatch):
    """The code has a structure that WebAssembly would lay out in another way."""
    rewrites = (*wasm.REWRITES, (r"ret i64 %", "store { ptr, i64 } undef, ptr null\n  ret i64 %"))
    monkeypatch.setattr(wasm, "REWRITES", rewrites)
    monkeypatch.setattr(machine, "kept_on_disk", lambda kernel, modules, key, make: make())
    with pytest.raises(ConfigError, match=r"numba [\d.]+ and llvmlite [\d.]+ do not compile"):
        exported(tmp_path, "tictactoe")


def test_code_is_compiled_once_for_all_weights_of_a_policy(monkeypatch):
    table = opened("tictactoe")
    code = build_machine(table.game, table.player).code
    monkeypatch.setattr(machine, "_compile", lambda *_: pytest.fail("it is compiled again"))
    table.player.policy.values[:7] += 1
    assert build_machine(table.game, table.player).code == code


def test_pages_of_an_agent_are_equal(tmp_path):
    pages = []
    for words in (["tictactoe"], ["tictactoe", "search=null"]):
        path = exported(tmp_path, *words).path
        with open(path, encoding="utf-8") as file:
            pages.append(file.read())
    assert pages[0] == pages[1]


def test_a_report_as_json(tmp_path):
    found = json.loads(json.dumps(exported(tmp_path, "tictactoe", "seat=2").as_dict()))
    assert found["path"] == str(tmp_path / "page.html")
    assert found["size"] == (tmp_path / "page.html").stat().st_size
    assert 0 < found["code"] < found["size"]


def test_arrays_that_kernels_share_are_stored_once():
    array, zeros = torch.arange(1, 6).numpy(), torch.zeros(100).numpy()
    image = Image((array, zeros), array)
    assert (image.offset(array), image.offset(zeros)) == (0, 64)
    assert len(image.data) == 64 + 448


FIXED = [name for name in GAMES if name != "connect4"]
"""The games whose moves have the same cells in each position; in Connect 4 stones fall."""


@pytest.mark.parametrize("name", quick(FIXED, "tictactoe", "breakthrough"))
def test_a_page_names_moves_and_their_cells_as_the_game_does(name):
    game, rng = opened(name).game, Rng(2)
    rules, state = _rules(game), game.initial(20, rng)
    while not bool(state.done.all()) and int(state.turn.max()) < 60:
        state = state[~state.done]
        for row in range(min(2, len(state))):
            seat, one = int(state.current_seat[row]), state[row : row + 1]
            marks = [mark for line in game.boards(one, 0)[0] for mark in line]
            cells = cells_to_choose(game, one, 0)
            for action, expected in legal_names(game, one, 0).items():
                taken = rules["cells"][seat][action]
                if game.spec.hidden:  # the page leaves out what was shot at, also in the name
                    taken = [cell for cell in taken if marks[cell] == "."]
                    assert " ".join(map(game.board_format.cell_name, taken)) == expected
                else:
                    captures = bool(taken) and marks[taken[-1]] != "."
                    assert rules["names"][captures][seat][action] == expected
                assert taken == cells[action]
        ply = rng.fold_in(int(state.turn.max()))
        action = game.sample_legal_action(state, ply.uniform(len(state)))
        state = game.step(state, action, ply)
