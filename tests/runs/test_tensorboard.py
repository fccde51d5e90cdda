"""Games as pictures: every game has them, and they show what the policy thinks."""

import io
import json
import time
from typing import Any

import numpy as np
import pytest
import torch
from helpers import make_game, rng
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

import rlgames as package
from rlgames.config.registry import REGISTRY
from rlgames.drawing import pictures
from rlgames.drawing.images import MAX_GIF_BYTES, draw_scene, encode_gif
from rlgames.drawing.scene import Cell, Label
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.policies.policy import Policy
from rlgames.rollouts.play import collect_games
from rlgames.runs.loggers import RunStart, TensorBoardLogger
from rlgames.training import image_callback
from rlgames.training import pictures as images

GAMES = {
    "battleship": ["board=6", "ships=[2]"],
    "salvo": ["board=3", "ships=[2]", "shots=2"],
    "salvo_duel": ["board=3", "ships=[2]"],
    "tictactoe": [],
    "connect4": [],
    "gomoku": ["board=4", "line=3"],
    "othello": ["board=4"],
    "hex": ["board=3"],
    "breakthrough": ["rows=4", "columns=3", "home_rows=1"],
    "2048": ["board=3"],
}


@pytest.mark.parametrize("seconds", [0, 1, -3600, 3600])
def test_steps_are_shown_once_and_in_order_whatever_the_clock_says(tmp_path, monkeypatch, seconds):
    """Each of three processes is killed 20 games after its checkpoint; until the next one the clock
    goes on or back."""
    now = 1_800_000_000
    (tmp_path / "events.out.tfevents.1.of.another.program").touch()
    for first in (0, 30, 60):
        monkeypatch.setattr(time, "time", lambda now=now: float(now))
        charts = TensorBoardLogger()
        charts.start(RunStart(tmp_path, "1", {}, "", "turns", first - 10 if first else None))
        for games in range(first, first + 50, 10):
            charts.scalars(games, {"train/loss": first, f"train/{first}": games})
        with open(max(tmp_path.glob("*.rlgames")), "ab") as file:
            file.write(b"torn")
        now += seconds
    found = EventAccumulator(str(tmp_path)).Reload()
    shown = [(event.step, event.value) for event in found.Scalars("train/loss")]
    assert shown == [(games, min(games // 30 * 30, 60)) for games in range(0, 110, 10)]
    assert [event.step for event in found.Scalars("train/0")] == [0, 10, 20]
    assert [event.step for event in found.Scalars("train/30")] == [30, 40, 50]


def test_the_greedy_result_is_between_its_references_and_hparams_list_the_settings(tmp_path):
    directory = package.train(["game=battleship", "games=20", f"out={tmp_path}/run"])
    found = EventAccumulator(str(directory)).Reload()
    results = json.loads((directory / "run.json").read_text())["references"]
    steps = {event.step for event in found.Scalars("eval/turns")}
    for name in ("random", "optimal"):
        line = found.Scalars(f"reference/{name}")
        assert {event.step for event in line} == steps
        assert {event.value for event in line} == {np.float32(results[name])}
    assert "custom_scalars__config__" in found.Tags()["tensors"]
    content = found.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert settings["learner"].string_value == "ppo"
    assert settings["lr"].number_value == 0.002


class Plain(KInARow):
    """A game of one's own that says nothing of how it is drawn."""

    def boards(self, state, row, reveal=False):
        return []

    def caption(self, state, row):
        return f"taken so far:\n  {int(state.words[row, 1]):b}"

    def action_to_string(self, state, row, action):
        return f"cell {action}"


class Numbered(Policy):
    """The later the action, the likelier, and the better."""

    has_value = False

    def __init__(self, logits):
        super().__init__()
        self.scores_are_logits = logits

    def scores(self, game, state):
        return torch.arange(game.spec.actions).float().expand(len(state), -1), None


def shown(game, logits=True, players=None):
    players = players or [Random(game)] * game.spec.seats
    moves, results = collect_games(game, players, 1, rng(2))
    return images.draw_game(game, Numbered(logits), moves, results.state), moves


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("name", [*GAMES, "plain"])
def test_every_game_is_shown_move_by_move(name, logits):
    game = Plain(2, 2, 2, False) if name == "plain" else make_game(f"game={name}", *GAMES[name])
    (stills, gif), moves = shown(game, logits)
    assert all(still.mode == "RGB" and 100 < still.width < 500 for still in stills)
    assert len(stills) == min(4, len(moves))
    assert len({still.tobytes() for still in stills}) == len(stills)
    assert len(gif) <= MAX_GIF_BYTES
    film: Any
    with Image.open(io.BytesIO(gif)) as film:
        assert film.format == "GIF"
        assert film.n_frames == min(len(moves) + 1, images.MAX_FRAMES)  # and how it ended


def test_the_options_are_all_tried():
    assert {f"game={name}" for name in GAMES} == {f"game={name}" for name in REGISTRY["game"]}


def color_of(picture, cell):
    """Of the middle of a cell's lower edge, which no mark or number covers."""
    return picture.getpixel((cell.x + cell.size // 2, cell.y + cell.size - cell.size // 6))


@pytest.mark.parametrize("name", ["battleship", "tictactoe", "connect4", "salvo"])
def test_the_likeliest_cell_is_the_darkest(name):
    game = make_game(f"game={name}", *GAMES[name])
    state = game.public(game.initial(1, rng()))
    weights = np.full(game.spec.actions, 0.2 / (game.spec.actions - 1))
    weights[2] = 0.8
    labels = [*map(pictures.format_percent, weights)]
    overlay = pictures.ActionOverlay(weights, labels, True)
    scene = pictures.position_scene(game, state, 0, "", overlay)
    picture: Any = draw_scene(scene)
    cells = [item for item in scene.items if isinstance(item, Cell)]
    blue = {number: color_of(picture, cell)[2] for number, cell in enumerate(cells)}
    darkest = {cell for cell, value in blue.items() if value == min(blue.values())}
    assert darkest == set(game.action_cells(state, 0)[2].nonzero()[:, 0].tolist())
    assert blue[min(darkest)] < 120


@pytest.mark.parametrize("name", GAMES)
def test_boards_have_the_coordinates_that_people_type(name):
    game = make_game(f"game={name}", *GAMES[name])
    scene = pictures.position_scene(game, game.public(game.initial(1, rng())), 0, "")
    form = game.board_format
    texts = [item.text for item in scene.items if isinstance(item, Label)]
    assert {*form.left, *form.above, *form.below} <= {*texts}
    cells = [item for item in scene.items if isinstance(item, Cell)]
    for item in scene.items:
        if isinstance(item, Label) and item.text in form.left:
            row = form.left.index(item.text)
            assert item.y == cells[row * form.columns].y + cells[0].size / 2


def test_arrows_show_the_likeliest_direction():
    game = make_game("game=2048", "board=3")
    state = game.initial(1, rng())
    weights = np.array([0.1, 0.7, 0.1, 0.1])
    overlay = pictures.ActionOverlay(weights, [""] * 4, is_distribution=True)
    picture: Any = draw_scene(pictures.position_scene(game, state, 0, "", overlay))
    right, left = (picture.getpixel((x, picture.height // 2)) for x in (picture.width - 25, 25))
    assert right[2] < left[2] - 30


def test_a_long_game_leaves_frames_out():
    many = [Image.new("RGB", (50, 50), (5 * n, 0, 0)) for n in range(40)]
    film: Any
    with Image.open(io.BytesIO(encode_gif(many, max_bytes=1))) as film:
        assert film.n_frames == 2
    assert images.evenly_spaced(1000, 5) == [0, 250, 500, 749, 999]
    assert images.evenly_spaced(3, 5) == [0, 1, 2]


def test_nothing_hidden_shows_before_the_end():
    """In salvo_duel the other's moves would show their ships."""
    game = make_game("game=salvo_duel", *GAMES["salvo_duel"])
    (_, gif), moves = shown(game, players=[Random(game), Random(game)])
    film: Any
    with Image.open(io.BytesIO(gif)) as film:
        assert film.n_frames == len(moves.by_player(0)) + 1


def test_a_run_shows_games_in_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setattr(image_callback, "NUM_SHOWN", 4)
    words = ["game=salvo", *GAMES["salvo"], "games=40", "batch=10", "policy.layers=[8]"]
    words += ["eval_games=8", "eval_every=10", "solve_seconds=0", f"out={tmp_path}/run"]
    run = package.train(words)
    events = EventAccumulator(str(run), {"images": 0}).Reload()
    steps = [image.step for image in events.Images("game/animation")]
    assert steps == [10, 20, 30, 40]
    film: Any
    with Image.open(io.BytesIO(events.Images("game/animation")[-1].encoded_image_string)) as film:
        assert (film.format, film.is_animated) == ("GIF", True)
    assert "policy:" in str(events.Tensors("config/text_summary")[0].tensor_proto.string_val[0])
    assert (run / "pictures" / "game_animation.gif").exists()
