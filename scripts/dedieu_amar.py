"""Dedieu and Amar's paper on 2048: its steps of reproduce.py and its tables in docs/results.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from results import MISSING, Figures, mean, over, reached, rows
from steps import ONE, TWO, Step, measure, train

EVAL = ("eval", "game=2048", "solve_seconds=0", "format=json")
RANDOM = (*EVAL, "player=random", "games=1000")
PLAY = ("games=1000", "solve_seconds=0")

NETWORKS = {"final": "final network", "selected": "selected checkpoint"}
"""The two networks of a training, by the names of the steps that measure them."""


@dataclass(frozen=True)
class Training:
    """A row of the tables. words: after `rlgames train experiment=dedieu_amar_`. seconds: about.
    short: its name in the table of claims."""

    what: str
    words: tuple[str, ...]
    seconds: float
    seeds: range = ONE
    short: str = ""


LARGE_STEPS = ("lr=0.1", "learner.lr_end=0.01", "games=3000")
PER_WEIGHT = ("learner.optimizer=rmsprop",)
SMALL_STEPS = ("lr=0.001", "learner.lr_end=0.0001")

TRAININGS = {
    "stochastic": Training(
        "stochastic policy, one scalar per matrix, step size 0.01",
        ("stochastic",),
        100,
        TWO,
        "as printed",
    ),
    "per_weight": Training(
        "the same, RMSProp per weight, step size 0.01, 300 batches",
        ("stochastic", *PER_WEIGHT, "games=3000"),
        80,
        TWO,
        "per weight",
    ),
    "per_weight_small_steps": Training(
        "the same, RMSProp per weight, step size 0.001, 300 batches",
        ("stochastic", *PER_WEIGHT, *SMALL_STEPS, "games=3000"),
        65,
        short="per weight, 0.001",
    ),
    "large_steps": Training(
        "the same, one scalar per matrix, step size 0.1, 300 batches",
        ("stochastic", *LARGE_STEPS),
        115,
        short="one scalar, 0.1",
    ),
    "epsilon_greedy": Training(
        "ε-greedy, one scalar per matrix, step size 0.01",
        ("epsilon_greedy",),
        100,
        short="as printed",
    ),
    "win": Training(
        "reward of 1 for a win, one scalar, step size 0.1, 300 batches", ("win", *LARGE_STEPS), 50
    ),
    "demonstrations": Training(
        "five games of `corner` in each batch, one scalar, step size 0.1, 300 batches",
        (
            *("stochastic", *LARGE_STEPS),
            *("demonstrations=OUT/corner_games.jsonl", "demos_per_batch=5"),
        ),
        100,
        short="with `corner`",
    ),
    "adp": Training("ADP, four features", ("adp",), 75),
    "adp_cloning": Training(
        "network cloned from the ADP's moves until it converged",
        ("adp_cloning", "teacher={dedieu_amar_adp/0}"),
        110,
    ),
    "warm_start": Training(
        "that network, then policy gradient as printed, 300 batches",
        ("warm_start", "init_from={dedieu_amar_adp_cloning/0}", "games=3000"),
        100,
    ),
    "adp_tuned": Training("ADP, tuned", ("adp_tuned",), 70),
    "stochastic_tuned": Training(
        "stochastic policy, the paper's network, tuned", ("stochastic_tuned",), 900, short="tuned"
    ),
    "staged": Training(
        "the same with a separate network from tile 512 on, 8,000 games",
        ("staged", "games=8000"),
        110,
    ),
    "dqn": Training("DQN", ("dqn",), 65),
}
"""In the order of the tables. Batches have ten games and are 600 unless noted; those of the tuned
ones are larger."""

LITERAL = ("stochastic", "per_weight", "per_weight_small_steps", "large_steps")
"""The readings of the learning rule."""

TILES = (256, 512, 1024, 2048)
PAPER_SEARCH = ("search=dedieu_amar", "search.simulations=20", "search.num_parallel=20", "games=4")
VALUE_SEARCH = (
    *("search=mcts", "search.simulations=100", "search.leaf=value", "games=20"),
    # A trained policy is so sure of itself that a search would only follow it.
    *("search.temperature=4", "search.num_parallel=10"),
)


def steps() -> list[Step]:
    """Train, evaluate and search."""
    record = ("games=100", "record=OUT/corner_games.jsonl")
    requested = [
        Step("2048_random", (*RANDOM, "fours=0.1")),
        Step("2048_random_twos", (*RANDOM, "fours=0.0")),
        Step("corner_games", (*EVAL, "player=corner", "fours=0.0", *record)),
    ]
    for name, training in TRAININGS.items():
        run, seeds = f"dedieu_amar_{name}", training.seeds
        preset, *words = training.words
        after = ("corner_games",) if name == "demonstrations" else ()
        words = [f"experiment=dedieu_amar_{preset}", *words]
        requested += train(run, *words, weight=training.seconds, seeds=seeds, after=after)
        for measured, checkpoint in (("final", "final"), ("selected", "best")):
            chosen = (f"checkpoint={checkpoint}", *PLAY)
            requested += measure(measured, run, *chosen, weight=6, seeds=seeds)
    for run, search in (("stochastic", PAPER_SEARCH), ("stochastic_tuned", VALUE_SEARCH)):
        chosen = ("checkpoint=best", *search, "solve_seconds=0")
        requested += measure("search", f"dedieu_amar_{run}", *chosen, weight=170, seeds=ONE)
    return requested


def dedieu_amar(figures: Figures) -> str:
    parts = [
        "## Dedieu and Amar: 2048",
        PLAYED,
        _greedy_play(figures),
        TRAINED,
        _training(figures),
        CLAIMED,
        rows(
            ("the paper says", "where", "here"),
            [(claim, where, describe(figures)) for claim, where, describe in CLAIMS],
        ),
        _learning_rule(figures),
        MISPRINTS,
        COMMANDS,
        "\n".join([*map(_command, TRAININGS), *SEARCH_COMMANDS]),
    ]
    return "\n\n".join(parts)


PLAYED = """Greedy play of 1,000 games: of the network that training ended with, and of the selected
checkpoint, which played best in the evaluations during training (with the printed settings after
every 1,000 games, 500 games each). The paper's figures average the sum of the grid."""

