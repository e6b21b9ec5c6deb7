"""Authentication on a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.bounds.small_file import read_small_file
from odradek.client.errors import ConnectFailed, check
from odradek.security.oauth.bearer_message import CONTINUE, client_first
from odradek.security.oauth.oauth_settings import OAUTHBEARER
from odradek.security.sasl_server import SaslFailure
from odradek.security.sasl_settings import PLAIN
from odradek.security.scram import ScramMechanism, mechanism_named
from odradek.security.scram_client import ScramSaslClient
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

MECHANISMS = (PLAIN, *(each.mechanism_name for each in ScramMechanism), OAUTHBEARER)
NONCE_BYTES = 24


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """SASL mechanism with user and password, or with a token."""

    mechanism: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: Callable[[], str] | None = field(default=None, repr=False)
    """Returns the token of OAUTHBEARER. Called at each authentication, because tokens expire."""


def token_in(path: Path) -> Callable[[], str]:
    """Return the function that reads a token from a file; it raises `ConnectFailed` if that fails."""

    def read() -> str:
        try:
            return read_small_file(path).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectFailed(f"the token in {path} cannot be read: {error}") from None

    return read


def log_in(send: Callable[..., Any], login: SaslLogin, subject: str) -> int:
    """Authenticate a connection, for the first time or again.

    Args:
        send: Sends a request on the connection and returns the response.
        login: One of `MECHANISMS`, with what it needs.
        subject: The broker's name in error messages.

    Returns:
        The time in milliseconds after which the client has to authenticate again; 0 if there is none.

    Raises:
        RequestFailed: The broker refuses the mechanism, the user, the password or the token.
        ConnectFailed: The broker failed to prove that it knows the password.
    """
    # from version 1 on, tokens are sent in SaslAuthenticate
    handshake: SaslHandshakeResponse = send(SaslHandshakeRequest(mechanism=login.mechanism), 1)
    offered = f"the listener supports {', '.join(handshake.mechanisms) or 'no SASL mechanism'}"
    check(handshake.error_code, offered, f"{subject}: {login.mechanism}")

    who = f"user {login.user}" if login.user else "token"
    lifetime_ms = 0

    def exchange(token: bytes) -> bytes:
        nonlocal lifetime_ms
        response: SaslAuthenticateResponse = send(SaslAuthenticateRequest(auth_bytes=token))
        check(response.error_code, response.error_message, f"{subject}: {who}")
        lifetime_ms = response.session_lifetime_ms
        return response.auth_bytes

    scram = mechanism_named(login.mechanism)
    if scram is not None:
        prove(ScramSaslClient(scram, login.user, login.password, new_nonce()), exchange, subject)
    elif login.token is not None:
        if exchange(client_first(login.token())):
            exchange(CONTINUE)  # the broker has refused the token; its error follows
    else:
        exchange(f"\0{login.user}\0{login.password}".encode())
    return lifetime_ms


def new_nonce() -> str:
    """Return an unpredictable text."""
    return secrets.token_urlsafe(NONCE_BYTES)


def prove(client: ScramSaslClient, exchange: Callable[[bytes], bytes], subject: str) -> None:
    """Prove the password, and have the broker prove that it knows it.

    Raises:
        ConnectFailed: It cannot.
    """
    try:
        client.finish(exchange(client.final(exchange(client.first()))))
    except SaslFailure as error:
        raise ConnectFailed(f"{subject}: {error}") from None
