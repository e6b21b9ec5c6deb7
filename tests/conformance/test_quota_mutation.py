"""Controller mutation quotas (KIP-599), after Kafka's ControllerMutationQuotaManagerTest."""

from __future__ import annotations

import pytest

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.sensor import KafkaMetric, MetricName, QuotaViolation
from odradek.metrics.token_bucket import TokenBucket
from odradek.metrics.windowed_sum import WindowedSum
from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.quota.controller_mutation_quota import UNBOUNDED_QUOTA, ControllerMutationQuota
from odradek.quota.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.quota.quota_config import UNLIMITED, QuotaConfig
from odradek.quota.throttle_time import token_bucket_throttle_time_ms
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

USER, CLIENT_ID = "user", "client"


class MutatingClient:
    """A client with a quota over ten windows of one second, so that the burst is ten times the rate."""

    def __init__(self, rate: float | None = 10) -> None:
        self.clock = MockClock()
        kind, config = ClientQuotaType.CONTROLLER_MUTATION, QuotaConfig(samples=10)
        self.manager = ControllerMutationQuotaManager(kind, config, self.clock, timer=self.clock.timer)
        if rate is not None:
            self.manager.update_quota(ClientQuotaEntity(user=USER, client_id=CLIENT_ID), rate)

    def quota(self, *, strict: bool) -> ControllerMutationQuota:
        return self.manager.quota_for(USER, CLIENT_ID, strict)

    def mutate(self, permits: float) -> int:
        """Record mutations, or return the milliseconds until the bucket is no longer overdrawn."""
        quota = self.quota(strict=True)
        try:
            quota.record(permits)
        except ApiError:
            return quota.throttle_ms(self.clock.monotonic_ms())
        return 0

    def tokens(self) -> KafkaMetric | None:
        found = [m for name, m in self.manager.metrics.metrics.items() if name.name == "tokens"]
        return found[0] if found else None


def throttle_of(tokens: float) -> int:
    bucket = TokenBucket(MetricConfig(quota=Quota(10)))
    return token_bucket_throttle_time_ms(
        QuotaViolation(KafkaMetric(MetricName("t", "g"), bucket), tokens, 10)
    )


def test_the_throttle_lasts_until_the_debt_is_repaid() -> None:
    throttles_ms = [throttle_of(tokens) for tokens in (0, -5, -10)]

    assert throttles_ms == [0, 500, 1000]


def test_only_a_token_bucket_knows_the_throttle_time() -> None:
    other = QuotaViolation(KafkaMetric(MetricName("rate", "g"), WindowedSum()), 2, 1)

    with pytest.raises(ValueError, match="rate is not a token bucket"):
        token_bucket_throttle_time_ms(other)


def test_a_strict_quota_refuses_once_the_bucket_is_overdrawn() -> None:
    client = MutatingClient()
    quota = client.quota(strict=True)
    quota.record(90)
    quota.record(90)
    before_ms = quota.throttle_ms(client.clock.monotonic_ms())

    with pytest.raises(ApiError) as caught:
        quota.record(90)

    refused_ms = quota.throttle_ms(client.clock.monotonic_ms())
    client.clock.advance(5000)
    assert before_ms == 0
    assert caught.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert caught.value.message == "The throttling quota has been exceeded."
    assert (refused_ms, quota.throttle_ms(client.clock.monotonic_ms())) == (8000, 3000)


def test_a_permissive_quota_throttles_and_never_refuses() -> None:
    client = MutatingClient()
    quota = client.quota(strict=False)

    throttles = []
    for _ in range(3):
        quota.record(90)
        throttles.append(quota.throttle_ms(client.clock.monotonic_ms()))
    client.clock.advance(5000)

    assert throttles == [0, 8000, 17_000]
    assert quota.throttle_ms(client.clock.monotonic_ms()) == 12_000


def test_the_throttle_time_is_never_negative() -> None:
    client = MutatingClient()
    quota = client.quota(strict=False)
    quota.record(110)

    client.clock.advance(60_000)

    assert quota.throttle_ms(client.clock.monotonic_ms()) == 0


def overdrawn() -> tuple[MutatingClient, list[int]]:
    client, throttles = MutatingClient(), []
    for _ in range(10):
        throttles.append(client.mutate(10))
        client.clock.advance(1000)
    return client, [*throttles, client.mutate(110), client.mutate(110)]


def test_the_quota_is_checked_before_it_is_charged() -> None:
    client, throttles = overdrawn()
    metric = client.tokens()

    assert throttles == [0] * 10 + [0, 1000]
    assert metric is not None
    assert metric.value(client.clock.monotonic_ms()) == -10


def test_after_the_throttle_the_client_is_admitted() -> None:
    client, _ = overdrawn()
    ended: list[str] = []
    client.manager.throttled(USER, CLIENT_ID, 1000, on_end=lambda: ended.append("end"))
    queued = (client.manager.queue_size(client.clock.monotonic_ms()), list(ended))

    client.clock.advance(1000)

    assert queued == (1, [])
    assert (client.manager.queue_size(client.clock.monotonic_ms()), ended) == (0, ["end"])
    assert client.mutate(110) == 0


@pytest.mark.parametrize("strict", [True, False])
def test_without_any_quota_nothing_is_recorded(strict: bool) -> None:
    client = MutatingClient(rate=None)

    quota = client.quota(strict=strict)

    quota.record(1_000_000)
    assert quota is UNBOUNDED_QUOTA
    assert (quota.throttle_ms(client.clock.monotonic_ms()), client.tokens()) == (0, None)


def test_the_request_version_selects_strict_or_permissive() -> None:
    client = MutatingClient()

    kinds = [client.quota(strict=strict).is_strict for strict in (True, False)]

    assert kinds == [True, False]


def test_a_rate_may_have_a_fraction() -> None:
    manager, seen = MutatingClient(rate=None).manager, []
    for value in (None, 1.5, None):
        manager.update_quota(ClientQuotaEntity(user=USER), value)
        seen.append(manager.limit(USER, CLIENT_ID))

    assert seen == [UNLIMITED, 1.5, UNLIMITED]


def test_the_metric_appears_with_the_first_mutation_and_follows_the_quota() -> None:
    client = MutatingClient(rate=None)
    client.manager.update_quota(ClientQuotaEntity(user=USER), 2)
    before = client.tokens()

    client.mutate(10)

    metric = client.tokens()
    assert before is None
    assert metric is not None
    assert metric.name == MetricName("tokens", "ControllerMutation", (("user", USER), ("client-id", "")))
    assert metric.config == MetricConfig(samples=10, time_window_ms=1000, quota=Quota(2))
    client.manager.update_quota(ClientQuotaEntity(user=USER), 4)
    client.mutate(0)
    assert client.tokens() is metric
    assert metric.config == MetricConfig(samples=10, time_window_ms=1000, quota=Quota(4))
