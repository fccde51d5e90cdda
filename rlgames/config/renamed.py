"""Former names of options, keys and values, each with its present name.

Errors name the present name where a former one is typed, and old checkpoints are migrated by these
tables. Keys and values belong to a group of options, or to "train" for the keys of a training that
belong to no group. Players under other keys (opponent, teacher) and opponent_search use the entries
of their group.
"""

from __future__ import annotations

RENAMED_OPTIONS: dict[str, dict[str, str]] = {
    "learner": {
        "actor_critic": "ppo",
        "expert": "alphazero",
        "clone": "behavior_cloning",
        "q": "dqn",
    },
    "policy": {"basis": "linear"},
    "experiment": {
        "2048_actor_critic": "2048_ppo",
        "connect4_expert": "connect4_alphazero",
        "dedieu_amar_adp_clone": "dedieu_amar_adp_cloning",
        "dedieu_amar_q": "dedieu_amar_dqn",
        "ramesh_case1_q": "ramesh_case1_dqn",
        "salvo_expert": "salvo_alphazero",
        "tictactoe_expert": "tictactoe_alphazero",
        "tictactoe_q": "tictactoe_dqn",
    },
}
"""By group: the former name of an option, and its present one."""

RENAMED_KEYS: dict[str, dict[str, str]] = {
    "train": {
        "start": "init_from",
        "demonstrated": "demos_per_batch",
        "restarts": "restart_fraction",
    },
    "learner": {
        "clip": "clip_range",
        "entropy": "entropy_coef",
        "entropy_end": "entropy_coef_end",
        "frozen": "frozen_tuples",
        "max_norm": "max_grad_norm",
        "memory": "buffer_size",
        "rates": "step_size",
        "rewards": "n_step",
        "share": "sample_fraction",
        "standardise": "standardize",
        "target_step": "polyak_tau",
        "updates": "updates_per_batch",
        "value_weight": "value_coef",
    },
    "policy": {
        "entries": "table_size",
        "marks": "num_cell_values",
        "start": "init_value",
    },
    "search": {
        "concentration": "dirichlet_total",
        "exploration": "c_puct",
        "least": "min_probability",
        "noise": "dirichlet_fraction",
        "parallel": "num_parallel",
    },
}
"""By group, or "train": the former name of a key, and its present one."""

RENAMED_VALUES: dict[str, dict[str, dict[str, str]]] = {
    "learner": {
        "baseline": {"standardised": "standardized"},
        "optimizer": {"rmsprop_of_matrices": "rmsprop_per_matrix"},
        "step_size": {"coherence": "temporal_coherence"},
    },
    "reward": {"scored": {"gain": "score_delta", "log_gain": "log_score_delta"}},
    "search": {"rule": {"fading": "dedieu_amar"}},
}
"""By group and present key: the former name of a value, and its present one."""
