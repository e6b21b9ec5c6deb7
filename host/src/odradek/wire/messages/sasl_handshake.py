"""SaslHandshake, API key 17 (KIP-43).

Source: SaslHandshakeRequest.json and SaslHandshakeResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import NEVER, Int16, Message, String, between


class SaslHandshakeRequest(Message, api_key=17, versions=between(0, 1), flexible=NEVER):
    """Choose a SASL mechanism."""

    mechanism: String = ""


class SaslHandshakeResponse(Message, answers=SaslHandshakeRequest):
    """Answer to `SaslHandshakeRequest`."""

    error_code: Int16 = 0
    mechanisms: list[String] = field(default_factory=list)
