"""The house: what the folders of the package import.

Whoever removes the last import of a folder removes its name in the same commit.
"""

IMPORTS = {
    "core": "",
    "kernels": "core",
    "rng": "kernels",
    "config": "core",
    "games": "core kernels rng",
    "sampling": "core kernels rng",
    "drawing": "core games",
    "policies": "kernels games",
    "solvers": "core kernels games",
    "players": "core rng games sampling policies solvers",
    "rollouts": "core kernels rng games sampling players",
    "search": "core kernels rng config games sampling policies solvers players",
    "evaluation": "core rng games sampling policies solvers players rollouts",
    "rewards": "games rollouts",
    "learners": "core kernels rng config games sampling policies players rollouts search rewards",
    "runs": "core config evaluation",
    "build": "core rng config games sampling policies players search rewards runs",
    "envs": "core rng config games drawing players rollouts rewards build",
    "terminal": "core rng games drawing players rollouts evaluation runs",
    "training": (
        "core rng config games sampling drawing policies "
        "solvers players rollouts search evaluation learners runs build"
    ),
    "web": "core rng config games drawing solvers players rollouts evaluation runs build terminal",
    "export": "core kernels games sampling drawing policies players search web",
    "commands": (
        "core rng config games drawing solvers players "
        "rollouts search evaluation runs build terminal training web export"
    ),
    "__init__": "core config games players runs build training commands",
    "__main__": "core commands",
}
"""The folders and files of the package from the ground up, and all that each imports."""
