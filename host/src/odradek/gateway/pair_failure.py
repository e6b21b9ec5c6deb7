"""The reasons why the gateway itself closes a pair."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Why a pair was closed, as the metrics name it."""

    CLIENT = "client"
    """The client closed."""
    CLIENT_RESET = "client-reset"
    UPSTREAM = "upstream"
    """The broker closed."""
    UPSTREAM_RESET = "upstream-reset"
    UPSTREAM_STUCK = "upstream-stuck"
    """The broker took nothing, or did not answer the first request."""
    UNREACHABLE = "unreachable"
    """The broker could not be dialed."""
    UNKNOWN_NODE = "unknown-node"
    """No response has named the address of the node yet."""
    BAD_REQUEST = "bad-request"
    """The client's bytes are not requests of Kafka's protocol."""
    TELEMETRY_TOO_LARGE = "telemetry-too-large"
    UNAUTHENTICATED = "unauthenticated"
    """A push before the broker has accepted the client's credentials."""
    MECHANISM = "mechanism"
    """A SASL mechanism that cannot pass a gateway."""
    DESYNC = "desync"
    """A response to another request than the oldest one that is outstanding."""
    MALFORMED_RESPONSE = "malformed-response"
    INTERNAL_ERROR = "internal-error"
    """A bug in the gateway. Closing the pair keeps addresses from leaking."""
    DRAINED = "drained"
    """The gateway stops."""
    IDLE = "idle"
    MEMORY = "memory"
    """All pairs together hold too much, and this one stands still."""


class PairFailure(Exception):
    """A pair must close.

    Args:
        cause: For the metrics.
        why: For the log; never holds bytes of a request.
    """

    def __init__(self, cause: Cause, why: str) -> None:
        super().__init__(why)
        self.cause = cause
