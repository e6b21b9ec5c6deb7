"""Authentication on a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.client.errors import ConnectFailed, check
from odradek.security.plain_server import PLAIN
from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import ScramMechanism, mechanism_named
from odradek.security.scram_client import ScramSaslClient
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

MECHANISMS = (PLAIN, *(each.mechanism_name for each in ScramMechanism))
NONCE_BYTES = 24


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """User, password and SASL mechanism."""

    mechanism: str
    user: str
    password: str = field(repr=False)


def log_in(send: Callable[..., Any], login: SaslLogin, subject: str) -> None:
    """Authenticate a connection.

    Args:
        send: Sends a request on the connection and returns the response.
        login: User, password and one of `MECHANISMS`.
        subject: The broker's name in error messages.

    Raises:
        RequestFailed: The broker refuses the mechanism, the user or the password.
        ConnectFailed: The broker failed to prove that it knows the password.
    """
    # from version 1 on, tokens are sent in SaslAuthenticate
    handshake: SaslHandshakeResponse = send(SaslHandshakeRequest(mechanism=login.mechanism), 1)
    offered = f"the listener supports {', '.join(handshake.mechanisms) or 'no SASL mechanism'}"
    check(handshake.error_code, offered, f"{subject}: {login.mechanism}")

    def exchange(token: bytes) -> bytes:
        response: SaslAuthenticateResponse = send(SaslAuthenticateRequest(auth_bytes=token))
        check(response.error_code, response.error_message, f"{subject}: user {login.user}")
        return response.auth_bytes

    scram = mechanism_named(login.mechanism)
    if scram is None:
        exchange(f"\0{login.user}\0{login.password}".encode())
        return
    client = ScramSaslClient(scram, login.user, login.password, secrets.token_urlsafe(NONCE_BYTES))
    try:
        client.finish(exchange(client.final(exchange(client.first()))))
    except SaslFailure as error:
        raise ConnectFailed(f"{subject}: {error}") from None
