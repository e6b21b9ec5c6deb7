"""Clients that leave together: a few connections are ended in each pass of the loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.frames import GET_NEW_INSTANCE, ask
from odradek.net.departures import ENDED_AT_ONCE
from odradek.programs.config import load_config
from odradek.programs.host import Host
from support.certificates import Files, authority
from support.hosts import EVERYTHING
from support.loops import loops

CLIENTS = 3 * ENDED_AT_ONCE
PASSES = 400
GOODBYE, SILENT = "goodbye", "silent"


@dataclass
class Clients:
    """Clients that have a client instance each, and what their host does when they leave."""

    host: Host
    sockets: list[socket.socket] = field(default_factory=list)

    def connect(self) -> None:
        """Connect all of them, on another thread than the host's."""
        address = self.host.listeners[0].address
        for _ in range(CLIENTS):
            plain = socket.create_connection(("127.0.0.1", self.host.listeners[0].bound_port))
            if address.security_protocol == "SSL":
                context = ssl.create_default_context(cadata=authority().issued.certificate)
                plain = context.wrap_socket(plain, server_hostname="localhost")
            ask(plain, GET_NEW_INSTANCE)
            self.sockets.append(plain)

    def leave(self, how: str) -> None:
        """Let all leave before the host looks at its sockets."""
        for number, each in enumerate(self.sockets):
            each.setblocking(False)
            if isinstance(each, ssl.SSLSocket):
                if how == GOODBYE:
                    with suppress(ssl.SSLWantReadError):
                        each.unwrap()
                self.sockets[number] = socket.socket(fileno=each.detach())
            self.sockets[number].shutdown(socket.SHUT_WR)

    def closed(self) -> int:
        """How many connections the host has closed since the last call."""
        before = len(self.sockets)
        for each in list(self.sockets):
            if is_at_end(each):
                each.close()
                self.sockets.remove(each)
        return before - len(self.sockets)

    async def closed_in_passes(self) -> list[int]:
        """How many connections the host closes in each pass of its loop, until it has closed all."""
        found: list[int] = []
        while self.sockets and len(found) < PASSES:
            await asyncio.sleep(0)
            found.append(self.closed())
        return found


def is_at_end(plain: socket.socket) -> bool:
    """Whether the host has closed a connection. Reads the goodbye that comes before."""
    try:
        while plain.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


Check = Callable[[Clients], Awaitable[None]]
Run = Callable[[str, Check], None]


@pytest.fixture(params=loops())
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a check with a host and its clients on each loop."""

    def on_loop(protocol: str, check: Check) -> None:
        settings = (f"listeners={protocol}://127.0.0.1:0", f"data.dir={tmp_path / 'data'}", *EVERYTHING)

        async def main() -> None:
            host = Host(load_config(None, [*settings, *Files(tmp_path).settings]))
            await host.start()
            clients = Clients(host)
            await asyncio.to_thread(clients.connect)
            try:
                await check(clients)
            finally:
                await host.stop()
                await clients.closed_in_passes()
                assert clients.sockets == []

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(main())

    return on_loop


KINDS = [
    pytest.param("PLAINTEXT", SILENT, id="plain"),
    pytest.param("SSL", SILENT, id="TLS"),
    pytest.param("SSL", GOODBYE, id="TLS with goodbye"),
]


@pytest.mark.parametrize(("protocol", "how"), KINDS)
def test_the_sockets_of_clients_that_leave_together_are_closed_a_few_in_each_pass(
    run: Run, protocol: str, how: str
) -> None:
    async def check(clients: Clients) -> None:
        clients.leave(how)
        passes = await clients.closed_in_passes()

        assert sum(passes) == CLIENTS
        assert max(passes) <= ENDED_AT_ONCE

    run(protocol, check)


@pytest.mark.parametrize(("protocol", "how"), KINDS)
def test_clients_that_come_back_find_their_former_connections_gone(run: Run, protocol: str, how: str) -> None:
    async def check(clients: Clients) -> None:
        host, quotas = clients.host, clients.host.broker.connection_quotas
        listener = host.listeners[0]
        clients.leave(how)
        clients.sockets.append(socket.create_connection(("127.0.0.1", listener.bound_port)))
        clients.sockets[-1].setblocking(False)
        left, found = CLIENTS, [quotas.total]
        while listener.accepted + len(listener.connecting) == CLIENTS:
            await asyncio.sleep(0)
            found.append(quotas.total)
            left = len(host.turns.departures)

        assert max(found) == CLIENTS
        assert left == 0
        assert len(host.telemetry.instances()) <= ENDED_AT_ONCE  # whose sockets close in the next pass

    run(protocol, check)


@pytest.mark.parametrize(("protocol", "how"), KINDS)
def test_a_host_that_stops_ends_connections_that_wait_for_it(run: Run, protocol: str, how: str) -> None:
    async def check(clients: Clients) -> None:
        clients.leave(how)
        while not len(clients.host.turns.departures):
            await asyncio.sleep(0)

        assert len(clients.host.turns.departures) > ENDED_AT_ONCE
        # the host stops now

    run(protocol, check)


def test_idle_connections_are_closed_a_few_in_each_pass(run: Run) -> None:
    async def check(clients: Clients) -> None:
        for each in clients.sockets:
            each.setblocking(False)
        closed = clients.host.listeners[0].close_idle(clients.host.clock.monotonic_ms() + 1_000, 1_000)
        passes = await clients.closed_in_passes()

        assert closed == sum(passes) == CLIENTS
        assert max(passes) <= ENDED_AT_ONCE

    run("PLAINTEXT", check)
