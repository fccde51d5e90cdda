"""Runs as `rlgames report` finds them, by their files."""

import json

from helpers import write_report

GAME = {"name": "salvo", "board": 4, "ships": [4, 2], "shots": 2}
SWEEP = [(0.1, 0, 5.0), (0.1, 1, 6.0), (0.1, 2, 5.5), (0.2, 0, 4.5), (0.2, 1, 4.75), (0.2, 2, 5.0)]
"""Two values of lr with three seeds each, and the turns that each run reaches."""


def write_run(path, status="done", turns=(5.0,), results=None, facts=(), lines=(), **settings):
    """A run as its files; turns: of its evaluations, every 100 games, the last that of its best
    checkpoint; the final network takes one more. lines: more of its metrics."""
    path.mkdir(parents=True)
    config = {"game": GAME, "learner": {"name": "td", "rate": 1.0}, "games": 400, "lr": 0.1}
    config |= {"seed": 0} | settings | {"out": str(path)}
    times = {"time/seconds": 2.0, "time/moves": 700.0, "time/updates": 1}
    log = [
        {"games": 100 * n, "eval/turns": turn} | {name: n * each for name, each in times.items()}
        for n, turn in enumerate(turns, 1)
    ]
    text = "".join(json.dumps(line) + "\n" for line in (*log, *lines))
    (path / "metrics.jsonl").write_text(text)
    run = {"status": status, "metric": "turns", "best_by": "turns", "config": config}
    if status == "done":
        run |= {"seconds": 9.0}
        best = {"turns": turns[-1], "optimal": 4.0, "checkpoint_games": 300}
        write_report(path, "train_best", results or best)
        if not results:
            write_report(path, "train_final", {"turns": turns[-1] + 1.0})
    (path / "run.json").write_text(json.dumps(run | dict(facts)))
    return path


def reported(typed, *words):
    """What `rlgames report` prints."""
    said = typed("report", *words)
    assert said.returncode == 0, said.stderr
    return said.stdout
