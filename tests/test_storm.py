"""Commands that are killed at random moments and typed again end as if they had not been killed.

`make storm` kills 1,000 of them.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import time

import psutil
import pytest
from processes import Process, has_ended
from run_files import final_state, metrics_without_times, same, tensorboard_events

from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import LATEST, SWEEP_FILE
from rlgames.runs.reports import read_report, report_names

KILLS = int(os.environ.get("KILLS", "3"))
"""Of each kind."""

EXIT_SECONDS = 15.0
"""How long a command may live after a signal, and then its processes."""

COMMAND_SECONDS = 120.0
"""A command that has not ended by then, after a signal to a part of it, hangs."""

SIGNALS = {signal.SIGKILL: 7, signal.SIGTERM: 1, signal.SIGINT: 1, signal.SIGHUP: 1}
TARGETS = {"main": 6, "child": 2, "group": 2}
"""What is killed, with weights."""

SMALL = "experiment=null solve_seconds=0 eval_games=20 batch=20"
NETWORK = f"policy=mlp policy.layers=[8] {SMALL}"
SALVO = f"train game=salvo board=3 ships=[2] shots=1 {NETWORK}"
TICTACTOE = f"train game=tictactoe reward=outcome {NETWORK}"
CONNECT4 = f"train game=connect4 rows=4 columns=4 line=3 reward=outcome {NETWORK}"
SLIDE = f"train game=2048 board=2 {SMALL}"
SAVES = "log_every=40 eval_every=200 save_every=60"

KINDS = {
    "ppo": f"{SALVO} games=600 {SAVES}",
    "dqn": f"{TICTACTOE} learner=dqn sampling=epsilon_greedy games=400 learner.buffer_size=200 "
    f"learner.minibatch_size=16 {SAVES}",
    "td_ntuple": f"{SLIDE} learner=td_ntuple policy=ntuple sampling=argmax games=600 "
    f"restart_fraction=0.5 window=4 {SAVES}",
    "alphazero": f"{TICTACTOE} learner=alphazero search=mcts games=400 search.simulations=4 "
    "search.leaf=value learner.buffer_size=500 learner.updates_per_batch=4 "
    f"learner.minibatch_size=32 {SAVES}",
    "adp": f"{SLIDE} columns=2 target=32 learner=adp policy=linear games=600 reward=score "
    f"sampling=epsilon_greedy {SAVES}",
    "behavior_cloning": f"{CONNECT4} learner=behavior_cloning teacher=win_or_block games=600 "
    f"{SAVES}",
    "past_selves": f"{CONNECT4} opponent=past opponent.every=100 games=400 keep_every=100 {SAVES}",
    "sweep": f"{SALVO} -m games=200 log_every=40 eval_every=100 seed=0,1",
    "eval": "eval run games=20000 batch=125 threads=2 solve_seconds=0",
}
"""The commands of runs of a few seconds, by kind."""

SETUP = {"eval": f"{SALVO} games=40 log_every=40 out=run"}
"""The training that a kind needs."""


class Command(Process):
    """A command in its own session; a context that no process of it outlives."""

    def __init__(self, folder, words):
        super().__init__(folder, *words, prepare=os.setsid)

    def ends_in(self, seconds):
        deadline = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.code is not None

    def family(self):
        """The processes of the session that have not ended, orphans too."""
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(ProcessLookupError):
                if not has_ended(pid) and os.getsid(pid) == self.pid:
                    found.append(pid)
        return found

    def kill(self, number, target, rng):
        """Send a signal to the command, to a descendant if there is any, or to its group."""
        children = [pid for pid in self.family() if pid != self.pid]
        with contextlib.suppress(ProcessLookupError):
            if target == "group":
                os.killpg(self.pid, number)
            else:
                os.kill(
                    rng.choice(children) if target == "child" and children else self.pid, number
                )

    def left(self):
        """The command lines of the processes that outlive the command."""
        deadline = time.monotonic() + EXIT_SECONDS
        while (pids := self.family()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return [psutil.Process(pid).cmdline() for pid in pids]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while pids := self.family():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.ends_in(0.01)


def words_of(name, folder):
    """The command that starts a run of a kind or, if it has begun, resumes it."""
    words, run = KINDS[name].split(), folder / "run"
    if words[0] == "eval":
        return words
    has_begun = (run / SWEEP_FILE).exists() or (run / "checkpoints" / LATEST).exists()
    return ["resume", "run"] if has_begun else [*words, "out=run"]


def run_whole(folder, words):
    """The seconds that a command takes without a kill."""
    begun = time.monotonic()
    with Command(folder, words) as command:
        assert command.ends_in(COMMAND_SECONDS)
        assert command.code == 0, command.output()
        assert not command.left()
    return time.monotonic() - begun


def saved_games(folder):
    """The games of each latest checkpoint, all of which can be read."""
    return {path: Checkpoint.read(path).games for path in folder.rglob(LATEST)}


def strike(command, folder, rng, seconds):
    """Kill a command unless it ends before: whether it did, the exit codes that are right, and the
    games that were saved by then."""
    number = rng.choices([*SIGNALS], [*SIGNALS.values()])[0]
    target = rng.choices([*TARGETS], [*TARGETS.values()])[0]
    if command.ends_in(rng.uniform(0.05, 1.2 * seconds)):
        return False, {0}, {}
    saved = saved_games(folder)
    command.kill(number, target, rng)
    assert command.ends_in(COMMAND_SECONDS if target == "child" else EXIT_SECONDS)
    return True, {0, -number, 128 + number, *([3] if target == "child" else [])}, saved


def results(run):
    """What the reports of a run say, in which NaN equals itself, except times."""
    reports = {name: read_report(run, name).result for name in report_names(run)}
    for result in reports.values():
        for name in ("seconds", "moves_per_s"):
            result.pop(name, None)
    return json.dumps(reports)


def files(run):
    """The names of what a run leaves. An evaluation that was killed leaves its temporary file,
    because it does not own the run."""
    found = (path for path in run.rglob("*") if not path.match("reports/*.json.*.tmp"))
    return {path.name for path in found if not path.name.startswith("events.")}


def check_alike(one, two):
    """The runs in two folders, which may be sweeps, are the same except for times."""
    runs = [
        sorted(path.parent.relative_to(out) for path in out.rglob("run.json")) for out in (one, two)
    ]
    assert runs[0] == runs[1]
    for name in runs[0]:
        first, second = one / name, two / name
        same(final_state(first), final_state(second))
        for told in (metrics_without_times, tensorboard_events, results, files):
            assert told(first) == told(second)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_killed_runs_end_as_if_they_had_not_been_killed(name, tmp_path):
    (tmp_path / "setup").mkdir()
    if name in SETUP:
        run_whole(tmp_path / "setup", SETUP[name].split())
    whole, folder = (shutil.copytree(tmp_path / "setup", tmp_path / n) for n in ("whole", "killed"))
    seconds = run_whole(whole, words_of(name, whole))
    rng, kills = random.Random(name), 0
    while kills < KILLS:
        code = None
        while code != 0:
            with Command(folder, words_of(name, folder)) as command:
                is_killed, codes, saved = False, {0}, {}
                if kills < KILLS:
                    is_killed, codes, saved = strike(command, folder, rng, seconds)
                assert command.ends_in(COMMAND_SECONDS)
                assert not command.left()
            kills, code, (output, _) = kills + is_killed, command.code, command.output()
            assert code in codes, output
            # Ctrl-C in a destructor, of which Python only tells.
            assert output.count("Traceback") <= output.count("Exception ignored"), output
            now = saved_games(folder)
            assert all(now[path] >= games for path, games in saved.items())
        check_alike(whole, folder)
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "setup", folder)
