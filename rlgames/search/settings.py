"""The settings of search=mcts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MctsSettings:
    """The keys of search=mcts, and what the value head predicts: value_scale and discount.

    simulations: per move. num_parallel: how many simulations descend side by side in one tree,
        kept apart by pending visits. More is faster; a twentieth of the simulations costs little
        strength. By rule=gumbel, side by side are simulations of one phase of the halving.
    depth: the maximum number of plies of a descent; None: no limit.
    fixed_depth: every simulation descends to `depth`, as in their paper, and adds all new nodes on
        its way; otherwise it ends at the first one.
    rule: "dedieu_amar" is the rule of mcts.py; "puct" multiplies its bonus by √Σ_b N(s, b), so that
        every action is visited again and again; "gumbel" is the rule of Danihelka et al. 2022, see
        kernels/gumbel.py: sequential halving at the root, a deterministic rule below it.
    c_puct: c, the weight of the bonus. Q is normalized to [0, 1], so that c_puct has the same
        meaning in all games: from [-1, 1] for an outcome, otherwise from the lowest and highest
        value of the tree's simulations so far. q_scale: Q is the value divided by this instead.
    leaf: "rollout" plays at most `rollout` plies (None: to the end) with rollout_policy, "policy"
        or "uniform"; "value" uses the policy's value head.
    temperature: of an agent's probabilities, softmax(scores ÷ temperature).
    value: what to maximize, see Utility. value_scale: units of it per unit of the value head.
    discount: per turn, of the value head's estimates.
    threads: search as many parts of the trees at once, where a kernel makes the whole search: see
        CompiledSearch. Their number changes the result by rounding at most.
    dirichlet_fraction, dirichlet_total: noise in the root's probabilities, for exploration while
        training, see add_dirichlet_noise.
    max_num_considered_actions: how many actions rule=gumbel tries at the root, at most.
        gumbel_scale: of its noise; 0: none. c_visit, c_scale: weights of its values; maxvisit_init
        and value_scale of mctx's qtransform_completed_by_mix_value.
    """

    simulations: int = 100
    num_parallel: int = 4
    depth: int | None = None
    rule: str = "puct"
    c_puct: float = 2.0
    leaf: str = "rollout"
    rollout: int | None = None
    rollout_policy: str = "policy"
    temperature: float = 1.0
    fixed_depth: bool = False
    q_scale: float | None = None
    value: str | None = None
    dirichlet_fraction: float = 0.0
    dirichlet_total: float = 10.0
    max_num_considered_actions: int = 16
    gumbel_scale: float = 1.0
    c_visit: float = 50.0
    c_scale: float = 0.1
    value_scale: float = 1.0
    discount: float = 1.0
    threads: int = 1
