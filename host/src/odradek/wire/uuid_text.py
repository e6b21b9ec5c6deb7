"""Uuids as text: 16 raw bytes on the wire are 22 characters of base64url in Kafka's tools."""

from __future__ import annotations

import base64
import binascii


def uuid_text(raw: bytes) -> str:
    """The text that Kafka's ``Uuid.toString`` prints."""
    return base64.urlsafe_b64encode(raw)[:22].decode()


def parse_uuid(text: str) -> bytes:
    """The 16 bytes of a uuid printed by `uuid_text`.

    Raises:
        ValueError: The text is not 22 characters of base64url.
    """
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"not a base64url uuid: {text}") from error
    if len(raw) != 16:
        raise ValueError(f"not a base64url uuid: {text}")
    return raw
