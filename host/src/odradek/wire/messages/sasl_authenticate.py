"""SaslAuthenticate, API key 36 (KIP-152).

Source: SaslAuthenticateRequest.json and SaslAuthenticateResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from typing import Annotated

from odradek.wire.types import Bytes, Int16, Int64, Message, String, between, since


class SaslAuthenticateRequest(Message, api_key=36, versions=between(0, 2), flexible=since(2)):
    """Pass one SASL token."""

    auth_bytes: Bytes = b""


class SaslAuthenticateResponse(Message, answers=SaslAuthenticateRequest):
    """Answer to `SaslAuthenticateRequest`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0
    """In ms; 0 if the session does not end."""
