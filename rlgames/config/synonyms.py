"""What Stable-Baselines3, CleanRL, RLlib, TorchRL and OpenSpiel call the keys and options here.

Only messages use these tables: nothing can be typed by another library's name. Names are compared
without case, dashes and underscores.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

from rlgames.config.registry import REGISTRY, group_of

_NAMES: dict[str, str] = {
    "reward.discount": "gamma discount discount_factor",
    "games": "steps timesteps total_timesteps total_steps num_timesteps max_steps"
    " episodes num_episodes n_episodes total_episodes total_frames num_iterations iterations",
    "batch": "batch_size train_batch_size frames_per_batch num_envs n_envs rollout_fragment_length"
    " num_steps n_steps num_games",
    "lr": "learning_rate alpha step_size optim_lr",
    "learner.lr_end": "lr_schedule anneal_lr final_lr",
    "learner.entropy_coef": "entropy_coef ent_coef entropy_coeff entropy_cost entropy_bonus",
    "learner.value_coef": "vf_coef vf_coeff vf_loss_coeff critic_coef critic_coeff value_coef"
    " value_loss_coef",
    "learner.clip_range": "clip clip_range clip_coef clip_param clip_epsilon clip_eps",
    "learner.max_grad_norm": "max_grad_norm grad_clip grad_clipping clip_grad_norm max_norm",
    "learner.gae_lambda": "gae_lambda gae_lam lambda lambda_ lmbda lam",
    "learner.td_lambda": "td_lambda",
    "learner.epochs": "n_epochs num_epochs update_epochs ppo_epochs num_sgd_iter epochs",
    "learner.minibatches": "num_minibatches n_minibatches minibatches nminibatches",
    "learner.minibatch": "minibatch minibatch_size sgd_minibatch_size mini_batch_size",
    "learner.buffer_size": "buffer_size replay_buffer_size replay_buffer_capacity memory_size",
    "learner.polyak_tau": "tau polyak polyak_tau soft_update_tau",
    "learner.target_every": "target_update_interval target_network_frequency"
    " target_network_update_freq",
    "learner.updates_per_batch": "gradient_steps utd_ratio updates_per_batch",
    "learner.n_step": "n_step nstep n_step_returns",
    "learner.optimizer": "optimizer optim optimizer_class",
    "learner.baseline": "baseline advantage norm_adv normalize_advantage",
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
    "search.c_puct": "c_puct cpuct uct_c puct_c pb_c_init",
    "search.dirichlet_total": "dirichlet_alpha root_dirichlet_alpha",
    "search.dirichlet_fraction": "noise_epsilon root_exploration_fraction dirichlet_epsilon",
    "eval_every": "eval_freq eval_interval evaluation_interval eval_frequency",
    "eval_games": "n_eval_episodes eval_episodes evaluation_duration num_eval_episodes",
    "save_every": "save_freq save_interval checkpoint_freq checkpoint_frequency checkpoint_every",
    "log_every": "log_interval log_freq logging_interval",
    "init_from": "load load_path pretrained resume_from restore warm_start",
    "checkpoint": "ckpt load_best",
    "out": "output output_dir save_dir save_path log_dir logdir run_dir exp_name experiment_name"
    " tensorboard_log",
    "threads": "num_workers n_jobs num_threads n_cpu",
    "device": "cuda gpu use_cuda accelerator",
}
"""The present name of a key, as it is typed, and other names for it."""

_OPTIONS: dict[str, dict[str, str]] = {
    "learner": {
        "ppo": "ppo2 appo ppo_clip actor_critic",
        "reinforce": "pg vpg policy_gradient a2c a3c",
        "dqn": "ddqn double_dqn q_learning qlearning rainbow",
        "td": "td0 sarsa tabular temporal_difference",
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
    "search": {"mcts": "alphazero_mcts puct uct tree_search", "expectimax": "expectiminimax"},
    "game": {
        "tictactoe": "ttt noughts_and_crosses",
        "connect4": "connect_four four_in_a_row",
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


def _inverse(names: dict[str, str]) -> dict[str, str]:
    return {_plain(other): name for name, others in names.items() for other in others.split()}


KEY_SYNONYMS = _inverse(_NAMES)
OPTION_SYNONYMS = {group: _inverse(names) for group, names in _OPTIONS.items()}
"""The present name by another one, in lower case without dashes and underscores."""


def key_synonym(name: str) -> str | None:
    """The present name of a key that another library calls by this name; None for any other."""
    return KEY_SYNONYMS.get(_plain(name.rpartition(".")[2]))


def option_synonym(group: str, name: str, names: Collection[str]) -> str | None:
    """The option of these that another library calls by this name; None for any other."""
    same = next((each for each in names if _plain(each) == _plain(name)), None)
    other = OPTION_SYNONYMS.get(group_of(group), {}).get(_plain(name))
    return same or (other if other in names else None)


def options_with(key: str) -> list[str]:
    """The options of its group that have a key, such as `learner.epochs`."""
    group, _, name = key.partition(".")
    parts = REGISTRY.get(group_of(group), {})
    keys = {option: {item.name for item in fields(part.schema)} for option, part in parts.items()}
    return [option for option, names in keys.items() if name in names]
