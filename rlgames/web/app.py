"""The page and its interface: JSON over HTTP, with Starlette, served until Ctrl-C.

GET / and its files; GET /api/games; POST /api/sessions: a new game; POST /api/sessions/ID: a move
or anything else in it. Requests name no files.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rlgames.config.commands import PageConfig
from rlgames.core.errors import ConfigError, nearest, to_user_error
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.drawing.mark_styles import FLEET_LEGEND
from rlgames.games.notation import takes_columns
from rlgames.web.session import Session
from rlgames.web.table import YOU, Table

STATIC = Path(__file__).parent / "static"

MAX_BODY_BYTES = 1 << 16
"""Of a request."""

MAX_SESSIONS = 256
"""Games in progress; the one idle for longest makes room for a new one."""

MAX_THINKING = 8
"""Players that think at the same time; one whose game was left goes on until it has its move."""

LOOPBACK = ("localhost", "127.0.0.1")

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
POLICY += "img-src 'self' data:; base-uri 'none'; form-action 'none'"

DEFAULT_PORT = 8765
"""Tried first, so that an address that was sent to somebody stays the same."""

MAX_CONNECTIONS = 512


class Page:
    """The games of a page, and those in progress.

    players, solvers: threads for moves and hints, and for exact values.
    """

    def __init__(self, tables: Mapping[str, Table], seed: int | None = None) -> None:
        self.tables, self.seed = tables, seed
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        self.players, self.solvers = ThreadPoolExecutor(MAX_THINKING), ThreadPoolExecutor(1)

    async def games(self, request: Request) -> Response:
        return JSONResponse({"games": {name: table.title for name, table in self.tables.items()}})

    async def open(self, request: Request) -> Response:
        """A new game: {game, seats, search, position, fleet}, all of them optional; or the game of
        id, if it is still here."""
        body = await read_json(request)
        key = body.get("id") or ""
        if key not in self.sessions:
            name = body.get("game") or next(iter(self.tables))
            if name not in self.tables:
                hint = nearest(name, [*self.tables])
                raise ConfigError(f"there is no game {name!r} on this page", hint)
            parts = {part: body.get(part) for part in ("seats", "search", "position", "fleet")}
            session = await run_in_threadpool(Session, name, self.tables[name], self.seed, **parts)
            key = secrets.token_urlsafe(16)
            self.sessions[key] = session
            while len(self.sessions) > MAX_SESSIONS:
                self.sessions.popitem(last=False)
        session = self.sessions[key]
        return JSONResponse({"id": key, "about": about(session), **session.view()})

    async def act(self, request: Request) -> Response:
        """{do, ply} and what the action needs; the answer is the next state of the page."""
        body = await read_json(request)
        key = request.path_params["key"]
        session = self.sessions.get(key)
        if session is None:
            raise HTTPException(404, "this game is no longer here; start a new one")
        self.sessions.move_to_end(key)
        do, ply, kind = body.get("do") or "view", body.get("ply"), body.get("kind") or ""
        run = asyncio.get_running_loop().run_in_executor
        if do == "hint":
            worker = self.solvers if kind in ("exact", "ships") else self.players
            return JSONResponse(await run(worker, session.hint, kind, ply))
        if do == "reply":
            await run(self.players, session.reply, ply)
            ply = None
        elif do != "view":
            await run_in_threadpool(session.change, do, body)
        return JSONResponse(await run_in_threadpool(session.view, ply))

    def close(self) -> None:
        """Give up what waits."""
        for worker in (self.players, self.solvers):
            worker.shutdown(wait=False, cancel_futures=True)


def about(session: Session) -> dict[str, Any]:
    """What the page has to know about a game once."""
    table, game = session.table, session.game
    return {
        "game": session.name,
        "title": table.title,
        "players": [YOU, *table.players],
        "strengths": table.strengths,
        "searches": table.searches,
        "columns": game.board_format.columns,
        "by_column": takes_columns(game, session.play.state),
        "meanings": {".": "empty", **(FLEET_LEGEND if game.spec.hidden else {})},
        "rules": game.how_to_play,
        "is_hidden": game.spec.hidden,
    }


async def read_json(request: Request) -> dict[str, Any]:
    """The object in a request: ply is a number, seats a list of texts, all else is text.

    Raises HTTPException for anything else.
    """
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "a request is a JSON object")
    for name, value in body.items():
        is_valid, kind = isinstance(value, str), "text"
        if name == "ply":
            is_valid, kind = type(value) is int and 0 <= value < 1 << 31, "a whole number"
        elif name == "seats":
            is_list = isinstance(value, list) and all(isinstance(seat, str) for seat in value)
            is_valid, kind = is_list, "a list of texts"
        if value is not None and not is_valid:
            raise HTTPException(400, f"{name} is {kind}")
    return body


async def _answer(request: Request, error: Exception) -> Response:
    """An error as an answer, so that the server goes on."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": sanitized(error.detail)}, error.status_code)
    status = 400 if isinstance(error, ConfigError) else 500
    return JSONResponse({"error": sanitized(str(to_user_error(error)))}, status)


def make_app(page: Page, hosts: Sequence[str] = ()) -> Starlette:
    """The application. hosts: names that others open it by, besides the loopback's."""
    headers = {
        "content-security-policy": POLICY if hosts else POLICY + "; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Refuse requests of other pages, and add the headers that keep this page to itself."""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return JSONResponse({"error": "this page answers its own requests only"}, 403)
        response = await call_next(request)
        response.headers.update(headers)
        return response

    names = [*LOOPBACK, *hosts]
    return Starlette(
        routes=[
            Route("/api/games", page.games),
            Route("/api/sessions", page.open, methods=["POST"]),
            Route("/api/sessions/{key}", page.act, methods=["POST"]),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=guard),
            Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
        ],
        exception_handlers=dict.fromkeys((HTTPException, ConfigError, Exception), _answer),
    )


def serve(
    cfg: PageConfig, tables: Mapping[str, Table], query: Mapping[str, Any], seed: int | None
) -> int:
    """Serve the page of these tables; the exit code. query: of the address that is opened.

    Raises ConfigError for an address that cannot be listened on.
    """
    listener, page = _listen(cfg.host, cfg.port), Page(tables, seed)
    with listener:
        port = listener.getsockname()[1]
        names = [*cfg.hosts, *([] if _is_local_or_any(cfg.host) else [cfg.host])]
        name = next((each for each in names if "*" not in each), "127.0.0.1")
        address = f"http://{name}:{port}/" + (f"?{urlencode(query, doseq=True)}" if query else "")
        config = uvicorn.Config(
            make_app(page, names),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        config.load()  # its imports, where Ctrl-C would end the process at once
        try:
            print(printable(f"rlgames: {address} (Ctrl-C ends it)"), flush=True)
            if cfg.open:
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            print(file=sys.stderr)
        finally:
            page.close()
    return 0


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket at a port, the default one, or any that is free."""
    number = DEFAULT_PORT if port is None else port
    try:
        listener = socket.create_server((host, number))
    except OSError as error:
        if port is None:
            return _listen(host, 0)
        code = error.errno or 0  # negative: no address was found
        reason = os.strerror(code) if code > 0 else str(error.strerror or error)
        hint = "leave out port= for a free one" if port else "use host=127.0.0.1"
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}", hint) from None
    # Else the body of an answer waits 40 ms for the browser to confirm its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _is_local_or_any(host: str) -> bool:
    """Whether a host is only this machine, or every network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
