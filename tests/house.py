"""The house: how many lines each folder may have, and what the folders of the package import.

Both only shrink: whoever makes a folder smaller lowers its number in the same commit, and whoever
removes the last import of a folder removes its name.
"""

IMPORTS = {
    "core": "",
    "kernels": "core",
    "config": "core",
    "games": "core kernels",
    "sampling": "core kernels",
    "drawing": "core games",
    "policies": "core kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling policies solvers",
    "rollouts": "core kernels games players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "rewards": "games rollouts",
    "learners": "core kernels games sampling policies rollouts rewards",
    "runs": "core config games sampling policies players rollouts search rewards",
    "envs": "core config games drawing players rollouts rewards runs",
    "terminal": "core games drawing players rollouts runs",
    "training": (
        "core config games sampling drawing policies solvers players rollouts "
        "search evaluation rewards learners runs"
    ),
    "web": "core config games drawing solvers players rollouts evaluation runs",
    "commands": (
        "core config games drawing solvers players rollouts search evaluation runs "
        "terminal training web"
    ),
    "__init__": "core config games players runs training commands",
    "__main__": "core commands",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1318,
    "rlgames/kernels": 3040,
    "rlgames/config": 2561,
    "rlgames/games": 5618,
    "rlgames/sampling": 219,
    "rlgames/drawing": 1013,
    "rlgames/policies": 2061,
    "rlgames/solvers": 2338,
    "rlgames/players": 726,
    "rlgames/rollouts": 1448,
    "rlgames/search": 1713,
    "rlgames/evaluation": 1815,
    "rlgames/rewards": 233,
    "rlgames/learners": 1851,
    "rlgames/runs": 2555,
    "rlgames/envs": 528,
    "rlgames/terminal": 982,
    "rlgames/training": 2211,
    "rlgames/web": 911,
    "rlgames/commands": 5001,
    "rlgames/__init__": 187,
    "rlgames/__main__": 15,
    "tests": 3181,
    "tests/commands": 2665,
    "tests/config": 1410,
    "tests/core": 315,
    "tests/drawing": 116,
    "tests/envs": 546,
    "tests/evaluation": 777,
    "tests/games": 2264,
    "tests/kernels": 661,
    "tests/learners": 1654,
    "tests/players": 453,
    "tests/policies": 783,
    "tests/rollouts": 444,
    "tests/runs": 2608,
    "tests/search": 1387,
    "tests/solvers": 872,
    "tests/terminal": 648,
    "tests/training": 2188,
    "tests/web": 953,
    "scripts/bench": 991,
    "scripts/checks": 914,
    "scripts/docs": 613,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
