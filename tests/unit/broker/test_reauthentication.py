"""Re-authentication (KIP-368): the cases that were seen on a broker of Apache Kafka 4.3.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.dispatch.routes import CloseConnection
from odradek.security.oauth.bearer_message import client_first
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.sasl_gate import DELAY_MS, Gate
from support.tokens import claims_of, unsecured

LIFETIME_MS = 3_000
SHORT_MS = 1_500
AGAIN_MS = 2_700
"""When clients authenticate again."""


def plain(user: str = "alice", password: str = "secret") -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())


def handshake(gate: Gate, mechanism: str = "PLAIN") -> Any:
    return gate.send(SaslHandshakeRequest(mechanism=mechanism))


def serves(gate: Gate) -> bool:
    """Whether an ordinary request is answered."""
    try:
        return gate.send(ListGroupsRequest()) is not None
    except CloseConnection:
        return False


def token(gate: Gate, lasts_s: float, user: str = "alice") -> SaslAuthenticateRequest:
    claims = claims_of(user, gate.clock.now_ms() / 1000, lasts_s, iat=None)
    return SaslAuthenticateRequest(auth_bytes=client_first(unsecured(claims)))


@pytest.fixture
def gate() -> Gate:
    """A client that has authenticated, and will have to do so again."""
    gate = Gate("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", max_reauth_ms=LIFETIME_MS)
    handshake(gate)
    gate.send(plain())
    return gate


@pytest.fixture
def again(gate: Gate) -> Gate:
    """The same client with a second handshake."""
    gate.clock.advance(AGAIN_MS)
    handshake(gate)
    gate.happened.clear()
    return gate


@pytest.mark.parametrize(("version", "lifetime_ms"), [(0, 0), (1, LIFETIME_MS), (2, LIFETIME_MS)])
def test_the_last_answer_has_the_lifetime(version: int, lifetime_ms: int) -> None:
    gate = Gate(max_reauth_ms=LIFETIME_MS)
    handshake(gate)

    answer = gate.send(plain(), version)

    assert answer.session_lifetime_ms == lifetime_ms


def test_only_the_last_answer_has_the_lifetime(gate: Gate) -> None:
    gate = Gate("SCRAM-SHA-256", max_reauth_ms=LIFETIME_MS)
    handshake(gate, "SCRAM-SHA-256")

    answer = gate.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"))

    assert answer.auth_bytes
    assert answer.session_lifetime_ms == 0


def test_there_is_no_lifetime_unless_it_is_set() -> None:
    gate = Gate()
    handshake(gate)

    answer = gate.send(plain())

    assert answer.session_lifetime_ms == 0
    assert gate.authenticator.session is None


def test_the_same_client_authenticates_again_and_again(gate: Gate) -> None:
    lifetimes = []
    for _ in range(5):
        gate.clock.advance(AGAIN_MS)
        handshake(gate)
        lifetimes.append(gate.send(plain()).session_lifetime_ms)
        assert serves(gate)

    assert lifetimes == [LIFETIME_MS] * 5
    assert gate.client.connection.principal == "User:alice"
    assert (gate.shared.counts.succeeded, gate.shared.counts.succeeded_again) == (1, 5)


def test_a_short_token_lasts_to_the_millisecond() -> None:
    gate = Gate("OAUTHBEARER")
    gate.clock.advance(600)
    lifetimes = []
    for _ in range(5):
        handshake(gate, "OAUTHBEARER")
        issued_s = gate.clock.now_ms() / 1000
        claims = claims_of("alice", issued_s, iat=issued_s, exp=issued_s + SHORT_MS / 1000)
        message = SaslAuthenticateRequest(auth_bytes=client_first(unsecured(claims)))
        lifetimes.append(gate.send(message).session_lifetime_ms)
        gate.clock.advance(SHORT_MS * 9 // 10)
        assert serves(gate)

    assert lifetimes == [SHORT_MS] * 5


def test_the_first_reauthentication_may_come_at_once(gate: Gate) -> None:
    answer = handshake(gate)

    assert answer.error_code == 0


def test_a_second_one_within_a_second_is_refused_and_the_session_goes_on(gate: Gate) -> None:
    handshake(gate)
    gate.send(plain())
    gate.clock.advance(999)

    answer = handshake(gate)

    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.mechanisms == []
    assert serves(gate)


def test_a_second_one_after_a_second_is_accepted(gate: Gate) -> None:
    handshake(gate)
    gate.send(plain())
    gate.clock.advance(1_000)

    answer = handshake(gate)

    assert answer.error_code == 0


def test_another_principal_is_refused(again: Gate) -> None:
    at_once = again.send(plain("bob"))
    answer = again.late(plain("bob"), 2)

    assert at_once is None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert again.happened == ["failed", "close"]
    assert again.client.connection.principal == "User:alice"


def test_a_wrong_password_is_refused_later(gate: Gate) -> None:
    gate = Gate("SCRAM-SHA-256", "PLAIN", max_reauth_ms=LIFETIME_MS)
    gate.log_in("SCRAM-SHA-256")
    handshake(gate, "SCRAM-SHA-256")
    gate.happened.clear()

    request = SaslAuthenticateRequest(auth_bytes=b"nonsense")
    at_once = gate.send(request)
    answer = gate.late(request, 2)

    assert at_once is None
    assert answer.error_message == (
        "Authentication failed during re-authentication due to invalid credentials with SASL mechanism "
        "SCRAM-SHA-256"
    )
    assert gate.happened == ["failed", "close"]
    assert gate.shared.counts.failed_again == 1


def test_another_mechanism_is_accepted_and_then_closes_without_an_answer(gate: Gate) -> None:
    answer = handshake(gate, "SCRAM-SHA-256")
    gate.happened.clear()
    message = gate.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"))
    before = list(gate.happened)
    gate.clock.advance(DELAY_MS)

    assert answer.error_code == 0
    assert message is None
    assert before == ["failed"]
    assert gate.happened == ["failed", "close"]
    assert gate.answered == [None]


def test_a_disabled_mechanism_is_refused(gate: Gate) -> None:
    at_once = handshake(gate, "SCRAM-SHA-512")
    answer = gate.late(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)

    assert at_once is None
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


@pytest.mark.parametrize(
    "request_", [ListGroupsRequest(), SaslHandshakeRequest(mechanism="PLAIN"), ApiVersionsRequest()]
)
def test_another_request_between_handshake_and_token_gets_an_error_and_closes(
    again: Gate, request_: Any
) -> None:
    at_once = again.send(request_)
    answer = again.late(request_, request_.VERSIONS.last)

    assert at_once is None
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert again.happened == ["failed", "close"]


@pytest.mark.parametrize(
    "request_", [MetadataRequest(topics=None), ApiVersionsRequest(), plain()], ids=lambda each: type(each)
)
def test_an_expired_session_closes_at_the_next_request(gate: Gate, request_: Any) -> None:
    gate.clock.advance(LIFETIME_MS)

    with pytest.raises(CloseConnection):
        gate.send(request_)

    assert gate.shared.counts.expired == 1


def test_a_session_ends_in_time_and_not_before(gate: Gate) -> None:
    gate.clock.advance(LIFETIME_MS - 1)
    before = serves(gate)
    gate.clock.advance(1)
    after = serves(gate)

    assert (before, after) == (True, False)


def test_the_wall_clock_does_not_end_a_session(gate: Gate) -> None:
    gate.clock.jump(10 * LIFETIME_MS)

    assert serves(gate)


def test_an_old_client_has_the_same_time() -> None:
    gate = Gate(max_reauth_ms=LIFETIME_MS)
    handshake(gate)
    gate.send(plain(), 0)

    gate.clock.advance(LIFETIME_MS)

    assert not serves(gate)
    assert gate.shared.counts.never_again == 1


def test_a_client_with_bare_tokens_has_the_same_time() -> None:
    gate = Gate(max_reauth_ms=LIFETIME_MS)
    gate.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    gate.give(b"\0alice\0secret")
    before = serves(gate)

    gate.clock.advance(LIFETIME_MS)

    assert before
    assert not serves(gate)


def test_an_expired_session_may_be_renewed(gate: Gate) -> None:
    gate.clock.advance(10 * LIFETIME_MS)

    handshake(gate)
    answer = gate.send(plain())

    assert answer.session_lifetime_ms == LIFETIME_MS
    assert serves(gate)


def test_a_session_that_ends_during_the_reauthentication_does_not_disturb_it(again: Gate) -> None:
    again.clock.advance(LIFETIME_MS)

    answer = again.send(plain())

    assert answer.session_lifetime_ms == LIFETIME_MS
    assert serves(again)


def test_a_token_outside_of_an_authentication_is_refused(gate: Gate) -> None:
    answer = gate.send(plain())

    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert serves(gate)


@pytest.mark.parametrize(
    ("max_reauth_ms", "lasts_s", "lifetime_ms"),
    [(0, 60, 60_000), (LIFETIME_MS, 60, LIFETIME_MS), (LIFETIME_MS, 2, 2_000), (0, -10, 0)],
)
def test_a_token_shortens_the_session(max_reauth_ms: int, lasts_s: int, lifetime_ms: int) -> None:
    gate = Gate("OAUTHBEARER", max_reauth_ms=max_reauth_ms)
    handshake(gate, "OAUTHBEARER")

    answer = gate.send(token(gate, lasts_s))
    gate.clock.advance(max(lifetime_ms - 1, 0))
    before = serves(gate)
    gate.clock.advance(1)

    assert answer.error_code == 0
    assert answer.session_lifetime_ms == lifetime_ms
    assert before is (lifetime_ms > 0)
    assert not serves(gate)


def test_a_refused_token_is_answered_without_an_error_code() -> None:
    gate = Gate("OAUTHBEARER")
    handshake(gate, "OAUTHBEARER")

    challenge = gate.send(token(gate, -3_600))
    end = SaslAuthenticateRequest(auth_bytes=b"\x01")
    at_once = gate.send(end)
    answer = gate.late(end, 2)

    assert challenge.error_code == 0
    assert challenge.auth_bytes == b'{"status":"invalid_token"}'
    assert at_once is None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'
    assert gate.happened == ["failed", "close"]


def test_a_good_token_may_follow() -> None:
    gate = Gate("OAUTHBEARER")
    handshake(gate, "OAUTHBEARER")
    gate.send(token(gate, -3_600))

    answer = gate.send(token(gate, 60))

    assert answer.session_lifetime_ms == 60_000
    assert gate.happened == ["failed", "succeeded"]
    assert gate.client.connection.principal == "User:alice"


def test_a_mechanism_has_its_own_limit() -> None:
    gate = Gate(max_reauth_ms=LIFETIME_MS)
    gate.shared = replace(gate.shared, max_reauth_ms={"PLAIN": 60_000})
    gate.authenticator = gate.opened()
    handshake(gate)

    answer = gate.send(plain())

    assert answer.session_lifetime_ms == 60_000


def test_each_reauthentication_counts_for_the_rate_of_its_address(gate: Gate) -> None:
    delayed = gate.shared.rate.delayed
    for _ in range(60):
        gate.shared.rate.delay_ms(gate.client.connection.client_address)

    handshake(gate)
    answer = gate.send(plain())

    assert answer is None
    assert gate.shared.rate.delayed > delayed


def test_a_lost_connection_leaves_no_timer(gate: Gate) -> None:
    planned = len(gate.clock.timer)

    gate.authenticator.leave()

    assert len(gate.clock.timer) == planned - 1
