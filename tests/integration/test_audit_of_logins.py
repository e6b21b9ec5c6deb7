"""Refused logins in the audit log: wrong passwords, other mechanisms, bad tokens, missing certificates."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.sasl import SaslLogin
from support.certificates import Files
from support.hosts import ThreadedHost, running_host
from support.waiting import wait_until

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://localhost:0"
SETTINGS = (
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    "sasl.oauthbearer.unsecured.tokens=true",
    "listener.name.ssl.ssl.client.auth=required",
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path / "data", LISTENERS, *SETTINGS, *Files(tmp_path).settings) as started:
        yield started


def login_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """The first refused login of the audit log."""

    def found() -> list[dict[str, Any]]:
        return [vars(each) for each in caplog.records if each.getMessage() == "login refused"]

    return wait_until(found, lambda: caplog.text)[0]


@pytest.mark.parametrize(
    ("login", "claimed", "why"),
    [
        (SaslLogin("PLAIN", "alice", "guess"), "alice", "password"),
        (SaslLogin("SCRAM-SHA-256", "mallory", "guess"), "mallory", ""),
        (SaslLogin("SCRAM-SHA-512", "alice", "guess"), None, "mechanism"),
        (SaslLogin("OAUTHBEARER", token=lambda: "a.b.c"), None, "token"),
    ],
    ids=["PLAIN", "unknown user", "unknown mechanism", "bad token"],
)
def test_a_refused_login_is_an_audit_line(
    host: ThreadedHost, caplog: pytest.LogCaptureFixture, login: SaslLogin, claimed: str | None, why: str
) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    guarded = f"127.0.0.1:{host.host.listeners[1].bound_port}"

    with pytest.raises(ClientError), AdminClient(guarded, login=login, timeout_s=5) as admin:
        admin.describe_cluster()

    line = login_line(caplog)
    assert (line["claimed"], line["listener"], line["outcome"]) == (claimed, "SASL_PLAINTEXT", "denied")
    assert line["mechanism"] == ("" if login.mechanism == "SCRAM-SHA-512" else login.mechanism)
    assert line["address"] == "127.0.0.1"
    assert line["port"] > 0
    assert why in line["why"]
    assert "guess" not in str(line)


def test_a_client_without_a_certificate_is_an_audit_line(
    host: ThreadedHost, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    plain = socket.create_connection(("localhost", host.host.listeners[2].bound_port), 5)
    with plain, pytest.raises(OSError), context.wrap_socket(plain) as secured:  # noqa: PT011
        secured.recv(1)

    line = login_line(caplog)
    assert (line["listener"], line["mechanism"], line["claimed"]) == ("SSL", "SSL", None)
    assert "certificate" in line["why"].lower()
    assert line["address"] in ("127.0.0.1", "0:0:0:0:0:0:0:1")
