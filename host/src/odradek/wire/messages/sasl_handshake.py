"""SaslHandshake, API key 17 (KIP-43).

Source: SaslHandshakeRequest.json and SaslHandshakeResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import NEVER, Int16, String, Versions, between


@dataclass(slots=True, kw_only=True)
class SaslHandshakeRequest:
    """Choose a SASL mechanism."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = NEVER

    mechanism: String = ""


@dataclass(slots=True, kw_only=True)
class SaslHandshakeResponse:
    """Answer to `SaslHandshakeRequest`."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = NEVER

    error_code: Int16 = 0
    mechanisms: list[String] = field(default_factory=list)
