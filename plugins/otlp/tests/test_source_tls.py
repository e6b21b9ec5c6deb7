"""TLS of the listener for OTLP over HTTP: renewed files, certificates of senders, slow handshakes."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

from odradek.endpoints import ListenerTls
from odradek.security.private_ca import LOOPBACK, PrivateCa
from support.certificates import authority, other_authority
from support.otlp_source import ANYWHERE, ScriptedIntake, body_of, entry, running_source
from support.waiting import wait_until

PROTOBUF = "application/x-protobuf"
PATIENCE_S = 30.0
GOOD = body_of(entry(service__name="billing"))


def test_the_files_of_tls_may_be_renewed(tmp_path: Path) -> None:
    key_store, ca = tmp_path / "host.pem", tmp_path / "senders.pem"
    host = ScriptedIntake()

    def use(issuer: PrivateCa) -> None:
        key_store.write_text(issuer.issue("localhost", LOOPBACK).both)
        ca.write_text(issuer.issued.certificate)

    use(authority())
    tls = ListenerTls(certificate=key_store, client_ca=ca)
    ours, theirs = sender_of(authority(), tmp_path), sender_of(other_authority(), tmp_path)
    with running_source(host, http=ANYWHERE, tls=tls) as port:
        found = [is_served(port, each) for each in (ours, theirs)]
        key_store.write_text("junk")
        found.append(is_served(port, ours))
        use(other_authority())
        found += [is_served(port, each) for each in (ours, theirs)]

    assert found == [True, False, True, False, True]
    assert {record.context.connection.principal for record in host.stored} == {"User:otlp"}
    assert {record.context.connection.security_protocol for record in host.stored} == {"SSL"}


def sender_of(issuer: PrivateCa, folder: Path) -> ssl.SSLContext:
    """A sender that trusts an authority and has a certificate of it."""
    context = ssl.create_default_context(cadata=issuer.issued.certificate)
    file = folder / "sender.pem"
    file.write_text(issuer.issue("sender").both)
    context.load_cert_chain(file)
    return context


def is_served(port: int, tls: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=tls)
    with closing(connection):
        try:
            connection.request("POST", "/v1/metrics", GOOD, {"Content-Type": PROTOBUF})
            return connection.getresponse().status == 200
        except OSError:
            return False


def test_a_handshake_that_does_not_come_counts_as_a_connection(tmp_path: Path) -> None:
    key_store = tmp_path / "host.pem"
    key_store.write_text(authority().issue("localhost", LOOPBACK).both)
    client = ssl.create_default_context(cadata=authority().issued.certificate)
    fields: dict[str, Any] = {
        "tls": ListenerTls(certificate=key_store),
        "connections_max": 1,
        "request_timeout_ms": 500,
    }
    host = ScriptedIntake()

    def is_closed_beside_a_silent_one() -> bool:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S):
            return not is_served(port, client)

    with running_source(host, http=ANYWHERE, **fields) as port:
        wait_until(is_closed_beside_a_silent_one, "connections are still served")
        wait_until(lambda: is_served(port, client), "connections are still closed")

    assert host.outcomes["connections.max"] > 0
