"""How many partitions one request may create or delete (KIP-599).

After kafka.server.ControllerMutationQuota.
"""

from __future__ import annotations

from odradek.metrics.sensor import QuotaViolation, Sensor
from odradek.quota.throttle_time import token_bucket_throttle_time_ms
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

MESSAGE = "The throttling quota has been exceeded."


class ControllerMutationQuota:
    """The quota of one request, which records each of its topics in order; this one is without a limit."""

    __slots__ = ()

    def record(self, permits: float) -> None:
        """Record partitions to be created or deleted.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED; nothing was recorded.
        """

    def throttle_ms(self, now_ms: int) -> int:
        """Milliseconds left of the throttle time of the last violation."""
        return 0


class ThrottledMutationQuota(ControllerMutationQuota):
    """Remembers the last violation. Its throttle time runs while the request waits to be answered."""

    __slots__ = ("clock", "last_throttle_ms", "last_violation_ms", "sensor")

    def __init__(self, sensor: Sensor, clock: Clock) -> None:
        self.sensor = sensor
        self.clock = clock
        self.last_throttle_ms = 0
        self.last_violation_ms = 0

    def throttle_ms(self, now_ms: int) -> int:
        return max(0, self.last_throttle_ms - (now_ms - self.last_violation_ms))

    def remember(self, violation: QuotaViolation, now_ms: int) -> None:
        """Store the throttle time of a violation."""
        self.last_throttle_ms = token_bucket_throttle_time_ms(violation)
        self.last_violation_ms = now_ms


class StrictControllerMutationQuota(ThrottledMutationQuota):
    """Refuses once the bucket is overdrawn. Until then it accepts any number, however far that overdraws."""

    __slots__ = ()

    def record(self, permits: float) -> None:
        now_ms = self.clock.monotonic_ms()
        try:
            self.sensor.check_quotas(now_ms)
        except QuotaViolation as violation:
            self.remember(violation, now_ms)
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, MESSAGE) from None
        self.sensor.record(permits, now_ms, check_quotas=False)


class PermissiveControllerMutationQuota(ThrottledMutationQuota):
    """Never refuses, for clients that do not know the error. They are throttled nevertheless."""

    __slots__ = ()

    def record(self, permits: float) -> None:
        now_ms = self.clock.monotonic_ms()
        try:
            self.sensor.record(permits, now_ms)
        except QuotaViolation as violation:
            self.remember(violation, now_ms)
