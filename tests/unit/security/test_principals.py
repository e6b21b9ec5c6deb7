"""Principals that a plugin builds."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.plugin.principal_builder import AuthenticationContext, PrincipalBuilder
from odradek.security.principals import BuiltPrincipals
from odradek.security.sasl_server import SaslFailure
from odradek.testing.clock import MockClock
from support.broker import make_connection


class Answering:
    """A builder with one answer, or one failure."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[AuthenticationContext] = []

    def principal(self, authentication: AuthenticationContext) -> Any:
        self.asked.append(authentication)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def built(builder: PrincipalBuilder) -> BuiltPrincipals:
    return BuiltPrincipals("services", builder, 20, MockClock())


def test_a_user_of_sasl() -> None:
    builder, connection = Answering("Service:billing"), make_connection()

    principal = built(builder).of_user(connection, "OAUTHBEARER", "a:b")

    assert principal == "Service:billing"
    assert builder.asked == [
        AuthenticationContext(
            connection=connection, principal="User:a:b", sasl_mechanism="OAUTHBEARER", sasl_user="a:b"
        )
    ]


def test_a_client_with_a_certificate() -> None:
    builder, connection = Answering("User:x"), make_connection()
    connection.principal = "User:CN=x"

    principal = built(builder).of_peer(connection, b"der")

    assert principal == "User:x"
    assert (builder.asked[0].principal, builder.asked[0].certificate) == ("User:CN=x", b"der")
    assert builder.asked[0].sasl_user is None


@pytest.mark.parametrize(
    "answer", [KeyError("x"), None, "", "alice", ":alice", "User:", 7, "User:" + "x" * 21]
)
def test_a_builder_that_fails_refuses_the_client(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    principals = built(Answering(answer))

    with pytest.raises(SaslFailure):
        principals.of_user(make_connection(), "PLAIN", "alice")
    assert principals.of_peer(make_connection(), None) is None
    assert principals.stats.failed == 2
    (message,) = [record.getMessage() for record in caplog.records]
    if not isinstance(answer, Exception):
        assert f"principal returned {answer!r}, expected a principal such as User:alice" in message
    assert f"({__file__}:" in message
