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
    "learners": "core kernels games sampling policies rollouts rewards",
    "runs": "core version config",
    "factory": (
        "core games sampling policies players rollouts search config rewards learners runs"
    ),
    "envs": "core games players rollouts config rewards factory",
    "training": (
        "core games sampling drawing policies solvers players rollouts evaluation "
        "config rewards learners runs factory"
    ),
    "commands": (
        "core games drawing solvers players rollouts search evaluation config runs factory training"
    ),
    "__init__": "core version players config runs factory training commands",
    "cli": (
        "core games drawing players rollouts search evaluation config runs "
        "factory training commands"
    ),
    "web": ("core games drawing solvers players rollouts evaluation config runs factory commands"),
    "app": "core version config cli",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1488,
    "rlgames/kernels": 3576,
    "rlgames/version": 3,
    "rlgames/games": 6091,
    "rlgames/sampling": 188,
    "rlgames/drawing": 1420,
    "rlgames/policies": 2218,
    "rlgames/solvers": 2463,
    "rlgames/players": 1044,
    "rlgames/rollouts": 1634,
    "rlgames/search": 2004,
    "rlgames/evaluation": 1934,
    "rlgames/reward_terms": 138,
    "rlgames/config": 3756,
    "rlgames/rewards": 194,
    "rlgames/learners": 1825,
    "rlgames/runs": 2725,
    "rlgames/factory": 684,
    "rlgames/envs": 500,
    "rlgames/training": 2682,
    "rlgames/commands": 3777,
    "rlgames/__init__": 180,
    "rlgames/cli": 3232,
    "rlgames/web": 1256,
    "rlgames/__main__": 15,
    "tests": 3387,
    "tests/cli": 1078,
    "tests/commands": 3125,
    "tests/config": 2139,
    "tests/core": 425,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 1024,
    "tests/games": 3342,
    "tests/kernels": 861,
    "tests/learners": 2163,
    "tests/players": 816,
    "tests/policies": 1297,
    "tests/rollouts": 767,
    "tests/runs": 3675,
    "tests/search": 2040,
    "tests/solvers": 1230,
    "tests/training": 2980,
    "tests/web": 814,
    "scripts/bench": 1753,
    "scripts/checks": 1398,
    "scripts/docs": 808,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
