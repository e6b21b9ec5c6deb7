"""Settings of a gateway's addresses that contradict each other stop the start, and the error says why."""

from __future__ import annotations

import pytest

from odradek.gateway.addresses import NodeTable, UnmappedNodes
from odradek.net.pairs.certificate_names import check_covers, covers
from odradek.net.pairs.routing import NameRouting, Routing
from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from odradek.programs.gateway_addressing import check_upstream, routing_of
from odradek.security.certificate import Certificate

TLS = "listeners=SSL://0.0.0.0:9443"
PLAIN = "listeners=PLAINTEXT://0.0.0.0:9192"
HERE = "advertised.listeners=SSL://kafka.example.com:9443"
PLAIN_HERE = "advertised.listeners=PLAINTEXT://kafka.example.com:9192"
NAMES = "gateway.node.names=b$(nodeId).kafka.example.com"


def routing(*settings: str) -> Routing:
    config = load_config(None, settings)
    return routing_of(config, config.listeners[0], NodeTable(), UnmappedNodes())


def certificate(*names: str) -> Certificate:
    return Certificate(
        subject="", not_after_ms=0, alternative_names=frozenset(f"DNS:{name}" for name in names)
    )


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            (TLS, HERE, NAMES, "gateway.port.start=9500"),
            "gateway.port.start: has no use with gateway.node.names: all nodes share the listener's port",
        ),
        (
            (TLS, HERE, NAMES, "gateway.advertised.port.start=9500"),
            "gateway.advertised.port.start: has no use with gateway.node.names: "
            "all nodes share the listener's port",
        ),
        (
            (PLAIN, PLAIN_HERE, NAMES),
            "gateway.node.names: needs a listener with TLS, because the name is part of its handshake; "
            "PLAINTEXT://0.0.0.0:9192 has the protocol PLAINTEXT",
        ),
        (
            (TLS, "advertised.listeners=SSL://10.0.0.7:9443", NAMES),
            "advertised.listeners: expected a host name for listener SSL, because clients name no server "
            "in TLS when they dial an address; found '10.0.0.7'",
        ),
        (
            ("listeners=SSL://127.0.0.1:9443", NAMES),
            "advertised.listeners: expected a host name for listener SSL, because clients name no server "
            "in TLS when they dial an address; found '127.0.0.1'",
        ),
        (
            (TLS, "advertised.listeners=SSL://B7.kafka.example.com:9443", NAMES),
            "gateway.node.names: the bootstrap address 'B7.kafka.example.com' is also the name of node 7",
        ),
        (
            (TLS, HERE, "gateway.node.names=kafka.example.com"),
            "gateway.node.names: expected a pattern like b$(nodeId).kafka.example.com that has $(nodeId) once"
            ", found 'kafka.example.com'",
        ),
        (
            (TLS, HERE, "gateway.node.names=10.0.0.$(nodeId)"),
            "gateway.node.names: expected a pattern like b$(nodeId).kafka.example.com that gives host names, "
            "found '10.0.0.$(nodeId)'",
        ),
        (
            (TLS, HERE, "listener.name.ssl.gateway.node.names=b$(nodeId).x.y", "gateway.port.start=9500"),
            "gateway.port.start: has no use with gateway.node.names: all nodes share the listener's port",
        ),
        (
            (PLAIN, PLAIN_HERE, "listener.name.plaintext.gateway.node.names=b$(nodeId).x.y"),
            "listener.name.plaintext.gateway.node.names: needs a listener with TLS, because the name is part "
            "of its handshake; PLAINTEXT://0.0.0.0:9192 has the protocol PLAINTEXT",
        ),
        (
            (PLAIN, "advertised.listeners=PLAINTEXT://0.0.0.0:9192"),
            "advertised.listeners: expected an address that clients can dial, found PLAINTEXT://0.0.0.0:9192",
        ),
        (
            (PLAIN, "advertised.listeners=PLAINTEXT://kafka.example.com:0"),
            "advertised.listeners: expected an address that clients can dial, found "
            "PLAINTEXT://kafka.example.com:0",
        ),
        (
            (PLAIN, PLAIN_HERE, "gateway.port.start=9190"),
            "gateway.port.start: the ports 9190 to 9192 of the nodes include 9192, the port of the bootstrap "
            "address",
        ),
        (
            (PLAIN, "advertised.listeners=PLAINTEXT://kafka.example.com:9194"),
            "gateway.port.start: the ports 9193 to 9195 of the nodes include 9194, the port of the bootstrap "
            "address",
        ),
        (
            (PLAIN, PLAIN_HERE, "gateway.advertised.port.start=9191"),
            "gateway.advertised.port.start: the ports 9191 to 9193 of the nodes include 9192, the port of "
            "the bootstrap address",
        ),
        (
            (PLAIN, PLAIN_HERE, "gateway.port.start=65534"),
            "gateway.port.start: 3 node ids from port 65534 on end beyond port 65535",
        ),
        (
            ("listeners=PLAINTEXT://127.0.0.1:65535",),
            "gateway.port.start: 3 node ids from port 65536 on end beyond port 65535",
        ),
        (
            (PLAIN, PLAIN_HERE, "gateway.nodes=0-9", "gateway.advertised.port.start=65530"),
            "gateway.advertised.port.start: 10 node ids from port 65530 on end beyond port 65535",
        ),
        (
            (PLAIN, PLAIN_HERE, "gateway.nodes=0-4096"),
            "gateway.nodes: expected at most 4096 node ids with a port each, found 4097",
        ),
        ((PLAIN, PLAIN_HERE, "gateway.nodes=0-4,2"), "gateway.nodes: expected ranges that do not overlap"),
        (
            (TLS, HERE, NAMES, "gateway.nodes=2147483648"),
            "gateway.nodes: expected node ids from 0 to 2147483647, found '2147483648'",
        ),
    ],
)
def test_settings_that_contradict_each_other(settings: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        routing(*settings)

    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("settings", "node_id", "advertised"),
    [
        ((PLAIN, PLAIN_HERE, "gateway.advertised.port.start=9500"), 2, "gateway.nodes 0-2"),
        ((PLAIN, PLAIN_HERE, "gateway.nodes=0-4095"), 4095, "gateway.nodes 0-4095"),
        ((TLS, HERE, NAMES), 2**31 - 1, "b2147483647.kafka.example.com"),
        ((TLS, HERE, NAMES, "gateway.nodes=3"), 3, "b3.kafka.example.com"),
    ],
)
def test_settings_that_fit(settings: tuple[str, ...], node_id: int, advertised: str) -> None:
    found = routing(*settings)

    assert found.addresses.nodes.place(node_id) is not None
    if isinstance(found, NameRouting):
        address = found.addresses.advertised(node_id)
        assert address is not None
        assert address[0] == advertised


