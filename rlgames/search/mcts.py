"""Monte-Carlo tree search around a policy, many trees side by side.

Dedieu and Amar search 2048 so: descend by argmax_a Q(s, a) + α·P(s, a) / (1 + N(s, a)), P being
the policy's probabilities, drawing the new tiles; play on from the leaf by the policy; make the
most visited move. Here the same search plays every game. Letters in shapes: T trees, R = T · W
descents of a wave, W of them in each tree, A actions.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Player, Random
from rlgames.sampling import Stochastic, sample_logits
from rlgames.search.tree import SearchTree
from rlgames.search.utility import Utility

MAX_NODE_ACTIONS = 1 << 24
"""The most nodes × actions held at once; larger batches are searched in parts."""

NODE_OVERHEAD = 8
"""What a node takes up beside its actions, counted in actions."""


class Mcts(Player):
    """Looks ahead from public positions, with a policy's probabilities to guide it.

    player: whose policy guides the search; anyone who tells probabilities. An agent's scores
        are made into probabilities by softmax(scores ÷ temperature).
    simulations: descents for each move. parallel: how many of them go down side by side in one
        tree, kept apart by counting each as a visit at once. More is faster; a twentieth of the
        simulations costs little strength.
    depth: the most plies of a descent, None: no limit.
    rule: "dedieu_amar", the rule above; "puct" multiplies the bonus by √Σ_b N(s, b), so that no
        action is forgotten. exploration: α. Q is brought to [0, 1], for an outcome from [-1, 1],
        for anything else by the least and the most that came of the tree's descents so far, so that
        α means the same in all games. An action not tried yet has its node's mean.
    leaf: "rollout" plays on, at most so many plies (rollout, None: to the end) by rollout_policy,
        "policy" or "uniform"; "value" asks the policy's value head.
    value: what counts, see Worth. unit: how much of it one unit of the value head is.
    noise: how much of the probabilities at the root is noise, so that who learns from the search
        meets other moves; drawn from the Dirichlet distribution whose parameters are all alike
        and add up to concentration (Silver et al. 2018).

    What chance and hidden truth bring forth is sampled: each descent has a world of its own, drawn
    from all that agree with what was seen, and a node is what the mover has seen since: actions
    and their outcomes. Where something is hidden the other seat's moves are drawn from the policy,
    since what it knows and this tree does not must not be learnt from its moves.
    Raises ValueError where player, game and settings do not fit.
    """

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        *,
        simulations: int = 100,
        num_parallel: int = 4,
        depth: int | None = None,
        rule: str = "puct",
        c_puct: float = 2.0,
        leaf: str = "rollout",
        rollout: int | None = None,
        rollout_policy: str = "policy",
        temperature: float = 1.0,
        value: str | None = None,
        dirichlet_fraction: float = 0.0,
        dirichlet_total: float = 10.0,
        unit: float = 1.0,
    ) -> None:
        if type(player).probabilities is Player.probabilities:
            raise ValueError(
                f"search=mcts is guided by probabilities, and {type(player).__name__} tells none"
            )
        if leaf == "value" and not (isinstance(player, Agent) and player.policy.has_value):
            raise ValueError("search.leaf=value needs a policy with a value head; take rollout")
        if isinstance(player, Agent):
            player = Agent(game, player.policy, Stochastic(temperature))
        self.game, self.guide = game, player
        self.roller = player if rollout_policy == "policy" else Random(game)
        self.simulations, self.num_parallel = simulations, num_parallel
        self.depth = math.inf if depth is None else depth
        self.rollout = math.inf if rollout is None else rollout
        self.rule, self.c_puct, self.leaf, self.unit = rule, c_puct, leaf, unit
        self.dirichlet_fraction, self.dirichlet_total = dirichlet_fraction, dirichlet_total
        self.worth = Utility(game, value)
        self.veiled = game.spec.hidden and game.spec.seats == 2

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        """The most visited action; of equally visited ones the best."""
        action = torch.zeros_like(state.current_seat)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            visits, quality = self.search(state[live], rng)
            action[live] = (visits + quality).argmax(1)
        return action

    @torch.no_grad()
    def search(self, state: State, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """For live positions [T] the visits of their actions and what they came to for the mover.

        Both are float32 [T, A]; the second, Q, lies in [0, 1), and is 0 for what was not tried.
        """
        nodes = self.simulations + 1
        part = max(1, MAX_NODE_ACTIONS // (nodes * (self.game.spec.actions + NODE_OVERHEAD)))
        found = [self._search(state[n : n + part], rng) for n in range(0, len(state), part)]
        visits, quality = (torch.cat(column) for column in zip(*found, strict=True))
        return visits, quality

    def _search(self, roots: State, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        trees, device = len(roots), roots.done.device
        forest = SearchTree(trees, self.simulations + 1, self.game.spec.actions, device)
        root = torch.arange(trees, device=device)
        self._open(forest, root, roots)
        if self.dirichlet_fraction:
            forest.prior[:trees] = self._noisy(forest.prior[:trees], rng)
        bounds = torch.tensor(self.worth.bounds, device=device).repeat(trees, 1)  # [T, 2]
        for done in range(0, self.simulations, self.num_parallel):
            wide = min(self.num_parallel, self.simulations - done)
            worth = self._wave(forest, roots, wide, bounds, rng).view(trees, wide)
            least, most = bounds[:, 0].minimum(worth.amin(1)), bounds[:, 1].maximum(worth.amax(1))
            bounds = torch.stack([least, most], 1)
        visits = forest.visits[:trees]
        quality = self._quality(forest, root, bounds).clamp(0, 0.999)
        return visits, torch.where(visits > 0, quality, 0.0)

    def _wave(
        self, forest: SearchTree, roots: State, wide: int, bounds: Tensor, rng: torch.Generator
    ) -> Tensor:
        """W descents of each tree side by side; what they came to for seat 0, float32 [R].

        Each ends at the node that it adds, so that several at one new node go on below it, as they
        would one after the other.
        """
        game = self.game
        row = torch.arange(len(roots) * wide, device=bounds.device)
        tree = node = row // wide
        starts = roots[tree]
        state = game.resample(starts, _on_cpu(rng)) if game.spec.hidden else starts
        future = torch.zeros(len(row), device=bounds.device)
        rows, edges, ended = [], [], []
        ply = 0
        while len(row):
            action = self._pick(forest, node, bounds[tree[row]])
            if self.veiled:
                theirs = (state.current_seat != starts.current_seat[row]).nonzero()[:, 0]
                action[theirs] = self.guide.choose(game.public(state[theirs]), rng)
            before, state = state, self.game.step(state, action, rng)
            rows.append(row)
            edges.append(node * game.spec.actions + action)
            node, ends = forest.child(node, action, game.outcome(before, action, state))
            ply += 1
            if ply >= self.depth:
                ends = torch.ones_like(ends)
            leaf = (ends & ~state.done).nonzero()[:, 0]
            if len(leaf):
                future[row[leaf]] = self._open(forest, node[leaf], state[leaf])
            ends = ends | state.done
            over, on = ends.nonzero()[:, 0], (~ends).nonzero()[:, 0]
            ended.append((row[over], state[over]))
            row, node, state = row[on], node[on], state[on]
        last = _joined(ended)
        if self.leaf == "value":
            worth = self.worth.expected(starts, last, future)
        else:
            worth = self.worth.so_far(starts, self._roll_out(last, rng))
        forest.back_up(torch.cat(edges), worth[torch.cat(rows)])
        return worth

    def _open(self, forest: SearchTree, node: Tensor, state: State) -> Tensor:
        """Ask the policy about nodes; what each mover still expects, 0 without a value head."""
        seen = self.game.public(state)
        legal, value = self.game.legal_action_mask(state), None
        if isinstance(self.guide, Agent):
            scores, value = self.guide.policy.scores(self.game, seen)
            prior = self.guide.sampling.probabilities(scores, legal, 0.0)
        else:
            prior = self.guide.probabilities(seen)
        forest.prior[node] = prior.float().masked_fill(~legal, -torch.inf)
        forest.side[node] = (1.0 - 2.0 * state.current_seat)[:, None]
        return torch.zeros(len(node), device=node.device) if value is None else value * self.unit

    def _noisy(self, prior: Tensor, rng: torch.Generator) -> Tensor:
        """Probabilities with noise; both float32 [T, A], minus infinity for what is not legal."""
        legal = prior >= 0
        parameter = self.dirichlet_total / legal.sum(1, keepdim=True).expand_as(prior)
        drawn = torch._standard_gamma(parameter, generator=rng) * legal
        drawn = drawn / drawn.sum(1, keepdim=True).clamp(min=1e-30)
        noisy = (1 - self.dirichlet_fraction) * prior + self.dirichlet_fraction * drawn
        return torch.where(legal, noisy, prior)

    def _pick(self, forest: SearchTree, node: Tensor, bounds: Tensor) -> Tensor:
        """Int64 [R]: an action for each descent at its node.

        Of several descents at one node the first takes the best action, the next the best once
        that one has a visit more, and so on: the j-th takes the j-th best of all (action, further
        visits). Visits under way are taken to come to their node's mean where an action is above
        it, so that each makes an action less wanted and luck in few visits does not draw them all.
        """
        visits = forest.visits[node]
        bonus = self.c_puct * forest.prior[node]
        if self.rule == "puct":
            bonus = bonus * visits.sum(1, keepdim=True).clamp(min=1).sqrt()
        quality = self._quality(forest, node, bounds)
        place = _place(node)
        most = int(place.max())
        if not most:
            return (quality + bonus / (1 + visits)).argmax(1)
        mean = (visits * quality).sum(1, keepdim=True) / visits.sum(1, keepdim=True).clamp(min=1)
        ahead = (quality - mean).clamp(min=0)
        under_way = torch.arange(most + 1, device=node.device)
        all_visits = visits[:, :, None] + under_way
        share = under_way / all_visits.clamp(min=1)
        wanted = (
            quality[:, :, None] - ahead[:, :, None] * share + bonus[:, :, None] / (1 + all_visits)
        )
        order = wanted.flatten(1).topk(most + 1).indices
        return order.gather(1, place[:, None])[:, 0] // (most + 1)

    def _quality(self, forest: SearchTree, node: Tensor, bounds: Tensor) -> Tensor:
        """Float32 [R, A]: Q of the actions at nodes for their movers, brought to [0, 1]."""
        visits, worth = forest.visits[node], forest.worth[node]
        mean = worth.sum(1, keepdim=True) / visits.sum(1, keepdim=True).clamp(min=1)
        quality = torch.where(visits > 0, worth / visits.clamp(min=1), mean)
        least, most = bounds[:, :1], bounds[:, 1:]
        quality = (quality - least) / (most - least)
        quality = torch.where(most > least, quality, 0.5)
        side = forest.side[node]
        return quality * side + (side < 0)

    def _roll_out(self, state: State, rng: torch.Generator) -> State:
        """Play on from positions [R], at most so many plies; where they ended, in order."""
        row = torch.arange(len(state), device=state.done.device)
        ended: list[tuple[Tensor, State]] = []
        ply = 0
        while True:
            live = (~state.done).nonzero()[:, 0]
            if 4 * len(live) <= 3 * len(state) or ply >= self.rollout:
                over = state.done.nonzero()[:, 0] if ply < self.rollout else slice(None)
                ended.append((row[over], state[over]))
                if not len(live) or ply >= self.rollout:
                    break
                row, state = row[live], state[live]
            state = self.game.step(state, self.roller.choose(self.game.public(state), rng), rng)
            ply += 1
        return _joined(ended)


class VisitCountPolicy(Player):
    """A search as one that makes each move as often as it looked at it."""

    def __init__(self, search: Mcts) -> None:
        self.search = search

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return sample_logits(self.probabilities(state, rng).log(), rng)

    def probabilities(self, state: State, rng: torch.Generator | None = None) -> Tensor:
        rng = torch.Generator(state.done.device).manual_seed(0) if rng is None else rng
        visits, _ = self.search.search(state, rng)
        return (visits / visits.sum(1, keepdim=True)).double()


def _on_cpu(rng: torch.Generator) -> torch.Generator:
    """The generator, or one that follows from it on the CPU, where hidden truths are drawn."""
    if rng.device.type == "cpu":
        return rng
    seed = torch.randint(2**62, (1,), generator=rng, device=rng.device)
    return torch.Generator().manual_seed(int(seed))


def _joined(parts: list[tuple[Tensor, State]]) -> State:
    """Rows [R] in order, from their numbers and states."""
    states = [state for _, state in parts]
    return type(states[0]).cat(states)[torch.cat([row for row, _ in parts]).argsort()]


def _place(node: Tensor) -> Tensor:
    """Int64 [R]: how many earlier rows have the same node."""
    ordered, order = node.sort(stable=True)
    place = torch.empty_like(node)
    place[order] = torch.arange(len(node), device=node.device) - torch.searchsorted(
        ordered, ordered
    )
    return place
