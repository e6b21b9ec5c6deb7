"""Ports of 127.0.0.1 that nothing listens on, for servers whose port has to be known before they start."""

from __future__ import annotations

import contextlib
import random
import socket


def free_ports(count: int) -> list[int]:
    """Different ports, which the system chooses."""
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in found]


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_range(count: int) -> int:
    """The first of some ports in a row, below those that the system gives out."""
    for _ in range(100):
        first = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")
