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
    "rlgames/core": 1200,
    "rlgames/kernels": 2982,
    "rlgames/config": 2912,
    "rlgames/games": 5884,
    "rlgames/sampling": 231,
    "rlgames/drawing": 1205,
    "rlgames/policies": 2253,
    "rlgames/solvers": 2407,
    "rlgames/players": 755,
    "rlgames/rollouts": 1504,
    "rlgames/search": 1890,
    "rlgames/evaluation": 1924,
    "rlgames/rewards": 269,
    "rlgames/learners": 1893,
    "rlgames/runs": 2656,
    "rlgames/envs": 541,
    "rlgames/terminal": 1014,
    "rlgames/training": 2248,
    "rlgames/web": 1041,
    "rlgames/commands": 5067,
    "rlgames/__init__": 210,
    "rlgames/app": 385,
    "rlgames/__main__": 15,
    "tests": 3209,
    "tests/commands": 2864,
    "tests/config": 1469,
    "tests/core": 368,
    "tests/drawing": 116,
    "tests/envs": 572,
    "tests/evaluation": 886,
    "tests/games": 2444,
    "tests/kernels": 599,
    "tests/learners": 1722,
    "tests/players": 509,
    "tests/policies": 868,
    "tests/rollouts": 444,
    "tests/runs": 2566,
    "tests/search": 1495,
    "tests/solvers": 918,
    "tests/terminal": 677,
    "tests/training": 2203,
    "tests/web": 977,
    "scripts/bench": 1152,
    "scripts/checks": 1005,
    "scripts/docs": 731,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
