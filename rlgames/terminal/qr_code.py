"""Addresses for phones."""

from __future__ import annotations

import io
from importlib.util import find_spec

from rich.console import Console
from rich.text import Text


def show_qr_code(address: str) -> None:
    """Print an address as a QR code, if standard output is a terminal and segno is installed."""
    console = Console()
    if console.is_terminal and console.encoding.startswith("utf") and find_spec("segno"):
        import segno

        code = io.StringIO()
        segno.make(address, micro=False).terminal(code, border=2, compact=True)
        console.print(Text(code.getvalue(), "bright_white on black"))
