"""Ports of 127.0.0.1 that nothing listens on, for servers whose port has to be known before they start.

The free ones are below those that the system gives out: a client elsewhere could get one of these before the
server.
"""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

FIRST: Final = 20_000
LAST: Final = 31_999
TRIES: Final = 100


def free_range(count: int) -> int:
    """The first of some ports in a row."""
    for _ in range(TRIES):
        first = random.randint(FIRST, LAST - count + 1)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


def free_ports(count: int) -> list[int]:
    """Different ports."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_range(1))
    return list(found)


def free_port() -> int:
    return free_range(1)


def answers(port: int, address: str = "127.0.0.1") -> bool:
    """Whether something listens on a port now."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True
