"""``odradek gateway`` in its own process, in front of a cluster; what it sends to clients is watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.java.host_process import STOP_TIMEOUT_S
from support.gateways import free_ports

READY = "odradek ready listeners=PLAINTEXT://"
PROGRAM = Path(__file__).with_name("watched_gateway.py")


@dataclass(slots=True)
class Seen:
    """Counts of the bytes that clients were sent."""

    secrets: int
    """How often a broker's address occurred."""
    advertised: int
    """How often the gateway's address occurred."""
    sent_bytes: int


@dataclass(slots=True)
class GatewayProcess:
    """A running gateway."""

    process: subprocess.Popen[str]
    bootstrap: str
    folder: Path

    def stopped(self) -> Seen:
        """Stop it and return what its clients were sent."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_TIMEOUT_S)
        return Seen(*map(int, (self.folder / "seen").read_text().split()))

    @property
    def log(self) -> str:
        return (self.folder / "gateway.log").read_text()


@contextmanager
def gateway_process(
    folder: Path, upstream: str, nodes: str, secret: str, *settings: str
) -> Iterator[GatewayProcess]:
    """Start a gateway in front of ``upstream``, wait for the ready line, yield, stop.

    Args:
        nodes: The ranges of node ids.
        secret: The address that clients must not see.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    listener = f"listeners=PLAINTEXT://127.0.0.1:{free_ports(4)}"
    given = (listener, f"data.dir={folder / 'data'}", f"gateway.nodes={nodes}", *settings)
    options = [option for setting in given for option in ("--set", setting)]
    command = [sys.executable, str(PROGRAM), str(folder / "seen"), secret, "127.0.0.1"]
    with (folder / "gateway.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--upstream", upstream, *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(READY), (line, (folder / "gateway.log").read_text())
            yield GatewayProcess(process, line.removeprefix(READY).split()[0], folder)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
