"""`rlgames export`: an agent in one HTML file, to play against in any browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from rlgames.build.agents import open_run
from rlgames.build.players import with_search
from rlgames.commands.serve import label_of
from rlgames.config.commands import ExportConfig
from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.output_files import check_writable
from rlgames.games.game import Game
from rlgames.games.notation import parse_action
from rlgames.runs.find import find_run
from rlgames.web.table import YOU, Table

RANDOM = "random"


@dataclass(frozen=True)
class Exported:
    """path: of the page. size: in bytes. code: bytes of its kernels."""

    path: str
    size: int
    code: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(cfg: ExportConfig) -> Exported:
    """Write the page. Raises ConfigError, before anything is written, for what no page can do."""
    if cfg.run is None:
        raise ConfigError("export needs a run", "as in: rlgames export connect4")
    opened = open_run(find_run(cfg.run, is_player=False), cfg.checkpoint)
    rules, name = opened.config.game, label_of(opened)
    name = "agent" if name in (YOU, RANDOM) else name  # these are on the page already
    path = Path(cfg.out or f"{rules.name}.html")
    check_writable(f"out={path}", path)
    agent = opened.agent(cfg.sampling, torch.device("cpu"))
    game, search = agent.game, None if cfg.search is None else cfg.search.name
    if cfg.seat > game.spec.seats:
        raise ConfigError(f"{rules.name} is a one-player game", "remove seat=")
    _check_moves(game, cfg.moves or "")
    player = with_search(agent, game, cfg.search, opened.config.reward)
    from rlgames.export.machine import build_machine
    from rlgames.export.page import page_text

    machine = build_machine(game, player)
    table = Table(rules, agent.game.device, cfg.sampling, {name: opened})
    about = table.about(rules.name, [name, RANDOM], [] if search is None else [search])
    seats = [YOU, name][: game.spec.seats][:: 1 if cfg.seat == 1 else -1]
    page = page_text(
        game, machine, about, agent=name, search=search, seats=seats, moves=cfg.moves or ""
    )
    path.write_text(page, encoding="utf-8")
    return Exported(str(path), len(page.encode()), len(machine.code))


def _check_moves(game: Game[Any], moves: str) -> None:
    """Raises ConfigError unless these moves can be played from the start."""
    state, names = game.example_state(), moves.replace(",", " ").split()
    if names and game.spec.num_chance_inputs:
        raise ConfigError(f"{game.spec.name} has chance after each move", "remove moves=")
    for name in names:
        if bool(state.done[0]):
            raise ConfigError(f"moves={moves}: the game is over before {name}")
        with value_errors("moves="):
            action = parse_action(game, state, 0, name, exact=True)
        state = game.apply_action(state, torch.tensor([action]))


def show(result: Exported) -> None:
    kilobytes = f"{result.size / 1000:,.0f} kB, of which {result.code / 1000:,.0f} kB are code"
    print(f"{result.path}: {kilobytes}; open it in a browser")
