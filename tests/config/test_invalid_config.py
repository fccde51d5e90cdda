"""Configs that cannot be: refused in one line, before anything starts; odd paths work."""

from functools import partial

import pytest
import torch
from helpers import SMALL_TRAINING, check_refused, make_learner, make_policy
from markers import one_in

from rlgames.commands import app
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import load_option, make
from rlgames.config.schema import arguments
from rlgames.core import memory
from rlgames.core.memory import count_parameters
from rlgames.games.k_in_a_row import KInARow

REFUSED = [
    ("policy.layer=[2]", "did you mean policy.layers?"),
    ("learner.num_minibatches=0", "valid: 1 to 100,000"),
    ("learner.num_minibatches=1.5", "a whole number"),
    ("batch=1.5e0", "a whole number"),
    ("lr=abc", "lr=abc is not a number"),
    ("aim=joind", "did you mean joint?"),
    ("game=battleship board=3 ships=[4]", "the longest that does is 3"),
    ("game=battleship ships=3", "as in [4,2]"),
    ("game=battleship board=10 ships=[5,4,3,3,2]", "use game=salvo shots=1 board=10 ships=[5,4,3"),
    ("game=salvo board=3 ships=[3,3,3,1]", "the board has 9"),
    ("game=salvo board=3 ships=[3,3,1,2] shots=10", "more than the board's 9"),
    ("ships=[]", "ship"),
    ("board=10 ships=[2] shots=5 aim=joint", "sequential"),
    ("game=salvo_duel ships=[6]", "5"),
    ("game=2048 board=1 columns=1", "use board=2"),
    ("game=2048 target=100", "target"),
    ("game=2048 shots=2", "shots"),
    ("game=connect4 line=8", "the longest that does is 7"),
    ("game=connect4 rows=9", "bits"),
    ("game=tictactoe board=8", "board"),
    ("game=2048 reward=outcome", "reward=score"),
    ("game=tictactoe reward=hits", "reward=outcome"),
    ("game=tictactoe reward=turns", "tictactoe is won or lost"),
    ("game=tictactoe reward=hickman reward.draws=[1]", "draws"),
    ("game=connect4 best_by=exploitability", "best_by=points"),
    ("game=2048 best_by=points", "best_by=score"),
    ("game=connect4 opponent=random", "learns from games against itself"),
    ("game=salvo opponent=random", "one-player game"),
    ("game=connect4 policy=mlp opponent=corner", "2048"),
    ("game=connect4 opponent=randon", "did you mean random?"),
    ("game=tictactoe opponent=" + 300 * "x", "no player"),
    ("game=tictactoe policy=table", "policy=mlp"),
    ("game=salvo learner=td", "CellBoard"),
    ("game=connect4 policy=table learner=td", "entries"),
    ("game=salvo policy=embedding", "embedding"),
    ("game=2048 experiment=null learner=alphazero search=expectimax", "it needs policy=ntuple"),
    ("sampling.temperature=0", "temperature"),
    ("device=tpu", "cpu"),
    ("device=cuda:99", "this machine has no device=cuda:99"),
    ("out=a${x}b", "out: Interpolation key 'x' not found; use ${KEY}"),
    ("policy.init=${y}", "policy.init: Interpolation key 'y' not found"),
    ("policy.layers=8,16", "write [a,b] for a list"),
    ("-m seed=0,1 hydra.launcher.n_jobs=2", "n_jobs"),
    ("board=4 -m seed=1,x", "seed"),
    ("=5", ""),
]


@pytest.mark.parametrize(("words", "hint"), one_in(3, REFUSED), ids=lambda text: text[:40])
def test_what_is_wrong_is_named_with_what_would_do(words, hint, typed, tmp_path):
    check_refused(typed("train", *words.split()), hint)
    assert list(tmp_path.iterdir()) == []


def test_other_commands_refuse_what_they_cannot_do(typed):
    for words, hint in (
        ("eval player=random game=tictactoe opponent=run", "PATH"),
        ("arena random run game=tictactoe", "run"),
        ("play game=tictactoe record=/dev/null/games", "folder"),
    ):
        check_refused(typed(*words.split()), hint)


