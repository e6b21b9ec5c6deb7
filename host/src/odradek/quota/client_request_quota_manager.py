"""Request time by user and client id (KIP-124); after kafka.server.ClientRequestQuotaManager."""

from __future__ import annotations

from odradek.metrics.rate import Rate
from odradek.metrics.sensor import QuotaViolation
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.throttle_time import bounded_throttle_time_ms

PERCENT_PER_NS = 100.0 / 1_000_000_000
EXEMPT = "exempt-Request"


class ClientRequestQuotaManager(ClientQuotaManager):
    """Percent of one thread's time. A quota above 100 only makes sense with more than one thread.

    A throttle never exceeds one window (``quota.window.size.seconds``).
    """

    rate_metric = "request-time"

    def record_ns_and_throttle_ms(self, user: str, client_id: str | None, spent_ns: int, now_ms: int) -> int:
        """Record the time that it took to answer a request; return the milliseconds to throttle for."""
        if not self.is_enabled:
            return 0
        return self.record_and_throttle_ms(user, client_id, spent_ns * PERCENT_PER_NS, now_ms)

    def record_network_ns(self, user: str, client_id: str | None, spent_ns: int, now_ms: int) -> None:
        """Record the time that it took to send a response; this alone never throttles."""
        if self.is_enabled:
            self.record_without_throttle(user, client_id, spent_ns * PERCENT_PER_NS, now_ms)

    def record_exempt_ns(self, spent_ns: int, now_ms: int) -> None:
        """Record the time of a request that is exempt from throttling; only while a quota is set."""
        if not self.is_enabled:
            return
        sensor = self.metrics.find(EXEMPT)
        if sensor is None:
            sensor = self.metrics.sensor(EXEMPT, now_ms)
            rate = Rate(WindowedSum())
            self.metrics.add(sensor, self.metric_name("exempt-request-time", {}), rate, now_ms)
        sensor.record(spent_ns * PERCENT_PER_NS, now_ms)

    def throttle_time_ms(self, violation: QuotaViolation, now_ms: int) -> int:
        return bounded_throttle_time_ms(violation, self.config.window_size_s * 1000, now_ms)
