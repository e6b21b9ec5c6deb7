"""``odradek gateway`` in front of a cluster; what it sends to clients is watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contrib.capture.ports import free_range

from support.child_process import same_imports
from support.gateways import GatewayProcess

PROGRAM = Path(__file__).with_name("watched_gateway.py")
HOST = "127.0.0.1"


@dataclass(slots=True)
class Seen:
    """Counts of the bytes that clients were sent."""

    secrets: int
    """How often a broker's address occurred."""
    advertised: int
    """How often the gateway's address occurred."""
    sent_bytes: int


class WatchedGateway(GatewayProcess):
    """A gateway that counts what it sends."""

    def __init__(self, seen: Path, secret: str, *arguments: str) -> None:
        self.seen = seen
        self.program = (str(PROGRAM), str(seen), secret, HOST)
        super().__init__(*arguments, env=same_imports())

    def stopped(self) -> Seen:
        """Stop it and return what its clients were sent."""
        self.terminate()
        return Seen(*map(int, self.seen.read_text().split()))

    @property
    def log(self) -> str:
        return "\n".join(self.errors)


@contextmanager
def gateway_process(
    folder: Path, upstream: str, nodes: str, secret: str, *settings: str, port: int = 0
) -> Iterator[WatchedGateway]:
    """Start a gateway in front of ``upstream``, wait for the ready line, yield, stop.

    Args:
        nodes: The ranges of node ids.
        secret: The address that clients must not see.
        port: The bootstrap port.
    """
    listener = f"listeners=PLAINTEXT://{HOST}:{port or free_range(4)}"
    given = (listener, f"data.dir={folder / 'data'}", f"gateway.nodes={nodes}", *settings)
    options = [option for setting in given for option in ("--set", setting)]
    gateway = WatchedGateway(folder / "seen", secret, "--upstream", upstream, *options)
    try:
        yield gateway
    finally:
        if gateway.process.poll() is None:
            gateway.kill()
