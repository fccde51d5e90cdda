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
    "terminal": "core",
    "drawing": "core games",
    "policies": "core kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling drawing policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "rewards": "kernels games rollouts",
    "learners": "core kernels games sampling policies rollouts rewards",
    "runs": "core version config games sampling policies players rollouts search rewards",
    "envs": "core config games players rollouts rewards runs",
    "training": (
        "core config games sampling drawing policies solvers players rollouts search "
        "evaluation rewards learners runs"
    ),
    "commands": (
        "core config games terminal drawing solvers players rollouts search evaluation "
        "runs training"
    ),
    "__init__": "core version config players runs training commands",
    "cli": (
        "core config games terminal drawing players rollouts search evaluation runs "
        "training commands"
    ),
    "web": "core config games drawing solvers players rollouts evaluation runs commands",
    "app": "core version config cli",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1286,
    "rlgames/kernels": 2991,
    "rlgames/version": 3,
    "rlgames/config": 3296,
    "rlgames/games": 5926,
    "rlgames/sampling": 232,
    "rlgames/terminal": 200,
    "rlgames/drawing": 1420,
    "rlgames/policies": 2254,
    "rlgames/solvers": 2406,
    "rlgames/players": 1026,
    "rlgames/rollouts": 1501,
    "rlgames/search": 1890,
    "rlgames/evaluation": 2217,
    "rlgames/rewards": 269,
    "rlgames/learners": 1820,
    "rlgames/runs": 2479,
    "rlgames/envs": 499,
    "rlgames/training": 2463,
    "rlgames/commands": 3834,
    "rlgames/__init__": 188,
    "rlgames/cli": 1565,
    "rlgames/web": 1242,
    "rlgames/app": 278,
    "rlgames/__main__": 15,
    "tests": 3220,
    "tests/cli": 712,
    "tests/commands": 2983,
    "tests/config": 1331,
    "tests/core": 394,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 921,
    "tests/games": 3252,
    "tests/kernels": 659,
    "tests/learners": 1973,
    "tests/players": 756,
    "tests/policies": 1135,
    "tests/rollouts": 665,
    "tests/runs": 2843,
    "tests/search": 1811,
    "tests/solvers": 1303,
    "tests/training": 2470,
    "tests/web": 829,
    "scripts/bench": 1390,
    "scripts/checks": 1206,
    "scripts/docs": 663,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
