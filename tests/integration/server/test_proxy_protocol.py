"""Connections through a load balancer: the client is the one that the PROXY header names."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.broker.broker_settings import Endpoint
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.proxy_header import SIGNATURE
from support.certificates import Files
from support.hosts import ThreadedHost, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374".replace(" ", ""))
REQUIRED = ("listener.name.plaintext.proxy.protocol=required", "proxy.protocol.trusted=127.0.0.0/8")
V1 = b"PROXY TCP4 10.0.0.5 10.0.0.1 40312 9092\r\n"
V2 = SIGNATURE + b"\x21\x11\0\x0c" + bytes([10, 0, 0, 5, 10, 0, 0, 1]) + struct.pack(">HH", 40312, 1)
LOCAL = SIGNATURE + b"\x20\x00\0\0"


def connected(host: ThreadedHost) -> socket.socket:
    return socket.create_connection(("127.0.0.1", host.host.listeners[0].bound_port), 5)


def outcome(connection: socket.socket) -> str:
    """Whether a connection was answered or was closed without an answer."""
    try:
        return "answered" if connection.recv(65_536) else "closed"
    except ConnectionError:
        return "closed"


def clients(host: ThreadedHost) -> list[str]:
    """The addresses of the connections, as labels and the request log have them."""

    def read() -> list[str]:
        channels = host.host.listeners[0].channels
        return [f"{each.context.client_address}:{each.context.client_port}" for each in channels]

    return host.call(read)


@pytest.mark.parametrize("header", [V1, V2])
def test_the_client_is_the_one_that_the_header_names(header: bytes, tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host, connected(host) as connection:
        connection.sendall(header + API_VERSIONS)
        answer = outcome(connection)
        found = clients(host)
        counted = host.call(lambda: dict(host.host.broker.connection_quotas.counts))

    assert answer == "answered"
    assert found == ["10.0.0.5:40312"]
    assert counted == {"10.0.0.5": 1}


def test_a_header_may_come_byte_by_byte(tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host, connected(host) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in V2 + API_VERSIONS:
            connection.sendall(bytes([byte]))
            time.sleep(0.001)
        answer = outcome(connection)
        found = clients(host)

    assert (answer, found) == ("answered", ["10.0.0.5:40312"])


@pytest.mark.parametrize("header", [LOCAL, b"PROXY UNKNOWN\r\n"])
def test_a_header_without_a_client_leaves_the_address_of_the_socket(header: bytes, tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host, connected(host) as connection:
        connection.sendall(header + API_VERSIONS)
        answer = outcome(connection)
        found = clients(host)
        own = f"127.0.0.1:{connection.getsockname()[1]}"

    assert (answer, found) == ("answered", [own])


@pytest.mark.parametrize(
    "data",
    [
        API_VERSIONS,
        bytes.fromhex("16030100"),
        b"PROXY TCP4 10.0.0.5 10.0.0.1 40312\r\n" + API_VERSIONS,
        V2[:13] + b"\x12" + V2[14:] + API_VERSIONS,
    ],
)
def test_other_bytes_close_the_connection_without_an_answer(data: bytes, tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host, connected(host) as connection:
        connection.sendall(data)
        answer = outcome(connection)
        refused = host.call(lambda: host.host.listeners[0].refused)
        accepted = host.call(lambda: host.host.listeners[0].accepted)

    assert (answer, refused, accepted) == ("closed", 1, 0)


def test_another_peer_than_the_load_balancer_is_closed(tmp_path: Path) -> None:
    trusted = "listener.name.plaintext.proxy.protocol.trusted=10.0.0.0/8,192.0.2.1,::1"

    with running_host(tmp_path, *REQUIRED, trusted) as host, connected(host) as connection:
        answer = outcome(connection)
        refused = host.call(lambda: host.host.listeners[0].refused)

    assert (answer, refused) == ("closed", 1)


@pytest.mark.parametrize("start", [b"", V1[:20]])
def test_a_header_that_does_not_arrive_in_time_closes_the_connection(start: bytes, tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED, "proxy.protocol.timeout.ms=100") as host:
        with connected(host) as connection:
            connection.sendall(start)
            answer = outcome(connection)
        refused = host.call(lambda: host.host.listeners[0].refused)

    assert (answer, refused) == ("closed", 1)


def test_a_load_balancer_that_only_looks_at_the_port_is_no_error(tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host:
        connected(host).close()
        with connected(host) as connection:
            connection.sendall(V1 + API_VERSIONS)
            answer = outcome(connection)
        refused = host.call(lambda: host.host.listeners[0].refused)

    assert (answer, refused) == ("answered", 0)


def test_the_connections_of_a_load_balancer_that_wait_are_limited(tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED, "proxy.protocol.waiting.max=2") as host:
        waiting = [connected(host), connected(host)]
        with connected(host) as third:
            answer = outcome(third)
        waiting[0].sendall(V1 + API_VERSIONS)
        first = outcome(waiting[0])
        with connected(host) as fourth:
            fourth.sendall(V1 + API_VERSIONS)
            after = outcome(fourth)
        for each in waiting:
            each.close()

    assert (answer, first, after) == ("closed", "answered", "answered")


def test_connections_are_limited_by_the_address_of_the_client(tmp_path: Path) -> None:
    others = V1.replace(b"10.0.0.5", b"10.0.0.6")

    with running_host(tmp_path, *REQUIRED, "max.connections.per.ip=1") as host:
        connections = [connected(host) for _ in range(3)]
        answers = []
        for connection, header in zip(connections, (V1, V1, others), strict=True):
            connection.sendall(header + API_VERSIONS)
            answers.append(outcome(connection))
        for connection in connections:
            connection.close()

    assert answers == ["answered", "closed", "answered"]


def test_clients_that_wait_for_a_slot_enter_in_order(tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED, "max.connections=1") as host:
        connections = [connected(host) for _ in range(4)]
        acceptor = host.host.listeners[0].acceptor
        assert acceptor is not None
        assert acceptor.proxies is not None
        incomplete = acceptor.proxies.waiting
        wait_until(lambda: len(incomplete) == 4, "four connections without a header")
        answers = []
        for left, connection in zip((3, 2, 1, 0), connections, strict=True):

            def entered(rest: int = left) -> bool:
                return len(incomplete) == rest

            connection.sendall(V1 + API_VERSIONS)
            wait_until(entered, f"{left} connections without a header")
        for connection in connections:
            answers.append(outcome(connection))
            connection.close()

    assert answers == ["answered"] * 4


@pytest.mark.parametrize("header", [V1, V2])
def test_a_header_on_a_listener_without_the_protocol_closes_the_connection(
    header: bytes, tmp_path: Path
) -> None:
    with running_host(tmp_path) as host, connected(host) as connection:
        connection.sendall(header + API_VERSIONS)
        answer = outcome(connection)

    assert answer == "closed"


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("proxy.protocol=required", "proxy.protocol.trusted: expected the networks of the load balancers"),
        (
            "listener.name.plaintext.proxy.protocol=required",
            "proxy.protocol.trusted: expected the networks of the load balancers",
        ),
        ("proxy.protocol.trusted=10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("proxy.protocol=optional", "expected one of none, required"),
    ],
)
def test_a_bad_setting_stops_the_start(override: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(overrides=[override])


class LoadBalancer:
    """Forwards connections to a host, with a header."""

    def __init__(self, target: int, header: bytes) -> None:
        self.target = target
        self.header = header
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            host = socket.create_connection(("127.0.0.1", self.target))
            host.sendall(self.header)
            for source, destination in ((client, host), (host, client)):
                threading.Thread(target=forward, args=(source, destination), daemon=True).start()


def forward(source: socket.socket, destination: socket.socket) -> None:
    """Copy bytes until one side closes."""
    try:
        while data := source.recv(65_536):
            destination.sendall(data)
    except OSError:
        pass
    finally:
        destination.close()


@contextmanager
def load_balancer(host: ThreadedHost, header: bytes) -> Iterator[LoadBalancer]:
    made = LoadBalancer(host.host.listeners[0].bound_port, header)
    try:
        yield made
    finally:
        made.listening.close()


def test_a_real_client_produces_through_a_load_balancer(tmp_path: Path) -> None:
    with running_host(tmp_path, *REQUIRED) as host, load_balancer(host, V2) as proxy:
        advertised = Endpoint("127.0.0.1", proxy.port)
        host.call(lambda: host.host.broker.endpoints.update(PLAINTEXT=advertised))
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{proxy.port}", "message.timeout.ms": 10_000})
        errors: list[object] = []
        producer.produce("t", b"value", on_delivery=lambda error, _: errors.append(error))
        producer.flush(10)
        found = set(clients(host))

    assert errors == [None]
    assert found == {"10.0.0.5:40312"}


def test_the_header_comes_before_tls(tmp_path: Path) -> None:
    files = Files(tmp_path)
    settings = ("listeners=SSL://localhost:0", "listener.name.ssl.proxy.protocol=required", REQUIRED[1])

    with running_host(tmp_path / "data", *settings, *files.settings) as host, connected(host) as connection:
        connection.sendall(V2)
        client = ssl.create_default_context(cafile=files.ca)
        with client.wrap_socket(connection, server_hostname="localhost") as encrypted:
            encrypted.sendall(API_VERSIONS)
            answer = outcome(encrypted)
            found = clients(host)

    assert (answer, found) == ("answered", ["10.0.0.5:40312"])


def test_an_acl_for_a_host_means_the_client(tmp_path: Path) -> None:
    settings = ("authorizer.class.name=StandardAuthorizer", "super.users=User:admin")
    acl = Acl(
        ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL),
        AclEntry("User:*", "10.0.0.5", AclOperation.DESCRIBE, AclPermission.ALLOW),
    )
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    codes = []

    with running_host(tmp_path, *REQUIRED, *settings) as host:
        acls = host.host.broker.acls
        assert acls is not None
        host.call(lambda: list(acls.create_in_steps([acl])))
        for header in (V1, V1.replace(b"10.0.0.5", b"10.0.0.6")):
            with WireClient(("127.0.0.1", host.host.listeners[0].bound_port)) as client:
                client.send_bytes(header)
                codes.append(client.send(wanted).topics[0].error_code)

    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
