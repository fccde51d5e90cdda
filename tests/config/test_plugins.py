"""Parts of one's own: they take part in everything, and nothing but the words imports them."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers import check_refused
from hydra.core.config_store import ConfigStore
from markers import one_in

import rlgames as package
from rlgames.config import registry
from rlgames.config.commands import COMMAND_SCHEMAS, COMMANDS, EvalConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import about
from rlgames.config.schema import groups_of, key, kind_of
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import Checkpoint
from rlgames.sampling import Stochastic

MINE = '''
import torch

from rlgames import register
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.learner import BatchLearner
from rlgames.players.player import Player
from rlgames.policies.policy import AfterstateValues, Network
from rlgames.rewards import Reward
from rlgames.sampling import Stochastic
from rlgames.config.schema import key


def make_row(cells, stones):
    """stones on a single line of cells"""
    return KInARow(1, cells, stones, False, "row")


register("game", "row", make_row, cells=key(2, 20, value=5), stones=key(2, 5, value=2))


class Hasty(Reward):
    def __init__(self, game, loss):
        super().__init__(game, scored="turns", scale=loss)


register("reward", "hasty", Hasty, loss=key(0, 10, value=1.0))


class Active(Reward):
    """An outcome, and a little for every move."""

    def __init__(self, game):
        super().__init__(game, scored="outcome")

    def rewards(self, trajectories, final_states):
        return super().rewards(trajectories, final_states) + 0.5


register("reward", "active", Active)


class Flat(Network):
    def __init__(self, game, bias, steep, value, generator):
        super().__init__()
        self.layer = torch.nn.LazyLinear(game.spec.actions, bias=bias)
        self.layer(game.observe(game.example_state()).flatten(1))
        self.has_value = value

    def forward(self, inputs):
        scores = self.layer(inputs.flatten(1))
        return scores, scores.mean(1) if self.has_value else None


register("policy", "flat", Flat, bias=True, steep=key(0, 1, value=None))


class Counts(AfterstateValues):
    """A value for each number of stones."""

    def __init__(self, game, score_scale, entries):
        super().__init__(score_scale)
        self.register_buffer("values", torch.zeros(entries))

    def index(self, game, afterstate):
        return (game.cells(afterstate).flatten(1) > 0).sum(1)


register("policy", "counts", Counts, entries=key(10, 100, value=50))


register("sampling", "warm", lambda degrees: Stochastic(degrees), degrees=key(0.1, 100, value=2.0))


class Idle(BatchLearner):
    trains_logits = True

    def __init__(self, context, *, lr):
        super().__init__(context)

    def update(self, moves, results, progress):
        return {"return": float(self.reward.returns(moves, results).mean())}


register("learner", "idle", Idle)


class Tallier(Idle):
    """Teaches values of afterstates only."""

    policy_class = AfterstateValues


register("learner", "tallier", Tallier)


class First(Player):
    """the first legal action"""

    is_deterministic = True

    def __init__(self, game, last):
        self.game, self.last = game, last

    def choose(self, state, rng):
        legal = self.game.legal_action_mask(state).int()
        return legal.shape[1] - 1 - legal.flip(1).argmax(1) if self.last else legal.argmax(1)


register("player", "first", First, last=False)


class Echo(Player):
    def __init__(self, game, player):
        self.player = player

    def choose(self, state, rng):
        return self.player.choose(state, rng)


register("search", "echo", Echo)
'''

SMALL = ["games=20", "batch=10", "eval_games=5", "solve_seconds=0", "shots=1", "ships=[2]"]
TWO = ["game=tictactoe", "games=20", "batch=10", "eval_games=5"]
EVIL = "from pathlib import Path\nPath('marker').touch()\n"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch, tmp_path):
    """Each test begins in a folder with mine.py, knowing nothing of it, and leaves no part."""
    tables = list(registry.REGISTRY.values())
    before = [dict(table) for table in tables]
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(ConfigStore.instance(), "repo", dict(ConfigStore.instance().repo))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def trained(*words):
    return package.train(["plugins=[mine]", *words, "out=run"])


@pytest.mark.parametrize(
    "words",
    one_in(
        2,
        [
            ["game=row", "cells=4", "stones=3", "reward=outcome", *TWO[1:]],
            ["policy=flat", "policy.steep=0.5", "reward=hasty", "reward.loss=0.5", *SMALL],
            ["policy=counts", "learner=td", "reward=outcome", "experiment=null", *TWO],
            ["policy=counts", "learner=tallier", "reward=outcome", "experiment=null", *TWO],
            ["learner=idle", "policy=flat", "sampling=warm", "sampling.degrees=3", *SMALL],
            [
                "opponent=first",
                "eval_opponent=first",
                "eval_opponent.last=true",
                "policy=mlp",
                *TWO,
            ],
            ["learner=behavior_cloning", "teacher=first", *TWO],
        ],
    ),
    ids=lambda words: " ".join(words[:2]),
)
def test_every_group_takes_parts_of_ones_own(words):
    run = trained(*words)
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert "plugins:\n- mine\n" in (run / "config.yaml").read_text()
    found = package.evaluate(run, ["plugins=[mine]", "games=20", "solve_seconds=0"])
    assert found["games"] == 20 or found["exact"]


def test_every_command_takes_them(typed):
    run = trained("game=row", "cells=6", "policy=flat", "reward=outcome", *TWO[1:])
    known = ["plugins=[mine]", "format=json"]
    found = package.evaluate(run, [*known, "opponent=first", "opponent_search=echo", "games=20"])
    assert found["opponent_search"] == {"name": "echo"}
    assert found["game"] == {"name": "row", "cells": 6, "stones": 2}
    done = typed("eval", "run", "plugins=[mine]", "search=echo", "games=20", "solve_seconds=0")
    assert "with echo" in done.stdout, done.stderr
    cells = ["game=row", "cells=4"]
    done = typed("arena", "first", "random", "first+echo", *cells, "games=20", *known)
    names = [player["name"] for player in json.loads(done.stdout)["players"]]
    assert names == ["first", "random", "first+echo"]
    assert json.loads(typed("solve", *cells, *known).stdout)["optimal"] is not None
    done = typed("play", "plugins=[mine]", *cells, "opponent=first", "seat=2")
    assert "X" in done.stdout, done.stderr
    assert "seat" in typed("play", "run", "plugins=[mine]", "seat=3").stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_them(command, typed):
    shown = typed(command, "--help", "plugins=[mine]").stdout
    if "game" in groups_of(COMMAND_SCHEMAS[command]):
        assert re.search(r"\brow\b", shown)
    if "player" in groups_of(COMMAND_SCHEMAS[command]):
        assert re.search(r"\bfirst\b", shown)
    assert "plugins=" in shown
    assert "--config-dir" in shown


MISTYPED = {
    "policy=flaat": "did you mean flat?",
    "policy=flat policy.bia=true": "did you mean policy.bias?",
    "policy=flat policy.bias=3": "true or false",
    "policy=flat policy.steep=abc": "a number or null",
    "game=row cells=1": "cells=1 is out of range; valid: 2 to 20",
    "learner=td policy=flat": "policy=table, policy=counts",
    "learner=tallier policy=flat": "it trains policy=table, policy=counts",
    "policy=counts learner=reinforce": "policy=flat",
    "learner=idle search=echo": "learner=idle does not learn from a search",
    "experiment=null learner=alphazero search=echo game=tictactoe": "gives none",
    "experiment=tictactoe reward=active ~reward.discount": "may also pay for the other seat",
}


@pytest.mark.parametrize("words", one_in(3, MISTYPED))
def test_mistyped_words_are_answered_as_ever(words, typed):
    check_refused(typed("train", "plugins=[mine]", *words.split()), MISTYPED[words])


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ("mien", "no module is called 'mien'; did you mean mine?"),
        ("os.system", "no module is called 'os.system'"),
        ("../mine", "does not list modules by name"),
        ("mine.py", "no module is called 'mine.py'"),
        ("mine\n", "does not list modules by name"),
        ("mine,3", "does not list modules by name"),
        ("${oc.env:HOME}", "does not list modules by name"),
        ("broken", "broken.py, line 3"),
        ("leaving", "plugins=[leaving] fails: SystemExit: 0"),
        ("lacking", "plugins=[lacking] fails: ModuleNotFoundError: No module named 'nowhere'"),
        ("json", "give the file another name"),
    ],
)
def test_modules_that_cannot_be_imported_are_refused_in_one_line(listed, told, typed, tmp_path):
    (tmp_path / "broken.py").write_text("\n\n1 / 0\n")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(0)\n")
    (tmp_path / "lacking.py").write_text("import nowhere\n")
    (tmp_path / "json.py").touch()
    assert told in check_refused(typed("train", f"plugins=[{listed}]"))


@pytest.mark.parametrize("word", ["plugins=[mine],[json]", "plugins=null", "plugins=", "~plugins"])
def test_other_words_for_plugins_are_refused(word, typed):
    check_refused(typed("train", word), "plugins")
    assert "mine" not in sys.modules


@pytest.mark.parametrize(
    ("group", "name", "made", "keys", "message"),
    [
        ("reward", "turns", lambda game: 0, {}, "reward=turns is taken"),
        ("sampling", "stochastic", Stochastic, {"degrees": 2.0}, "sampling=stochastic is taken"),
        ("game", "new", len, {"cells": [1, "x"]}, "for its key cells"),
        ("game", "new", len, {"cells": [1, True]}, "for its key cells"),
        ("player", "self", lambda game: 0, {}, "player=self is taken"),
        ("polisy", "new", len, {}, "did you mean policy?"),
        ("reward", "new", int, {}, "Reward"),
        ("policy", "new", lambda game: 0, {}, "Policy"),
        ("game", "new", len, {"games": 3}, "cannot have the key games"),
        ("game", "new", len, {"policy": 3}, "cannot have the key policy"),
        ("sampling", "new", len, {"name": "x"}, "cannot have the key name"),
        ("game", "new", len, {"cells": key(1, 2)}, "for its key cells"),
        ("game", "new", len, {"cells": {1}}, "for its key cells"),
        ("game", "new", len, {"cells": []}, "for its key cells"),
        ("game", "a/b", len, {}, "cannot be typed"),
        ("game", "../x", len, {}, "cannot be typed"),
    ],
)
def test_parts_that_cannot_be_are_errors(group, name, made, keys, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        package.register(group, name, made, **keys)
    option = registry.REGISTRY.get(group, {}).get(name)
    assert option is None or option.values is None


def test_the_value_of_a_key_is_its_type():
    degrees = key(0, 9, help="how warm", value=1.5)
    words = {
        "marks": [1],
        "both": [1, 0.5],
        "loud": False,
        "limit": key(0, 3, value=None),
        "title": None,
    }
    package.register("sampling", "hot", Stochastic, degrees=degrees, **words)
    option = registry.REGISTRY["sampling"]["hot"]
    kinds = {name: kind_of(option.schema, name) for name in ("degrees", *words)}
    assert kinds["degrees"] is float
    assert (kinds["marks"], kinds["loud"]) == (list[int], bool)
    assert kinds["both"] == list[float]
    assert (kinds["limit"], kinds["title"]) == (float | None, str | None)
    assert about("sampling", "hot") == (Stochastic.__doc__ or "").partition("\n")[0]
    config = load_config(EvalConfig, ["sampling=hot", "sampling.degrees=3", "game=tictactoe"])
    assert (config.sampling.degrees, config.sampling.marks, config.sampling.limit) == (3, [1], None)
    with pytest.raises(ConfigError, match="out of range; valid: 0 to 9"):
        load_config(EvalConfig, ["sampling=hot", "sampling.degrees=10", "game=tictactoe"])


def test_a_name_can_be_registered_again_only_by_the_same_part(typed):
    Path("other.py").write_text(
        "import rlgames\nrlgames.register('reward', 'hasty', lambda game: 0)\n"
    )
    assert "reward=hasty is taken" in check_refused(typed("train", "plugins=[mine,other]"))
    del sys.modules["mine"]
    assert typed("train", "plugins=[mine]", "--help").returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "is not YAML"),
        ("- mlp", "no option is chosen"),
        ("name: evil", "no policy is called 'evil'"),
        ("layers: [8]", "no option is chosen"),
        ("defaults: [mlp]\nlayrs: [8]", "did you mean policy.layers?"),
        ("defaults: [mlp]\n_target_: evil", "policy._target_"),
        ("defaults: [mlp]\nlayers: ${nowhere}", "'nowhere' not found"),
    ],
)
def test_files_of_options_that_cannot_be_are_refused(text, message, typed, tmp_path):
    (tmp_path / "own/policy").mkdir(parents=True)
    (tmp_path / "own/policy/little.yaml").write_text(text)
    words = ["--config-dir=own", "experiment=null", "policy=little"]
    check_refused(typed("train", *words), message)


@cache
def usual_config():
    return to_plain(load_config(TrainConfig, SMALL))


def checkpoint(**changes):
    """A file with the header of a run whose config has these changes."""
    Checkpoint(usual_config() | changes, 0, {"a": torch.ones(1)}, {}).write(Path("strange"))


def test_what_an_evaluation_imports_is_fit_for_training(tmp_path):
    scaled = MINE.replace("scores = self", "scores = SCALE * self") + "SCALE = torch.tensor(2.0)\n"
    (tmp_path / "mine.py").write_text(scaled)
    words = ["plugins=[mine]", "game=salvo"]
    package.evaluate(None, [*words, "player=random", "games=20", "solve_seconds=0"])
    run = package.train([*words, "policy=flat", *SMALL, "out=run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"


def test_a_run_whose_plugin_lost_a_key_says_so(typed, tmp_path):
    trained("policy=flat", "policy.steep=0.5", *SMALL)
    (tmp_path / "mine.py").write_text(
        MINE.replace(", steep=key(0, 1, value=None)", "").replace("bias, steep,", "bias,")
    )
    registry.REGISTRY["policy"].pop("flat")
    del sys.modules["mine"]
    for command in ("eval", "resume"):
        told = check_refused(typed(command, "run", "plugins=[mine]"))
        assert "was trained with policy.steep=0.5, a key that policy=flat does not have" in told


def test_a_run_says_which_modules_it_needs_and_imports_none(tmp_path):
    trained("policy=flat", *SMALL)
    (tmp_path / "mine.py").write_text(EVIL + MINE)
    told = (
        "no policy is called 'flat' here; it was trained with plugins=[mine]; name them yourself "
        "if you trust them"
    )
    # A fork of this process would know the part already.
    words = [sys.executable, "-m", "rlgames", "eval", "run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    check_refused(done, told)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": {"name": "evil"}},
        {"policy": "evil", "learner": "evil"},
        *(
            {group: {"name": name}}
            for group in ("game", "policy", "learner", "reward")
            for name in ("os.system", "evil:main", "evil")
        ),
        {"policy": {"name": "mlp", "_target_": "evil.main"}},
        {"game": {"_target_": "evil.main", "name": "salvo"}},
        {"policy": ["evil"]},
        {"policy": {"name": ["evil"]}},
        {"policy": {"name": "${oc.env:HOME}"}},
        {"policy": {"name": "evil"}, "plugins": "evil"},
        {"policy": {"name": "evil"}, "plugins": [1]},
        {"policy": {"name": "evil"}, "plugins": ["evil\u001b[2J"]},
        {"policy": {"name": "evil"}, "plugins": ["../evil"]},
        {"_target_": "evil.main", "policy": {"name": "evil"}},
        {},
    ],
    ids=str,
)
def test_nothing_that_a_checkpoint_lists_is_imported(changes, typed, tmp_path):
    (tmp_path / "evil.py").write_text(EVIL)
    checkpoint(**{"plugins": ["evil"], **changes})
    assert "\x1b" not in check_refused(typed("eval", "strange"))
    assert not (tmp_path / "marker").exists()
    assert "evil" not in sys.modules


def test_nothing_that_a_record_or_a_run_directory_lists_is_imported(typed, tmp_path):
    (tmp_path / "evil.py").write_text(EVIL)
    first = {"rlgames_record": 1, "game": {"name": "evil"}, "plugins": ["evil"]}
    (tmp_path / "games").write_text(json.dumps(first) + "\n")
    check_refused(typed("train", "demonstrations=games", "demos_per_batch=1", *SMALL))
    checkpoint(plugins=["evil"], policy={"name": "evil"})
    assert "plugins=[evil]" in check_refused(typed("train", "init_from=strange", *SMALL))
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("plugins: [evil]\npolicy: {_target_: evil.main}\n")
    (run / "run.json").write_text('{"plugins": ["evil"]}')
    check_refused(typed("eval", "run"))
    assert not (tmp_path / "marker").exists()
