"""The house: how many lines each folder may have, and what the folders of the package import.

Both only shrink: whoever makes a folder smaller lowers its number in the same commit, and whoever
removes the last import of a folder removes its name.
"""

IMPORTS = {
    "core": "",
    "kernels": "",
    "version": "",
    "games": "core kernels",
    "sampling": "core",
    "drawing": "core games",
    "policies": "kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling drawing policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "reward_terms": "games rollouts",
    "config": "core reward_terms",
    "rewards": "games rollouts reward_terms",
    "learners": "core kernels games sampling policies solvers rollouts rewards",
    "runs": "core version config",
    "factory": (
        "core games sampling policies players rollouts search config rewards learners runs"
    ),
    "envs": "core games players rollouts config rewards factory",
    "training": (
        "core games sampling drawing policies solvers players rollouts evaluation "
        "config rewards learners runs factory"
    ),
    "sweeps": "core rollouts config runs factory training",
    "commands": (
        "core version games drawing policies solvers players rollouts search evaluation "
        "config runs factory training sweeps"
    ),
    "cli": (
        "core version games drawing solvers players rollouts search evaluation config "
        "runs factory training sweeps commands"
    ),
    "web": ("core games drawing solvers players rollouts evaluation config runs factory commands"),
    "__init__": "core version players config runs factory training commands cli",
    "__main__": "core cli",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1870,
    "rlgames/kernels": 3576,
    "rlgames/version": 3,
    "rlgames/games": 6111,
    "rlgames/sampling": 188,
    "rlgames/drawing": 1437,
    "rlgames/policies": 2357,
    "rlgames/solvers": 2748,
    "rlgames/players": 1078,
    "rlgames/rollouts": 1656,
    "rlgames/search": 2004,
    "rlgames/evaluation": 2011,
    "rlgames/reward_terms": 138,
    "rlgames/config": 3779,
    "rlgames/rewards": 194,
    "rlgames/learners": 2176,
    "rlgames/runs": 3282,
    "rlgames/factory": 791,
    "rlgames/envs": 500,
    "rlgames/training": 3098,
    "rlgames/sweeps": 1066,
    "rlgames/commands": 4611,
    "rlgames/cli": 4617,
    "rlgames/web": 1257,
    "rlgames/__init__": 201,
    "rlgames/__main__": 19,
    "tests": 3600,
    "tests/cli": 1305,
    "tests/commands": 4691,
    "tests/config": 2192,
    "tests/core": 858,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 1054,
    "tests/games": 3342,
    "tests/kernels": 861,
    "tests/learners": 2202,
    "tests/players": 668,
    "tests/policies": 1570,
    "tests/rollouts": 737,
    "tests/runs": 3905,
    "tests/search": 2040,
    "tests/solvers": 1404,
    "tests/sweeps": 1093,
    "tests/training": 3300,
    "tests/web": 814,
    "scripts/bench": 1759,
    "scripts/checks": 1430,
    "scripts/docs": 918,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
