"""What a command imports before it answers, and before it learns."""

import subprocess
import sys
from pathlib import Path

import pytest


def printed(code):
    """What Python prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from rlgames.commands import app as cli\n"
        "for words in (['--help'], ['train', '--help', 'learner=td'], ['gmes']):\n"
        "    sys.argv = ['rlgames', *words]\n"
        "    try: cli.main()\n"
        "    except SystemExit: pass\n"
        "print([name for name in ('torch', 'hydra', 'omegaconf', 'tensorboard', 'rich', 'numpy',\n"
        "                        'numba')\n"
        "       if name in sys.modules])"
    )
    assert printed(code)[-1] == "[]"


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
