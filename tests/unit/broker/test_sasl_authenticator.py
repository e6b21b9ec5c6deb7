"""Authentication on a SASL listener: bytes through the dispatcher, on a mock clock."""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.dispatch.routes import CloseConnection
from odradek.client.errors import RequestFailed
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.security.attempt_rate import AttemptRate
from odradek.security.plain_server import PlainSaslServer
from odradek.security.sasl_authentication import FAILURES_LOGGED
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import (
    RequestHeader,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.broker import BrokerClient
from support.examples import examples
from support.sasl_gate import DELAY_MS, MECHANISMS, Gate

PLAIN_ALICE = b"\0alice\0secret"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_gets_its_principal(mechanism: str) -> None:
    gate = Gate()

    gate.log_in(mechanism)

    assert gate.happened == ["succeeded"]
    assert gate.client.connection.principal == "User:alice"
    assert not gate.authenticator.waits


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_answered_after_a_delay_and_closes(mechanism: str) -> None:
    gate = Gate()

    with pytest.raises(RequestFailed) as failure:
        gate.log_in(mechanism, "wrong")

    assert failure.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert gate.happened == ["failed", "close"]
    assert gate.client.connection.principal == "User:ANONYMOUS"


def test_scram_reveals_no_more_than_kafka() -> None:
    gate = Gate()

    with pytest.raises(RequestFailed) as failure:
        gate.log_in("SCRAM-SHA-512", "wrong")

    assert failure.value.message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        "SCRAM-SHA-512"
    )


def test_a_disabled_mechanism_is_answered_after_a_delay_with_the_enabled_ones() -> None:
    gate = Gate("SCRAM-SHA-256")
    request = SaslHandshakeRequest(mechanism="PLAIN")

    at_once = gate.send(request, 1)
    response = gate.late(request, 1)

    assert at_once is None
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["SCRAM-SHA-256"]
    assert gate.happened == ["failed", "close"]


def test_api_versions_may_be_requested_before() -> None:
    gate = Gate()

    response = gate.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    gate.log_in("SCRAM-SHA-256")

    assert response.error_code == 0
    assert gate.client.connection.client_software_name == "x"
    assert gate.happened == ["succeeded"]


def test_no_quota_is_charged_before_authentication() -> None:
    gate = Gate()
    gate.client.connection.security_protocol = "SASL_PLAINTEXT"
    quotas, now_ms = gate.client.broker.quotas, gate.clock.monotonic_ms()
    quotas.apply(ClientQuotaEntity(user="ANONYMOUS"), {"request_percentage": 0.01})
    quotas.request.record_without_throttle("ANONYMOUS", "elsewhere", 1000, now_ms)

    before = gate.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    quotas.apply(ClientQuotaEntity(user="alice"), {"request_percentage": 0.01})
    gate.log_in("SCRAM-SHA-256")
    quotas.request.record_without_throttle("alice", "elsewhere", 1000, now_ms)
    after = gate.client.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)

    assert before.throttle_time_ms == 0
    assert after.throttle_time_ms > 0


@pytest.mark.parametrize("request_", [MetadataRequest(), ProduceRequest(acks=1), SaslAuthenticateRequest()])
def test_another_request_before_the_handshake_closes(request_: Any) -> None:
    gate = Gate()

    with pytest.raises(CloseConnection):
        gate.send(request_)

    assert gate.happened == ["failed"]


@pytest.mark.parametrize(
    "request_", [MetadataRequest(), ApiVersionsRequest(), SaslHandshakeRequest(mechanism="PLAIN")]
)
def test_another_request_after_the_handshake_closes(request_: Any) -> None:
    gate = Gate()
    gate.send(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))

    with pytest.raises(CloseConnection):
        gate.send(request_)

    assert gate.happened == ["failed"]


def test_a_request_without_a_header_is_invalid() -> None:
    gate = Gate()

    with pytest.raises(WireError):
        gate.give(b"\0")


