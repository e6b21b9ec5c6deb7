"""``odradek gateway`` as a user starts it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.hosts import LOOPBACK, ServeProcess


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
