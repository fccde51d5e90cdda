"""The house: how many lines each folder may have, and what the folders of the package import.

Both only shrink: whoever makes a folder smaller lowers its number in the same commit, and whoever
removes the last import of a folder removes its name.
"""

IMPORTS = {
    "core": "",
    "kernels": "",
    "config": "core",
    "games": "core kernels",
    "sampling": "core kernels",
    "drawing": "core games",
    "policies": "core kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "rewards": "kernels games rollouts",
    "learners": "core kernels games sampling policies rollouts rewards",
    "runs": "core config games sampling policies players rollouts search rewards",
    "envs": "core config games drawing players rollouts rewards runs",
    "terminal": "core games drawing players rollouts runs",
    "training": (
        "core kernels config games sampling drawing policies solvers players rollouts "
        "search evaluation rewards learners runs"
    ),
    "web": "core config games drawing solvers players rollouts evaluation runs",
    "commands": (
        "core config games drawing solvers players rollouts search evaluation runs "
        "terminal training web"
    ),
    "__init__": "core config games players runs training commands",
    "app": "core config terminal commands",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1188,
    "rlgames/kernels": 2954,
    "rlgames/config": 2540,
    "rlgames/games": 5571,
    "rlgames/sampling": 219,
    "rlgames/drawing": 1013,
    "rlgames/policies": 2034,
    "rlgames/solvers": 2341,
    "rlgames/players": 735,
    "rlgames/rollouts": 1375,
    "rlgames/search": 1726,
    "rlgames/evaluation": 1816,
    "rlgames/rewards": 238,
    "rlgames/learners": 1851,
    "rlgames/runs": 2543,
    "rlgames/envs": 532,
    "rlgames/terminal": 976,
    "rlgames/training": 2235,
    "rlgames/web": 911,
    "rlgames/commands": 4666,
    "rlgames/__init__": 190,
    "rlgames/app": 309,
    "rlgames/__main__": 15,
    "tests": 3181,
    "tests/commands": 2688,
    "tests/config": 1396,
    "tests/core": 340,
    "tests/drawing": 116,
    "tests/envs": 549,
    "tests/evaluation": 777,
    "tests/games": 2263,
    "tests/kernels": 598,
    "tests/learners": 1637,
    "tests/players": 453,
    "tests/policies": 783,
    "tests/rollouts": 444,
    "tests/runs": 2631,
    "tests/search": 1387,
    "tests/solvers": 846,
    "tests/terminal": 654,
    "tests/training": 2220,
    "tests/web": 953,
    "scripts/bench": 1068,
    "scripts/checks": 942,
    "scripts/docs": 620,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
