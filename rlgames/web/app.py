"""The page and its interface: JSON over HTTP, with Starlette, served until Ctrl-C.

GET / and its files; GET /api/games; POST /api/sessions: a new game; POST /api/sessions/ID: a move
or anything else in it. Requests name no files.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import queue
import secrets
import socket
import sys
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
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
from rlgames.games.notation import takes_columns
from rlgames.web.session import Session
from rlgames.web.tables import YOU, Table

STATIC = Path(__file__).parent / "static"

MAX_BODY_BYTES, BODY_SECONDS = 1 << 16, 10.0
"""Of a request."""

MAX_SESSIONS = 256
"""Games in progress; the one that was left alone for longest makes room for a new one."""

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


class Worker:
    """A thread that does one thing after the other: players and solvers need not be safe for
    several threads. It does not keep the process alive."""

    def __init__(self) -> None:
        self._tasks: queue.Queue[tuple[Future[Any], Callable[[], Any]]] = queue.Queue(MAX_WAITING)
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, task: Callable[[], T]) -> T:
        """Its result. Raises Refused if too many wait, and what it raises."""
        future: Future[T] = Future()
        try:
            self._tasks.put_nowait((future, task))
        except queue.Full:
            raise Refused("too many are playing; try again later", 503) from None
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            future, task = self._tasks.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)


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
    """The games of a page, and those in progress."""

    def __init__(self, tables: Mapping[str, Table], seed: int | None = None) -> None:
        self.tables, self.seed = tables, seed
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        self.players, self.solvers = Worker(), Worker()

    async def games(self, request: Request) -> Response:
        return JSONResponse({"games": [*self.tables]})

    async def open(self, request: Request) -> Response:
        """A new game: {game, seats, search, position, fleet}, all of them optional."""
        body = await read_json(request)
        name = _text(body, "game") or next(iter(self.tables))

        def make() -> Session:
            if name not in self.tables:
                hint = nearest(name, [*self.tables])
                raise ConfigError(f"there is no game {name!r} on this page", hint)
            table = self.tables[name]
            seats = _texts(body, "seats")
            if seats is None:
                rest = [*table.players[:1]] * (table.game.spec.seats - 1)
                seats = [YOU, *rest]
            search, position, fleet = (
                _text(body, name) for name in ("search", "position", "fleet")
            )
            return Session(table, seats, search, position, fleet, self.seed)

        session = await run_in_threadpool(make)
        key = secrets.token_urlsafe(16)
        self.sessions[key] = session
        while len(self.sessions) > MAX_SESSIONS:
            self.sessions.popitem(last=False)
        table, spec = session.table, session.game.spec
        about = {
            "game": name,
            "players": [YOU, *table.players],
            "strengths": table.strengths,
            "searches": await run_in_threadpool(lambda: table.searches),
            "columns": session.game.board_format.columns,
            "by_column": takes_columns(session.game, session.play.state),
            "rules": session.game.how_to_play,
            "is_hidden": spec.hidden,
        }
        return JSONResponse(
            {"id": key, "about": about, **self._view(session, _number(body, "ply"))}
        )

    async def act(self, request: Request) -> Response:
        """{do, ply} and what the action needs; the answer is what the page shows then."""
        body = await read_json(request)
        key = request.path_params["key"]
        session = self.sessions.get(key)
        if session is None:
            raise Refused("this game is no longer here; start a new one", 404)
        self.sessions.move_to_end(key)
        do, ply = _text(body, "do") or "view", _number(body, "ply")
        if do == "hint":
            worker = self.solvers if body.get("kind") in ("exact", "ships") else self.players
            kind = _text(body, "kind") or ""
            return JSONResponse(await worker.run(lambda: session.hint(kind, ply)))
        if do == "reply":
            await self.players.run(lambda: self._change(session, session.reply))
        elif do != "view":
            actions: dict[str, Callable[[], None]] = {
                "move": lambda: session.move(_text(body, "move") or ""),
                "undo": session.undo,
                "sit": lambda: session.sit(_texts(body, "seats") or [], _text(body, "search")),
            }
            if do not in actions:
                raise Refused(f"do is one of {', '.join([*actions, 'hint', 'reply', 'view'])}")
            await run_in_threadpool(self._change, session, actions[do])
        return JSONResponse(await run_in_threadpool(self._view, session, ply))

    @staticmethod
    def _change(session: Session, action: Callable[[], None]) -> None:
        if not session.lock.acquire(blocking=False):
            raise Refused("a player is thinking; wait for its move", 409)
        try:
            action()
        finally:
            session.lock.release()

    @staticmethod
    def _view(session: Session, ply: int | None) -> dict[str, Any]:
        view = session.view(ply)
        return view | {"hints": session.table.hints(session.seats, session.search)}


async def read_json(request: Request) -> dict[str, Any]:
    """The object in a request. Raises Refused for anything else, and for too large a body."""
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
    return body


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(f"{name} is text")
    return value


def _texts(body: dict[str, Any], name: str) -> list[str] | None:
    value = body.get(name)
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if value is not None and not is_list:
        raise Refused(f"{name} is a list of texts")
    return value


def _number(body: dict[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (type(value) is not int or not 0 <= value < 1 << 31):
        raise Refused(f"{name} is a whole number")
    return value


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


def make_app(
    tables: Mapping[str, Table], hosts: Sequence[str] = (), seed: int | None = None
) -> Starlette:
    """The application. hosts: names under which others open it, besides the loopback's."""
    page = Page(tables, seed)
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
    cfg: PageConfig, tables: Mapping[str, Table], query: Mapping[str, str], seed: int | None = None
) -> int:
    """Serve the page of these tables; the exit code. query: of the address that is opened.

    Raises ConfigError for an address that cannot be listened on.
    """
    listener = _listen(cfg.host, cfg.port)
    with listener:
        port = listener.getsockname()[1]
        names = [*cfg.hosts, *([] if _is_local_or_any(cfg.host) else [cfg.host])]
        name = next((each for each in names if "*" not in each), "127.0.0.1")
        address = f"http://{name}:{port}/" + (f"?{urlencode(query)}" if query else "")
        config = uvicorn.Config(
            make_app(tables, names, seed),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        print(printable(f"rlgames: {address} (Ctrl-C ends it)"), flush=True)
        if cfg.open:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            print(file=sys.stderr)
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
    """Whether a host is this machine alone, or every network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
