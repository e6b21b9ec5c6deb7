"""A gateway's clients choose a node by the server name in TLS, also after certificates were replaced."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from odradek.gateway.addresses import NodeTable, UnmappedNodes
from odradek.net.listener_tls import ListenerTls
from odradek.net.pairs.routing import NameRouting
from odradek.net.tls_context import LoadedTls
from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from odradek.programs.gateway_addressing import routing_of
from odradek.programs.gateway_pairs import pairs_of
from odradek.security.private_ca import Issued
from odradek.security.tls_settings import TlsSettings
from odradek.testing.clock import MockClock
from odradek.waiting.clock import Timer
from support.certificates import authority
from support.tls_handshake import Handshake

SETTINGS = (
    "listeners=SSL://127.0.0.1:9443",
    "advertised.listeners=SSL://kafka.example.com:9443",
    "gateway.node.names=b$(nodeId).kafka.example.com",
    "gateway.nodes=0-2,101",
)
NAMES = ["kafka.example.com", "*.kafka.example.com"]


def handshake_with(loaded: LoadedTls, name: str | None, version: ssl.TLSVersion) -> Handshake:
    context = ssl.create_default_context(cadata=authority().issued.certificate)
    context.check_hostname = name is not None
    context.maximum_version = version
    return Handshake(loaded.context, context, name)


def tls_settings(issued: Issued) -> TlsSettings:
    return TlsSettings(key=issued.key, certificate_chain=issued.certificate, allow_san_changes=True)


def secured(
    names: list[str] = NAMES, settings: tuple[str, ...] = SETTINGS
) -> tuple[NameRouting, ListenerTls]:
    config = load_config(None, settings)
    routing = routing_of(config, config.listeners[0], NodeTable(), UnmappedNodes())
    assert isinstance(routing, NameRouting)
    tls = ListenerTls("SSL", tls_settings(authority().issue("gateway", names)))
    routing.secure(tls)
    return routing, tls


def dialed(routing: NameRouting, tls: ListenerTls, name: str, version: ssl.TLSVersion) -> int | None:
    handshake: Any = handshake_with(tls.loaded, name, version)
    handshake.shake()
    return routing.node_of(handshake)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("name", "node_id"),
    [("kafka.example.com", None), ("b0.kafka.example.com", 0), ("B101.KAFKA.example.com", 101)],
)
def test_the_server_name_chooses_the_node(version: ssl.TLSVersion, name: str, node_id: int | None) -> None:
    assert dialed(*secured(), name, version) == node_id


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("name", "why", "reason"),
    [
        (None, "the client names no server (SNI)", "missing"),
        ("b3.kafka.example.com", "no node has the server name 'b3.kafka.example.com'", "unknown"),
        ("x" * 60 + ".example.com", f"no node has the server name '{'x' * 60}.example.com'", "unknown"),
    ],
)
def test_another_name_is_refused_with_the_reason(
    version: ssl.TLSVersion, name: str | None, why: str, reason: str
) -> None:
    routing, tls = secured()

    with pytest.raises(ssl.SSLError) as error:
        handshake_with(tls.loaded, name, version).shake()

    assert error.value.reason == why
    assert routing.refused == {reason: 1}


def test_a_replaced_certificate_still_chooses_the_node() -> None:
    routing, tls = secured()

    tls.take(tls.attempt(tls_settings(authority().issue("gateway", [*NAMES, "more.example.com"]))), ())

    assert tls.reloads == 1
    assert dialed(routing, tls, "b2.kafka.example.com", ssl.TLSVersion.TLSv1_3) == 2
    with pytest.raises(ssl.SSLError):
        handshake_with(tls.loaded, "b7.kafka.example.com", ssl.TLSVersion.TLSv1_3).shake()


@pytest.mark.parametrize("names", [["kafka.example.com"], ["*.kafka.example.com"], ["*.example.com"]])
def test_a_certificate_without_an_advertised_name_is_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="listener SSL: the certificate is for"):
        secured(names)

    _, tls = secured()
    tls.take(tls.attempt(tls_settings(authority().issue("gateway", names))), ())

    assert tls.failed_reloads == 1
    assert tls.is_stale


def test_a_certificate_may_have_the_name_of_each_node() -> None:
    each = [f"b{node_id}.kafka.example.com" for node_id in (0, 1, 2, 101)]
    routing, tls = secured(["kafka.example.com", *each])

    assert dialed(routing, tls, "b101.kafka.example.com", ssl.TLSVersion.TLSv1_3) == 101
    for settings in (SETTINGS[:3], (*SETTINGS[:3], "gateway.nodes=0-2147483647")):
        with pytest.raises(ConfigError, match="b2147483647"):
            secured(["kafka.example.com", *each], settings)
        secured(NAMES, settings)


def test_a_broker_that_appears_later_without_an_address_is_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = load_config(None, ("gateway.nodes=0-2", "listeners=PLAINTEXT://127.0.0.1:0"))
    gateway = pairs_of(config, [("broker", 9092)], None, False, MockClock(), Timer())

    gateway.learned(2, "broker-2", 9092)
    gateway.learned(3, "broker-3", 9092)
    gateway.learned(3, "broker-3", 9092)

    assert gateway.table.addresses == {2: ("broker-2", 9092)}
    assert gateway.unmapped.seen == {3: 2}
    (line,) = [record for record in caplog.records if "no address here" in record.message]
    assert line.levelname == "ERROR"
    assert line.__dict__["node"] == 3
