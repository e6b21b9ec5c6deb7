"""Removal of the quota sensors of clients and addresses that were idle for an hour."""

from __future__ import annotations

from odradek.metrics.registry import SWEEP_MS
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.waiting.clock import Clock, Timer

SENSORS_PER_TURN = 500
"""Sensors of each kind per turn: two milliseconds if all of them are removed."""
BETWEEN_TURNS_MS = 20


def forget_idle(
    quotas: QuotaManagers | ConnectionQuotas, clock: Clock, timer: Timer, unseen: int | None = None
) -> None:
    """Forget clients and addresses that were idle for an hour, now and every 30 s, a few per turn."""
    now_ms = clock.monotonic_ms()
    left = (quotas.sensors if unseen is None else unseen) - SENSORS_PER_TURN
    quotas.expire(now_ms, SENSORS_PER_TURN)
    if left > 0:
        timer.schedule(now_ms + BETWEEN_TURNS_MS, lambda: forget_idle(quotas, clock, timer, left))
    else:
        timer.schedule(now_ms + SWEEP_MS, lambda: forget_idle(quotas, clock, timer))
