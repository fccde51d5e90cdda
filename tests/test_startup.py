"""What a command imports before it answers, and before it learns."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def printed(code, cwd=ROOT):
    """What Python prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from rlgames.commands import app as cli\n"
        "for words in (['--help'], ['train', '--help'], ['gmes']):\n"
        "    sys.argv = ['rlgames', *words]\n"
        "    try: cli.main()\n"
        "    except SystemExit: pass\n"
        "print([name for name in ('torch', 'hydra', 'omegaconf', 'tensorboard', 'rich', 'numpy',\n"
        "                        'numba')\n"
        "       if name in sys.modules])"
    )
    assert printed(code)[-1] == "[]"


def test_a_game_is_described_without_torch_and_numba():
    code = (
        "import sys; from rlgames.commands import app as cli\n"
        "sys.argv = ['rlgames', 'games', 'hex']\n"
        "try: cli.main()\n"
        "except SystemExit as end: print(end.code, {'torch', 'numba'} & {*sys.modules})"
    )
    assert printed(code)[-1] == "0 set()"


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["gam=salvo"], ["2 False"]), (["--cfg", "job", "-p", "lr"], ["0.002", "0 False"])],
)
def test_a_word_is_answered_and_a_config_shown_without_torch(words, expected):
    code = (
        "import sys; from rlgames.commands import app as cli\n"
        f"sys.argv = ['rlgames', 'train', *{words}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    assert printed(code) == expected


def test_objects_made_at_the_start_are_never_looked_at_for_garbage():
    code = (
        "import gc; from rlgames.core.processes import no_garbage_collection\n"
        "with no_garbage_collection():\n"
        "    print(gc.isenabled()); made = []\n"
        "print(gc.isenabled(), any(each is made for each in gc.get_objects()))\n"
        "try:\n"
        "    with no_garbage_collection(): raise ValueError\n"
        "except ValueError: print(gc.isenabled())"
    )
    assert printed(code) == ["False", "True False", "True"]


MODULES_AT_FIRST_UPDATE = """
import sys
from rlgames.commands import app
from rlgames.core.callbacks import Callback
from rlgames.terminal import progress

class Modules(Callback):
    def on_update(self, games, *_):
        if games == 32:
            print("modules", *(name for name in sys.modules if name.startswith("rlgames")))

progress.Progress = progress.PlainProgress = lambda total, about: Modules()
sys.argv = "rlgames train experiment=connect4_mlp games=64 batch=32 eval_games=2".split()
app.main()
"""

NOT_NEEDED = (
    *("drawing", "envs", "search", "web", "solvers.belief", "solvers.position", "solvers.proof"),
    *("solvers.connect4", "games.battleship", "games.fleets", "games.game_2048", "kernels.td"),
    *("kernels.tree_search", "kernels.proof_search", "kernels.ntuple", "learners.td_ntuple"),
    *("policies.ntuple", "policies.embedding", "players.exact", "rollouts.records"),
    *("training.ray_source", "training.pictures", "commands.evaluate", "commands.study"),
)
"""What PPO on Connect 4 does not import before its first update."""


def test_a_training_imports_what_its_config_names(tmp_path):
    lines = printed(MODULES_AT_FIRST_UPDATE, tmp_path)
    line = next(line for line in lines if line.startswith("modules"))
    modules = line.split()[1:]
    assert len(modules) <= 114, sorted(modules)
    unneeded = {f"rlgames.{name}" for name in NOT_NEEDED}
    assert not unneeded & {*modules}


DESCENT = """
import sys
import torch
from torch import nn, optim
from rlgames.learners.gradient import RmspropPerMatrix, descend, make_optimizer

def descended(make):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    optimizer = make(list(net.named_parameters()), net)
    for count in range(20):
        descend(optimizer, net(torch.randn(9, 5)).square().mean(), 0.01, 1.0)
        if count == 9:
            state = optimizer.state_dict()
            optimizer = make(list(net.named_parameters()), net)
            optimizer.load_state_dict(state)
    return nn.utils.parameters_to_vector(net.parameters())

torchs = {
    "adam": lambda weights, _: optim.Adam(weights, 0.01),
    "sgd": lambda weights, _: optim.SGD(weights, 0.01),
    "rmsprop": lambda weights, _: optim.RMSprop(weights, 0.01, alpha=0.9),
    "rmsprop_per_matrix": lambda weights, _: RmspropPerMatrix(weights, 0.01, 0.9),
}
ours = {
    name: descended(lambda _, net, name=name: make_optimizer(name, net, 0.01, 0.9))
    for name in torchs
}
print("torch._dynamo" in sys.modules)
print(*(torch.equal(ours[name], descended(make)) for name, make in torchs.items()))
"""


@pytest.mark.slow
def test_optimizers_are_torchs_own_but_for_its_compiler_which_is_not_imported():
    assert printed(DESCENT) == ["False", "True True True True"]


@pytest.mark.slow
def test_training_in_python_does_not_import_torchs_compiler(tmp_path):
    code = (
        "import sys, rlgames\n"
        "rlgames.train(['game=tictactoe', 'learner=ppo', 'games=8', 'batch=8', 'eval_games=2',\n"
        f"               'solve_seconds=0', 'out={tmp_path}/run'])\n"
        "print('torch._inductor' in sys.modules)"
    )
    assert printed(code)[-1] == "False"
