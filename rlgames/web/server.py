"""Serves a page until Ctrl-C."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Mapping
from urllib.parse import urlencode

import uvicorn

from rlgames.commands.configs import PageConfig
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.web.app import make_app
from rlgames.web.tables import Tables

DEFAULT_PORT = 8765
"""Tried first, so that an address that was sent to somebody stays the same."""

MAX_CONNECTIONS = 512


def serve(
    cfg: PageConfig, tables: Tables, query: Mapping[str, str], seed: int | None = None
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
