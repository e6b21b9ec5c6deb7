"""``odradek gateway`` as a user starts it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from support.hosts import LOOPBACK, ServeProcess


class GatewayProcess(ServeProcess):
    """``odradek gateway`` as a user starts it."""

    command = "gateway"


def free_ports(number: int) -> int:
    """The first of some free ports in a row."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            first = 0
            for following in range(number):
                found = stack.enter_context(socket.socket())
                found.bind(("127.0.0.1", first + following if first else 0))
                first = first or found.getsockname()[1]
            return first


@contextlib.contextmanager
def gateway_of(upstream: str, data_dir: Path, *settings: str) -> Iterator[GatewayProcess]:
    """A gateway in front of a cluster, on free ports; stopped at the end."""
    values = (f"listeners={LOOPBACK}", f"data.dir={data_dir}", *settings)
    options = [each for value in values for each in ("--set", value)]
    process = GatewayProcess("--upstream", upstream, *options)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.terminate()
