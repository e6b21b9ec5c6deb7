"""Small requests that are read whole: ApiVersions, SaslHandshake and SaslAuthenticate."""

from __future__ import annotations

from typing import Any

from odradek.gateway.request_heads import after_tags, client_id_end
from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_request_header, flexible_response_header, read_response_header


def request_body(message: type[Any], version: int, frame: bytes) -> Any | None:
    """Decode a request; None if it cannot be decoded, which is for the broker to refuse.

    Args:
        message: The class of the request.
        version: Its version.
        frame: The request with its length.
    """
    if version not in message.VERSIONS:
        return None
    at = client_id_end(frame, 0)
    try:
        if flexible_request_header(message, version):
            at = after_tags(frame, at)
        return decode(message, version, frame[at:])
    except WireError:
        return None


def response_body(message: type[Any], version: int, frame: bytes) -> Any | None:
    """Decode a response; None if it cannot be decoded.

    Args:
        message: The class of the response.
        version: The version of the request.
        frame: The response without its length.
    """
    if version not in message.VERSIONS:
        return None
    try:
        _, at = read_response_header(frame, 0, flexible_response_header(message, version))
        return decode(message, version, frame[at:])
    except WireError:
        return None
