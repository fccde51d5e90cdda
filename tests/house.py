"""The house: how many lines each folder may have, and what the folders of the package import.

Both only shrink: whoever makes a folder smaller lowers its number in the same commit, and whoever
removes the last import of a folder removes its name.
"""

IMPORTS = {
    "core": "",
    "kernels": "",
    "version": "",
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
    "runs": "core version config games sampling policies players rollouts search rewards",
    "envs": "core config games players rollouts rewards runs",
    "terminal": "core games drawing players rollouts runs",
    "training": (
        "core config games sampling drawing policies solvers players rollouts search "
        "evaluation rewards learners runs"
    ),
    "web": "core config games drawing solvers players rollouts evaluation runs",
    "commands": (
        "core config games drawing solvers players rollouts search evaluation runs "
        "terminal training web"
    ),
    "__init__": "core version config players runs training commands",
    "app": "core version config terminal commands",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1237,
    "rlgames/kernels": 2991,
    "rlgames/version": 3,
    "rlgames/config": 2856,
    "rlgames/games": 5926,
    "rlgames/sampling": 232,
    "rlgames/drawing": 1114,
    "rlgames/policies": 2265,
    "rlgames/solvers": 2406,
    "rlgames/players": 763,
    "rlgames/rollouts": 1547,
    "rlgames/search": 1895,
    "rlgames/evaluation": 2071,
    "rlgames/rewards": 273,
    "rlgames/learners": 1825,
    "rlgames/runs": 2490,
    "rlgames/envs": 499,
    "rlgames/terminal": 997,
    "rlgames/training": 2484,
    "rlgames/web": 964,
    "rlgames/commands": 5356,
    "rlgames/__init__": 188,
    "rlgames/app": 397,
    "rlgames/__main__": 15,
    "tests": 3215,
    "tests/cli": 422,
    "tests/commands": 2970,
    "tests/config": 1437,
    "tests/core": 394,
    "tests/drawing": 129,
    "tests/envs": 465,
    "tests/evaluation": 921,
    "tests/games": 3252,
    "tests/kernels": 659,
    "tests/learners": 2065,
    "tests/players": 634,
    "tests/policies": 1181,
    "tests/rollouts": 727,
    "tests/runs": 2841,
    "tests/search": 1930,
    "tests/solvers": 1303,
    "tests/terminal": 412,
    "tests/training": 2470,
    "tests/web": 776,
    "scripts/bench": 1390,
    "scripts/checks": 1205,
    "scripts/docs": 667,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
