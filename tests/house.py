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
    "terminal": "core",
    "drawing": "core games",
    "policies": "kernels games",
    "solvers": "core kernels games",
    "players": "core games sampling drawing policies solvers",
    "rollouts": "core kernels games solvers players",
    "search": "core kernels games sampling policies solvers players",
    "evaluation": "core kernels games sampling policies solvers players rollouts",
    "reward_terms": "games rollouts",
    "config": "core reward_terms",
    "rewards": "kernels games rollouts reward_terms",
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
        "core games terminal drawing solvers players rollouts search evaluation config "
        "runs factory training"
    ),
    "__init__": "core version players config runs factory training commands",
    "cli": (
        "core games terminal drawing players rollouts search evaluation config runs "
        "factory training commands"
    ),
    "web": ("core games drawing solvers players rollouts evaluation config runs factory commands"),
    "app": "core version config cli",
    "__main__": "core app",
}
"""The folders and files of the package from the ground up, and all that each imports."""

MAX_LINES = {
    "rlgames/core": 1240,
    "rlgames/kernels": 3135,
    "rlgames/version": 3,
    "rlgames/games": 6225,
    "rlgames/sampling": 232,
    "rlgames/terminal": 200,
    "rlgames/drawing": 1420,
    "rlgames/policies": 2220,
    "rlgames/solvers": 2481,
    "rlgames/players": 1026,
    "rlgames/rollouts": 1555,
    "rlgames/search": 2010,
    "rlgames/evaluation": 2220,
    "rlgames/reward_terms": 138,
    "rlgames/config": 3236,
    "rlgames/rewards": 206,
    "rlgames/learners": 1825,
    "rlgames/runs": 2716,
    "rlgames/factory": 682,
    "rlgames/envs": 499,
    "rlgames/training": 2587,
    "rlgames/commands": 3830,
    "rlgames/__init__": 184,
    "rlgames/cli": 1567,
    "rlgames/web": 1248,
    "rlgames/app": 278,
    "rlgames/__main__": 15,
    "tests": 3396,
    "tests/cli": 712,
    "tests/commands": 2996,
    "tests/config": 1334,
    "tests/core": 425,
    "tests/drawing": 129,
    "tests/envs": 498,
    "tests/evaluation": 921,
    "tests/games": 3412,
    "tests/kernels": 666,
    "tests/learners": 2162,
    "tests/players": 783,
    "tests/policies": 1292,
    "tests/rollouts": 766,
    "tests/runs": 3352,
    "tests/search": 2005,
    "tests/solvers": 1337,
    "tests/training": 2942,
    "tests/web": 829,
    "scripts/bench": 1809,
    "scripts/checks": 1351,
    "scripts/docs": 676,
}
"""The lines of each folder. Files beside the folders of tests count for tests."""

SLACK = 60
"""A folder that is shorter than its number by more lines than this needs a lower number."""
