"""How many partitions one request may create or delete (KIP-599).

After kafka.server.ControllerMutationQuota.
"""

from __future__ import annotations

from typing import Final

from odradek.metrics.sensor import QuotaViolation, Sensor
from odradek.quota.throttle_time import token_bucket_throttle_time_ms
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

MESSAGE = "The throttling quota has been exceeded."


class ControllerMutationQuota:
    """The quota of one request, which records each of its topics in order.

    A strict one refuses once the bucket is overdrawn. Until then it accepts any number, however far that
    overdraws. Another one never refuses: its clients do not know the error, and are throttled nevertheless.
    """

    __slots__ = ("clock", "is_strict", "last_throttle_ms", "last_violation_ms", "sensor")

    def __init__(self, sensor: Sensor, clock: Clock, is_strict: bool) -> None:
        self.sensor = sensor
        self.clock = clock
        self.is_strict = is_strict
        self.last_throttle_ms = 0
        self.last_violation_ms = 0

    def record(self, permits: float) -> None:
        """Record partitions to be created or deleted.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED; nothing was recorded.
        """
        now_ms = self.clock.monotonic_ms()
        try:
            if self.is_strict:
                self.sensor.check_quotas(now_ms)
            self.sensor.record(permits, now_ms, check_quotas=not self.is_strict)
        except QuotaViolation as violation:
            self.last_throttle_ms = token_bucket_throttle_time_ms(violation)
            self.last_violation_ms = now_ms
            if self.is_strict:
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, MESSAGE) from None

    def throttle_ms(self, now_ms: int) -> int:
        """Milliseconds left of the throttle time of the last violation, which runs while the request waits
        to be answered."""
        return max(0, self.last_throttle_ms - (now_ms - self.last_violation_ms))


class UnboundedQuota(ControllerMutationQuota):
    """Without a limit."""

    __slots__ = ()

    def __init__(self) -> None:
        """It has no sensor."""

    def record(self, permits: float) -> None:
        pass

    def throttle_ms(self, now_ms: int) -> int:
        return 0


UNBOUNDED_QUOTA: Final = UnboundedQuota()
