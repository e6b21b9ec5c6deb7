"""Authentication with brokers that refuse, and with brokers that cheat."""

from __future__ import annotations

import pytest

from odradek.client.connection import Connection
from odradek.client.errors import ClientError, ConnectFailed, RequestFailed, UnsupportedVersion
from odradek.client.sasl import SaslLogin
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.wire.types import only
from support.scripted_broker import ScriptedBroker

LOGIN = SaslLogin("SCRAM-SHA-256", "alice", "secret")


def connect(broker: ScriptedBroker, login: SaslLogin = LOGIN) -> None:
    host, port = broker.listener.getsockname()[:2]
    Connection(host, port, timeout_s=10, login=login).close()


def test_plain_is_one_token() -> None:
    answers = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateRequest: lambda _: SaslAuthenticateResponse(),
    }

    with ScriptedBroker(answers) as broker:
        connect(broker, SaslLogin("PLAIN", "alice", "sécret"))
        handshake, token = [asked.request for asked in broker.asked[-2:]]

    assert handshake.mechanism == "PLAIN"
    assert token.auth_bytes == "\0alice\0sécret".encode()


def test_an_unsupported_mechanism_is_reported_with_the_supported_ones() -> None:
    refusal = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI", "PLAIN"]
    )

    with (
        ScriptedBroker({SaslHandshakeRequest: lambda _: refusal}) as broker,
        pytest.raises(RequestFailed, match=r"SCRAM-SHA-256: .*the listener supports GSSAPI, PLAIN"),
    ):
        connect(broker)


def test_a_broker_without_sasl_is_reported() -> None:
    with ScriptedBroker({}) as broker, pytest.raises(UnsupportedVersion, match="SaslHandshake"):
        connect(broker)


def test_a_broker_with_bare_tokens_only_is_too_old() -> None:
    answers = {SaslHandshakeRequest: lambda _: SaslHandshakeResponse()}
    offered = {SaslHandshakeRequest.API_KEY: only(0)}

    with ScriptedBroker(answers, offered) as broker, pytest.raises(UnsupportedVersion):
        connect(broker)


@pytest.mark.parametrize(
    "token", [b"", b"r=short,s=AAAA,i=4096", b"r=x,s=AAAA,i=1", b"v=AAAA", b"e=unknown-user", b"\xff"]
)
def test_a_broker_that_violates_the_exchange_is_not_trusted(token: bytes) -> None:
    answers = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]),
        SaslAuthenticateRequest: lambda _: SaslAuthenticateResponse(auth_bytes=token),
    }

    with ScriptedBroker(answers) as broker, pytest.raises(ConnectFailed, match="the server"):
        connect(broker)


def test_a_broker_that_does_not_know_the_password_is_detected() -> None:
    def answer(request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        if request.auth_bytes.startswith(b"n,,"):
            nonce = request.auth_bytes.partition(b",r=")[2]
            return SaslAuthenticateResponse(auth_bytes=b"r=" + nonce + b"more,s=c2FsdA==,i=4096")
        return SaslAuthenticateResponse(auth_bytes=b"v=" + b"A" * 43 + b"=")

    answers = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]),
        SaslAuthenticateRequest: answer,
    }

    with (
        ScriptedBroker(answers) as broker,
        pytest.raises(ClientError, match="cannot prove that it knows the password"),
    ):
        connect(broker)


def test_a_refused_token_ends_with_the_error_of_the_broker() -> None:
    def answer(request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        if request.auth_bytes != b"\x01":
            return SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message='{"status":"invalid_token"}'
        )

    answers = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]),
        SaslAuthenticateRequest: answer,
    }

    with ScriptedBroker(answers) as broker, pytest.raises(RequestFailed, match="invalid_token"):
        connect(broker, SaslLogin("OAUTHBEARER", token=lambda: "token"))


def test_a_client_authenticates_again_before_its_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [1_000.0]
    monkeypatch.setattr("odradek.client.connection.monotonic", lambda: now_s[0])
    answers = {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateRequest: lambda _: SaslAuthenticateResponse(session_lifetime_ms=10_000),
        ListGroupsRequest: lambda _: ListGroupsResponse(),
    }

    with ScriptedBroker(answers) as broker:
        host, port = broker.listener.getsockname()[:2]
        with Connection(host, port, timeout_s=10, login=SaslLogin("PLAIN", "alice", "secret")) as client:
            for now_s[0] in (1_008.4, 1_009.5, 1_017.9, 1_019.1):
                client.send(ListGroupsRequest())
        asked = [type(each.request).__name__ for each in broker.asked]

    again = ["SaslHandshakeRequest", "SaslAuthenticateRequest", "ListGroupsRequest"]
    assert asked[-8:] == ["ListGroupsRequest", *again, "ListGroupsRequest", *again]
