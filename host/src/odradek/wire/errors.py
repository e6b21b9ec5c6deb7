"""Errors in received bytes. The server closes the channel they came from."""


class WireError(Exception):
    """The bytes do not follow the protocol, or exceed a bound."""


class Truncated(WireError):
    """The bytes end before the message does."""
