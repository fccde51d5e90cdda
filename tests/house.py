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
    "__init__": "core config players runs training commands",
    "app": "core config terminal commands",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1251,
    "rlgames/kernels": 2972,
    "rlgames/config": 2852,
    "rlgames/games": 5892,
    "rlgames/sampling": 231,
    "rlgames/drawing": 1114,
    "rlgames/policies": 2253,
    "rlgames/solvers": 2407,
    "rlgames/players": 755,
    "rlgames/rollouts": 1504,
    "rlgames/search": 1890,
    "rlgames/evaluation": 1865,
    "rlgames/rewards": 269,
    "rlgames/learners": 1820,
    "rlgames/runs": 2442,
    "rlgames/envs": 499,
    "rlgames/terminal": 997,
    "rlgames/training": 2340,
    "rlgames/web": 980,
    "rlgames/commands": 5319,
    "rlgames/__init__": 195,
    "rlgames/app": 397,
    "rlgames/__main__": 15,
    "tests": 3320,
    "tests/commands": 2975,
    "tests/config": 1449,
    "tests/core": 394,
    "tests/drawing": 129,
    "tests/envs": 465,
    "tests/evaluation": 855,
    "tests/games": 2973,
    "tests/kernels": 624,
    "tests/learners": 1973,
    "tests/players": 598,
    "tests/policies": 1135,
    "tests/rollouts": 665,
    "tests/runs": 2543,
    "tests/search": 1811,
    "tests/solvers": 1115,
    "tests/terminal": 717,
    "tests/training": 2157,
    "tests/web": 776,
    "scripts/bench": 1388,
    "scripts/checks": 1145,
    "scripts/docs": 626,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