def test_a_truncated_token_is_invalid() -> None:
    gate = Gate()
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"))
    header = request_header(RequestHeader(SaslAuthenticateRequest.API_KEY, 1, 1, None), False)

    with pytest.raises(WireError):
        gate.give(header + struct.pack(">i", 100) + b"short")


def test_a_token_of_plain_for_scram_fails() -> None:
    gate = Gate()
    gate.send(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    request = SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE)

    gate.send(request)
    response = gate.late(request, 2)

    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert gate.happened == ["failed", "close"]


def test_an_authenticated_client_cannot_authenticate_again() -> None:
    gate = Gate()
    gate.log_in("SCRAM-SHA-256")

    handshake = gate.client.send(SaslHandshakeRequest(mechanism="PLAIN"))
    authenticated = gate.client.send(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE))

    assert handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert handshake.mechanisms == []
    assert authenticated.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_listener_without_sasl_refuses_authentication() -> None:
    client = BrokerClient()

    handshake = client.send(SaslHandshakeRequest(mechanism="PLAIN"))
    authenticated = client.send(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE))

    assert handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticated.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.connection.principal == "User:ANONYMOUS"


def test_after_a_handshake_of_version_0_tokens_are_frames() -> None:
    gate = Gate()
    handshake = gate.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)

    answers = gate.give(PLAIN_ALICE)

    assert handshake.error_code == 0
    assert answers == [bytes(4)]
    assert gate.happened == ["succeeded"]


def test_after_a_handshake_of_version_0_a_failure_closes_without_an_answer() -> None:
    gate = Gate()
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)

    at_once = list(gate.give(b"\0alice\0wrong"))
    gate.clock.advance(DELAY_MS)

    assert at_once == []
    assert gate.answered == [b""]
    assert gate.happened == ["failed", "close"]


def test_a_client_that_disconnects_leaves_no_timer() -> None:
    gate = Gate("SCRAM-SHA-256")
    before = len(gate.clock.timer)
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"))

    assert gate.pending is not None
    gate.pending.lost()

    assert gate.happened == ["failed"]
    assert len(gate.clock.timer) == before


def test_a_stopping_host_does_not_wait_for_the_delay() -> None:
    gate = Gate("SCRAM-SHA-256")
    request = SaslHandshakeRequest(mechanism="PLAIN")
    gate.send(request)

    assert gate.pending is not None
    assert gate.pending.hurry is not None
    gate.pending.hurry()

    assert gate.read(request, 1, gate.answered).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert gate.happened == ["failed", "close"]


def test_passwords_are_checked_on_another_thread() -> None:
    gate = Gate()
    gate.works = False
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"))

    gate.send(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE))

    assert len(gate.offloaded) == 1
    assert gate.happened == []


def test_the_password_of_a_disconnected_client_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, checked = Gate(), list[bytes]()
    monkeypatch.setattr(PlainSaslServer, "evaluate", lambda _, token: checked.append(token))
    gate.works = False
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"))
    gate.send(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE))

    assert gate.pending is not None
    gate.pending.lost()
    gate.authenticator.leave()
    gate.works = True
    gate.work()

    assert (checked, gate.happened, gate.answered) == ([], [], [])


def test_scram_proofs_are_checked_at_once() -> None:
    gate = Gate()
    gate.works = False

    gate.log_in("SCRAM-SHA-512")

    assert gate.offloaded == []
    assert gate.happened == ["succeeded"]


RATE = 4


def attempts(gate: Gate, count: int, mechanism: str = "PLAIN", token: bytes = PLAIN_ALICE) -> list[Gate]:
    """Gates of the same host whose clients all send their first token now."""
    gates = [Gate() for _ in range(count)]
    for each in gates:
        each.shared = each.authenticator.shared = gate.shared
        each.offloaded = gate.offloaded
        each.works = False
        each.send(SaslHandshakeRequest(mechanism=mechanism))
        each.send(SaslAuthenticateRequest(auth_bytes=token))
    return gates


