"""SaslAuthenticate, API key 36 (KIP-152).

Source: SaslAuthenticateRequest.json and SaslAuthenticateResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from odradek.wire.types import Bytes, Int16, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateRequest:
    """Pass one SASL token."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    auth_bytes: Bytes = b""


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """Answer to `SaslAuthenticateRequest`."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0
    """In ms; 0 if the session does not end."""
