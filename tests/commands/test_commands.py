"""The commands as a person types them, in processes of their own."""

import csv
import json
import re
import shutil

import pytest
from helpers import SMALL_TRAINING, check_refused
from markers import DEVICES, one_in, quick, slow
from run_files import metrics_without_times

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.schema import groups_of
from rlgames.core.errors import ConfigError
from rlgames.rng import Rng
from rlgames.runs.checkpoint import read_identity
from rlgames.runs.find import shipped_agents

pytestmark = pytest.mark.usefixtures("shown_games")

SMALL = ["game=battleship", "board=5", "ships=[2]", "games=400", "batch=50", "log_every=100"]
SMALL += ["policy.layers=[16]"]


def test_train_then_eval(rlgames, tmp_path):
    done = rlgames("train", *SMALL, "out=a run=1 (é)")
    assert done.returncode == 0, done.stderr
    assert "exact optimum" in done.stdout
    run = tmp_path / "a run=1 (é)"
    facts = json.loads((run / "run.json").read_text())
    assert facts["status"] == "done"
    assert facts["seed"] == 0
    assert facts["end"] >= facts["start"]
    done = rlgames("eval", "a run=1 (é)", "format=json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert json.loads((run / "reports/eval.json").read_text())["result"] == report
    assert report["games"] == 4
    assert report["moves"]["mean"] in [2 + i / 4 for i in range(13)]
    assert report["reference"]["random"] == 4.0
    assert report["moves"]["mean"] >= report["reference"]["optimal"]
    for words, hint in ((["board=6"], "board"), (["lr=0.5"], "lr")):
        check_refused(rlgames("eval", "a run=1 (é)", *words), hint)
    assert "turn 1:" in rlgames("watch", "a run=1 (é)", "delay=0").stdout
    agent = package.load(run)
    state = agent.game.initial(3, Rng(0))
    assert agent.choose(agent.game.public(state)).shape == (3,)
    assert package.evaluate(run)["moves"] == report["moves"]


def test_battleship_says_how_to_get_the_fleet(typed):
    words = ["games=2", "batch=2", "eval_games=2", "solve_seconds=0", "policy.layers=[2]"]
    shown = typed("train", "game=battleship", *words, "out=a").stdout
    assert "rlgames train experiment=fleet" in shown.splitlines()[-1]
    assert "fleet" not in typed("train", "game=battleship", "board=6", *words, "out=b").stdout
    assert "experiment=fleet" in typed("games", "battleship").stdout.splitlines()[0]


def test_the_same_seed_gives_the_same_run(tmp_path):
    small = [*SMALL, "games=100"]
    first = package.train([*small, f"out={tmp_path}/1", "seed=7"])
    second = package.train([*small, f"out={tmp_path}/2", "seed=7"])
    other = package.train([*small, f"out={tmp_path}/3", "seed=8"])
    one, two, three = map(metrics_without_times, (first, second, other))
    assert one == two != three


def test_solve(rlgames):
    words = ["solve", "game=salvo", "board=4", "ships=[4]", "shots=2"]
    found = json.loads(rlgames(*words, "format=json").stdout)
    assert found["optimal"] == pytest.approx(3.375)
    assert set(found) == {"optimal", "positions", "seconds"}
    assert "3.375" in rlgames(*words).stdout
    assert "not computed" in rlgames("solve", "game=salvo", "board=6", "seconds=0.1").stdout


def test_each_command_keeps_its_report(typed, tmp_path):
    run = package.train([*SMALL_TRAINING, f"out={tmp_path}/run"])
    for words in (
        ["analyze", "run", "games=4", "search=mcts", "search.simulations=2"],
        ["arena", "run", "random", "run+mcts", "games=4"],
        ["solve", "run", "name=best_play"],
        ["solve", "game=tictactoe", "out=other"],
        ["eval", "player=random", "game=tictactoe", "games=4", "out=other"],
    ):
        done = typed(*words)
        assert done.returncode == 0, done.stderr
    names = {path.stem for path in run.glob("reports/*.json")} - {"train_best", "train_final"}
    analysis = "analyze_random_mcts_simulations-2_games-4"
    assert {*names} == {analysis, "arena_random_+mcts_games-4", "best_play"}
    assert {path.stem for path in tmp_path.glob("other/reports/*")} == {
        *("solve", "eval_random_games-4"),
    }
    report = json.loads((run / f"reports/{analysis}.json").read_text())
    assert (report["command"], report["config"]["search"]["simulations"]) == ("analyze", 2)
    best = run / "checkpoints/best.safetensors"
    assert report["checkpoints"] == {"run": read_identity(best)}
    check_refused(typed("solve", "game=tictactoe", "name=x"), "name=x needs the directory of a run")


FITTING = {
    "game=2048": ["policy.num_cell_values=6"],  # small tables
    "reward=outcome": ["game=tictactoe"],
    "reward=hickman": ["game=tictactoe", "policy=mlp"],
    "learner=td_ntuple": ["game=2048", "board=2"],
    "learner=td_lambda": ["game=2048", "board=3"],
    "policy=embedding": ["game=tictactoe"],
    "learner=td": ["game=tictactoe"],
    "learner=adp": ["game=2048", "board=2"],
    "learner=behavior_cloning": ["game=2048", "board=2", "teacher=corner"],
    "learner=alphazero": ["game=tictactoe", "search.simulations=8"],
    "search=rollout": ["learner=alphazero", "board=3", "ships=[2]", "shots=1"],
    "policy=staged": ["game=2048", "board=2"],
    "policy=belief_propagation": ["shots=1"],
    "learner=occupancy": ["shots=1"],
    "reward=grid_sum": ["game=2048", "board=2", "policy=mlp"],
    "reward=win": ["game=2048", "board=2", "target=16", "policy=mlp"],
}
"""What an option needs beside it."""


def every_file():
    """For every option of every group the words that it needs, unless a learner brings it."""
    found: list[list[str]] = []
    brought = ("table", "ntuple", "linear", "mcts")
    no_policy = ("alphabeta", "expectimax", "dedieu_amar")  # they count no visits to learn from
    for group, about in groups_of(TrainConfig).items():
        if about.is_list or about.folder in ("player", "engine"):  # of other tests
            continue
        for option in option_names(about.folder):
            if option not in (*brought, *no_policy):
                found.append([f"{group}={option}", *FITTING.get(f"{group}={option}", [])])
    return found


OF_GAMES = [words for words in every_file() if words[0].startswith("game=")]
"""The experiments of the games train them, too."""

OTHERS = [words for words in every_file() if words not in OF_GAMES]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", [*map(slow, OF_GAMES), *one_in(6, OTHERS)], ids=lambda w: w[0])
def test_every_file_of_every_group_trains(words, device, tmp_path):
    small = ["games=20", "batch=10", "eval_games=5", "solve_seconds=0", f"device={device}"]
    run = package.train([*words, *small, f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert package.evaluate(run, ["games=5", "solve_seconds=0"])["games"] == 5


EACH_KIND_OF_POLICY = ("salvo", "connect4", "2048", "breakthrough")


@pytest.mark.parametrize("name", quick(option_names("experiment"), *EACH_KIND_OF_POLICY))
@pytest.mark.parametrize("device", DEVICES)
def test_every_experiment_runs_two_updates(name, device, tmp_path):
    cfg = load_config(TrainConfig, [f"experiment={name}"])
    batch = min(cfg.batch, 16)
    words = [f"experiment={name}", f"batch={batch}", f"games={2 * batch}"]
    words += ["eval_games=5", "solve_seconds=0", f"device={device}"]
    words += ["teacher=corner"] if cfg.learner.name == "behavior_cloning" else []
    if cfg.policy.name == "ntuple":
        words += ["policy.num_cell_values=6"]  # small tables
    elif cfg.game.name == "2048":
        words += ["board=3"]  # short games
    words += ["learner.updates_per_batch=2"] if hasattr(cfg.learner, "updates_per_batch") else []
    if device != "cpu" and cfg.learner.name == "td_ntuple":
        with pytest.raises(ConfigError, match="device=cpu"):
            package.train(words)
        return
    run = package.train([*words, f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"


PLAYERS = [
    ["player=random", "game=salvo_duel"],
    ["player=corner", "game=2048", "board=2"],
    ["player=hunt_target", "game=battleship", "board=6", "ships=[3,2]"],
    ["player=density", "game=battleship", "board=5", "ships=[3,2]"],
    ["player=density", "game=battleship", "board=5", "ships=[3,2]", "player.steps=0"],
    ["player=density_rollout", "game=salvo", "board=3", "ships=[2,2]", "player.next_cells=1"],
    ["player=exact", "game=salvo", "board=3", "ships=[2]", "shots=1"],
    ["player=exact", "game=2048", "board=2"],
    ["player=exact", "game=connect4", "rows=4", "columns=4", "player.move_positions=1000"],
    ["player=win_or_block", "game=connect4", "opponent=exact", "opponent.move_positions=100"],
    ["player=win_or_block", "game=tictactoe", "opponent=exact"],
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", one_in(3, PLAYERS), ids=lambda words: "-".join(words[:2]))
def test_players_play_on_every_device(words, device):
    found = package.evaluate(None, [*words, "games=6", "solve_seconds=0", f"device={device}"])
    assert found["games"] == 6


@pytest.mark.parametrize("device", DEVICES)
def test_searches_play_on_every_device(device, tmp_path):
    tictactoe = package.train([*SMALL_TRAINING, f"out={tmp_path}/tictactoe"])
    found = package.evaluate(
        tictactoe, ["search=mcts", "search.simulations=8", "games=6", f"device={device}"]
    )
    assert found["games"] == 6


def test_two_seats_are_reported_apart(rlgames):
    done = rlgames("eval", "player=win_or_block", "game=tictactoe", "games=400", "format=json")
    report = json.loads(done.stdout)
    assert report["opponent"] == "random"
    assert sum(report[name]["count"] for name in ("win", "draw", "loss")) == 400
    assert [sum(share["count"] for share in seat.values()) for seat in report["seats"]] == [200] * 2
    low, high = report["win"]["ci95"]
    assert low < report["win"]["rate"] < high
    assert 0 < report["exploitability"] < 1
    shown = rlgames("eval", "player=exact", "game=tictactoe", "opponent=exact", "games=20").stdout
    assert "0.00% / 100.00% / 0.00%" in shown


SMALL_CONNECT4 = ["experiment=connect4_mlp", "games=60", "batch=20", "policy.layers=[8]"]
SMALL_CONNECT4 += ["eval_games=20"]


@pytest.mark.parametrize(
    "words",
    one_in(
        3, [["opponent=random"], ["opponent=past", "opponent.every=20"], ["opponent=win_or_block"]]
    ),
)
@pytest.mark.parametrize("device", DEVICES)
def test_opponents_of_every_kind(words, device, tmp_path):
    run = package.train([*SMALL_CONNECT4, *words, f"device={device}", f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"


def test_one_bad_hand_in_does_not_stop_a_tournament(typed, tmp_path):
    folder = tmp_path / "handed_in"
    folder.mkdir()
    for name in ("alice", "bob"):
        shutil.copy(shipped_agents()["tictactoe"], folder / f"{name}.safetensors")
    shutil.copy(shipped_agents()["salvo"], folder / "dora.safetensors")
    (folder / "carl.safetensors").write_bytes(b"damaged")
    words = [*map(str, sorted(folder.iterdir())), "random", "games=20", "out=."]
    done = typed("arena", *words)
    assert done.returncode == 0, done.stderr
    assert f"left out: {folder}/carl.safetensors: " in done.stdout
    assert f"left out: {folder}/dora.safetensors: " in done.stdout
    assert re.search(r"\d +alice +[+-]\d", done.stdout)
    assert re.search(r"^### ranking.*\| 1 \| (alice|bob) \|", marked := typed(
        "arena", *words, "format=markdown"
    ).stdout, re.S), marked  # fmt: skip
    assert typed("arena", *words, "format=latex").stdout.count(r"\begin{tabular}") == 2
    lines = [*csv.DictReader(typed("arena", *words, "format=csv").stdout.splitlines())]
    assert {line["player"] for line in lines[:3]} == {"alice", "bob", "random"}
    assert float(lines[0]["low"]) < float(lines[0]["elo"]) < float(lines[0]["high"])
    assert [bool(line["left out"]) for line in lines] == [False] * 3 + [True] * 2
    report = json.loads(typed("arena", *words, "format=json").stdout)
    assert len(report["left_out"]) == 2


HAND_INS = """
import torch
from rlgames import register
from rlgames.players.player import Player

class Same(Player):
    def __init__(self, game):
        self.game = game
    def choose(self, state, rng):
        return torch.zeros_like(state.current_seat)

class Other(Same):
    def choose(self, state, rng):
        return {}["a move"]

class Unmade(Same):
    def __init__(self, game):
        raise ValueError("unmade plays nothing")

for name, kind in (("same", Same), ("other", Other), ("unmade", Unmade)):
    register("player", f"{name}_NUMBER", kind)
"""


@pytest.mark.parametrize("game", [["tictactoe"], ["salvo", "board=4"]], ids=lambda words: words[0])
def test_a_player_that_breaks_a_rule_or_fails_is_left_out_of_a_tournament(game, rlgames, tmp_path):
    module = f"hand_ins_{game[0]}"
    (tmp_path / f"{module}.py").write_text(HAND_INS.replace("NUMBER", game[0]))
    handed_in = [f"{name}_{game[0]}" for name in ("other", "same", "unmade")]
    words = ["arena", *handed_in, "random", f"plugins=[{module}]", f"game={game[0]}", *game[1:]]
    third = "win_or_block" if game == ["tictactoe"] else "density"
    report = json.loads(rlgames(*words, third, "games=10", "format=json").stdout)
    alone = json.loads(rlgames(*[words[0], *words[4:], third, "games=10", "format=json"]).stdout)
    for part in ("players", "pairs"):
        assert report[part] == alone[part]
    reasons = {each["name"]: each["reason"] for each in report["left_out"]}
    assert [*reasons] == [handed_in[2], handed_in[0], handed_in[1]]
    assert re.fullmatch(r"KeyError: 'a move' in .*py, line \d+", reasons[handed_in[0]])
    move = "" if game[0] == "salvo" else ", A1"  # no cell of that salvo is left
    assert reasons[handed_in[1]] == f"player={handed_in[1]} chose the illegal action 0{move}"
    assert "unmade plays nothing" in reasons[handed_in[2]]
    done = rlgames("arena", *handed_in, *words[5:], "random", "games=10")
    assert (done.returncode, "KeyError: 'a move'" in done.stderr) == (3, True)


def test_an_arena(rlgames):
    words = ["random", "win_or_block", "exact", "game=tictactoe", "games=200"]
    report = json.loads(rlgames("arena", *words, "format=json").stdout)
    elo = {player["name"]: player["elo"] for player in report["players"]}
    assert elo["exact"] > elo["win_or_block"] > elo["random"]
    assert report["players"][0]["points"][0] is None
    for player in report["players"]:
        assert player["ci95"][0] <= player["elo"] <= player["ci95"][1]
    shown = rlgames("arena", *words).stdout
    assert shown.index("1 exact") < shown.index("3 random")