@pytest.fixture
def slow() -> Gate:
    """A host that checks four passwords of an address per second."""
    gate = Gate()
    gate.shared = replace(gate.shared, rate=AttemptRate(RATE, gate.clock))
    return gate


def test_passwords_of_one_address_are_checked_at_a_rate(slow: Gate) -> None:
    attempts(slow, 3 * RATE)
    begun = [len(slow.offloaded)]

    for _ in range(4):
        slow.clock.advance(500)
        begun.append(len(slow.offloaded))

    assert begun == [RATE, RATE + 2, RATE + 4, RATE + 6, RATE + 8]


def test_proofs_of_one_address_are_checked_at_a_rate(slow: Gate) -> None:
    gates = attempts(slow, 2 * RATE, "SCRAM-SHA-256", b"n,,n=alice,r=x")
    at_once = [bool(each.answered) for each in gates]

    slow.clock.advance(1_000)

    assert at_once == [True] * RATE + [False] * RATE
    assert all(each.answered for each in gates)


def test_a_client_that_leaves_while_its_attempt_is_delayed_leaves_no_timer(slow: Gate) -> None:
    gates = attempts(slow, RATE + 1)
    timers = len(slow.clock.timer)

    assert gates[-1].pending is not None
    gates[-1].pending.lost()
    slow.clock.advance(1_000)

    assert timers - len(slow.clock.timer) == 1
    assert len(slow.offloaded) == RATE


def test_a_stopping_host_closes_a_client_whose_attempt_is_delayed(slow: Gate) -> None:
    last = attempts(slow, RATE + 1)[-1]

    assert last.pending is not None
    assert last.pending.hurry is not None
    last.pending.hurry()

    assert last.happened == ["close"]


def test_failures_are_logged_up_to_a_number_each_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate = Gate()

    for _ in range(FAILURES_LOGGED + 20):
        gate.authenticator.refuse("wrong password")
    gate.clock.advance(60_000)
    gate.authenticator.refuse("wrong password")

    assert len(caplog.records) == FAILURES_LOGGED + 1
    assert vars(caplog.records[-1])["unlogged"] == 20
    assert gate.happened == ["failed"] * (FAILURES_LOGGED + 21)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_logged_with_the_user(mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate = Gate()

    with pytest.raises(RequestFailed):
        gate.log_in(mechanism, "wrong")

    (record,) = caplog.records
    assert record.getMessage() == "authentication failed: wrong password"
    assert (vars(record)["user"], vars(record)["mechanism"]) == ("alice", mechanism)
    assert (vars(record)["client_id"], vars(record)["address"]) == (
        "test",
        gate.client.connection.client_address,
    )


HEADERS = st.builds(
    struct.Struct(">hhih").pack,
    st.sampled_from([0, 3, 17, 18, 36]),
    st.integers(-1, 4),
    st.integers(0, 9),
    st.sampled_from([-1, 0]),
)
BODIES = st.binary(max_size=40) | st.sampled_from([b"\0\5PLAIN", b"\0\x0dSCRAM-SHA-256"])
FRAMES = st.binary(max_size=40) | st.builds(bytes.__add__, HEADERS, BODIES)


@cache
def shared_gate() -> Gate:
    """Shared by all examples: creating a broker takes longer than one example."""
    return Gate()


@settings(max_examples=examples(300))
@given(st.lists(FRAMES, max_size=4))
def test_any_bytes_are_answered_or_close_and_never_authenticate(frames: list[bytes]) -> None:
    gate = shared_gate()
    gate.authenticator = gate.opened()

    for frame in frames:
        try:
            gate.give(frame)
        except (CloseConnection, WireError):
            break

    assert "succeeded" not in gate.happened
    assert gate.client.connection.principal == "User:ANONYMOUS"
    assert gate.client.dispatcher.unexpected_errors == 0
