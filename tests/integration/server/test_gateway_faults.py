"""Faults of clients and brokers: the connection that has one may close; a good client beside it goes on."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.gateways import GatewayProcess, gateway_of
from support.hosts import ThreadedHost, running_host
from support.rogue_broker import HEARTBEAT, METADATA, RogueBroker, read_all, receive, request, response
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

NODE = 1
MEMORY = 8 << 20
HOLD = 1 << 20


@dataclass
class Beside:
    """A gateway in front of a good broker and a rogue one, and a good client."""

    gateway: GatewayProcess
    rogue: RogueBroker
    good: WireClient

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.gateway.bootstrap.rpartition(":")
        return host, int(port)

    def good_goes_on(self) -> None:
        """The good client is answered on the connection that it has."""
        found = self.good.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 5)

        assert [broker.node_id for broker in found.brokers] == [NODE]

    def memory_bytes(self) -> int:
        """The resident memory of the gateway."""
        pages = int(Path(f"/proc/{self.gateway.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("upstream"), f"node.id={NODE}") as host:
        yield host


@pytest.fixture(scope="module")
def beside(host: ThreadedHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    settings = (
        f"gateway.upstream={host.bootstrap}",
        f"gateway.memory.max={MEMORY}",
        "queued.stalled.ms=300",
        "gateway.drain.ms=200",
    )
    with RogueBroker() as rogue:
        upstream = f"{host.bootstrap},{rogue.address}"
        with gateway_of(upstream, tmp_path_factory.mktemp("gateway"), *settings) as gateway:
            name, _, port = gateway.bootstrap.rpartition(":")
            with good_client((name, int(port))) as good:
                yield Beside(gateway, rogue, good)


def good_client(address: tuple[str, int]) -> WireClient:
    """A client that is connected to the good broker; the rogue one closes."""
    while True:
        client = WireClient(address, client_id="good")
        try:
            client.introduce()
        except ConnectionError:
            client.socket.close()
        else:
            return client


def sends(*parts: bytes) -> Callable[[socket.socket, int], None]:
    """Send these bytes, `ID` replaced, and close."""

    def behavior(connection: socket.socket, correlation_id: int) -> None:
        for part in parts:
            connection.sendall(part.replace(b"<ID>", struct.pack(">i", correlation_id)))

    return behavior


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def never_ends(connection: socket.socket, _correlation_id: int) -> None:
    """Answer nothing until the other side closes."""
    connection.recv(1)


@pytest.mark.parametrize(
    ("api_key", "parts", "received"),
    [
        pytest.param(HEARTBEAT, [b"\xff" * 500], b"", id="a negative length"),
        pytest.param(HEARTBEAT, [int32(2) + b"<ID>"], b"", id="too short for its id"),
        pytest.param(HEARTBEAT, [int32(8) + int32(5) + bytes(4)], b"", id="another request's response"),
        pytest.param(
            HEARTBEAT, [int32(4) + b"<ID>", int32(4) + b"<ID>"], None, id="a response that nobody asked for"
        ),
        pytest.param(HEARTBEAT, [int32(1000) + b"<ID>" + bytes(10)], None, id="a response that is cut"),
        pytest.param(METADATA, [int32(2**31 - 1) + b"<ID>" + b"\x7f" * 3000], b"", id="a huge Metadata"),
        pytest.param(
            METADATA,
            [int32(2**31 - 1) + b"<ID>" + bytes(4) + int32(10_000), b"\x7f" * (2 * HOLD)],
            b"",
            id="brokers without end",
        ),
        pytest.param(
            METADATA, [int32(12) + b"<ID>" + bytes(4) + int32(7)], b"", id="brokers that are missing"
        ),
    ],
)
def test_a_hostile_broker_loses_its_connection(
    beside: Beside, api_key: int, parts: list[bytes], received: bytes | None
) -> None:
    with beside.rogue.client(beside.address, sends(*parts), api_key) as client:
        beside.good_goes_on()

        data = read_all(client)

    assert received is None or data == received
    beside.good_goes_on()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20), id="TLS"),
        pytest.param(int32(2**31 - 1) + bytes(20), id="a huge length"),
        pytest.param(int32(-1) + bytes(20), id="a negative length"),
        pytest.param(int32(7) + bytes(20), id="too short for a header"),
        pytest.param(int32(100_000_000) + struct.pack(">hhih", 72, 0, 1, -1), id="a huge push"),
        pytest.param(int32(100_000_000) + struct.pack(">hhih", 18, 3, 1, -1), id="a huge ApiVersions"),
        pytest.param(int32(100_000_000) + struct.pack(">hhih", 36, 2, 1, -1), id="a huge SASL token"),
        pytest.param(int32(14) + struct.pack(">hhih", 72, 0, 1, -1) + b"\xff" * 4, id="a push that is none"),
        pytest.param(int32(12) + struct.pack(">hhih", 0, 9, 1, -1) + b"\xff\xff", id="Produce without acks"),
        pytest.param(
            request(HEARTBEAT, 1) + int32(-5) + bytes(20), id="a good request, then a negative length"
        ),
    ],
)
def test_a_hostile_client_is_closed(beside: Beside, data: bytes) -> None:
    with socket.create_connection(beside.address, 20) as client:
        client.sendall(data)
        beside.good_goes_on()

        read_all(client)

    beside.good_goes_on()


def test_half_a_frame_and_then_silence_costs_nothing(beside: Beside) -> None:
    with socket.create_connection(beside.address, 20) as half, socket.create_connection(beside.address, 20):
        half.sendall(request(HEARTBEAT, 1)[:9])

        beside.good_goes_on()
        half.settimeout(0.2)
        with pytest.raises(TimeoutError):
            half.recv(1)


def test_a_slow_broker_holds_up_its_own_client_alone(beside: Beside) -> None:
    def slow(connection: socket.socket, correlation_id: int) -> None:
        data = response(correlation_id, bytes(50))
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
            time.sleep(0.005)
        connection.recv(1)

    with beside.rogue.client(beside.address, slow) as client:
        beside.good_goes_on()
        received = receive(client, 58)
        beside.good_goes_on()

    assert len(received) == 58


def test_a_broker_that_takes_nothing_holds_up_its_own_client_alone(beside: Beside) -> None:
    with beside.rogue.client(beside.address, lambda *_: beside.rogue.ended.wait(20)) as client:
        client.setblocking(False)
        sent = client.send(int32(50_000_000) + struct.pack(">hhih", 2, 5, 2, -1))
        while select.select([], [client], [], 0.5)[1]:
            sent += client.send(bytes(100_000))

        beside.good_goes_on()

    assert sent < 20 << 20


def test_clients_that_do_not_read_leave_memory_for_others(beside: Beside) -> None:
    def pours(connection: socket.socket, correlation_id: int) -> None:
        connection.sendall(struct.pack(">ii", 100_000_004, correlation_id))
        while True:
            connection.sendall(bytes(100_000))

    with beside.rogue.client(beside.address, pours) as client:
        beside.good_goes_on()
        # below the limit a slow client is a slow client
        time.sleep(0.5)
        assert len(client.recv(1000)) == 1000
        beside.good_goes_on()


def test_responses_that_stay_incomplete_are_given_up_above_the_limit(beside: Beside) -> None:
    """Each is held to be rewritten, up to `gateway.hold.bytes`; together they would be twice the limit."""

    def stops_halfway(connection: socket.socket, correlation_id: int) -> None:
        brokers = b"".join(
            struct.pack(">ih", node_id, 200) + b"h" * 200 + struct.pack(">ih", 9092, -1)
            for node_id in range(4000)
        )
        connection.sendall(struct.pack(">iiii", 2_000_000, correlation_id, 0, 10_000) + brokers + b"h" * 10)
        connection.recv(1)

    number = 2 * MEMORY // HOLD
    clients = [beside.rogue.client(beside.address, stops_halfway, METADATA) for _ in range(number)]
    opened = []
    try:
        for each in clients:
            opened.append(each.__enter__())
            beside.good_goes_on()
        closed = wait_until(
            lambda: [each for each in opened if has_closed(each)], "connections that were given up"
        )
        beside.good_goes_on()
    finally:
        for manager in clients[: len(opened)]:
            manager.__exit__(None, None, None)

    assert len(closed) < number
    beside.good_goes_on()


def has_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
