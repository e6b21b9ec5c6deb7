"""Clients that pipeline and a client that does not, on real sockets: counts connections, not seconds."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from odradek.plugin.context import ConnectionContext
from odradek.programs.host import Host
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.hosts import running_host
from support.wire_client import WireClient

PIPELINING = 100
REQUESTS = 4_000
A_FEW = PIPELINING // 4
"""A round of the loop serves one connection, and the interpreter's lock changes hands after a few rounds."""
ONLY_TIME = ("connections.turn.requests=1000000", "connections.turn.bytes=1000000000")
"""So that a connection has a whole round of the loop."""


class Watch:
    """Records the port of the client of each request."""

    def __init__(self) -> None:
        self.ports: list[int] = []

    def over(self, host: Host) -> None:
        answer = host.dispatcher.answer

        def watched(frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Any:
            self.ports.append(connection.client_port)
            return answer(frame, offset, connection)

        host.dispatcher.answer = watched  # type: ignore[method-assign]


def asking() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="x", client_software_version="1")


def test_a_client_does_not_wait_for_all_those_that_pipeline(tmp_path: Path) -> None:
    watch = Watch()
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(running_host(tmp_path, *ONLY_TIME, before_start=watch.over))
        victim = stack.enter_context(WireClient(host.address))
        port = victim.socket.getsockname()[1]
        victim.introduce()
        others = [stack.enter_context(WireClient(host.address)) for _ in range(PIPELINING)]
        for client in others:
            client.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.socket.send(client.frame(asking(), 3) * REQUESTS)

        while len(set(watch.ports)) < A_FEW:
            time.sleep(0.001)

        def ask() -> int:
            """Send on the host's loop, which serves nobody meanwhile; return how many came before."""
            victim.send_bytes(victim.frame(asking(), 3))
            return len(watch.ports)

        waited: list[int] = []
        for _ in range(5):
            before = host.call(ask)
            victim.answer(asking(), 3)
            waited.append(len(set(watch.ports[before : watch.ports.index(port, before)])))
        left = len(host.host.turns)
        others[0].socket.setblocking(True)
        others[0].receive_frame()

    assert left > A_FEW, "the requests did not last for the test"
    assert min(waited) <= 3
    assert max(waited) <= A_FEW
