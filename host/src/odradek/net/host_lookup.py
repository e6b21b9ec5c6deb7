"""Address lookups of the hosts that connection limits name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence


def look_up(host: str, found: Callable[[Sequence[str]], None]) -> None:
    """Ask the system for the addresses of a host; on another thread if an event loop is running."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        found(addresses(host))
        return
    looking = loop.run_in_executor(None, addresses, host)
    looking.add_done_callback(lambda done: None if done.cancelled() else found(done.result()))


def addresses(host: str) -> list[str]:
    """Return the addresses of a host, or an empty list if it has none; blocks."""
    try:
        return [str(row[4][0]) for row in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []
