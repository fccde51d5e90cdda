"""How well the greedy policy does, in training and at its end, in figures and pictures."""

from __future__ import annotations

from typing import Any

import torch
from omegaconf import DictConfig

from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.drawing import plots
from rlgames.evaluation.evaluate import Evaluation, afterstate_values, certainty_by_move, evaluate
from rlgames.factory.agents import build_player
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.policy import ValueFunction
from rlgames.rollouts.holdout import Split
from rlgames.rollouts.play import GamePool
from rlgames.runs.files import LOWER_IS_BETTER
from rlgames.runs.run_log import RunLog
from rlgames.sampling import Argmax
from rlgames.solvers.graph import Graph, exploitability
from rlgames.solvers.optimum import find_graph
from rlgames.training import game_images

MAX_QUICK_PLIES = 200
"""Random play against a simple opponent is measured before training where a game has no more plies
than this: within 0.1 s on a processor core."""

NUM_SHOWN = 4
"""So many times in a run a game is shown."""

NUM_PARALLEL_GAMES = 16
"""So many games tell what positions are worth; the first of them is shown."""

MAX_SHOWN_PLIES, MAX_VALUED_POSITIONS = 1000, 1000
"""No more plies of a game are shown, and of no more positions it is told what they are worth."""

SCRIPTED_OPPONENTS = ("random", "win_or_block")

MAX_GRAPH_POSITIONS = 50_000
"""Exploitability is worked out while training where there are at most so many positions."""


