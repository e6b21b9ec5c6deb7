"""PLAIN checks the password against the SCRAM credentials."""

from __future__ import annotations

import pytest

from odradek.security.plain_server import PlainSaslServer
from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import ScramMechanism
from support.known_users import SECRET, KnownUsers


@pytest.fixture
def server() -> PlainSaslServer:
    return PlainSaslServer(KnownUsers({"alice": "secret"}), SECRET)


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_the_right_password_authenticates_a_user(server: PlainSaslServer, token: bytes) -> None:
    answer = server.evaluate(token)

    assert answer == b""
    assert server.user == "alice"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_one_credential_of_any_mechanism_is_enough(mechanism: ScramMechanism) -> None:
    server = PlainSaslServer(KnownUsers({"alice": "secret"}, mechanism), SECRET)

    server.evaluate(b"\0alice\0secret")

    assert server.user == "alice"


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0nobody\0secret", b"root\0alice\0wrong"])
def test_a_wrong_name_or_password_has_one_message(server: PlainSaslServer, token: bytes) -> None:
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(token)

    assert failure.value.message == "Authentication failed: Invalid username or password"
    assert server.user is None


def test_another_authorization_id_is_refused(server: PlainSaslServer) -> None:
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(b"root\0alice\0secret")

    assert failure.value.message is not None
    assert "authorization id" in failure.value.message
    assert server.user is None


@pytest.mark.parametrize(
    "token",
    [b"", b"alice", b"\0alice", b"\0alice\0", b"\0\0secret", b"\0alice\0secret\0", b"\0al\xffice\0secret"],
)
def test_malformed_tokens_fail(server: PlainSaslServer, token: bytes) -> None:
    with pytest.raises(SaslFailure) as failure:
        server.evaluate(token)

    assert failure.value.message is None
    assert server.user is None