@pytest.mark.parametrize(
    ("listener", "upstream", "fits"),
    [
        ("127.0.0.1:9092", ("127.0.0.1", 9092), False),
        ("127.0.0.1:9092", ("localhost", 9092), False),
        ("127.0.0.1:9092", ("::1", 9092), True),
        ("localhost:9092", ("127.0.0.1", 9092), False),
        ("127.0.0.1:9092", ("127.0.0.1", 9093), True),
        ("127.0.0.1:9092", ("127.0.0.2", 9092), True),
        ("kafka:9092", ("kafka", 9092), False),
        ("127.0.0.1:0", ("127.0.0.1", 9092), True),
    ],
)
def test_a_gateway_is_not_its_own_upstream(listener: str, upstream: tuple[str, int], fits: bool) -> None:
    config = load_config(None, [f"listeners=PLAINTEXT://{listener}"])
    if fits:
        check_upstream(config, [("broker", 9092), upstream])
        return

    with pytest.raises(ConfigError, match="gateway's listener PLAINTEXT") as error:
        check_upstream(config, [("broker", 9092), upstream])

    assert error.value.path == "gateway.upstream"


@pytest.mark.parametrize(
    ("names", "host", "covered"),
    [
        (("kafka.example.com",), "Kafka.Example.com.", True),
        (("*.example.com",), "kafka.example.com", True),
        (("*.example.com",), "b1.kafka.example.com", False),
        (("*.example.com",), "example.com", False),
        (("*.localhost",), "b1.localhost", False),
        (("*.com",), "example.com", False),
        ((), "example.com", False),
    ],
)
def test_a_wildcard_stands_for_one_label_below_a_domain(
    names: tuple[str, ...], host: str, covered: bool
) -> None:
    assert covers(certificate(*names), host) is covered


def test_a_certificate_must_have_all_advertised_names() -> None:
    hosts = ["kafka.example.com", *(f"b{each}.kafka.example.com" for each in range(5))]

    with pytest.raises(ConfigError) as error:
        check_covers(certificate("kafka.example.com"), hosts)

    problem = str(error.value)
    assert "the certificate is for DNS:kafka.example.com, but clients are told to dial" in problem
    assert "'b0.kafka.example.com', 'b1.kafka.example.com', 'b2.kafka.example.com' and 2 more" in problem
    check_covers(certificate("kafka.example.com", "*.kafka.example.com"), hosts)