TRAINED = (
    """Training itself, where the policy explores: means of the first and the last 200 games."""
)

CLAIMED = """What the paper says, and the same figure here. "Random" is uniformly
random play with twos only, as in the paper's rules; tuned runs play with a tenth of fours and are
compared with random play there."""


def _greedy_play(figures: Figures) -> str:
    body = []
    for name, what in (
        ("2048_random_twos", "random, only twos"),
        ("2048_random", "random, a tenth of fours"),
    ):
        report = figures.report(name)
        body.append((what, "", *_scores([report] if report else [])))
    for name, training in TRAININGS.items():
        for measured, network in NETWORKS.items():
            what = training.what if measured == "final" else ""
            reports = figures.reports(f"dedieu_amar_{name}", measured)
            body.append((what, network, *_scores(reports)))
    searches = {
        "stochastic": "the paper's search around the first policy: 20 descents of depth 4, 4 games",
        "stochastic_tuned": "MCTS around the tuned policy, leaves valued by its value head, 100 "
        "simulations, 20 games",
    }
    for name, what in searches.items():
        reports = figures.reports(f"dedieu_amar_{name}", "search")
        seconds = over(reports, "wall_seconds", digits=0)
        body.append((f"{what}, {seconds} s", NETWORKS["selected"], *_scores(reports)))
    tiles = (f"{tile}, %" for tile in TILES)
    head = ("training", "network", "mean grid sum", "highest", "mean score", *tiles)
    return rows(head, body)


def _scores(reports: list[dict[str, Any]]) -> list[str]:
    """The sum of the grid, the score, and how many of the games reach the tiles."""
    sums = [over(reports, "grid_sum", which, digits=0) for which in ("mean", "max")]
    score = over(reports, "score", "mean", digits=0)
    return [*sums, score, *(reached(reports, tile) for tile in TILES)]


def _training(figures: Figures) -> str:
    body = []
    for name, training in TRAININGS.items():
        metrics = figures.metrics(f"dedieu_amar_{name}")
        body.append(
            (
                training.what,
                _course(metrics, "train/grid_sum", 0),
                _course(metrics, "train/distance_to_certainty", 2),
                mean(figures.seconds(f"dedieu_amar_{name}"), 0),
            )
        )
    head = ("training", "grid sum in training", "distance to certainty", "seconds")
    return rows(head, body)


