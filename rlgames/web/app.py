"""The page and its interface: JSON over HTTP, with Starlette, served until Ctrl-C.

GET / and its files; GET /api/games; POST /api/sessions: a new game; POST /api/sessions/ID: a move
or anything else in it. Requests name no files.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlgames.config.commands import PageConfig
from rlgames.core.errors import ConfigError, nearest, to_user_error
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.drawing.mark_styles import FLEET_LEGEND
from rlgames.games.notation import takes_columns
from rlgames.web.session import Session
from rlgames.web.table import YOU, Table

STATIC = Path(__file__).parent / "static"

MAX_BODY_BYTES, BODY_SECONDS = 1 << 16, 10.0
"""Of a request."""

MAX_SESSIONS = 256
"""Games in progress; the one idle for longest makes room for a new one."""

MAX_THINKING = 8
"""Players that think at the same time; one whose game was left goes on until it has its move."""

MAX_WAITING = 64
"""Moves and hints that wait for a player; more are turned away."""

LOOPBACK = ("localhost", "127.0.0.1")

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
POLICY += "img-src 'self' data:; base-uri 'none'; form-action 'none'"

T = TypeVar("T")

DEFAULT_PORT = 8765
"""Tried first, so that an address that was sent to somebody stays the same."""

MAX_CONNECTIONS = 512


class Refused(Exception):
    """A request that is answered with an error. status: of HTTP."""

    def __init__(self, error: str, status: int = 400) -> None:
        super().__init__(error)
        self.status = status


class Guard:
    """Refuses requests of other pages, and adds the headers that keep this page to itself."""

    def __init__(self, app: ASGIApp, is_public: bool) -> None:
        self.app = app
        policy = POLICY if is_public else POLICY + "; frame-ancestors 'none'"
        headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
        }
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        headers = dict(scope.get("headers", []))
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
            response = JSONResponse({"error": "this page answers its own requests only"}, 403)
            await response(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)


class Page:
    """The games of a page, and those in progress.

    players, solvers: threads for moves and hints, and for exact values.
    """

    def __init__(self, tables: Mapping[str, Table], seed: int | None = None) -> None:
        self.tables, self.seed = tables, seed
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        self.players, self.solvers = ThreadPoolExecutor(MAX_THINKING), ThreadPoolExecutor(1)
        self.waiting = 0

    async def games(self, request: Request) -> Response:
        return JSONResponse({"games": {name: table.title for name, table in self.tables.items()}})

    async def open(self, request: Request) -> Response:
        """A new game: {game, seats, search, position, fleet}, all of them optional; or the game of
        id, if it is still here."""
        body = await read_json(request)
        key = body.get("id") or ""
        if (known := self.sessions.get(key)) is not None:
            return JSONResponse({"id": key, "about": about(known), **known.view(None)})
        name = body.get("game") or next(iter(self.tables))
        if name not in self.tables:
            hint = nearest(name, [*self.tables])
            raise ConfigError(f"there is no game {name!r} on this page", hint)
        table = self.tables[name]

        def make() -> Session:
            seats = body.get("seats")
            if seats is None:
                seats = [YOU, *table.players[:1] * (table.game.spec.seats - 1)]
            search, text, fleet = body.get("search"), body.get("position"), body.get("fleet")
            return Session(name, table, seats, search, text, fleet, self.seed)

        session = await run_in_threadpool(make)
        key = secrets.token_urlsafe(16)
        self.sessions[key] = session
        while len(self.sessions) > MAX_SESSIONS:
            self.sessions.popitem(last=False)
        return JSONResponse({"id": key, "about": about(session), **session.view(body.get("ply"))})

    async def act(self, request: Request) -> Response:
        """{do, ply} and what the action needs; the answer is the next state of the page."""
        body = await read_json(request)
        key = request.path_params["key"]
        session = self.sessions.get(key)
        if session is None:
            raise Refused("this game is no longer here; start a new one", 404)
        self.sessions.move_to_end(key)
        do, ply, kind = body.get("do") or "view", body.get("ply"), body.get("kind") or ""
        actions: dict[str, Callable[[], None]] = {
            "move": lambda: session.move(body.get("move") or ""),
            "undo": session.undo,
            "sit": lambda: session.sit(body.get("seats") or [], body.get("search")),
        }
        if do == "hint":
            worker = self.solvers if kind in ("exact", "ships") else self.players
            return JSONResponse(await self._in_turn(worker, lambda: session.hint(kind, ply)))
        if do == "reply":
            await self._in_turn(self.players, lambda: session.reply(ply))
            ply = None
        elif do in actions:
            await run_in_threadpool(_change, session, actions[do])
        elif do != "view":
            raise Refused(f"do is one of {', '.join([*actions, 'hint', 'reply', 'view'])}")
        return JSONResponse(await run_in_threadpool(session.view, ply))

    async def _in_turn(self, worker: ThreadPoolExecutor, task: Callable[[], T]) -> T:
        if self.waiting >= MAX_WAITING:
            raise Refused("too many are playing; try again later", 503)
        self.waiting += 1
        try:
            return await asyncio.wrap_future(worker.submit(task))
        finally:
            self.waiting -= 1

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


def _change(session: Session, action: Callable[[], None]) -> None:
    if not session.lock.acquire(blocking=False):
        raise Refused("a player is thinking; wait for its move", 409)
    try:
        action()
    finally:
        session.lock.release()


async def read_json(request: Request) -> dict[str, Any]:
    """The object in a request: ply is a number, seats a list of texts, all else is text.

    Raises Refused for anything else, and for too large a body.
    """
    too_large = Refused(f"a request has at most {MAX_BODY_BYTES} bytes", 413)
    size = request.headers.get("content-length", "0")
    if not size.isdecimal() or int(size) > MAX_BODY_BYTES:
        raise too_large
    data = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise too_large
    except TimeoutError:
        raise Refused("the request took too long", 408) from None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refused("a request is a JSON object")
    for name, value in body.items():
        if value is None:
            continue
        if name == "ply":
            if type(value) is not int or not 0 <= value < 1 << 31:
                raise Refused("ply is a whole number")
        elif name == "seats":
            if not (isinstance(value, list) and all(isinstance(seat, str) for seat in value)):
                raise Refused("seats is a list of texts")
        elif not isinstance(value, str):
            raise Refused(f"{name} is text")
    return body


Endpoint = Callable[[Request], Awaitable[Response]]


def _answered(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose errors are answers, so that the server goes on."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            status = error.status if isinstance(error, Refused) else 400
            if not isinstance(error, Refused | ConfigError):
                error, status = to_user_error(error), 500
            return JSONResponse({"error": sanitized(str(error))}, status)

    return answer


def make_app(page: Page, hosts: Sequence[str] = ()) -> Starlette:
    """The application. hosts: names that others open it by, besides the loopback's."""
    return Starlette(
        routes=[
            Route("/api/games", page.games),
            Route("/api/sessions", _answered(page.open), methods=["POST"]),
            Route("/api/sessions/{key}", _answered(page.act), methods=["POST"]),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[
            Middleware(Guard, is_public=bool(hosts)),
            Middleware(
                TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, *hosts], www_redirect=False
            ),
        ],
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
    ports = [DEFAULT_PORT, 0] if port is None else [port]
    for number in ports:
        try:
            listener = socket.create_server((host, number))
        except OSError as error:
            number = error.errno or 0  # negative: no address was found
            reason = os.strerror(number) if number > 0 else str(error.strerror or error)
        else:
            # Else the body of an answer waits 40 ms for the browser to confirm its headers.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
    hint = "leave out port= for a free one" if port else "use host=127.0.0.1"
    raise ConfigError(f"cannot listen on {host}:{ports[-1]}: {reason}", hint)


def _is_local_or_any(host: str) -> bool:
    """Whether a host is only this machine, or every network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
