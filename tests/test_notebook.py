"""rlgames in Python: in a notebook, as data frames, with errors that say what to do."""

import sys

import notebooks
import pytest
import torch
from helpers import SMALL_TRAINING

import rlgames
from rlgames.cli import notebook
from rlgames.core.errors import ConfigError, own_place, to_user_error

SMALL = [*SMALL_TRAINING, "solve_seconds=0"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return rlgames.train([*SMALL, f"out={tmp_path_factory.mktemp('runs')}/run"])


def test_a_string_where_a_list_is_due_is_a_type_error(run):
    for call in (
        lambda: rlgames.train("game=salvo"),
        lambda: rlgames.evaluate(run, "games=10"),
        lambda: rlgames.report(run.parent, "by=run"),
    ):
        with pytest.raises(TypeError, match="pass a list of texts, as in"):
            call()
    with pytest.raises(TypeError, match="overrides contains 5, a int"):
        rlgames.train([5])  # type: ignore[list-item]


def test_an_exception_carries_its_hint():
    with pytest.raises(ConfigError, match="did you mean salvo"):
        rlgames.train(["game=slavo"])
    assert str(ConfigError("wrong", "mend")) == "wrong; mend"
    assert str(ConfigError("wrong")) == "wrong"


def test_a_report_is_a_data_frame_or_a_list(run, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = rlgames.report(run.parent)
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "status"] == "done"
    assert frame.loc[0, "run"] == str(run)
    assert 0 <= frame.loc[0, "points"] <= 1
    monkeypatch.setitem(sys.modules, "pandas", None)
    records = rlgames.report([run], ["by=run"])
    assert records[0]["run"] == str(run)


def test_what_is_printed_of_agents_and_games_is_short(run):
    agent = rlgames.load(run)
    text = "<Agent for <tictactoe: 2 seats, 9 actions>: Mlp with "
    assert repr(agent).startswith(text)
    assert repr(agent).endswith(" parameters, Argmax>")


def test_what_fails_in_code_of_ones_own_is_named_with_file_and_line(tmp_path, monkeypatch, typed):
    (tmp_path / "greedy.py").write_text(
        "from dataclasses import dataclass\n"
        "from rlgames import register\n"
        "from rlgames.players.player import Random\n\n\n"
        "class Greedy(Random):\n"
        "    def choose(self, state, rng):\n"
        "        return state.nothing\n\n\n"
        "@dataclass\n"
        "class GreedyConfig:\n"
        '    """takes what it gets"""\n\n'
        '    name: str = "greedy"\n\n\n'
        'register("player", "greedy", Greedy, GreedyConfig)\n'
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["plugins=[greedy]", "player=greedy", "game=tictactoe", "games=2"]
    try:
        done = typed("eval", *words)
    finally:
        from rlgames.config import registry

        registry.REGISTRY["player"].pop("greedy", None)
        sys.modules.pop("greedy", None)
    assert done.returncode == 3
    assert f"it was raised in {tmp_path}/greedy.py, line 8" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_fails_elsewhere_names_no_file():
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2) @ torch.zeros(3)
    assert own_place(caught.value).startswith(f"{__file__}, line ")
    error = caught.value.with_traceback(None)
    assert own_place(error) == ""
    assert "raised" not in to_user_error(error).hint


class Shell:
    kernel = True


def test_the_progress_of_a_training_in_a_notebook(monkeypatch):
    pages = []

    class Handle:
        def update(self, page):
            pages.append(page)

    class IPython:
        @staticmethod
        def get_ipython():
            return Shell()

    class Display:
        HTML = str

        @staticmethod
        def display(page, display_id):
            pages.append(page)
            return Handle()

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setitem(sys.modules, "IPython.display", Display)
    monkeypatch.setattr(notebook, "UPDATE_SECONDS", 0.0)
    assert notebook.is_notebook()
    progress = notebook.NotebookProgress(100)
    progress.on_references("turns", 8.0, 4.0)
    progress.on_metrics(50, {"eval/turns": 6.0, "time/games_per_s": 10.0})
    progress.on_phase("playing")
    assert "0 of 100 games" in pages[0]
    assert "50 of 100 games" in pages[-1]
    assert "◀ 6" in pages[-1]
    assert pages[-1].startswith("<pre")


def test_the_notebook_holds_the_page():
    assert notebooks.NOTEBOOK.read_text() == notebooks.text(), "run scripts/docs/notebooks.py"
    cells = [cell for cell in notebooks.notebook()["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == notebooks.PAGE.read_text().count("```python") + 1


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    book = nbformat.read(notebooks.NOTEBOOK, 4)
    nbformat.validate(book)
    book.cells = [cell for cell in book.cells if "install" not in cell.metadata.get("tags", [])]
    client(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert (tmp_path / "bonus" / "run.json").exists()


@pytest.mark.slow
def test_a_notebook_shows_the_curve_of_its_training(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    cells = [
        f"import rlgames\nrun = rlgames.train({[*SMALL, 'out=run']!r})",
        "rlgames.report(run)",
        "rlgames.load(run)",
        "rlgames.train('game=salvo')",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    settings = {"metadata": {"path": str(tmp_path)}}
    client(book, timeout=300, allow_errors=True, resources=settings).execute()
    first, second, third, fourth = (cell.outputs for cell in book.cells)
    page = first[-1]["data"]["text/html"]
    assert "20 of 20 games" in page
    assert "points of the greedy policy" in page
    assert len(first) == 1  # updated in place
    assert "points" in second[0]["data"]["text/html"]
    assert third[0]["data"]["text/plain"].startswith("<Agent for <tictactoe")
    assert fourth[0]["ename"] == "TypeError"
