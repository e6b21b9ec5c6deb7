"""When the server gives a connection up, by a loop and a transport that do nothing by themselves."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_network
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from odradek.endpoints import Address, Shares
from odradek.endpoints.bad_requests import BAD_REQUEST, BadRequests
from odradek_console.web.proxies import Proxies
from odradek_console.web.server import Bounded, WebServer
from odradek_console.web.server_settings import ServerCounts, ServerSettings


@dataclass
class Loop:
    """Keeps the calls that are asked for later."""

    calls: list[SimpleNamespace] = field(default_factory=list)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Any:
        made = SimpleNamespace(delay_s=delay_s, call=call)
        made.cancel = lambda: self.calls.remove(made)
        self.calls.append(made)
        return made

    def run(self) -> None:
        """Make the only call."""
        (made,) = self.calls
        self.calls.clear()
        made.call()

    def time(self) -> float:
        return 0.0

    def create_task(self, work: Any) -> Any:
        work.close()
        return Mock()


@dataclass
class Transport:
    unsent_bytes: int = 0
    is_aborted: bool = False

    def write(self, data: bytes) -> None:
        """Send nothing."""

    def close(self) -> None:
        """Stay open."""

    def get_extra_info(self, name: str) -> Any:
        address = ("127.0.0.1", 9642)
        found = SimpleNamespace(
            family=socket.AF_INET,
            getsockname=lambda: address,
            getpeername=lambda: address,
            setsockopt=lambda *option: None,
        )
        return {"socket": found, "peername": address}.get(name)

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def abort(self) -> None:
        self.is_aborted = True


@dataclass
class Peer:
    connection: Bounded
    loop: Loop
    transport: Transport
    counts: ServerCounts


def new_peer(server: Any) -> Peer:
    config = uvicorn.Config(Response(), interface="asgi3", log_config=None, lifespan="off", ws="none")
    config.load()
    loop, transport = Loop(), Transport()
    connection = Bounded(config, server.server_state, server, loop)  # type: ignore[arg-type]
    return Peer(connection, loop, transport, server.counts)


def new_server(**bounds: Any) -> Any:
    server = WebServer.__new__(WebServer)  # without a socket
    server.settings = ServerSettings(address=Address("127.0.0.1", 0), **bounds)
    server.shares = Shares(server.settings.max_connections_per_ip)
    server.counts, server.bad_requests = ServerCounts(), BadRequests(logging.getLogger("console"))
    server.server_state, server.entrance = ServerState(), None
    return server


@pytest.fixture
def peer() -> Peer:
    return new_peer(new_server(max_connections=1))


def connect(peer: Peer) -> None:
    peer.connection.connection_made(peer.transport)  # type: ignore[arg-type]


def test_a_request_has_its_time_from_the_connection_on(peer: Peer) -> None:
    connect(peer)
    peer.connection.data_received(b"GET / HTTP/1.1\r\nHost: lo")
    peer.connection.data_received(b"calhost\r\n")

    assert [each.delay_s for each in peer.loop.calls] == [15.0]
    peer.loop.run()
    assert peer.transport.is_aborted
    assert peer.counts.to_json() == {"refused_connections": 0, "slow_connections": 1}


def test_a_request_that_has_come_is_not_given_up(peer: Peer) -> None:
    connect(peer)
    peer.connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert peer.loop.calls == []


def test_a_bad_request_names_its_client(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    connect(peer)

    with caplog.at_level(logging.INFO):
        peer.connection.data_received(b"\x16\x03\x01 hello\r\n\r\n")

    (line,) = [each for each in caplog.records if each.message == BAD_REQUEST]
    assert vars(line)["address"] == "127.0.0.1"
    assert "illegal" in vars(line)["problem"]


def test_a_connection_too_many_is_closed_at_once(peer: Peer) -> None:
    peer.connection.connections.add(object())  # type: ignore[arg-type]
    connect(peer)

    assert peer.transport.is_aborted
    assert peer.loop.calls == []
    assert peer.counts.refused_connections == 1


def test_an_address_has_its_share_until_it_gives_it_back() -> None:
    server = new_server(max_connections_per_ip=1)
    first, second, third = (new_peer(server) for _ in range(3))
    connect(first)
    connect(second)
    for each in (second, first):
        each.connection.connection_lost(ConnectionResetError())

    connect(third)

    assert [each.transport.is_aborted for each in (first, second, third)] == [False, True, False]
    assert server.counts.refused_connections == 1


def test_a_trusted_proxy_has_no_share() -> None:
    proxies = Proxies(networks=(ip_network("127.0.0.0/8"),))
    server = new_server(max_connections_per_ip=1, proxies=proxies)
    several = [new_peer(server) for _ in range(3)]

    for each in several:
        connect(each)

    assert not any(each.transport.is_aborted for each in several)
    assert server.shares.held == {}


def test_a_peer_that_reads_slowly_is_waited_for(peer: Peer) -> None:
    connect(peer)
    peer.connection.forget()
    peer.transport.unsent_bytes = 300_000
    peer.connection.pause_writing()
    for left in (200_000, 199_999):
        peer.transport.unsent_bytes = left
        peer.loop.run()

    assert not peer.transport.is_aborted
    peer.connection.resume_writing()
    assert peer.loop.calls == []


def test_a_peer_that_reads_nothing_is_not(peer: Peer) -> None:
    connect(peer)
    peer.connection.forget()
    peer.transport.unsent_bytes = 300_000
    peer.connection.pause_writing()
    peer.loop.run()

    assert peer.transport.is_aborted
    assert peer.counts.slow_connections == 1


def test_nothing_is_waited_for_after_the_end(peer: Peer) -> None:
    connect(peer)
    peer.connection.pause_writing()
    peer.connection.connection_lost(ConnectionResetError())

    assert peer.loop.calls == []
