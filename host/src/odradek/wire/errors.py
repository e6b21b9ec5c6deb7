"""What is wrong with bytes. The channel they came on is closed."""


class WireError(Exception):
    """The bytes do not follow the protocol, or exceed a bound."""


class Truncated(WireError):
    """The bytes end before the message does."""