class Evaluator:
    """Evaluates the greedy policy, in training and at its end.

    figure: what the game is about: "turns", "score" or "points". best_by: the figure that the best
    checkpoint is chosen by: exploitability where all positions can be listed, otherwise what the
    game is about. Layouts that are held out have no say in it.
    """

    def __init__(self, cfg: DictConfig, game: Game[Any], agent: Agent, split: Split | None) -> None:
        self.cfg, self.game, self.split = cfg, game, split
        self.greedy = Agent(game, agent.policy, Argmax())
        self.opponent: Player | None = None
        self.graph: Graph | None = None
        if game.spec.seats == 2:
            self.opponent = build_player(cfg.eval_opponent, cfg, game)
            if game.spec.has_exact_key and not game.spec.hidden and cfg.device == "cpu":
                self.graph = find_graph(game, 60, max_positions=MAX_GRAPH_POSITIONS)
        usual = {"turns": "turns", "score": "score", "outcome": "points"}[game.spec.goal]
        self.figure = usual
        self._shown = 0
        self._found: Evaluation | None = None
        self.best_by = cfg.best_by or ("exploitability" if self.graph else usual)
        if self.best_by == "exploitability" and self.opponent and self.graph is None:
            raise ConfigError(
                f"{game.spec.name} is too large for best_by=exploitability", f"best_by={usual} fits"
            )
        fitting = ("turns", "points", "exploitability") if self.opponent else self._alone
        if self.best_by not in fitting:
            raise ConfigError(
                f"best_by={self.best_by} says nothing about {game.spec.name}",
                f"best_by={usual} fits",
            )

    def evaluate(
        self, games: int, stream: str
    ) -> tuple[Evaluation, Evaluation | None, dict[str, float]]:
        """Play games drawn from the named stream, on the layouts trained on and on those held out
        if there are any, and name the figures."""
        cfg, split = self.cfg, self.split
        rng = make_generator(cfg.seed, stream, cfg.device)
        own = None if split is None else split.trained_on
        found = evaluate(self.game, self.greedy, "auto", games, rng, self.opponent, layouts=own)
        figures, held_out, self._found = found.headline(), None, found
        if self.opponent is None:
            figures = {name: figures[name] for name in self._alone}
        if split is not None:
            others = split.held_out
            held_out = evaluate(self.game, self.greedy, "auto", games, rng, layouts=others)
            figures["held_out_turns"] = held_out.turns.mean
        if self.graph is not None:
            figures["exploitability"] = exploitability(self.graph, self.greedy.probabilities)[0]
        return found, held_out, figures

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of what examine finds."""
        two = ("points", "win", "draw", "loss", "turns")
        names = two if self.opponent else self._alone
        held_out = ("held_out_turns",) if self.split is not None else ()
        return (*names, *held_out, *(("exploitability",) if self.graph else ()))

    @property
    def _alone(self) -> tuple[str, ...]:
        """The figures of a game for one; where turns count all scores are the same."""
        return ("turns",) if self.figure == "turns" else ("turns", "score")

    def lower_is_better(self, name: str) -> bool:
        """Of one of these figures; where points are counted, a longer game is a better one."""
        longer = name == "turns" and self.game.spec.goal == "score"
        return name in (*LOWER_IS_BETTER, "loss", "held_out_turns") and not longer

    def random_play(self) -> float | None:
        """What random play comes to in the game's figure, None where it is not known at once."""
        game, opponent = self.game, self.opponent
        if opponent is None:
            return game.expected_random_turns() if self.figure == "turns" else None
        if (
            self.cfg.eval_opponent.name not in SCRIPTED_OPPONENTS
            or game.spec.max_plies > MAX_QUICK_PLIES
        ):
            return None
        rng = make_generator(self.cfg.seed, "random", self.cfg.device)
        return evaluate(game, Random(game), 500, 500, rng, opponent).points

    def draw(self, log: RunLog, played: int, doubts: bool) -> None:
        """Draw what the latest evaluation found and what is learnt; now and then games, too.

        doubts: the policy's scores are logits, so that it can be told how sure it is of a move.
        """
        game, policy = self.game, self.greedy.policy
        if self._found is not None:
            final = self._found.final
            log.spread(played, "games/turns", final.turn.double().cpu().numpy())
            if game.spec.goal == "score":
                log.spread(played, "games/score", final.score[:, 0].double().cpu().numpy())
        if isinstance(policy, ValueFunction) and game.spec.goal == "outcome":
            rng = make_generator(self.cfg.seed, "draw", self.cfg.device)
            groups = afterstate_values(game, policy, self.graph, rng)
            spread = {name: values.double().cpu().numpy() for name, values in groups.items()}
            for name, values in spread.items():
                log.spread(played, f"values/{name}", values)
            title = f"values of boards, after {played:,} games"
            log.picture(played, "values", plots.png(plots.density(title, spread)))
        part = played * NUM_SHOWN // self.cfg.games
        if played and part != self._shown:
            self._shown = part
            self._show(log, played, doubts)

    def _show(self, log: RunLog, played: int, logits: bool) -> None:
        """A greedy game, what its positions are thought to be worth, and how sure the policy is of
        each move of a game that it draws itself."""
        game, policy = self.game, self.greedy.policy
        rng = make_generator(self.cfg.seed, "show", self.cfg.device)
        if logits:
            doubt = certainty_by_move(game, policy, rng).double().cpu().numpy()
            title = f"distance to certainty by move, after {played:,} games"
            log.picture(played, "certainty", plots.png(plots.over(title, doubt, 2.0)))
        players = [self.greedy] if self.opponent is None else [self.greedy, self.opponent]
        moves, found = GamePool(game, players, NUM_PARALLEL_GAMES, rng).collect(MAX_SHOWN_PLIES)
        own = moves.by_player(0).state
        rows = torch.tensor(
            game_images.evenly_spaced(len(own), MAX_VALUED_POSITIONS), device=own.done.device
        )
        worth = game_images.values(game, policy, own[rows], logits)
        if worth is not None and bool(worth.isfinite().all()):
            log.spread(played, "values/positions", worth.numpy())
        first = moves.select_games(moves.game.new_zeros(1))
        try:
            stills, gif = game_images.show(game, policy, logits, first, found.state[:1])
        except Exception as error:  # a game of one's own may not be able to draw itself
            log.log.warning("no pictures of games (%s: %s)", type(error).__name__, error)
            return
        for number, still in enumerate(stills, 1):
            log.picture(played, f"game/position_{number}", plots.png(still))
        log.picture(played, "game/animation", gif)

    def better(self, figures: dict[str, float], best: list[float] | None) -> list[float] | None:
        """The new best, by best_by and then by points; None where these figures do not beat it."""
        value = figures[self.best_by]
        if self.best_by in LOWER_IS_BETTER:
            value = -value
        found = [value, figures.get("points", 0.0)]
        return found if best is None or found > best else None
