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
    "policies": "kernels games",
    "runs": "core version config",
    "solvers": "core kernels games",
    "players": "core games sampling drawing policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "rewards": "kernels games rollouts",
    "learners": "core kernels games sampling policies rollouts rewards",
    "factory": (
        "core config games sampling policies runs players rollouts search rewards learners"
    ),
    "envs": "core config games players rollouts rewards factory",
    "training": (
        "core config games sampling drawing policies runs solvers players rollouts "
        "evaluation rewards learners factory"
    ),
    "commands": (
        "core config games drawing runs solvers players rollouts search evaluation factory training"
    ),
    "__init__": "core version config runs players factory training commands",
    "cli": (
        "core config games drawing runs players rollouts search evaluation factory "
        "training commands"
    ),
    "web": ("core config games drawing runs solvers players rollouts evaluation factory commands"),
    "app": "core version config cli",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1488,
    "rlgames/kernels": 3132,
    "rlgames/version": 3,
    "rlgames/config": 3248,
    "rlgames/games": 6225,
    "rlgames/sampling": 232,
    "rlgames/drawing": 1420,
    "rlgames/policies": 2173,
    "rlgames/runs": 2716,
    "rlgames/solvers": 2481,
    "rlgames/players": 1026,
    "rlgames/rollouts": 1519,
    "rlgames/search": 1999,
    "rlgames/evaluation": 1917,
    "rlgames/rewards": 273,
    "rlgames/learners": 1826,
    "rlgames/factory": 682,
    "rlgames/envs": 499,
    "rlgames/training": 2673,
    "rlgames/commands": 3393,
    "rlgames/__init__": 184,
    "rlgames/cli": 2261,
    "rlgames/web": 1247,
    "rlgames/app": 278,
    "rlgames/__main__": 15,
    "tests": 3377,
    "tests/cli": 707,
    "tests/commands": 3074,
    "tests/config": 1334,
    "tests/core": 425,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 1007,
    "tests/games": 3412,
    "tests/kernels": 665,
    "tests/learners": 2075,
    "tests/players": 816,
    "tests/policies": 1181,
    "tests/rollouts": 727,
    "tests/runs": 3352,
    "tests/search": 2004,
    "tests/solvers": 1337,
    "tests/training": 2942,
    "tests/web": 829,
    "scripts/bench": 1809,
    "scripts/checks": 1363,
    "scripts/docs": 676,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