def _course(runs: list[list[dict[str, float]]], key: str, digits: int) -> str:
    """A metric of training, the mean over seeds at its beginning and at its end."""
    ends = [pair for run in runs if (pair := _first_and_last(run, key))]
    if not ends:
        return ""
    first, last = (sum(each) / len(ends) for each in zip(*ends, strict=True))
    return f"{first:,.{digits}f} → {last:,.{digits}f}"


def _first_and_last(
    lines: list[dict[str, float]], key: str, games: int = 200
) -> tuple[float, float] | None:
    """The means of a metric over the first and the last games, or of one line where lines are
    further apart."""
    logged = [line for line in lines if key in line]
    if not logged:
        return None
    end = logged[-1]["games"]
    first = [line[key] for line in logged if line["games"] <= games] or [logged[0][key]]
    last = [line[key] for line in logged if line["games"] > end - games] or [logged[-1][key]]
    return sum(first) / len(first), sum(last) / len(last)


def _value(reports: list[dict[str, Any]], figure: str, which: str) -> float:
    """The mean over seeds, NaN where nothing was measured."""
    values = [report[figure][which] for report in reports]
    return sum(values) / len(values) if values else math.nan


def _times_random(figures: Figures) -> str:
    """Highest and mean sum of the grid as multiples of random play's."""
    phrases = []
    for name in (*LITERAL, "stochastic_tuned"):
        report = figures.report("2048_random" if name == "stochastic_tuned" else "2048_random_twos")
        random = [report] if report else []
        ratios = []
        for measured in NETWORKS:
            reports = figures.reports(f"dedieu_amar_{name}", measured)
            highest, usual = (
                _value(reports, "grid_sum", which) / _value(random, "grid_sum", which)
                for which in ("max", "mean")
            )
            ratios.append(f"{measured} {_ratio(highest)} (mean {_ratio(usual)})")
        phrases.append(f"{TRAININGS[name].short}: {', '.join(ratios)}")
    return "highest sum of the grid in 1,000 games as a multiple of random's. " + "; ".join(phrases)


def _ratio(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.1f}"


def _reaches(tile: int) -> Callable[[Figures], str]:
    def describe(figures: Figures) -> str:
        parts = []
        for name in (*LITERAL, "stochastic_tuned"):
            rates = []
            for measured in NETWORKS:
                reports = figures.reports(f"dedieu_amar_{name}", measured)
                reach = [r["reach"].get(str(tile), {"rate": 0.0})["rate"] for r in reports]
                rates.append(f"{measured} {mean([100 * rate for rate in reach], 1)}%")
            parts.append(f"{TRAININGS[name].short}: {', '.join(rates)}")
        return "; ".join(parts)

    return describe


def _random_reaches_256(figures: Figures) -> str:
    report = figures.report("2048_random_twos")
    if report is None:
        return MISSING
    rate = report["reach"].get("256", {"rate": 0.0})["rate"]
    return f"uniformly random play reaches it in {rate:.1%} of games"


def _courses(names: Sequence[str], key: str, digits: int) -> Callable[[Figures], str]:
    def describe(figures: Figures) -> str:
        parts = []
        for name in names:
            course = _course(figures.metrics(f"dedieu_amar_{name}"), key, digits)
            parts.append(f"{TRAININGS[name].short}: {course or MISSING}")
        return "; ".join(parts)

    return describe


def _weights(figures: Figures) -> str:
    """The last logged weights of the ADP, by seed."""
    prefix, phrases = "train/weight_", []
    for lines in figures.metrics("dedieu_amar_adp"):
        last = [line for line in lines if any(key.startswith(prefix) for key in line)][-1:]
        named = {k.removeprefix(prefix): v for line in last for k, v in line.items()}
        named = {k: v for k, v in named.items() if f"{prefix}{k}" in last[-1]}
        phrases.append(", ".join(f"{name} {weight:+.0f}" for name, weight in named.items()))
    return "weights by seed: " + ("; ".join(phrases) or MISSING)


def _search(figures: Figures) -> str:
    parts = []
    for name, what in (("stochastic", "the paper's search"), ("stochastic_tuned", "MCTS, tuned")):
        searched = figures.reports(f"dedieu_amar_{name}", "search")
        greedy = figures.reports(f"dedieu_amar_{name}", "selected")[:1]
        ratio = _value(searched, "score", "mean") / _value(greedy, "score", "mean")
        parts.append(f"{what}: {_ratio(ratio)} times the mean score of greedy play")
    return "; ".join(parts)


