"""The beginning of Produce requests, up to the field acks."""

from __future__ import annotations

from typing import Final

from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.produce_fields import CLIENT_ID, NO_FORM, OneBatch
from odradek.gateway.request_heads import after_tags, client_id_end, unpack_int16
from odradek.wire.errors import WireError
from odradek.wire.varint import read_varint

FLEXIBLE: Final = 9
TRANSACTIONAL: Final = 3
LENGTH_BYTES: Final = 4
KNOWN_BYTES: Final = 512
"""Longer beginnings are not remembered."""


class ProduceBeginning:
    """The beginning of the last Produce request of a connection: nearly all others have the same."""

    __slots__ = ("acks", "end", "form", "known", "version")

    def __init__(self) -> None:
        self.acks = 1
        """Of the last request."""
        self.end = 0
        """The end of its acks, from the API key on."""
        self.form: OneBatch = NO_FORM
        """The form of the last request with one batch and this end, for the observation."""
        self.known = b""
        """Its bytes from the client id to its acks; empty if they are too many."""
        self.version = -1

    def read(self, data: bytes, at: int, size: int, version: int) -> int:
        """Read a request whose API key is at `at`, and which has `size` bytes from there on.

        Returns:
            0; or, if the data ends too early, how many bytes of the request are needed, or more.

        Raises:
            PairFailure: The request ends before its acks, or is malformed.
        """
        if version == self.version and size >= self.end and data.startswith(self.known, at + CLIENT_ID):
            return 0
        end = acks_end(data, at, size, version)
        if at + end > len(data):
            return end
        if end != self.end:
            self.end, self.form = end, NO_FORM
        (self.acks,) = unpack_int16(data, at + end - 2)
        is_known = end <= KNOWN_BYTES
        self.known = data[at + CLIENT_ID : at + end] if is_known else b""
        self.version = version if is_known else -1
        return 0


def acks_end(data: bytes, at: int, size: int, version: int) -> int:
    """The end of the field acks, from the API key on; beyond the data if the data ends before it.

    Raises:
        PairFailure: The request ends before the field, or is malformed.
    """
    position = client_id_end(data, at - LENGTH_BYTES)
    flexible = version >= FLEXIBLE
    if flexible and position <= len(data):
        position = after_tags(data, position)
    if version >= TRANSACTIONAL and position <= len(data):
        position = after_text(data, position, flexible)
    if position + 2 > at + size:
        raise PairFailure(Cause.BAD_REQUEST, "a Produce request ends before its acks")
    return position + 2 - at


def after_text(data: bytes, at: int, compact: bool) -> int:
    """Return the offset after a nullable string; an offset beyond `len(data)` if the string is cut.

    Raises:
        PairFailure: Its length is no varint.
    """
    if compact:
        try:
            size, at = read_varint(data, at)
        except IndexError:
            return max(at, len(data)) + 1
        except WireError as error:
            raise PairFailure(Cause.BAD_REQUEST, str(error)) from None
        return at + max(size - 1, 0)
    if len(data) < at + 2:
        return at + 2
    return at + 2 + max(unpack_int16(data, at)[0], 0)
