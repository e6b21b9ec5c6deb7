"""Messages of OAUTHBEARER and their answers (RFC 7628), as Apache Kafka gives them."""

from __future__ import annotations

import pytest

from odradek.security.oauth.bearer_message import BadBearerMessage, BearerMessage, client_first
from odradek.security.oauth.bearer_server import MOST_REFUSED, OAuthBearerSaslServer
from odradek.security.oauth.bearer_token import INSUFFICIENT_SCOPE, BearerToken, TokenRefused
from odradek.security.sasl_server import SaslFailure

EXPIRES_MS = 1_700_000_060_000


def one_token(token: str) -> BearerToken:
    """Accepts the token ``good`` of alice."""
    if token == "narrow":
        raise TokenRefused("no scope", INSUFFICIENT_SCOPE, "[K]")
    if token != "good":
        raise TokenRefused("not good")
    return BearerToken("alice", EXPIRES_MS)


@pytest.fixture
def server() -> OAuthBearerSaslServer:
    return OAuthBearerSaslServer(one_token)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"n,,\x01auth=Bearer good\x01\x01", id="plain"),
        pytest.param(b"n,,\x01auth=bEARER   good\x01\x01", id="scheme in any case, blanks"),
        pytest.param(b"n,a=alice,\x01auth=Bearer good\x01\x01", id="authorization id"),
        pytest.param(b"n,,\x01host=x y\tz\r\n\x01auth=Bearer good\x01port=1\x01\x01", id="extensions"),
    ],
)
def test_a_good_message_gives_the_user_and_the_expiry(server: OAuthBearerSaslServer, message: bytes) -> None:
    answer = server.evaluate(message)

    assert answer == b""
    assert server.user == "alice"
    assert server.expires_ms == EXPIRES_MS


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x01", id="the end of an attempt that was not refused"),
        pytest.param(b"y,,\x01auth=Bearer good\x01\x01", id="channel binding y"),
        pytest.param(b"p=x,,\x01auth=Bearer good\x01\x01", id="channel binding p"),
        pytest.param(b"n,a=,\x01auth=Bearer good\x01\x01", id="empty authorization id"),
        pytest.param(b"n,a=b=d,\x01auth=Bearer good\x01\x01", id="bad escape"),
        pytest.param(b"n,,\x01auth=Bearer good\x01", id="no end"),
        pytest.param(b"n,,\x01auth=Bearer good\x01\x01x", id="more after the end"),
        pytest.param(b"n,,\x01auth=Bearer good\x01x-y=1\x01\x01", id="name of an extension"),
        pytest.param(b"n,,\x01auth=Bearer good\x01x=\x01\x01", id="empty extension"),
        pytest.param(b"n,,\x01x=1\x01\x01", id="no auth"),
        pytest.param(b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01", id="auth twice"),
        pytest.param(b"n,,\x01auth=Basic good\x01\x01", id="scheme"),
        pytest.param(b"n,,\x01auth=Bearer\x01\x01", id="no token"),
        pytest.param(b"n,,\x01auth=Bearer go*d\x01\x01", id="characters of a token"),
        pytest.param(b"n,,\x01auth=Bearer =good\x01\x01", id="padding first"),
        pytest.param("n,,\x01auth=Bearer ü\x01\x01".encode(), id="not ASCII"),
        pytest.param(b"n,,\x01auth=Bearer \xff\x01\x01", id="not UTF-8"),
    ],
)
def test_a_bad_message_fails_without_details(server: OAuthBearerSaslServer, message: bytes) -> None:
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(message)

    assert failure.value.message is None
    assert server.user is None


def test_the_authorization_id_must_be_the_principal(server: OAuthBearerSaslServer) -> None:
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(b"n,a=bob,\x01auth=Bearer good\x01\x01")

    assert failure.value.message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the "
        "token's principal name (alice)"
    )
    assert server.user is None


def test_an_authorization_id_is_compared_with_its_escapes() -> None:
    read = BearerMessage.read(b"n,a=a=2Cb=3D,\x01auth=Bearer good\x01\x01")

    assert read.authorization_id == "a=2Cb=3D"


@pytest.mark.parametrize(
    ("token", "challenge"),
    [
        ("bad", b'{"status":"invalid_token"}'),
        ("narrow", b'{"status":"insufficient_scope", "scope":"[K]"}'),
    ],
)
def test_a_refused_token_gets_a_challenge_and_then_fails(
    server: OAuthBearerSaslServer, token: str, challenge: bytes
) -> None:
    answer = server.evaluate(client_first(token))
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(b"\x01")

    assert answer == challenge
    assert server.doubt is not None
    assert failure.value.message == challenge.decode()


def test_a_good_token_may_follow_a_refused_one(server: OAuthBearerSaslServer) -> None:
    server.evaluate(client_first("bad"))

    answer = server.evaluate(client_first("good"))

    assert (answer, server.user, server.doubt) == (b"", "alice", None)


def test_the_number_of_refused_tokens_is_limited(server: OAuthBearerSaslServer) -> None:
    for _ in range(MOST_REFUSED):
        server.evaluate(client_first("bad"))

    with pytest.raises(SaslFailure) as failure:
        server.evaluate(client_first("bad"))

    assert failure.value.message == '{"status":"invalid_token"}'


def test_nothing_may_follow_a_good_token(server: OAuthBearerSaslServer) -> None:
    server.evaluate(client_first("good"))

    with pytest.raises(SaslFailure):
        server.evaluate(client_first("good"))


def test_a_long_hostile_message_is_read_in_linear_time() -> None:
    hostile = b"n,a=" + b"=2C\x01=3D" * 50_000

    with pytest.raises(BadBearerMessage):
        BearerMessage.read(hostile)
