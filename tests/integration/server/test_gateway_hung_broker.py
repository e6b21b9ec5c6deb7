"""A broker that accepts, reads nothing and says nothing: what its clients cost the gateway."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from contrib.capture.ports import free_port

from support.certificates import Files
from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until

pytestmark = pytest.mark.ci

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
PRODUCE_BYTES = 99 << 20
"""More than the kernel's buffers of four sockets on loopback take. The largest request is 100 MiB."""
PRODUCE = struct.pack(">ihhihhi", PRODUCE_BYTES, 0, 3, 8, -1, -1, 1)
STUCK_MS = 1_500
ENDS = ("close", "half-close", "reset")
STUCK = 'odradek_gateway_upstream_stuck_total{node="bootstrap"'
CLOSED = 'odradek_gateway_pairs_closed_total{cause="upstream-stuck"'


class HungBroker:
    """Its system accepts connections for it, as for a process that is stopped."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=256)

    @property
    def address(self) -> str:
        return "127.0.0.1:{}".format(*self.listening.getsockname()[1:])


@pytest.fixture(scope="module")
def broker() -> Iterator[HungBroker]:
    hung = HungBroker()
    with hung.listening:
        yield hung


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def gateway(
    broker: HungBroker, files: Files, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    settings = ("listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0", *files.settings)
    with gateway_of(broker.address, tmp_path_factory.mktemp("gateway"), *settings) as process:
        yield process


@pytest.fixture(scope="module")
def encrypted_upstream(
    broker: HungBroker, files: Files, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    own = files.write(
        "own.properties",
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n",
    )
    settings = (f"gateway.upstream.command.config={own}", "gateway.dial.timeout.ms=60000")
    with gateway_of(broker.address, tmp_path_factory.mktemp("tls"), *settings) as process:
        yield process


def descriptors(gateway: GatewayProcess) -> int:
    """The sockets of a gateway that are no listening ones, which never change."""
    folder = Path(f"/proc/{gateway.process.pid}/fd")
    found = 0
    for each in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += str(each.readlink()).startswith("socket:")
    return found


def connected(gateway: GatewayProcess, listener: int, files: Files) -> socket.socket:
    """A client of a listener of the gateway, by its place."""
    address = gateway.ready.split("listeners=")[1].split(" ")[0].split(",")[listener].split("://")[1]
    host, _, port = address.rpartition(":")
    client = socket.create_connection((host, int(port)), 20)
    if not listener:
        return client
    context = ssl.create_default_context(cafile=files.ca)
    return context.wrap_socket(client, server_hostname="localhost")


def send(client: socket.socket, amount: str) -> None:
    """Send one request, or until nothing is taken any more."""
    client.sendall(API_VERSIONS)
    if amount == "one request":
        return
    client.settimeout(1)
    client.sendall(PRODUCE)
    piece = bytes(1 << 20)
    with contextlib.suppress(TimeoutError):
        for _ in range(PRODUCE_BYTES >> 20):
            client.send(piece)


def leave(client: socket.socket, end: str) -> None:
    if end == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if end == "half-close":
        socket.socket.shutdown(client, socket.SHUT_WR)
    else:
        client.close()


@pytest.mark.parametrize("listener", [0, 1], ids=["plaintext", "tls"])
@pytest.mark.parametrize("amount", ["one request", "all it takes"])
def test_the_end_of_a_client_is_seen(
    gateway: GatewayProcess, files: Files, listener: int, amount: str
) -> None:
    idle = descriptors(gateway)

    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(connected(gateway, listener, files)) for _ in ENDS]
        for client in clients:
            send(client, amount)
        wait_until(lambda: descriptors(gateway) >= idle + 2 * len(ENDS), lambda: descriptors(gateway))
        for client, end in zip(clients, ENDS, strict=True):
            leave(client, end)
        wait_until(lambda: descriptors(gateway) <= idle, lambda: (idle, descriptors(gateway)), 10)

        assert gateway.process.poll() is None
        assert is_ended(clients[ENDS.index("half-close")])


def test_the_end_of_a_client_is_seen_while_its_broker_is_dialed(
    encrypted_upstream: GatewayProcess, files: Files
) -> None:
    idle = descriptors(encrypted_upstream)

    with connected(encrypted_upstream, 0, files) as client:
        client.sendall(API_VERSIONS)
        wait_until(lambda: descriptors(encrypted_upstream) >= idle + 2, "a dialed broker")

    wait_until(lambda: descriptors(encrypted_upstream) <= idle, "the descriptors are gone", 10)


def test_a_broker_that_stands_still_is_named_and_counted(
    broker: HungBroker, files: Files, tmp_path: Path
) -> None:
    port = free_port()
    settings = (
        f"metrics.listener=http://127.0.0.1:{port}",
        f"gateway.upstream.stuck.ms={STUCK_MS}",
    )
    with gateway_of(broker.address, tmp_path, *settings) as gateway:
        clients = [connected(gateway, 0, files) for _ in range(4)]
        for client, amount in zip(clients, ["one request", "all it takes"] * 2, strict=True):
            send(client, amount)
        ends = [is_ended(client) for client in clients]
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    counts = [line.rpartition(" ")[2] for line in page.splitlines() if STUCK in line or CLOSED in line]
    lines = [line for line in gateway.errors if "stands still" in line]

    assert ends == [True] * 4
    assert counts == ["4.0", "4.0"]
    (line,) = lines
    assert f"broker={broker.address}" in line
    assert "node=bootstrap" in line


def is_ended(client: socket.socket) -> bool:
    """Whether the gateway ends a connection; waits for it."""
    with client, contextlib.suppress(ConnectionError):
        client.settimeout(15)
        return client.recv(1) == b""
    return True
