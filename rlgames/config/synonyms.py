"""What Stable-Baselines3, CleanRL, RLlib, TorchRL and OpenSpiel call the keys and options here.

Only error messages use these tables; other libraries' names cannot be typed. Names are compared
without regard to case, dashes and underscores.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

from rlgames.config.registry import REGISTRY, group_of


@dataclass(frozen=True)
class KeySynonym:
    """A key here, as it is typed; note: how it differs from what the other name means."""

    key: str
    note: str = ""


_SAME: dict[str, str] = {
    "reward.discount": "gamma discount discount_factor",
    "games": "episodes num_episodes n_episodes total_episodes",
    "batch": "num_envs n_envs num_games",
    "window": "n_steps num_steps rollout_fragment_length",
    "lr": "learning_rate alpha step_size optim_lr",
    "learner.lr_end": "final_lr",
    "learner.entropy_coef": "entropy_coef ent_coef entropy_coeff entropy_cost entropy_bonus",
    "learner.value_coef": "vf_coef vf_coeff vf_loss_coeff critic_coef critic_coeff value_coef"
    " value_loss_coef",
    "learner.clip_range": "clip clip_range clip_coef clip_param clip_epsilon clip_eps",
    "learner.max_grad_norm": "max_grad_norm grad_clip grad_clipping clip_grad_norm max_norm",
    "learner.gae_lambda": "gae_lambda gae_lam lambda lambda_ lmbda lam",
    "learner.td_lambda": "td_lambda lambda lambda_ lmbda lam",
    "learner.epochs": "n_epochs num_epochs update_epochs ppo_epochs num_sgd_iter epochs",
    "learner.minibatches": "num_minibatches n_minibatches minibatches nminibatches",
    "learner.minibatch": "minibatch minibatch_size sgd_minibatch_size mini_batch_size",
    "learner.buffer_size": "buffer_size replay_buffer_size replay_buffer_capacity memory_size",
    "learner.polyak_tau": "tau polyak polyak_tau soft_update_tau",
    "learner.updates_per_batch": "gradient_steps updates_per_batch",
    "learner.n_step": "n_step nstep n_step_returns",
    "learner.optimizer": "optimizer optim optimizer_class",
    "learner.baseline": "baseline",
    "sampling.epsilon": "epsilon eps exploration_initial_eps start_e initial_epsilon",
    "sampling.epsilon_end": "exploration_final_eps end_e final_epsilon",
    "sampling.temperature": "temperature",
    "policy.layers": "layers hidden_sizes hidden_dim hidden_size num_cells net_arch fcnet_hiddens"
    " mlp_units",
    "policy.channels": "channels num_filters conv_filters",
    "policy.activation": "activation activation_fn fcnet_activation",
    "policy": "model network net architecture actor",
    "learner": "algo algorithm agent trainer",
    "game": "env env_id env_name gym_id environment task",
    "opponent": "adversary rival",
    "search.simulations": "simulations num_simulations max_simulations n_simulations rollout_count"
    " num_rollouts",
    "search.c_puct": "c_puct",
    "search.dirichlet_fraction": "noise_epsilon root_exploration_fraction dirichlet_epsilon",
    "search.max_num_considered_actions": "max_considered_actions num_considered_actions",
    "search.c_visit": "maxvisit_init",
    "eval_every": "eval_freq eval_interval evaluation_interval eval_frequency",
    "eval_games": "n_eval_episodes eval_episodes evaluation_duration num_eval_episodes",
    "save_every": "save_freq save_interval checkpoint_freq checkpoint_frequency checkpoint_every",
    "log_every": "log_interval log_freq logging_interval",
    "init_from": "load load_path pretrained warm_start",
    "checkpoint": "ckpt load_best",
    "out": "output output_dir save_dir save_path log_dir logdir run_dir exp_name experiment_name"
    " tensorboard_log",
    "threads": "num_threads n_cpu",
    "engine.actors": "actors num_actors num_env_runners num_rollout_workers",
    "engine.address": "address ray_address",
    "device": "cuda gpu use_cuda accelerator",
}
"""By the key: names for the same thing."""

_SIMILAR: tuple[tuple[str, str, str], ...] = (
    (
        "games",
        "it counts games, not moves",
        "steps timesteps total_timesteps total_steps num_timesteps max_steps total_frames",
    ),
    ("games", "it counts games, not batches", "num_iterations iterations"),
    (
        "batch",
        "it counts the games between two updates; learner.minibatch or learner.minibatches"
        " divides them",
        "batch_size",
    ),
    ("batch", "it counts games, not moves", "train_batch_size frames_per_batch"),
    (
        "learner.minibatches",
        "it is the number of minibatches, not their size",
        "minibatch_size sgd_minibatch_size mini_batch_size",
    ),
    ("learner.lr_end", "learner.lr_end=0 decays to 0 linearly", "lr_schedule anneal_lr"),
    (
        "learner.target_every",
        "it counts gradient steps",
        "target_update_interval target_network_frequency target_network_update_freq",
    ),
    ("learner.updates_per_batch", "it counts gradient steps per batch of games", "utd_ratio"),
    (
        "search.c_puct",
        "values are 0 to 1 here, not -1 to 1",
        "cpuct uct_c puct_c pb_c_init",
    ),
    (
        "search.dirichlet_total",
        "it is alpha times the number of legal actions",
        "dirichlet_alpha root_dirichlet_alpha",
    ),
    (
        "init_from",
        "it takes the weights alone; rlgames resume RUN resumes a run",
        "resume_from restore",
    ),
    ("threads", "a sweep runs jobs in parallel with hydra/launcher=joblib", "num_workers n_jobs"),
)
"""A key, how it differs, and names for what is not quite the same."""

_OPTIONS: dict[str, dict[str, str]] = {
    "learner": {
        "ppo": "ppo2 appo ppo_clip actor_critic",
        "a2c": "a3c advantage_actor_critic",
        "reinforce": "pg vpg policy_gradient",
        "dqn": "ddqn double_dqn q_learning qlearning",
        "td": "td0 tabular temporal_difference",
        "alphazero": "az expert_iteration exit",
        "behavior_cloning": "bc cloning imitation behaviour_cloning",
    },
    "policy": {
        "mlp": "mlp_policy fc fcnet dense",
        "conv": "cnn cnn_policy convnet resnet",
        "table": "tabular lookup",
        "ntuple": "ntuple_network",
    },
    "sampling": {
        "argmax": "greedy deterministic max",
        "stochastic": "softmax boltzmann sample categorical",
        "epsilon_greedy": "egreedy eps_greedy",
    },
    "search": {
        "mcts": "alphazero_mcts puct uct tree_search",
        "expectimax": "expectiminimax",
        "alphabeta": "minimax negamax",
    },
    "game": {
        "tictactoe": "ttt noughts_and_crosses",
        "connect4": "connect_four four_in_a_row",
        "othello": "reversi",
        "gomoku": "five_in_a_row gobang",
        "battleship": "battleships",
        "2048": "twenty_forty_eight game_2048",
    },
    "player": {
        "exact": "optimal perfect minimax solver alphabeta",
        "self": "selfplay self_play",
        "past": "league fictitious",
        "human": "me person player",
    },
    "reward": {"outcome": "win_loss result", "score": "points"},
}
"""By group: an option, and other names for it."""


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _key_synonyms() -> dict[str, list[KeySynonym]]:
    synonyms: dict[str, list[KeySynonym]] = {}
    same = [(KeySynonym(key), names) for key, names in _SAME.items()]
    similar = [(KeySynonym(key, note), names) for key, note, names in _SIMILAR]
    for synonym, names in (*same, *similar):
        for name in names.split():
            synonyms.setdefault(_plain(name), []).append(synonym)
    return synonyms


KEY_SYNONYMS = _key_synonyms()
"""By another library's name, in lower case without dashes and underscores: keys here, those for
the same thing first."""

OPTION_SYNONYMS = {
    group: {_plain(name): option for option, names in options.items() for name in names.split()}
    for group, options in _OPTIONS.items()
}
"""By the group and another library's name: the option here."""


def key_synonyms(name: str) -> Sequence[KeySynonym]:
    """The keys here for what another library calls by this name; empty for any other name."""
    return KEY_SYNONYMS.get(_plain(name.rpartition(".")[2]), ())


def option_synonym(group: str, name: str, names: Collection[str]) -> str | None:
    """The one of these options that another library calls by this name; None for any other name."""
    same = next((each for each in names if _plain(each) == _plain(name)), None)
    other = OPTION_SYNONYMS.get(group_of(group), {}).get(_plain(name))
    return same or (other if other in names else None)


def options_with(key: str) -> list[str]:
    """The options of its group that have a key, such as `learner.epochs`."""
    group, _, name = key.partition(".")
    parts = REGISTRY.get(group_of(group), {})
    keys = {option: {item.name for item in fields(part.schema)} for option, part in parts.items()}
    return [option for option, names in keys.items() if name in names]
