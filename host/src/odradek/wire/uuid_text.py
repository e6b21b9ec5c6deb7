"""Uuids as text: 16 raw bytes on the wire are 22 characters of base64url in Kafka's tools."""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256
from typing import Final

DASH: Final = 62
"""The value of ``-`` in base64url: an id must not look like a command-line option."""


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


def named_uuid(*texts: str) -> bytes:
    """The 16 bytes that stand for these texts, always the same: a UUID of version 8."""
    raw = bytearray(sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    if raw[0] >> 2 == DASH:
        raw[0] ^= 0x80
    return bytes(raw)
