"""The acceptor on loopback sockets; the test calls what the event loop would call."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import cast

import pytest

from odradek.net.acceptor import ACCEPTED_AT_ONCE, Acceptor, listening_socket, listening_sockets
from odradek.net.peer import Peer
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.descriptors import Descriptors
from odradek.quota.quota_config import QuotaConfig
from odradek.testing.clock import MockClock

LISTENER = "EXTERNAL"


class LocalAcceptor:
    """An acceptor and its clients, all on 127.0.0.1."""

    def __init__(self, closing: ExitStack) -> None:
        self.closing = closing
        self.clock = MockClock()
        self.quotas = ConnectionQuotas(self.clock, self.clock.timer, QuotaConfig(samples=2))
        self.quotas.add_listener(LISTENER)
        self.taken: list[socket.socket] = []
        self.peers: list[Peer] = []
        self.loop = asyncio.new_event_loop()
        closing.callback(self.loop.close)
        self.acceptor = self.loop.run_until_complete(self.make())
        closing.callback(self.acceptor.close)

    async def make(self) -> Acceptor:
        sockets = await listening_sockets("127.0.0.1", 0)
        return Acceptor(LISTENER, sockets, self.quotas, self.clock.timer, self.take)

    def take(self, connection: socket.socket, peer: Peer) -> None:
        self.closing.callback(connection.close)
        self.taken.append(connection)
        self.peers.append(peer)

    @property
    def listening(self) -> socket.socket:
        return self.acceptor.sockets[0]

    @property
    def accepts(self) -> bool:
        """Whether the event loop watches the listening socket."""
        watching = self.loop.remove_reader(self.listening)
        if watching:
            self.acceptor.resume()
        return watching

    def connect(self, count: int = 1) -> list[socket.socket]:
        """Connect clients and notify the acceptor."""
        clients = []
        for _ in range(count):
            client = socket.create_connection(self.listening.getsockname(), timeout=5)
            self.closing.callback(client.close)
            clients.append(client)
        for _ in range(0, count, ACCEPTED_AT_ONCE):
            if self.accepts:
                self.acceptor.accept(self.listening)
        return clients

    def throttled(self) -> int:
        return self.acceptor.throttled.size(self.clock.monotonic_ms())


@pytest.fixture
def local() -> Iterator[LocalAcceptor]:
    with ExitStack() as closing:
        yield LocalAcceptor(closing)


def is_open(client: socket.socket) -> bool:
    """Whether the peer has not closed the connection; the loopback interface needs no waiting."""
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_every_waiting_connection_is_accepted(local: LocalAcceptor) -> None:
    clients = local.connect(3)

    assert [peer.address for peer in local.peers] == ["127.0.0.1"] * 3
    assert [peer.port for peer in local.peers] == [client.getsockname()[1] for client in clients]
    assert local.quotas.counts == {"127.0.0.1": 3}


def test_a_throttled_connection_is_closed_after_its_throttle(local: LocalAcceptor) -> None:
    local.quotas.update_ip_rate("127.0.0.1", 5)

    clients = local.connect(6)
    seen = [local.throttled()]
    clients += local.connect()
    seen.append(local.throttled())
    open_before = [is_open(client) for client in clients]
    local.clock.advance(2000)
    seen.append(local.throttled())
    again = local.connect()

    assert seen == [1, 2, 0]
    assert all(open_before)
    assert [is_open(client) for client in clients] == [True] * 5 + [False] * 2
    assert is_open(again[0])
    assert len(local.taken) == 6


def test_a_throttled_connection_is_closed_at_its_own_deadline(local: LocalAcceptor) -> None:
    local.quotas.update_ip_rate("127.0.0.1", 0)
    early = local.connect()[0]
    local.clock.advance(100)
    late = local.connect()[0]

    local.clock.advance(910)

    assert not is_open(early)
    assert is_open(late)


def test_a_shutdown_closes_throttled_connections(local: LocalAcceptor) -> None:
    local.quotas.update_ip_rate("127.0.0.1", 5)
    clients = local.connect(6)

    local.acceptor.close()

    assert not is_open(clients[-1])


def test_a_connection_above_the_limit_of_its_address_is_closed(local: LocalAcceptor) -> None:
    local.quotas.reconfigure("max.connections.per.ip", "2")

    clients = local.connect(3)

    assert [is_open(client) for client in clients] == [True, True, False]
    assert local.quotas.counts == {"127.0.0.1": 2}


def test_no_connection_is_accepted_while_another_waits(local: LocalAcceptor) -> None:
    local.quotas.reconfigure("max.connection.creation.rate", "2", LISTENER)
    local.connect(4)
    before = len(local.taken), local.accepts

    local.clock.advance(500)

    assert before == (2, False)
    assert len(local.taken) == 3
    assert local.accepts


def test_free_room_admits_the_waiting_connection(local: LocalAcceptor) -> None:
    local.quotas.reconfigure("max.connections", "1")
    local.connect(2)
    before = len(local.taken)

    local.quotas.dec(LISTENER, "127.0.0.1")

    assert before == 1
    assert len(local.taken) == 2


def test_a_shutdown_closes_the_waiting_connection(local: LocalAcceptor) -> None:
    local.quotas.reconfigure("max.connections", "1")
    clients = local.connect(2)

    local.acceptor.close()
    local.quotas.reconfigure("max.connections", "2")

    assert not is_open(clients[1])
    assert len(local.taken) == 1
    assert local.quotas.total == 1


def test_a_storm_of_connections_leaves_file_descriptors(local: LocalAcceptor) -> None:
    local.quotas.descriptors = Descriptors(throttled=2)
    local.quotas.update_ip_rate("127.0.0.1", 0)

    clients = local.connect(4)

    assert [is_open(client) for client in clients] == [True, True, False, False]


def test_without_file_descriptors_accepting_pauses(local: LocalAcceptor) -> None:
    class Exhausted:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "too many open files")

    local.acceptor.accept(cast(socket.socket, Exhausted()))

    assert not local.accepts
    assert local.acceptor.rest is not None


def test_connections_that_the_descriptors_do_not_allow_wait(local: LocalAcceptor) -> None:
    local.quotas.descriptors = Descriptors(connections=2)
    clients = local.connect(4)
    before = len(local.taken)

    clients[0].close()
    local.quotas.dec(LISTENER, "127.0.0.1")

    assert before == 2
    assert len(local.taken) == 3
    assert all(is_open(client) for client in clients[1:])


@pytest.mark.parametrize("host", ["", "::"])
def test_all_addresses_of_a_host_have_the_same_port(host: str) -> None:
    sockets = asyncio.run(listening_sockets(host, 0))

    ports = {each.getsockname()[1] for each in sockets}
    families = {each.family for each in sockets}
    for each in sockets:
        each.close()

    assert len(ports) == 1
    assert socket.AF_INET in families


def test_an_address_in_use_is_an_error(local: LocalAcceptor) -> None:
    with pytest.raises(OSError, match="in use"):
        listening_socket(socket.AF_INET, local.listening.getsockname())