def test_a_gpu_that_is_not_there_is_refused_by_every_command(typed, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for words in (
        ["eval", "player=random", "game=tictactoe"],
        ["play", "game=tictactoe"],
        ["arena", "random", "exact", "game=tictactoe"],
    ):
        check_refused(typed(*words, "device=cuda:99"), "use device=cpu")


@pytest.mark.parametrize(
    ("words", "hints"),
    one_in(
        3,
        [
            (["policy.layers=[65536,65536]"], ["4,306,174,073 weights", "64.2 GiB", "would fit"]),
            (
                ["game=2048", "policy=embedding", "policy.layers=[65536,65536]"],
                ["GiB", "would fit"],
            ),
            (["game=tictactoe", "policy=conv", "policy.channels=[4096,4096]"], ["weights"]),
            (["game=2048", "policy=staged", "policy.layers=[65536,65536]"], ["weights"]),
            (
                [
                    *("game=2048", "board=3", "policy=ntuple", "batch=8"),
                    "learner.step_size=temporal_coherence",
                ],
                ["policy=ntuple", "weights", "GiB"],
            ),
            (
                ["learner=dqn", "sampling=epsilon_greedy", "learner.buffer_size=100000000"],
                ["learner.buffer_size=100000000", "GiB", "use "],
            ),
            (
                [
                    "game=connect4",
                    "learner=alphazero",
                    "search=mcts",
                    "learner.buffer_size=100000000",
                ],
                ["learner.buffer_size=100000000", "GiB", "use "],
            ),
            (["batch=16000000", "games=16000000"], ["batch=16000000", "GiB", "use "]),
            (
                ["board=32", "ships=[5]", "shots=1", "batch=16", "eval_games=500"],
                ["eval_games=500", "GiB", "use "],
            ),
        ],
    ),
)
def test_what_cannot_be_held_in_memory_is_refused(words, hints, typed, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1 << 23)
    check_refused(typed("train", *words), *hints)
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_that_cannot_be_held_in_memory_is_refused(typed, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1 << 29)
    words = ["eval", "player=random", "game=salvo", "board=32"]
    check_refused(typed(*words, "games=10000000", "batch=10000000"), "games=10000000", "use ")
    check_refused(typed(*words, "games=1000000000000"), "games=1000000000000", "use ")


def test_the_weights_of_a_network_are_counted_without_making_it():
    for words in (
        ["game=2048", "policy=mlp"],
        ["game=tictactoe", "policy=conv"],
        ["game=2048", "policy=staged"],
        ["game=2048", "policy=embedding"],
        ["game=salvo", "shots=1", "policy=belief_propagation"],
        ["game=tictactoe", "policy=conv", "policy.init=truncated_normal"],
    ):
        cfg = load_config(TrainConfig, words)
        game = make("game", cfg.game)
        made = make_policy(cfg, game)
        settings = arguments(cfg.policy)
        settings.pop("canonical", None)
        network = load_option("policy", cfg.policy.name)
        made_again = partial(network, game, value=True, generator=torch.Generator(), **settings)
        counted = count_parameters(made_again)
        assert counted == sum(weight.numel() for weight in made.parameters()), words


@pytest.mark.parametrize(("moves", "parts"), [(10, 4), (3, 7), (1, 1), (12, 4), (5, 100_000)])
def test_each_move_is_in_one_minibatch_of_an_epoch(moves, parts):
    words = ["game=tictactoe", "policy=mlp", f"learner.num_minibatches={parts}", "learner.epochs=4"]
    _, learner = make_learner(KInARow(3, 3, 3, False, "tictactoe"), *words)
    epochs = 4
    every = torch.arange(moves)
    found = [every[part] for part in learner.minibatches(moves, epochs, parts=parts)]
    assert torch.cat(found).bincount(minlength=moves).tolist() == [epochs] * moves
    assert len(found) <= parts * epochs
    assert all(len(part) for part in found)


NAMES = ["two words", "é – 漢字 🎲", "[red]markup[", "back\\slash", "it's", "a=b,c", 255 * "x"]


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_runs_and_records_have_odd_paths(name, typed, tmp_path):
    done = typed("train", *SMALL_TRAINING, f"out={name}", "solve_seconds=0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name / "checkpoints" / "best.safetensors").is_file()
    assert name in done.stdout
    words = ["eval", "player=random", "game=tictactoe", "games=2"]
    done = typed(*words, f"opponent={name}", f"record=R{name[1:]}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"R{name[1:]}").is_file()


@pytest.mark.parametrize("command", ["train", "eval", "arena", "play"])
def test_names_that_are_too_long_are_refused_in_one_line(command, typed):
    name = 256 * "x"
    words = {
        "train": ["train", *SMALL_TRAINING, f"out={name}"],
        "eval": ["eval", "player=random", "game=tictactoe", "games=2", f"record={name}"],
        "arena": ["arena", name, "random"],
        "play": ["play", name],
    }[command]
    done = typed(*words)
    assert done.returncode in (2, 3)
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unforeseen_error_is_one_line_unless_more_is_asked_for(typed, monkeypatch):
    def fail(*_):
        raise LookupError("lost\nand gone")

    monkeypatch.setattr(app, "run", fail)
    done = typed("solve")
    assert done.returncode == 3
    assert done.stderr.startswith("rlgames: LookupError: lost and gone; it was raised in ")
    assert f"{__file__}, line " in done.stderr
    assert done.stderr.endswith("; RLGAMES_TRACEBACK=1 shows where\n")
    assert len(done.stderr.strip().splitlines()) == 1
    monkeypatch.setenv("RLGAMES_TRACEBACK", "1")
    monkeypatch.setattr("sys.argv", ["rlgames", "solve"])
    with pytest.raises(LookupError):
        app.main()


def test_memory_that_runs_out_is_said_in_one_line(typed, monkeypatch):
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        monkeypatch.setattr(app, "run", lambda *_, error=error: (_ for _ in ()).throw(error))
        done = typed("solve")
        assert done.returncode == 3
        assert done.stderr == ("rlgames: out of memory; smaller batch= or games= may help\n")