CLAIMS: list[tuple[str, str, Callable[[Figures], str]]] = [
    ("a maximum score four times the random policy's", "abstract", _times_random),
    ("the random network never reached 256", "section 3.4", _random_reaches_256),
    ("reached 1024 a significant number of times", "section 3.4", _reaches(1024)),
    ("never reached 2048", "section 3.4", _reaches(2048)),
    (
        "ε-greedy learning does not improve on the random policy over 600 batches",
        "section 3.3.1, figure 3",
        _courses(("epsilon_greedy",), "train/grid_sum", 0),
    ),
    (
        "the probabilistic network improves after several hundred batches",
        "section 3.3.2, figure 4",
        _courses(LITERAL, "train/grid_sum", 0),
    ),
    (
        "the distance to certainty falls from 1.5 to nearly 0 within 500 batches",
        "section 3.3.2, figures 5 and 6",
        _courses(LITERAL, "train/distance_to_certainty", 2),
    ),
    (
        "games played by hand in each batch: stuck in a local minimum",
        "section 4.1",
        _courses(("demonstrations",), "train/grid_sum", 0),
    ),
    ("some of the ADP's weights turn negative; its play is not satisfactory", "4.3", _weights),
    ("tree search on top", "section 5.2; 5.3 gives no figure", _search),
]


def _learning_rule(figures: Figures) -> str:
    """What the readings of the printed step size lead to."""

    def course(name: str, key: str, digits: int) -> str:
        return _course(figures.metrics(f"dedieu_amar_{name}"), key, digits) or MISSING

    readings = {
        "stochastic": "As printed, a matrix moves by about 0.01 in each step",
        "per_weight": "Per weight, the first step moves every weight by α ÷ √(1 - ρ) = 0.1, and "
        "the softmax is certain within some fifty batches: one order of preference for the four "
        "moves, from which nothing is sampled and nothing more is learned",
        "per_weight_small_steps": "Per weight with a tenth of that step",
        "large_steps": "One scalar per matrix with ten times that step",
    }
    lines = [
        f"- {text} (sum of the grid {course(name, 'train/grid_sum', 0)}, distance to certainty "
        f"{course(name, 'train/distance_to_certainty', 2)})."
        for name, text in readings.items()
    ]
    return f"{LEARNING_RULE}\n\n" + "\n".join(lines)


LEARNING_RULE = """The learning rule has two readings. Section 3.2.4 prints RMSProp with one running
scalar per matrix, ‖dW‖², and cites Karpathy's *Pong from Pixels*, which divides each weight by
its own running mean. The step size is 0.01 in both, falling to 0.001 here: the paper reduces it,
and does not say how."""

MISPRINTS = """Misprints corrected here: the gradient of the log-probability is A − P, not
A − log P; the derivative of ReLU is 1 where h > 0, not where h < 0; the ADP's step goes down the
gradient, λ − αΔ. The paper leaves open ε (here 0.1, falling to 0), and the number of descents, the
depth L and α of its search (here 20, 4 and 1, with rollouts to the end of the game)."""

COMMANDS = """Each row's training; SEED is 0, or 0 and 1 where two figures are given. `rlgames eval
RUN checkpoint=final games=1000` measures the final network, `checkpoint=best` the selected one."""


def _command(name: str) -> str:
    preset, *words = TRAININGS[name].words
    typed = " ".join(["rlgames train", f"experiment=dedieu_amar_{preset}", *words, "seed=SEED"])
    typed = typed.replace("{dedieu_amar_adp/0}", "outputs/reproduce/dedieu_amar_adp/0")
    typed = typed.replace(
        "{dedieu_amar_adp_cloning/0}", "outputs/reproduce/dedieu_amar_adp_cloning/0"
    )
    typed = typed.replace("OUT/", "outputs/reproduce/")
    return f"- {TRAININGS[name].what}: `{typed}`"


SEARCH_COMMANDS = [
    f"- the paper's search around the first row's run: `rlgames eval RUN {' '.join(PAPER_SEARCH)}`",
    f"- MCTS around the tuned policy's run: `rlgames eval RUN {' '.join(VALUE_SEARCH)}`",
]
