"""The time that a client grants to a request which Kafka's controller runs."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def check_time_left(timeout_ms: int) -> None:
    """Refuse a request that leaves no time. Nothing has been done, and the message is Kafka's: none.

    Raises:
        ApiError: REQUEST_TIMED_OUT.
    """
    if timeout_ms <= 0:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)


@dataclass(frozen=True, slots=True)
class RequestDeadline:
    """The end of the time that a request may take before its work, or a part of it, begins."""

    clock: Clock
    ends_ms: int

    @classmethod
    def after(cls, timeout_ms: int, clock: Clock) -> RequestDeadline:
        """The deadline of a request that has just arrived.

        Raises:
            ApiError: REQUEST_TIMED_OUT: there is no time at all.
        """
        check_time_left(timeout_ms)
        return cls(clock, clock.monotonic_ms() + timeout_ms)

    def check(self) -> None:
        """Check that the time is not over yet.

        Raises:
            ApiError: REQUEST_TIMED_OUT, as after too long a wait in the queue of Kafka's controller.
        """
        check_time_left(self.ends_ms - self.clock.monotonic_ms())
