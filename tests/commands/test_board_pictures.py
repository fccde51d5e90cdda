"""`show picture=` and `watch picture=`: what the files hold, and what is refused."""

import itertools
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from helpers import check_refused
from PIL import Image

TICTACTOE = ["player=random", "game=tictactoe"]
POSITION = ["show", *TICTACTOE, "state=. X . / . O . / . . .", "solve_seconds=0"]
GAME = ["watch", "player=random", "game=salvo", "board=3", "ships=[2]", "shots=1", "seed=3"]
SVG = "{http://www.w3.org/2000/svg}"


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


def test_a_position_as_svg_has_coordinates_probabilities_and_a_legend(typed, tmp_path):
    done = typed(*POSITION, "picture=a board.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("picture: a board.svg\n")
    root = ElementTree.parse(tmp_path / "a board.svg").getroot()
    shown = texts(root)
    assert {"A", "B", "C", "1", "2", "3", "X", "O"} <= {*shown}
    assert shown.count("14") == 7  # percent, on each of the empty cells
    assert {"seat 1", "seat 2", "probability, %"} <= {*shown}


def test_a_position_as_png(typed, tmp_path):
    assert typed(*POSITION, "picture=board.png", "format=json").returncode == 0
    with Image.open(tmp_path / "board.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 200


def test_a_game_as_gif_has_a_frame_for_each_move_and_its_end(typed, tmp_path):
    frames = typed(*GAME).stdout.count("\n\n")
    done = typed(*GAME, "picture=game.gif", "delay=0.3")
    assert done.stdout == "picture: game.gif\n"
    film: Any
    with Image.open(tmp_path / "game.gif") as film:
        assert film.n_frames == frames
        assert film.info["duration"] == 300
        film.seek(film.n_frames - 1)
        assert film.info["duration"] == 2500


def test_a_game_as_svg_shows_one_frame_at_a_time(typed, tmp_path):
    frames = typed(*GAME).stdout.count("\n\n")
    assert typed(*GAME, "picture=game.svg").returncode == 0
    root = ElementTree.parse(tmp_path / "game.svg").getroot()
    groups = root.findall(f"{SVG}g")
    assert len(groups) == frames
    assert [group.get("display") for group in groups] == ["none"] * (frames - 1) + ["inline"]
    begins = [group.find(f"{SVG}animate").get("keyTimes").split(";") for group in groups]
    assert all(one[2] == other[1] for one, other in itertools.pairwise(begins))
    assert any("turn 1: " in (text or "") for text in texts(groups[0]))
    assert "move" in texts(groups[0])  # the frame around the cell is explained


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([*POSITION, "picture=x.gif"], ".svg or .png"),
        ([*GAME, "picture=x.mp4"], "it should end in .gif or .svg"),
        ([*GAME, "picture=x.gif", "delay=0"], "use delay=0.5"),
        ([*GAME, "picture=/dev/null/x.gif"], "its folder is a file"),
    ],
)
def test_other_pictures_are_refused_in_one_line(words, hint, typed):
    check_refused(typed(*words), hint)
