"""The house: how many lines each folder may have, and what the folders of the package import.

Both only shrink: whoever makes a folder smaller lowers its number in the same commit, and whoever
removes the last import of a folder removes its name.
"""

IMPORTS = {
    "core": "",
    "kernels": "",
    "version": "",
    "games": "core kernels",
    "sampling": "core kernels",
    "drawing": "core games",
    "policies": "core kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling drawing policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "reward_terms": "games rollouts",
    "config": "core reward_terms",
    "rewards": "kernels games rollouts reward_terms",
    "learners": "core kernels games sampling policies rollouts rewards",
    "runs": "core version games sampling policies players rollouts search config rewards",
    "envs": "core games players rollouts config rewards runs",
    "training": (
        "core games sampling drawing policies solvers players rollouts search "
        "evaluation config rewards learners runs"
    ),
    "commands": (
        "core games drawing solvers players rollouts search evaluation config runs training"
    ),
    "__init__": "core version players config runs training commands",
    "cli": ("core games drawing players rollouts search evaluation config runs training commands"),
    "web": "core games drawing solvers players rollouts evaluation config runs commands",
    "app": "core version config cli",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1560,
    "rlgames/kernels": 3135,
    "rlgames/version": 3,
    "rlgames/games": 6225,
    "rlgames/sampling": 232,
    "rlgames/drawing": 1420,
    "rlgames/policies": 2318,
    "rlgames/solvers": 2481,
    "rlgames/players": 1026,
    "rlgames/rollouts": 1580,
    "rlgames/search": 2039,
    "rlgames/evaluation": 1918,
    "rlgames/reward_terms": 138,
    "rlgames/config": 3284,
    "rlgames/rewards": 206,
    "rlgames/learners": 1825,
    "rlgames/runs": 3088,
    "rlgames/envs": 499,
    "rlgames/training": 2542,
    "rlgames/commands": 3401,
    "rlgames/__init__": 188,
    "rlgames/cli": 2262,
    "rlgames/web": 1243,
    "rlgames/app": 278,
    "rlgames/__main__": 15,
    "tests": 3283,
    "tests/cli": 707,
    "tests/commands": 3074,
    "tests/config": 1331,
    "tests/core": 424,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 1007,
    "tests/games": 3412,
    "tests/kernels": 665,
    "tests/learners": 2159,
    "tests/players": 815,
    "tests/policies": 1292,
    "tests/rollouts": 766,
    "tests/runs": 3354,
    "tests/search": 2004,
    "tests/solvers": 1337,
    "tests/training": 2470,
    "tests/web": 829,
    "scripts/bench": 1404,
    "scripts/checks": 1363,
    "scripts/docs": 664,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
