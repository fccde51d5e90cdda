"""The page and its interface: JSON over HTTP, with Starlette, served until Ctrl-C.

GET / and its files; GET /api/games; POST /api/sessions: a new game; POST /api/sessions/ID: a move
or anything else in it. Requests name no files.
"""

from __future__ import annotations

import asyncio
import errno
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
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rlgames.config.commands import ServeConfig
from rlgames.core.errors import ConfigError, nearest, to_user_error
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.terminal.qr_code import show_qr_code
from rlgames.web.session import Session
from rlgames.web.table import STATIC, Table

MAX_BODY_BYTES = 1 << 16
"""Of a request."""

MAX_SESSIONS = 256
"""Games in progress; the one idle for longest makes room for a new one."""

MAX_THINKING = 8
"""Players that think at the same time; one whose game was left goes on until it has its move."""

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
        table = session.table
        about = table.about(session.name, table.players, table.searches)
        return JSONResponse({"id": key, "about": about, **session.view()})

    async def act(self, request: Request) -> Response:
        """{do, ply} and what the action needs; the answer is the next state of the page. Status 409
        refuses to change another position than the one of ply and present, and has the present one.
        """
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
            try:
                await run_in_threadpool(session.change, do, body)
            except HTTPException as error:
                present = await run_in_threadpool(session.view)
                return JSONResponse({"error": error.detail, **present}, error.status_code)
            ply = None
        return JSONResponse(await run_in_threadpool(session.view, ply))

    def close(self) -> None:
        """Give up what waits."""
        for worker in (self.players, self.solvers):
            worker.shutdown(wait=False, cancel_futures=True)


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
        """Refuse requests of other pages, and add the headers that keep this page to itself.

        Host has to be a name of this page, so that no other name can be made to lead here. A proxy
        may change either of Host and Origin, so they need not agree.
        """
        named, origin = host_name(request.headers.get("host", "")), request.headers.get("origin")
        asking = named if origin is None else host_name(origin.partition("://")[2])
        reached = (request.scope.get("server") or ("",))[0]
        response: Response
        for status, name in ((400, named), (403, asking)):
            if not _is_own(name, hosts, reached):
                name = sanitized(name) or "NAME"
                line = f"this page does not answer to {name}; if that is its name here, "
                line += f"start rlgames with hosts=[{name}]"
                response = JSONResponse({"error": line}, status)
                if status == 400:  # a person may have typed the name
                    response = PlainTextResponse(line + "\n", status)
                break
        else:
            response = await call_next(request)
        response.headers.update(headers)
        return response

    return Starlette(
        routes=[
            Route("/api/games", page.games),
            Route("/api/sessions", page.open, methods=["POST"]),
            Route("/api/sessions/{key}", page.act, methods=["POST"]),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=guard),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
        ],
        exception_handlers=dict.fromkeys((HTTPException, ConfigError, Exception), _answer),
    )


def host_name(address: str) -> str:
    """The name or IP address in NAME, NAME:PORT or a URL, in lower case; "" if there is none."""
    name = address.strip("[]")
    if _ip(name) is None:
        try:
            name = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        except ValueError:
            return ""
    ip = _ip(name)
    return name.rstrip(".") if ip is None else str(getattr(ip, "ipv4_mapped", None) or ip)


def _is_own(name: str, hosts: Sequence[str], reached: str) -> bool:
    """Whether a name is the page's: on the loopback, one of hosts, or the IP address that a
    request reached, which is not looked up."""
    if not name:
        return False
    is_reached = _ip(name) is not None and name == host_name(reached)
    return _is_loopback(name) or is_reached or any(fnmatchcase(name, host) for host in hosts)


def serve(cfg: ServeConfig, tables: Mapping[str, Table], query: Mapping[str, Any]) -> None:
    """Serve the page of these tables. query: of the address that is opened.

    Raises ConfigError for an address that cannot be listened on, and for hosts that are not names.
    """
    host, hosts = _name_of("host", cfg.host), [_name_of("hosts", name) for name in cfg.hosts]
    listener, page = _listen(host, cfg.port), Page(tables, cfg.seed)
    with listener:
        name = _address_of(host, hosts)
        address = f"http://{f'[{name}]' if ':' in name else name}:{listener.getsockname()[1]}/"
        address += f"?{urlencode(query, doseq=True)}" if query else ""
        is_named = not _is_loopback(host) and not _is_any(host)
        config = uvicorn.Config(
            make_app(page, [*hosts, *([host] if is_named else [])]),
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
            if not _is_loopback(host):
                show_qr_code(address)
            if cfg.open:
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            print(file=sys.stderr)
        finally:
            page.close()


def _name_of(key: str, typed: str) -> str:
    """The value of host= or of an element of hosts=. Raises ConfigError unless it is a name or an
    IP address, without a port."""
    name = host_name(typed)
    if _ip(typed.strip("[]")) is None and (not name or name != typed.lower().rstrip(".")):
        name, form = name or "mybox.local", "[{}]" if key == "hosts" else "{}"
        kind = "is not the name or IP address of a machine"
        raise ConfigError(f"{key}={form.format(typed)} {kind}", f"use {key}={form.format(name)}")
    return name


def _address_of(host: str, hosts: Sequence[str]) -> str:
    """The name or IP address to open a page by that listens on a host."""
    if _is_loopback(host):
        return host
    names = [name for name in hosts if "*" not in name]
    if not names and _is_any(host):
        return _address_in_network() or "127.0.0.1"
    return next(iter(names), host)


def _address_in_network() -> str | None:
    """This machine's IP address for others; None without a network."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; RFC 5737 reserves the address
        return str(probe.getsockname()[0])
    return None


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket at a port, the default one, or any that is free."""
    number = DEFAULT_PORT if port is None else port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_both = host == "::" and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server((host, number), family=family, dualstack_ipv6=is_both)
    except OSError as error:
        code = error.errno or 0  # negative: no address was found
        is_port = code in (errno.EADDRINUSE, errno.EACCES)
        if port is None and is_port:
            return _listen(host, 0)
        reason = os.strerror(code) if code > 0 else str(error.strerror or error)
        hint = "leave out port= for a free one" if port and is_port else "use host=127.0.0.1"
        at = f"[{host}]" if ":" in host else host
        raise ConfigError(f"cannot listen on {at}:{number}: {reason}", hint) from None
    # Else the body of an answer waits 40 ms for the browser to confirm its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address, if this is one."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _is_loopback(host: str) -> bool:
    address = _ip(host)
    return host == "localhost" if address is None else address.is_loopback


def _is_any(host: str) -> bool:
    """Whether a host is every network."""
    address = _ip(host)
    return address is not None and address.is_unspecified
