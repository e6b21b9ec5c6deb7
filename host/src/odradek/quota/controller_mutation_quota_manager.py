"""Partitions created and deleted per second (KIP-599); after kafka.server.ControllerMutationQuotaManager."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.metrics.rate import Rate
from odradek.metrics.sensor import QuotaViolation, Sensor
from odradek.metrics.token_bucket import TokenBucket
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.controller_mutation_quota import UNBOUNDED_QUOTA, ControllerMutationQuota
from odradek.quota.throttle_time import token_bucket_throttle_time_ms


class ControllerMutationQuotaManager(ClientQuotaManager):
    """A token bucket per budget enforces the quota; the rate beside it is only a metric."""

    rate_metric = "mutation-rate"

    def quota_for(self, user: str, client_id: str | None, strict: bool) -> ControllerMutationQuota:
        """The quota for one request.

        Args:
            user: Name of the principal.
            client_id: From the request header.
            strict: Whether the version of the request knows the error (CreateTopics 6, CreatePartitions 3,
                DeleteTopics 5).
        """
        if not self.is_enabled:
            return UNBOUNDED_QUOTA
        sensor = self.sensors(user, client_id, self.clock.monotonic_ms()).quota
        return ControllerMutationQuota(sensor, self.clock, strict)

    def add_quota_metrics(self, sensor: Sensor, tags: Mapping[str, str], now_ms: int) -> None:
        rate = Rate(WindowedSum(self.config.windows))
        bucket = TokenBucket(self.config.metric_config(self.limit_of_tags(tags)))
        self.metrics.add(sensor, self.metric_name(self.rate_metric, tags), rate, now_ms)
        self.metrics.add(sensor, self.metric_name("tokens", tags), bucket, now_ms)

    def throttle_time_ms(self, violation: QuotaViolation, now_ms: int) -> int:
        return token_bucket_throttle_time_ms(violation)
