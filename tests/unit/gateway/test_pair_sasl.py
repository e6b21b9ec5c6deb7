"""SASL passes through a pair, which learns who the client is."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest

from odradek.gateway.pair_failure import Cause
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from support.gateway_pair import HEARTBEAT, Through, answer, bare, framed, request, response

PLAIN_TOKEN = b"\0alice\0secret"
SCRAM_FIRST = b"n,,n=bob=2Cjr,r=abcdef"
REFUSED = 58


def bearer(claims: object) -> bytes:
    parts = [urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in ({}, claims)]
    return f"n,,\x01auth=Bearer {parts[0]}.{parts[1]}.sig\x01\x01".encode()


def shake(through: Through, mechanism: str, version: int = 1, error_code: int = 0) -> None:
    through.send(request(SaslHandshakeRequest(mechanism=mechanism), version, 1))
    through.reply(response(SaslHandshakeResponse(error_code=error_code, mechanisms=[mechanism]), version, 1))


def authenticate(
    through: Through, token: bytes, back: bytes = b"", error_code: int = 0, version: int = 2
) -> None:
    through.send(request(SaslAuthenticateRequest(auth_bytes=token), version, 2))
    through.reply(response(SaslAuthenticateResponse(error_code=error_code, auth_bytes=back), version, 2))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain_names_the_client_once_the_broker_has_accepted_it(version: int) -> None:
    through = Through()
    shake(through, "PLAIN")
    through.send(request(SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), version, 2))
    assert (through.identity.principal, through.identity.awaiting_sasl) == ("User:ANONYMOUS", True)

    through.reply(response(SaslAuthenticateResponse(), version, 2))

    assert (through.identity.principal, through.identity.principal_source) == ("User:alice", "sasl")
    assert not through.identity.awaiting_sasl
    assert PLAIN_TOKEN in through.sent


def test_a_wrong_password_names_nobody() -> None:
    through = Through()
    shake(through, "PLAIN")

    authenticate(through, PLAIN_TOKEN, error_code=REFUSED)

    assert (through.identity.principal, through.identity.principal_source) == ("User:ANONYMOUS", "none")
    assert through.identity.awaiting_sasl


@pytest.mark.parametrize(
    ("mechanism", "token", "user"),
    [
        ("PLAIN", PLAIN_TOKEN, "alice"),
        ("SCRAM-SHA-256", SCRAM_FIRST, "bob,jr"),
        ("OAUTHBEARER", bearer({"sub": "carol"}), "carol"),
        ("PLAIN", b"nonsense", None),
    ],
)
def test_a_refused_login_is_told(mechanism: str, token: bytes, user: str | None) -> None:
    told: list[tuple[str, str, str | None]] = []
    through = Through(login_refused=lambda peer, *more: told.append((peer.client_id, *more)))
    shake(through, mechanism)

    authenticate(through, token, error_code=REFUSED)

    assert told == [("app", mechanism, user)]


def test_a_refused_mechanism_is_told() -> None:
    told: list[tuple[str, str | None]] = []
    through = Through(login_refused=lambda _, *more: told.append(more))

    shake(through, "PLAIN", error_code=33)

    assert told == [("PLAIN", None)]


def test_a_refused_token_without_a_header_is_told() -> None:
    told: list[tuple[str, str | None]] = []
    through = Through(login_refused=lambda _, *more: told.append(more))
    shake(through, "PLAIN", version=0)
    through.send(framed(PLAIN_TOKEN))

    through.pair.close(Cause.UPSTREAM)

    assert told == [("PLAIN", "alice")]


def test_scram_takes_two_rounds() -> None:
    through = Through()
    shake(through, "SCRAM-SHA-512")
    authenticate(through, SCRAM_FIRST, b"r=abcdefgh,s=c2FsdA==,i=4096")
    assert through.identity.principal == "User:ANONYMOUS"

    authenticate(through, b"c=biws,r=abcdefgh,p=cHJvb2Y=", b"v=c2ln")

    assert through.identity.principal == "User:bob,jr"


def test_a_delegation_token_names_nobody() -> None:
    through = Through()
    shake(through, "SCRAM-SHA-256")
    authenticate(through, b"n,,n=token-id,r=abc,tokenauth=true", b"r=abcd,s=c2FsdA==,i=4096")

    authenticate(through, b"c=biws,r=abcd,p=cHJvb2Y=", b"v=c2ln")

    assert through.identity.principal == "User:ANONYMOUS"
    assert not through.identity.awaiting_sasl


@pytest.mark.parametrize(("claims", "principal"), [({"sub": "carol"}, "User:carol"), ([], "User:ANONYMOUS")])
def test_a_token_names_its_subject(claims: object, principal: str) -> None:
    through = Through()
    shake(through, "OAUTHBEARER")

    authenticate(through, bearer(claims))

    assert through.identity.principal == principal
    assert not through.identity.awaiting_sasl


def test_a_refused_token_names_nobody() -> None:
    through = Through()
    shake(through, "OAUTHBEARER")
    authenticate(through, bearer({"sub": "carol"}), b'{"status":"invalid_token"}')
    assert through.identity.awaiting_sasl

    authenticate(through, b"\x01", error_code=REFUSED)

    assert through.identity.principal == "User:ANONYMOUS"
    assert through.identity.awaiting_sasl


def test_tokens_without_headers_after_handshake_v0() -> None:
    through = Through()
    shake(through, "PLAIN", version=0)
    through.send(framed(PLAIN_TOKEN)[:6])
    through.send(framed(PLAIN_TOKEN)[6:] + bare(HEARTBEAT, 3, 7))

    through.reply(framed(b"") + answer(7))

    assert through.identity.principal == "User:alice"
    assert through.sent.endswith(framed(PLAIN_TOKEN) + bare(HEARTBEAT, 3, 7))
    assert through.received.endswith(framed(b"") + answer(7))
    assert through.cause is None


def test_scram_after_handshake_v0_takes_two_rounds() -> None:
    through = Through()
    shake(through, "SCRAM-SHA-256", version=0)
    through.send(framed(SCRAM_FIRST))
    through.reply(framed(b"r=abcdefgh,s=c2FsdA==,i=4096"))
    through.send(framed(b"c=biws,r=abcdefgh,p=cHJvb2Y="))

    through.reply(framed(b"v=c2ln"))
    through.send(bare(HEARTBEAT, 3, 7))
    through.reply(answer(7))

    assert through.identity.principal == "User:bob,jr"
    assert through.cause is None


def test_reauthentication_between_other_requests() -> None:
    through = Through()
    shake(through, "PLAIN")
    authenticate(through, PLAIN_TOKEN)
    through.send(bare(HEARTBEAT, 3, 8), request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 9))
    assert not through.identity.awaiting_sasl

    through.reply(answer(8), response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, 9))
    authenticate(through, PLAIN_TOKEN)

    assert through.identity.principal == "User:alice"
    assert through.cause is None


@pytest.mark.parametrize("key", [71, 72])
def test_telemetry_before_authentication_closes(key: int) -> None:
    through = Through()
    shake(through, "PLAIN")

    through.send(bare(key, 0, 2, b"\0"))

    assert through.cause == "unauthenticated"
    assert through.answers.asked == []


def test_telemetry_without_a_handshake_closes_if_the_brokers_want_sasl() -> None:
    through = Through(requires_sasl=True)

    through.send(request(ApiVersionsRequest(), 3, 1), bare(71, 0, 2, b"\0"))

    assert through.cause == "unauthenticated"


@pytest.mark.parametrize("mechanism", ["GSSAPI", "AWS_MSK_IAM"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_cannot_pass_is_refused_with_reasons(mechanism: str, version: int) -> None:
    through = Through()

    through.send(request(SaslHandshakeRequest(mechanism=mechanism), version, 1))

    passing = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    refusal = SaslHandshakeResponse(error_code=33, mechanisms=passing)
    assert through.received == response(refusal, version, 1)
    assert through.sent == b""
    assert through.cause == "mechanism"
    assert mechanism in str(through.failures[0])


def test_no_token_is_kept() -> None:
    through = Through()
    shake(through, "PLAIN")

    authenticate(through, PLAIN_TOKEN)

    sasl = through.pair.state.sasl
    assert [
        getattr(sasl, each) for each in sasl.__slots__ if getattr(sasl, each) in (PLAIN_TOKEN, "alice")
    ] == []
