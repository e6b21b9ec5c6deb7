"""How long to throttle for a violation; after org.apache.kafka.server.quota.QuotaUtils."""

from __future__ import annotations

import math

from odradek.metrics.rate import Rate
from odradek.metrics.sensor import QuotaViolation
from odradek.metrics.token_bucket import TokenBucket
from odradek.wire.limits import INT32_MAX


def rounded_ms(value: float) -> int:
    """Round like Math.round: halves go up. Saturates at the largest int32, where Java would overflow."""
    return math.floor(value + 0.5) if value < INT32_MAX else INT32_MAX


def share(excess: float, bound: float) -> float:
    """The excess as a multiple of the bound; infinite for a bound of 0, which grants nothing."""
    return excess / bound if bound > 0 else math.inf


def throttle_time_ms(violation: QuotaViolation, now_ms: int) -> int:
    """Milliseconds until the rate is back at its bound if nothing else is recorded.

    Raises:
        ValueError: The metric is not a rate.
    """
    rate = violation.metric.stat
    if not isinstance(rate, Rate):
        raise ValueError(f"{violation.metric.name.name} is not a rate")
    excess = violation.value - violation.bound
    return rounded_ms(share(excess, violation.bound) * rate.window_size_ms(now_ms))


def bounded_throttle_time_ms(violation: QuotaViolation, max_ms: int, now_ms: int) -> int:
    """`throttle_time_ms`, at most ``max_ms``."""
    return min(throttle_time_ms(violation, now_ms), max_ms)


def token_bucket_throttle_time_ms(violation: QuotaViolation) -> int:
    """Milliseconds until the bucket is no longer overdrawn.

    Raises:
        ValueError: The metric is not a token bucket.
    """
    if not isinstance(violation.metric.stat, TokenBucket):
        raise ValueError(f"{violation.metric.name.name} is not a token bucket")
    return rounded_ms(share(-violation.value, violation.bound) * 1000)
