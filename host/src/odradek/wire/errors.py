"""Errors in received bytes. The server closes the channel they came from."""

from __future__ import annotations

from odradek.waiting.kept_error import KeptError


class WireError(KeptError):
    """The bytes do not follow the protocol, or exceed a bound."""


class Truncated(WireError):
    """The bytes end before the message does."""
