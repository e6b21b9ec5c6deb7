"""The time that a client grants to a request which Kafka's controller runs."""

from __future__ import annotations

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def check_time_left(timeout_ms: int) -> None:
    """Refuse a request that leaves no time. Nothing has been done, and the message is Kafka's: none.

    Raises:
        ApiError: REQUEST_TIMED_OUT.
    """
    if timeout_ms <= 0:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
