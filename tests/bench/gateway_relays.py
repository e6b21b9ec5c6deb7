"""The relays of the gateway bench, the broker that they lead to, and the load."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.go_programs import built
from bench.harness import HERE, Server, running
from support.certificates import Files
from support.gateways import GatewayProcess

SOURCES: Final = tuple(sorted((HERE / "native" / "gateway").iterdir()))
DIRECT: Final = "direct"
COPY, FRAMES = "io.Copy", "Go, frames"
FULL, BARE = "odradek", "odradek, bare"
RELAYS: Final = (COPY, FRAMES, FULL, BARE)
GO_MODES: Final = {COPY: "copy", FRAMES: "frames"}
SETTINGS: Final = {
    FULL: ("gateway.telemetry=own", "gateway.observe=all", "subscriptions.all.metrics=*"),
    BARE: ("gateway.telemetry=off", "gateway.observe=none"),
}
"""`odradek` answers telemetry and observes all clients; `odradek, bare` does neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Requests of one kind and size, on so many connections with so many in flight on each."""

    title: str
    kind: str
    size: int
    """Bytes of records of each partition."""
    connections: int
    depth: int = 1
    partitions: int = 1

    @property
    def is_bulk(self) -> bool:
        return self.size >= 60_000

    @property
    def is_single(self) -> bool:
        """Whether one request at a time measures the latency."""
        return self.connections * self.depth == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLoad:
    """The load of a row, as a `Generator`."""

    row: Row
    secure: bool

    def command(self, port: int) -> list[str | Path]:
        row = self.row
        numbers = (str(row.partitions), str(row.size), str(row.connections), str(row.depth))
        return [program(), "load", f"127.0.0.1:{port}", row.kind, *numbers, "tls" if self.secure else "plain"]


def program() -> Path:
    """The Go program.

    Raises:
        UnavailableError: There is no Go.
    """
    return built("gateway-bench", SOURCES, "the relays to compare with")


@contextmanager
def relays(
    names: tuple[str, ...], secure: bool, relay_core: int | None, load_core: int | None
) -> Iterator[dict[str, Server]]:
    """Start a broker and the relays in front of it, and end them.

    Args:
        names: The relays; `DIRECT` is the broker itself.
        secure: Whether the connections of clients have TLS; those to the broker have not.
        relay_core: The core of the relays.
        load_core: The core of the broker.
    """
    with ExitStack() as stack:
        files = Files(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        certificate: list[str | Path] = [files.server] if secure else []
        broker = stack.enter_context(running([program(), "broker"], core=load_core))
        upstream = f"127.0.0.1:{broker.port}"
        found: dict[str, Server] = {}
        command: list[str | Path]
        for name in names:
            if name == DIRECT:
                command = [program(), "broker", *certificate]
                found[name] = stack.enter_context(running(command, core=load_core))
            elif name in GO_MODES:
                command = [program(), "relay", GO_MODES[name], upstream, *certificate]
                found[name] = stack.enter_context(running(command, core=relay_core))
            else:
                folder = files.folder / name
                started = gateway(upstream, folder, files if secure else None, SETTINGS[name], relay_core)
                found[name] = stack.enter_context(started)
        yield found


@contextmanager
def gateway(
    upstream: str, folder: Path, files: Files | None, settings: tuple[str, ...], core: int | None
) -> Iterator[Server]:
    """`odradek gateway` as a user starts it."""
    scheme = "PLAINTEXT" if files is None else "SSL"
    values = [f"listeners={scheme}://127.0.0.1:0", f"data.dir={folder}", "gateway.subscriptions=file"]
    values += [*settings, *([] if files is None else files.settings)]
    options = [each for value in values for each in ("--set", value)]
    cores = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        process = GatewayProcess("--upstream", upstream, *options)
    finally:
        os.sched_setaffinity(0, cores)
    try:
        yield Server(process.process, int(process.bootstrap.rpartition(":")[2]))
    finally:
        try:
            process.terminate()
        except subprocess.TimeoutExpired:
            process.process.kill()
