"""Ports of 127.0.0.1 that nothing listens on, for servers whose port has to be known before they start.

The free ones are below those that the system gives out: a client elsewhere could get one of these before the
server. For the same reason, each worker of pytest-xdist has a part of them, and none is given again soon.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections import deque
from typing import Final

FIRST: Final = 20_000
LAST: Final = 31_999
TRIES: Final = 100
given: Final[deque[int]] = deque(maxlen=500)
"""The ports given last, whose servers may not listen yet."""


def own_ports() -> range:
    """The ports of this worker of pytest-xdist; without it, all."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = (LAST - FIRST + 1) // workers
    begin = FIRST + number % workers * size  # a worker in place of a crashed one has a new number
    return range(begin, begin + size)


def free_range(count: int) -> int:
    """The first of some ports in a row."""
    mine = own_ports()
    for _ in range(TRIES):
        first = random.randint(mine[0], mine[-count])
        ports = range(first, first + count)
        if not set(ports).isdisjoint(given):
            continue
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in ports:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            given.extend(ports)
            return first
    raise AssertionError("no free ports")


def free_ports(count: int) -> list[int]:
    """Different ports."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    return free_range(1)


def answers(port: int, address: str = "127.0.0.1") -> bool:
    """Whether something listens on a port now."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True
