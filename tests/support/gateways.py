"""``odradek gateway`` as a user starts it."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path

from support.hosts import LOOPBACK, ServeProcess


def free_ports(count: int) -> int:
    """The first of some ports in a row that nothing listens on, below those that the system gives out."""
    for _ in range(100):
        first = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


class GatewayProcess(ServeProcess):
    """``odradek gateway`` as a user starts it."""

    command = "gateway"


@contextlib.contextmanager
def gateway_of(
    upstream: str, data_dir: Path, *settings: str, config: Path | None = None
) -> Iterator[GatewayProcess]:
    """A gateway in front of a cluster, on free ports; stopped at the end."""
    values = (f"listeners={LOOPBACK}", f"data.dir={data_dir}", *settings)
    options = [each for value in values for each in ("--set", value)]
    file = () if config is None else ("--config", str(config))
    process = GatewayProcess("--upstream", upstream, *file, *options)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.terminate()
